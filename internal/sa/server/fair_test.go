package server

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// crowd is a server of a larger world in which everybody sees everybody, with
// its stores well filled.
func crowd(t testing.TB, p protect.Profile) (*Server, []ib.LID) {
	t.Helper()
	w := build(6, 2, 12)
	for _, x := range w.hosts {
		w.give(x, 1, true)
	}
	l := LimitsOf(p)
	l.QueriesPerWindow, l.ChangesPerWindow, l.QueriesBurst = 1<<30, 1<<30, 1<<30 // what is left without them
	l.Groups.Created, l.Services, l.Subscriptions = 1000, 1000, 1000
	s := New(Config{Profile: p, Limits: l, AliasGUIDs: true})
	if errs := s.SetSubnet(0, withGroups(w.snapshot(), 1)); errs != nil {
		t.Fatal(errs)
	}
	var hosts []ib.LID
	for _, x := range w.hosts {
		if x.Node.Switch == nil && x != w.fabric.Self {
			hosts = append(hosts, x.Info.LID)
		}
	}
	for i, lid := range hosts {
		for n := range 40 {
			service := &sa.ServiceRecord{ServiceID: uint64(i*100 + n), ServiceGID: s.view.At(lid).GID}
			exchange(t, s, lid, ask(mad.MethodSet, sa.AttrServiceRecord, serviceNeeds, service, 0))
			info := everything()
			info.QPN = ib.QPN(n + 1)
			exchange(t, s, lid, ask(mad.MethodSet, sa.AttrInformInfo, 0, info, 0))
		}
	}
	if len(s.store.services) < 2500 || len(s.store.subscriptions) < 2500 {
		t.Fatalf("%d services and %d subscriptions, want more", len(s.store.services), len(s.store.subscriptions))
	}
	return s, hosts
}

// nasty is a request that makes as much work as a host can.
func nasty(s *Server, lid ib.LID, r *rand.Rand) (head [rmpp.HeadSize]byte, body []byte) {
	gid := s.view.At(lid).GID
	var m *[mad.Size]byte
	switch r.IntN(9) {
	case 0:
		m = ask(mad.MethodGetTable, sa.AttrPathRecord, 0, nil, 0)
	case 1:
		m = ask(mad.MethodGetTable, sa.AttrPathRecord, sa.PathRecordDGID, &sa.PathRecord{DGID: gid}, 0)
	case 2: // a long request: everybody from everywhere
		q := &sa.MultiPathRecord{SGIDs: []ib.GID{gid}}
		if r.IntN(2) == 0 {
			q.SGIDs = nil
		}
		for _, p := range s.view.Ports {
			if len(q.DGIDs) < 255 {
				q.DGIDs = append(q.DGIDs, p.GID)
			}
			if len(q.SGIDs) < 254 && len(q.SGIDs) != 1 {
				q.SGIDs = append(q.SGIDs, p.GID, p.GID)
			}
		}
		m = ask(mad.MethodGetMulti, sa.AttrMultiPathRecord, multiNeedsBoth, nil, 0)
		b, err := q.AppendBinary(nil)
		if err != nil {
			panic(err)
		}
		copy(head[:], m[:])
		return head, b
	case 3:
		m = ask(mad.MethodGetTable, sa.AttrServiceRecord, 0, nil, 0)
	case 4: // finds nothing, and looks at everything
		m = ask(mad.MethodGet, sa.AttrNodeRecord, 1<<6, &sa.NodeRecord{NodeInfo: smp.NodeInfo{SystemImageGUID: 1}}, 0)
	case 5:
		kinds := append(append([]mad.AttributeID(nil), modelled...), peopledKinds...)
		m = ask(mad.MethodGetTable, kinds[r.IntN(len(kinds))], 0, nil, 0)
	case 6, 7: // a group comes to be, or ends, of which thousands are to be told
		x := join(s, lid, ib.GID{0: 0xFF, 1: 0x12, 14: byte(lid), 15: byte(r.IntN(4))}, 1)
		m = ask([]mad.Method{mad.MethodSet, mad.MethodDelete}[r.IntN(2)], sa.AttrMCMemberRecord, kernelCreate, x, 0)
	default:
		service := &sa.ServiceRecord{ServiceID: uint64(r.IntN(100)), ServiceGID: gid}
		m = ask([]mad.Method{mad.MethodSet, mad.MethodDelete}[r.IntN(2)], sa.AttrServiceRecord, serviceNeeds, service, 0)
	}
	copy(head[:], m[:])
	return head, append([]byte(nil), m[rmpp.HeadSize:]...)
}

const multiNeedsBoth = sa.MultiPathRecordSGIDCount | sa.MultiPathRecordDGIDCount

// TestOthersAreServed: whatever a host sends, and however much of it, a request of
// another is answered after one turn of that host at most, and a turn is short:
// what may be asked for in one datagram would keep the server busy for up to a
// million records.
func TestOthersAreServed(t *testing.T) {
	for _, p := range []protect.Profile{protect.None, protect.Tenant} {
		s, hosts := crowd(t, p)
		attacker, victim := hosts[0], hosts[1]
		const seed = 5
		r := rand.New(rand.NewPCG(seed, uint64(p)))
		gid := s.view.At(victim).GID
		usual := turnsOf(t, s, victim, gid, r)
		worst, looked := 0, uint64(0)
		var m [mad.Size]byte
		now := time.Duration(0)
		for round := range 100 {
			now += time.Millisecond
			for range 1 + r.IntN(30) {
				head, body := nasty(s, attacker, r)
				s.request(now, mad.Address{LID: attacker, QP: ib.QPN(1 + r.IntN(50))}, &head, body)
			}
			for range r.IntN(40) { // it is somewhere in the middle of it
				if _, ok := s.Next(now, &m); !ok {
					break
				}
			}
			before := s.counts.Looked
			worst = max(worst, turnsOf(t, s, victim, gid, r))
			looked = max(looked, s.counts.Looked-before)
			if round%25 == 24 {
				s.Expire(now + time.Hour) // what the attacker never acknowledged is over
			}
		}
		t.Logf("seed %d, profile %s: usually %d turns, at worst %d, with %d records looked at; %d turns in all", seed, p, usual, worst, looked, s.counts.Turns)
		if worst > 2*max(usual, 1) {
			t.Errorf("seed %d, profile %s: a request took %d turns, usually %d", seed, p, worst, usual)
		}
		if most := uint64(2 * s.config.Limits.Turn); looked > most {
			t.Errorf("seed %d, profile %s: meanwhile %d records were looked at, want %d at most", seed, p, looked, most)
		}
		if s.counts.Turns < 5000 {
			t.Errorf("profile %s: only %d turns: the attack was none", p, s.counts.Turns)
		}
	}
}

// turnsOf sends a request of a port and returns after how many turns it was
// answered, its own included.
func turnsOf(t *testing.T, s *Server, lid ib.LID, gid ib.GID, r *rand.Rand) int {
	t.Helper()
	other := s.view.Ports[r.IntN(len(s.view.Ports))]
	q := ask(mad.MethodGet, sa.AttrPathRecord, sa.PathRecordSGID|sa.PathRecordDGID, &sa.PathRecord{SGID: gid, DGID: other.GID}, 0)
	before := s.counts.Turns
	s.Receive(0, q, mad.Address{LID: lid, QP: 1})
	var m [mad.Size]byte
	for range 1000 {
		to, ok := s.Next(0, &m)
		if ok && to.LID == lid && [8]byte(m[mad.OffsetTransactionID:]) == [8]byte(q[mad.OffsetTransactionID:]) {
			if m[mad.OffsetStatus] != 0 || m[mad.OffsetStatus+1] != 0 {
				t.Fatalf("the path of LID %d: status %#x", lid, m[mad.OffsetStatus:mad.OffsetStatus+2])
			}
			return int(s.counts.Turns - before)
		}
	}
	t.Fatalf("LID %d is not answered", lid)
	return 0
}
