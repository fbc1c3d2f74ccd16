package fabric

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// recorder is a Recorder, with how many bytes were added to its file since the last call.
func recorder(t *testing.T) (r *Recorder, added func() int) {
	t.Helper()
	var file bytes.Buffer
	r, err := NewRecorder(&file, time.Unix(1000, 0))
	if err != nil {
		t.Fatal(err)
	}
	before := file.Len()
	return r, func() int {
		n := file.Len() - before
		before = file.Len()
		return n
	}
}

// TestWhatIsWritten: a data packet once, as it leaves its sender; an SMP where it is
// received.
func TestWhatIsWritten(t *testing.T) {
	r, added := recorder(t)
	raw := make([]byte, 100)
	for _, c := range []struct {
		name    string
		s       DataSighting
		written bool
	}{
		{"leaves its sender", DataSighting{Outcome: OutcomeLeft, Origin: true, Bytes: raw}, true},
		{"leaves a switch", DataSighting{Outcome: OutcomeLeft, Bytes: raw}, false},
		{"arrives", DataSighting{Outcome: OutcomeTaken, Bytes: raw}, false},
		{"is dropped where it starts", DataSighting{Outcome: OutcomeExitPKey, Origin: true, Bytes: raw}, false},
	} {
		r.Data(c.s)
		if n := added(); (n >= len(raw)) != c.written || !c.written && n != 0 {
			t.Errorf("a packet that %s adds %d bytes", c.name, n)
		}
	}
	r.Management(Sighting{MAD: new([mad.Size]byte), What: SeenByAgent})
	if n := added(); n <= mad.Size {
		t.Errorf("an SMP that an agent receives adds %d bytes", n)
	}
	for _, x := range []struct {
		class   mad.Class
		method  mad.Method
		back    byte
		written bool
	}{
		{mad.ClassSubnLID, mad.MethodTrap, 0, false}, {mad.ClassSubnLID, mad.MethodGetResp, 0, true},
		{mad.ClassSubnDirected, mad.MethodGet, 0, false}, {mad.ClassSubnDirected, mad.MethodGetResp, mad.DirectionBit, true},
		{mad.ClassSubnDirected, mad.MethodTrap, mad.DirectionBit, true},
	} {
		m := new([mad.Size]byte)
		m[mad.OffsetClass], m[mad.OffsetMethod], m[mad.OffsetStatus] = byte(x.class), byte(x.method), x.back
		r.Management(Sighting{MAD: m, What: SeenByManager})
		if n := added(); (n > mad.Size) != x.written {
			t.Errorf("%v of class %v that a manager receives, behind its agent, adds %d bytes", x.method, x.class, n)
		}
	}
	r.Management(Sighting{MAD: new([mad.Size]byte), What: SeenLeaving})
	if n := added(); n != 0 {
		t.Errorf("an SMP that leaves a node adds %d bytes", n)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

// full is a file on a full disk.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errors.New("no space left")
	}
	return len(b), nil
}

// TestFullDisk: the first error stays, and nothing is written after it.
func TestFullDisk(t *testing.T) {
	file := &full{room: 1000}
	r, err := NewRecorder(file, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		r.Datagram(0, packet.MADPacket{MAD: make([]byte, mad.Size)})
	}
	if r.Err() == nil {
		t.Fatal("a full disk is no error")
	}
	file.room = 1 << 20
	r.Datagram(0, packet.MADPacket{MAD: make([]byte, mad.Size)})
	if file.room != 1<<20 || r.Err() == nil {
		t.Errorf("after an error %d bytes were written, error %v", 1<<20-file.room, r.Err())
	}
	if _, err := NewRecorder(&full{}, time.Unix(0, 0)); err == nil {
		t.Error("a file that cannot be begun is no error")
	}
}
