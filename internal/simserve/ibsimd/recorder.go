package ibsimd

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// recorder writes datagrams to a capture file, as the packets that they would
// be at the ports of the clients, and the data packets of end nodes.
type recorder struct {
	*fabric.Recorder
	buffered *bufio.Writer
}

func newRecorder(w io.Writer, start time.Time) (*recorder, error) {
	r := &recorder{buffered: bufio.NewWriter(w)}
	var err error
	if r.Recorder, err = fabric.NewRecorder(r.buffered, start); err != nil {
		return nil, err
	}
	return r, r.flush()
}

// record adds a datagram. Its errors show in flush.
func (r *recorder) record(now time.Duration, m *madBytes, slid, dlid ib.LID) {
	r.Datagram(now, packet.MADPacket{QP: m.queuePair(), SLID: slid, DLID: dlid, PKey: ib.PKeyDefaultFull, MAD: m[:]})
}

// Record adds a datagram that a companion's program sends or gets to the
// capture, if there is one. It is called within Do or Turn; PSN is set here.
func (s *Server) Record(p *packet.MADPacket) {
	if s.recorder != nil {
		s.recorder.Datagram(s.fabric.Now(), *p)
	}
}

// flush writes what was recorded.
func (r *recorder) flush() error {
	if err := r.Err(); err != nil {
		return err
	}
	if err := r.buffered.Flush(); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
