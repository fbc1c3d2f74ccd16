// Package capture writes packets to a file that Wireshark and tshark read. It is apart from
// ib/packet, so that this does not depend on a library for capture files (pcapgo of gopacket).
package capture

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// The captures are of link type ERF, records of type InfiniBand: the one form
// that Wireshark takes as it is. Its own link type for InfiniBand (247) is one
// that its reader of capture files does not know.
const (
	linkTypeERF       = layers.LinkType(197)
	erfTypeInfiniBand = 21
	erfVaryingLength  = 0x04 // flag: records are as long as their packets
	erfHeaderSize     = 16   // bytes
)

// MaxSize is the length of the longest packet that a file takes, in bytes:
// packet.MaxSize.
const MaxSize = 0x7FF*4 + 2

// Writer writes packets to a capture file that Wireshark and tshark read. The
// file format is written by gopacket's pcapgo: no C, tested with the tools that
// read it, and kept up.
type Writer struct {
	w      *pcapgo.Writer
	record []byte // reused: header and packet of the record being written
}

// NewWriter begins a capture on w: it writes the header of the file.
func NewWriter(w io.Writer) (*Writer, error) {
	c := &Writer{w: pcapgo.NewWriterNanos(w)}
	if err := c.w.WriteFileHeader(erfHeaderSize+MaxSize, linkTypeERF); err != nil {
		return nil, fmt.Errorf("capture: file header: %w", err)
	}
	return c, nil
}

// WritePacket adds a packet, LRH to VCRC, that was seen at time t, to the
// nanosecond. The packet may be malformed, but not longer than MaxSize. The
// format holds times from 1970 to early 2106.
func (c *Writer) WritePacket(t time.Time, packet []byte) error {
	if len(packet) > MaxSize {
		return fmt.Errorf("capture: packet of %d bytes, want at most %d", len(packet), MaxSize)
	}
	sec := t.Unix()
	// The zero time is refused too: pcapgo would put the clock in its place.
	if sec < 0 || sec > math.MaxUint32 {
		return fmt.Errorf("capture: time %v, want 1970 to 2106", t)
	}
	// Rounded up, so that rounding down gives the nanosecond back.
	fraction := (uint64(t.Nanosecond())<<32 + uint64(time.Second) - 1) / uint64(time.Second)
	r := c.record[:0]
	r = binary.LittleEndian.AppendUint64(r, uint64(sec)<<32|fraction)
	r = append(r, erfTypeInfiniBand, erfVaryingLength)
	r = binary.BigEndian.AppendUint16(r, uint16(erfHeaderSize+len(packet)))
	r = binary.BigEndian.AppendUint16(r, 0) // packets lost before this one
	r = binary.BigEndian.AppendUint16(r, uint16(len(packet)))
	r = append(r, packet...)
	c.record = r
	info := gopacket.CaptureInfo{Timestamp: t, CaptureLength: len(r), Length: len(r)}
	if err := c.w.WritePacket(info, r); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
