package verbsd

import (
	"errors"
	"testing"

	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// TestLeave: what a connection made on the host is gone with it, and what a reset
// drops is not counted any more.
func TestLeave(t *testing.T) {
	b := newBench(t)
	c := b.raw(t, "red-1")
	for _, r := range []verbs.Request{
		{Call: verbs.CallCreateCQ, Count: 4},
		{Call: verbs.CallCreateQP, Type: verbs.QPTypeUD, CQ: 1, ReceiveCQ: 1},
		{Call: verbs.CallCreateEE},
		{Call: verbs.CallModifyQP, Object: 2, Mask: verbs.AttrState | verbs.AttrPort | verbs.AttrPKeyIndex | verbs.AttrQKey, Attr: &verbs.QPAttr{State: verbs.StateInit, Port: 1}},
		{Call: verbs.CallPostReceive, Object: 2, Count: 1000},
	} {
		if a := ask(t, c, r); a.Err() != nil {
			t.Fatal(r.Call, a.Err())
		}
	}
	var s *session
	var qp *endpoint.QP
	var ee *endpoint.EEContext
	look := func(bytes int) {
		t.Helper()
		_ = b.Do(func(*fabric.Fabric) { // a bench does not end
			s = b.server.hosts[0].sessions[0]
			qp, ee = s.qps[2].qp, s.ees[3]
			if s.check(t); s.bytes != bytes {
				t.Errorf("%d bytes, want %d", s.bytes, bytes)
			}
		})
	}
	look(1000 + endpoint.GRHSize + requestBytes)
	if a := ask(t, c, verbs.Request{Call: verbs.CallModifyQP, Object: 2, Mask: verbs.AttrState, Attr: &verbs.QPAttr{State: verbs.StateErr}}); a.Err() != nil {
		t.Fatal(a.Err())
	}
	look(1000 + endpoint.GRHSize + requestBytes) // of the completion
	if a := ask(t, c, verbs.Request{Call: verbs.CallModifyQP, Object: 2, Mask: verbs.AttrState, Attr: &verbs.QPAttr{}}); a.Err() != nil {
		t.Fatal(a.Err())
	}
	look(0)
	if a := ask(t, c, verbs.Request{Call: verbs.CallPoll, Object: 1, Count: 9}); a.Err() != nil || len(a.WCs) != 0 {
		t.Errorf("after the reset: %+v, %v", a.WCs, a.Err())
	}
	c.Close()
	b.idle(t)
	if err := qp.Modify(endpoint.Kernel, endpoint.StateErr, 0, endpoint.Attr{}); !errors.Is(err, endpoint.ErrDestroyed) {
		t.Errorf("the queue pair lives on: %v", err)
	}
	if err := ee.Modify(endpoint.StateErr, 0, endpoint.Attr{}); !errors.Is(err, endpoint.ErrDestroyed) {
		t.Errorf("the EE context lives on: %v", err)
	}
}

// TestEventsBounded: who takes no events keeps the oldest, so many and no more.
func TestEventsBounded(t *testing.T) {
	s := newSession(nil, false, 1)
	for i := range MaxEvents + 10 {
		s.raise(verbs.Event{Type: verbs.EventPKeyChange, QPN: 2, Port: 1})
		if want := min(i+1, MaxEvents); len(s.events) != want {
			t.Fatalf("%d events of %d, want %d", len(s.events), i+1, want)
		}
	}
}

// TestHandleOfAnotherPort: an address handle is for the queue pairs of its port.
func TestHandleOfAnotherPort(t *testing.T) {
	l, _, err := topology.Read([]byte("Hca 2 \"A\"\n[1] \"B\"[1]\n[2] \"B\"[2]\n\nHca 2 \"B\"\n[1] \"A\"[1]\n[2] \"A\"[2]\n"), "two", nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{topology: l}
	if b.fabric, err = fabric.New(l, fabric.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	b.server = New(b)
	c := b.raw(t, "A")
	for _, r := range []verbs.Request{
		{Call: verbs.CallCreateCQ, Count: 4},
		{Call: verbs.CallCreateQP, Type: verbs.QPTypeUD, CQ: 1, ReceiveCQ: 1},
		{Call: verbs.CallModifyQP, Object: 2, Mask: verbs.AttrState | verbs.AttrPort | verbs.AttrPKeyIndex | verbs.AttrQKey, Attr: &verbs.QPAttr{State: verbs.StateInit, Port: 2}},
		{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1}},
		{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 2, DLID: 1}},
	} {
		if a := ask(t, c, r); a.Err() != nil {
			t.Fatal(r.Call, a.Err())
		}
	}
	for ah, want := range map[uint32]error{3: verbs.ErrRequest, 4: verbs.ErrState} { // it is not in RTS
		a := ask(t, c, verbs.Request{Call: verbs.CallPostSend, Object: 2, Send: &verbs.SendRequest{AH: ah}})
		wantErr(t, "post send", a.Err(), want)
	}
}
