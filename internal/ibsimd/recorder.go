package ibsimd

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// recorder writes datagrams to a capture file, as the packets that they would
// be at the ports of the clients.
type recorder struct {
	capture  *packet.Capture
	buffered *bufio.Writer
	start    time.Time // the fabric's time 0
	octets   []byte    // of the packet being written
	serial   uint32    // packet sequence number, 24 bits
	err      error     // the first one; nothing is written after it
}

func newRecorder(w io.Writer, start time.Time) (*recorder, error) {
	r := &recorder{buffered: bufio.NewWriter(w), start: start}
	var err error
	if r.capture, err = packet.NewCapture(r.buffered); err != nil {
		return nil, err
	}
	return r, r.flush()
}

// record adds a datagram. Its errors show in flush.
func (r *recorder) record(now time.Duration, m *madOctets, slid, dlid ib.LID) {
	r.write(now, &packet.MADPacket{QP: m.queuePair(), SLID: slid, DLID: dlid, PKey: ib.PKeyDefaultFull, MAD: m[:]})
}

// write adds a packet and numbers it.
func (r *recorder) write(now time.Duration, p *packet.MADPacket) {
	if r.err != nil {
		return
	}
	p.PSN = r.serial
	r.serial = (r.serial + 1) & 0xFF_FFFF
	if r.octets, r.err = p.AppendBinary(r.octets[:0]); r.err == nil {
		r.err = r.capture.WritePacket(r.start.Add(now), r.octets)
	}
}

// Record adds a datagram that a companion's program sends or gets to the
// capture, if there is one. It is called within Do or Turn; PSN is set here.
func (s *Server) Record(p *packet.MADPacket) {
	if s.recorder != nil {
		s.recorder.write(s.fabric.Now(), p)
	}
}

// flush writes what was recorded.
func (r *recorder) flush() error {
	if r.err == nil {
		r.err = r.buffered.Flush()
	}
	if r.err != nil {
		return fmt.Errorf("capture: %w", r.err)
	}
	return nil
}
