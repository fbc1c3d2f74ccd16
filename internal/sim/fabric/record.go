package fabric

import (
	"fmt"
	"io"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// Recorder writes one capture file.
type Recorder struct {
	file   *packet.CaptureWriter
	start  time.Time
	bytes  []byte // of the packet being written
	serial uint32 // packet sequence number of datagrams, 24 bits
	err    error  // the first one
}

// NewRecorder begins a capture file on w. Start is the fabric's time 0, from 1970 on.
func NewRecorder(w io.Writer, start time.Time) (*Recorder, error) {
	file, err := packet.NewCaptureWriter(w)
	if err != nil {
		return nil, err
	}
	return &Recorder{file: file, start: start}, nil
}

// Data takes what Config.DataTrace is told.
func (r *Recorder) Data(s DataSighting) {
	if s.Outcome == OutcomeLeft && s.Origin {
		r.write(s.At, s.Bytes)
	}
}

// Management takes what Config.Trace is told.
func (r *Recorder) Management(s Sighting) {
	if s.What == SeenByAgent || s.What == SeenByManager && !handedOn(s.MAD) {
		r.Datagram(s.At, packet.MADPacket{QP: ib.QP0, SLID: s.SLID, DLID: s.DLID, SL: s.SL, QP0PKey: s.PKey, MAD: s.MAD[:]})
	}
}

// handedOn reports whether a packet that a manager receives was seen by the agent before,
// which hands on traps and what is about SMInfo: all but answers, and what has come back on
// its directed route.
func handedOn(m *[mad.Size]byte) bool {
	back := mad.Class(m[mad.OffsetClass]) == mad.ClassSubnDirected && m[mad.OffsetStatus]&mad.DirectionBit != 0
	return !mad.Method(m[mad.OffsetMethod]).IsResponse() && !back
}

// Datagram writes a management datagram that was seen at a time of the fabric. Its
// PSN is set here.
func (r *Recorder) Datagram(now time.Duration, p packet.MADPacket) {
	if r.err != nil {
		return
	}
	p.PSN = r.serial
	r.serial = (r.serial + 1) & 0xFF_FFFF
	if r.bytes, r.err = p.AppendBinary(r.bytes[:0]); r.err == nil {
		r.write(now, r.bytes)
	}
}

func (r *Recorder) write(now time.Duration, bytes []byte) {
	if r.err == nil {
		r.err = r.file.WritePacket(r.start.Add(now), bytes)
	}
}

// Err is the first thing that went wrong, nil for nothing.
func (r *Recorder) Err() error {
	if r.err != nil {
		return fmt.Errorf("capture: %w", r.err)
	}
	return nil
}
