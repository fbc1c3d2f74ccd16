package packet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"
)

// The captures are of link type ERF, records of type InfiniBand: the one form
// that Wireshark takes as it is. Its own link type for InfiniBand (247) is one
// that its reader of capture files does not know.
const (
	linkTypeERF       = 197
	erfTypeInfiniBand = 21
	erfVaryingLength  = 0x04 // flag: records are as long as their packets
	erfHeaderSize     = 16   // bytes
)

// The file format is pcap 2.4, here in little-endian.
const (
	magicNanoseconds = 0xA1B23C4D
	versionMajor     = 2
	versionMinor     = 4
)

// CaptureWriter writes packets to a capture file that Wireshark and tshark read.
type CaptureWriter struct {
	w      io.Writer
	record []byte // reused: headers and packet of the record being written
}

// NewCaptureWriter begins a capture on w: it writes the header of the file.
func NewCaptureWriter(w io.Writer) (*CaptureWriter, error) {
	b := binary.LittleEndian.AppendUint32(nil, magicNanoseconds)
	b = binary.LittleEndian.AppendUint16(b, versionMajor)
	b = binary.LittleEndian.AppendUint16(b, versionMinor)
	b = append(b, make([]byte, 8)...) // times are UTC; their accuracy is not said
	b = binary.LittleEndian.AppendUint32(b, erfHeaderSize+MaxSize)
	b = binary.LittleEndian.AppendUint32(b, linkTypeERF)
	if _, err := w.Write(b); err != nil {
		return nil, fmt.Errorf("capture: file header: %w", err)
	}
	return &CaptureWriter{w: w}, nil
}

// WritePacket adds a packet, LRH to VCRC, that was seen at time t, to the
// nanosecond. The packet may be malformed, but not longer than MaxSize. The
// format holds times from 1970 to early 2106.
func (c *CaptureWriter) WritePacket(t time.Time, packet []byte) error {
	if len(packet) > MaxSize {
		return fmt.Errorf("capture: packet of %d bytes, want at most %d", len(packet), MaxSize)
	}
	sec := t.Unix()
	if sec < 0 || sec > math.MaxUint32 {
		return fmt.Errorf("capture: time %v, want 1970 to 2106", t)
	}
	// Rounded up, so that rounding down gives the nanosecond back.
	fraction := (uint64(t.Nanosecond())<<32 + uint64(time.Second) - 1) / uint64(time.Second)
	size := uint32(erfHeaderSize + len(packet))
	r := binary.LittleEndian.AppendUint32(c.record[:0], uint32(sec))
	r = binary.LittleEndian.AppendUint32(r, uint32(t.Nanosecond()))
	r = binary.LittleEndian.AppendUint32(r, size) // in the file
	r = binary.LittleEndian.AppendUint32(r, size) // as it was
	r = binary.LittleEndian.AppendUint64(r, uint64(sec)<<32|fraction)
	r = append(r, erfTypeInfiniBand, erfVaryingLength)
	r = binary.BigEndian.AppendUint16(r, uint16(size))
	r = binary.BigEndian.AppendUint16(r, 0) // packets lost before this one
	r = binary.BigEndian.AppendUint16(r, uint16(len(packet)))
	r = append(r, packet...)
	c.record = r
	if _, err := c.w.Write(r); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
