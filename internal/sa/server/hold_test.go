package server

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// joinNew is a request of a port to create a group in a partition and join it.
func joinNew(p *observed.Port, key ib.PKey) *[mad.Size]byte {
	r := sa.MCMemberRecord{PortGID: ib.MakeGID(ib.DefaultGIDPrefix, p.GUID), JoinState: sa.JoinFull, PKey: key, QKey: 0xB1B}
	return ask(mad.MethodSet, sa.AttrMCMemberRecord, sa.MCMemberRecordPortGID|sa.MCMemberRecordJoinState|
		sa.MCMemberRecordQKey|sa.MCMemberRecordPKey|sa.MCMemberRecordSL|sa.MCMemberRecordTClass|sa.MCMemberRecordFlowLabel, &r, 0)
}

// moving is a world in whose policy a host has just got a partition that its table has not yet.
func moving(t *testing.T) (w *world, s *Server, p *observed.Port, key ib.PKey) {
	t.Helper()
	w = build(2, 2, 2)
	w.tenants(2)
	p, key = w.hosts[len(w.hosts)-2], ib.PKeyBase(9).Full()
	w.parts = append(w.parts, observed.Partition{Base: key.Base(), Name: "next", Full: []ib.PortGUID{p.GUID}})
	s = w.serve(t, Config{})
	s.SetChanging(0, true)
	return w, s, p, key
}

// given ends the change: the table has the key.
func given(t *testing.T, w *world, s *Server, now time.Duration, p *observed.Port, key ib.PKey) {
	t.Helper()
	for i, k := range p.PKeys {
		if k == 0 {
			p.PKeys[i] = key
			break
		}
	}
	if errs := s.SetSubnet(now, w.snapshot()); errs != nil {
		t.Fatal(errs)
	}
	s.SetChanging(now, false)
}

// statuses are those of all answers that leave.
func statuses(s *Server, now time.Duration) (out []mad.Status) {
	var m [mad.Size]byte
	for {
		if _, ok := s.Next(now, &m); !ok {
			return out
		}
		out = append(out, mad.Status(m[mad.OffsetStatus])<<8|mad.Status(m[mad.OffsetStatus+1]))
	}
}

func expect(t *testing.T, what string, got []mad.Status, want ...mad.Status) {
	t.Helper()
	if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
		t.Errorf("%s: answers %v, want %v", what, got, want)
	}
}

// A join that comes before the manager has read the new key back waits, and has one answer.
func TestJoinWaitsForTheChange(t *testing.T) {
	w, s, p, key := moving(t)
	m, from := joinNew(p, key), mad.Address{LID: p.Info.LID, QP: 1}
	s.Receive(0, m, from)
	s.Receive(300*time.Millisecond, m, from) // Linux sends it again
	expect(t, "during the change", statuses(s, 300*time.Millisecond))
	if at, ok := s.Deadline(); !ok || at != holdTime {
		t.Errorf("due at %v, %v; want %v", at, ok, holdTime)
	}
	given(t, w, s, time.Second, p, key)
	expect(t, "after it", statuses(s, time.Second), mad.StatusOK)
	if g := s.Groups().State().Groups; len(g) != 1 {
		t.Errorf("%d groups", len(g))
	}
}

// A change that takes long, or does not give the key, keeps nobody waiting for ever.
func TestJoinWaitsNoLonger(t *testing.T) {
	_, s, p, key := moving(t)
	s.Receive(0, joinNew(p, key), mad.Address{LID: p.Info.LID, QP: 1})
	s.Expire(holdTime - 1)
	expect(t, "before its time", statuses(s, holdTime-1))
	s.Expire(holdTime)
	expect(t, "at its time", statuses(s, holdTime), sa.StatusRequestInvalid)
	s.Receive(holdTime, joinNew(p, key), mad.Address{LID: p.Info.LID, QP: 1})
	s.SetChanging(holdTime+1, false)
	expect(t, "when the change did not give it", statuses(s, holdTime+1), sa.StatusRequestInvalid)
	s.Receive(holdTime+2, joinNew(p, key), mad.Address{LID: p.Info.LID, QP: 1})
	expect(t, "without a change", statuses(s, holdTime+2), sa.StatusRequestInvalid)
}

// A port that the manager has just found, and a server that is not master yet.
func TestUnknownJoins(t *testing.T) {
	w := build(2, 2, 2)
	w.tenants(2)
	p := w.hosts[0]
	for _, h := range w.hosts {
		if h.Node.Switch == nil && h != w.fabric.Self {
			p = h
		}
	}
	s := New(Config{})
	s.SetChanging(0, true)
	key := p.PKeys[1]
	s.Receive(0, joinNew(p, key), mad.Address{LID: p.Info.LID, QP: 1})
	expect(t, "before the first sweep has ended", statuses(s, 0))
	s.SetSubnet(1, w.snapshot())
	expect(t, "after it", statuses(s, 1), mad.StatusOK)
	s.Receive(2, joinNew(p, key), mad.Address{LID: 0x7777, QP: 1})
	expect(t, "from a LID of no port", statuses(s, 2))
	s.SetChanging(3, false)
	expect(t, "from a LID of no port, after the change", statuses(s, 3), sa.StatusRequestInvalid)
}

// Root of a host who asks for more than the room of one takes no other's.
func TestHeldJoinsAreBounded(t *testing.T) {
	w, s, p, key := moving(t)
	for range 2 * holdEach {
		s.Receive(0, joinNew(p, key), mad.Address{LID: p.Info.LID, QP: 1})
	}
	if got := statuses(s, 0); len(got) != holdEach {
		t.Errorf("%d refused at once, want %d", len(got), holdEach)
	}
	for lid := range ib.LID(2 * holdMax / holdEach) {
		for range holdEach {
			s.Receive(0, joinNew(p, key), mad.Address{LID: 0x7000 + lid, QP: 1})
		}
	}
	if n := len(s.held.list); n != holdMax {
		t.Errorf("%d wait, want %d", n, holdMax)
	}
	statuses(s, 0)
	given(t, w, s, 1, p, key)
	if got := statuses(s, 1); len(got) != holdMax || len(s.held.list) != 0 {
		t.Errorf("%d answers, %d wait", len(got), len(s.held.list))
	}
}
