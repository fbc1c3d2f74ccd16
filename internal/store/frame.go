// This file adds checksums to stored values. The checksum covers the name of the value
// too, so that a value under a wrong name is detected. It detects faults of disks and
// files, not deliberate changes.

package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FrameOverhead is what a frame has more than its bytes.
const FrameOverhead = 4

// SealFrame returns a copy of data with the checksum of name and data before it.
func SealFrame(name string, data []byte) []byte {
	out := make([]byte, FrameOverhead, FrameOverhead+len(data))
	binary.BigEndian.PutUint32(out, sum(name, data))
	return append(out, data...)
}

// OpenFrame returns the bytes that Seal was given. They are a part of framed.
func OpenFrame(name string, framed []byte) ([]byte, error) {
	if len(framed) < FrameOverhead {
		return nil, errors.New("too short for its checksum")
	}
	data := framed[FrameOverhead:]
	if binary.BigEndian.Uint32(framed) != sum(name, data) {
		return nil, errors.New("its checksum does not match")
	}
	return data, nil
}

func sum(name string, data []byte) uint32 {
	c := crc32.Update(0, castagnoli, []byte(name))
	c = crc32.Update(c, castagnoli, []byte{0})
	return crc32.Update(c, castagnoli, data)
}
