package kernel_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
)

// TestLocal: what the port's own agent makes of a request for this port is there at once, whoever asked.
func TestLocal(t *testing.T) {
	verdict, asked := sma.Answered, 0
	b := &bench{T: t, layer: kernel.New(kernel.Config{Port: 1, Agent: func(m *[mad.Size]byte) sma.Verdict {
		if asked++; m[mad.OffsetHopPointer] != m[mad.OffsetHopCount]+1 {
			t.Errorf("hop pointer %d of %d", m[mad.OffsetHopPointer], m[mad.OffsetHopCount])
		}
		if verdict == sma.Answered {
			m[mad.OffsetMethod] = byte(mad.MethodGetResp)
		}
		return verdict
	}})}
	b.file = b.open()
	b.pkeys()
	id := b.agent(b.file, smAgent())
	general := b.agent(b.file, umad.Registration{QPN: 1, Class: mad.ClassPerfMgt, ClassVersion: 1})
	m := datagram(mad.ClassSubnDirected, mad.MethodGet, 1)
	byRoute(m)
	for _, h := range []umad.Header{request(id), {ID: id}, request(general), {ID: general}} {
		b.wantWrite(written(h, true, m), umad.OK)
		got := b.wantRead(room, umad.OK)
		answer, err := umad.ReadHeader(got, true)
		want := umad.Header{ID: h.ID, LID: ib.LIDPermissive, Length: umad.HeaderSize + mad.Size}
		if method := mad.Method(got[umad.HeaderSize+mad.OffsetMethod]); err != nil || answer != want || method != mad.MethodGetResp {
			t.Errorf("%+v: %+v, method %v, %v, want %+v", h, answer, method, err, want)
		}
	}
	verdict = sma.BadMKey
	b.wantWrite(written(request(id), true, m), umad.EINVAL)
	b.wantRead(room, umad.EAGAIN)
	verdict = sma.Absorbed
	b.wantWrite(written(request(id), true, m), umad.OK)
	b.wantRead(room, umad.EAGAIN)
	if _, ok := b.layer.Deadline(); ok {
		t.Error("something is waited for")
	}
	verdict = sma.ForManager // it leaves as others do, and is waited for
	b.wantWrite(written(request(id), true, m), umad.OK)
	if p := b.sent(); p.MAD[mad.OffsetHopPointer] != m[mad.OffsetHopPointer] {
		t.Errorf("%+v", p)
	}
	if _, ok := b.layer.Deadline(); !ok || asked != 7 {
		t.Errorf("the agent was asked %d times, want 7; something is waited for: %v", asked, ok)
	}
	for name, change := range map[string]func(m []byte){
		"a hop":         func(m []byte) { m[7], m[129] = 1, 1 },
		"first by LID":  func(m []byte) { m[33] = 1 },
		"that returns":  func(m []byte) { m[4] = mad.DirectionBit },
		"another class": func(m []byte) { m[1] = byte(mad.ClassSubnLID) },
	} {
		other := append([]byte(nil), m...)
		other[14]++ // another transaction
		change(other)
		b.wantWrite(written(umad.Header{ID: id}, true, other), umad.OK)
		if b.sent(); asked != 7 {
			t.Errorf("%s: the port's own agent is asked", name)
		}
	}
}
