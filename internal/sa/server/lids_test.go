package server

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// leaving are the components that say which membership ends.
const leaving = sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordJoinState

// at asks as exchange does, at a time of its own.
func at(t *testing.T, s *Server, now time.Duration, lid ib.LID, m *[mad.Size]byte) mad.Status {
	t.Helper()
	s.Receive(now, m, mad.Address{LID: lid, QP: 1})
	var out [mad.Size]byte
	if _, ok := s.Next(now, &out); !ok {
		t.Fatal("no answer")
	}
	return mad.Status(uint16(out[mad.OffsetStatus])<<8 | uint16(out[mad.OffsetStatus+1]))
}

// TestMulticastLIDsUsedUp: 1,100 times a host makes a group with an odd JoinState
// and leaves it with another. What it keeps of multicast LIDs is what it answers
// for, its limit holds, others make groups all the while, and when it has left
// for good every LID is free.
func TestMulticastLIDsUsedUp(t *testing.T) {
	odd := []sa.JoinState{0x9, 0x1, 0x8, 0x5, 0x3, 0xF, 0xD, 0x2, 0x4, 0xC, 0x0}
	for _, fresh := range []bool{true, false} { // a new MGID each time, or one of a few
		s, _, a, b, other := twoTenants(t, Config{Profile: protect.Tenant})
		r := rand.New(rand.NewPCG(7, 7))
		const seed = 7
		limit := s.config.Limits.Groups.Created
		before := len(s.groups.Groups())
		now := time.Duration(0)
		made := map[ib.GID]bool{}
		for cycle := range 1100 {
			now += Window
			mgid := ib.GID{0: 0xFF, 1: 0x12, 13: 1, 14: byte(cycle >> 8), 15: byte(cycle)}
			if !fresh {
				mgid[14], mgid[15] = 0, byte(r.IntN(3))
			}
			made[mgid] = true
			x := join(s, a, mgid, 1)
			x.JoinState = odd[r.IntN(3)]
			if r.IntN(2) == 0 {
				x.JoinState = odd[r.IntN(len(odd))]
			}
			at(t, s, now, a, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate, x, 0))
			x.JoinState = odd[r.IntN(len(odd))]
			if r.IntN(2) == 0 {
				x.JoinState = 0x1
			}
			at(t, s, now, a, ask(mad.MethodDelete, sa.AttrMCMemberRecord, leaving, x, 0))
			if n := len(s.groups.Groups()) - before; n > limit {
				t.Fatalf("seed %d, cycle %d: %d groups of one host, want %d at most", seed, cycle, n, limit)
			}
			if cycle%100 == 0 {
				for _, lid := range []ib.LID{b, other} {
					base := map[ib.LID]ib.PKeyBase{b: 1, other: 2}[lid]
					mine := join(s, lid, ib.GID{0: 0xFF, 1: 0x12, 12: 9, 13: byte(base), 15: 1}, base)
					if got := at(t, s, now, lid, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate, mine, 0)); got != mad.StatusOK {
						t.Fatalf("cycle %d: LID %d makes a group: %s", cycle, lid, got)
					}
					at(t, s, now, lid, ask(mad.MethodDelete, sa.AttrMCMemberRecord, leaving, mine, 0))
				}
			}
		}
		for mgid := range made { // it leaves whatever it is in
			now += Window
			x := join(s, a, mgid, 1)
			x.JoinState = 0xF
			at(t, s, now, a, ask(mad.MethodDelete, sa.AttrMCMemberRecord, leaving, x, 0))
		}
		if n := len(s.groups.Groups()); n != before {
			t.Errorf("%d groups when all were left, want %d", n, before)
		}
		var lids []ib.LID
		for _, kept := range s.groups.Retired() {
			lids = append(lids, kept.MLID)
		}
		if len(lids) > limit+2 {
			t.Errorf("%d multicast LIDs are kept, want those that were in use at a time: %d", len(lids), limit+2)
		}
		s.groups.Release(lids) // no switch routes them any more
		if n := len(s.groups.Retired()); n != 0 {
			t.Errorf("%d multicast LIDs stay behind", n)
		}
	}
}

// TestTenantsShareMulticastLIDs: the hosts of one partition together cannot take
// the multicast LIDs of another.
func TestTenantsShareMulticastLIDs(t *testing.T) {
	w := build(4, 1, 12)
	w.tenants(2)
	l := LimitsOf(protect.Tenant)
	l.Groups.LastMLID = ib.LIDMulticastMin + 99
	s := w.serve(t, Config{Profile: protect.Tenant, Limits: l})
	var of [3][]ib.LID
	for _, p := range w.hosts {
		if p.Node.Switch == nil && p != w.fabric.Self {
			base := slices.MaxFunc(p.PKeys[:2], func(a, b ib.PKey) int { return int(b.Base()) - int(a.Base()) }).Base()
			of[base] = append(of[base], p.Info.LID)
		}
	}
	make := func(base ib.PKeyBase, from byte) (n int) {
		for i, lid := range of[base] {
			for k := range byte(30) {
				x := join(s, lid, ib.GID{0: 0xFF, 1: 0x12, 12: from, 13: byte(base), 14: byte(i), 15: k}, base)
				if exchange(t, s, lid, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate, x, 0)).Status == mad.StatusOK {
					n++
				}
			}
		}
		return n
	}
	const share = 100 / 2 / 3 // of half, for each of three partitions
	if got := make(1, 1); got < 60 || got > 100-2*share {
		t.Errorf("tenant 1 made %d groups, want those that are not kept for others", got)
	}
	if got := make(2, 1); got < share {
		t.Errorf("tenant 2 made %d groups after that, want %d at least", got, share)
	}
	// What was deleted stays the partition's own, and may be used by it again.
	one := join(s, of[2][0], ib.GID{0: 0xFF, 1: 0x12, 12: 1, 13: 2}, 2)
	for range 50 {
		expectStatus(t, "leave", exchange(t, s, of[2][0], ask(mad.MethodDelete, sa.AttrMCMemberRecord, leaving, one, 0)), mad.StatusOK)
		make(1, 2)
		expectStatus(t, "make again", exchange(t, s, of[2][0], ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate, one, 0)), mad.StatusOK)
	}
}

// TestWhoAnswersForAGroup: who made a group and left it may make another in its
// place; those that stay answer for it, after a restart too.
func TestWhoAnswersForAGroup(t *testing.T) {
	l := DefaultLimits()
	l.Groups.Created = 2
	s, w, a, b, _ := twoTenants(t, Config{Limits: l})
	group := func(n byte) ib.GID { return ib.GID{0: 0xFF, 1: 0x12, 15: n} }
	makes := func(lid ib.LID, n byte) mad.Status {
		return exchange(t, s, lid, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate, join(s, lid, group(n), 1), 0)).Status
	}
	for n := range byte(20) {
		if got := makes(a, n); got != mad.StatusOK {
			t.Fatalf("group %d, after %d were left: %s", n, n, got)
		}
		if got := makes(b, n); got != mad.StatusOK { // joins, and stays
			t.Fatalf("the neighbour joins group %d: %s", n, got)
		}
		expectStatus(t, "leave", exchange(t, s, a, ask(mad.MethodDelete, sa.AttrMCMemberRecord, leaving, join(s, a, group(n), 1), 0)), mad.StatusOK)
	}
	if got := makes(b, 30); got != sa.StatusNoResources {
		t.Errorf("who answers for 20 groups makes another: %s", got)
	}
	fresh := New(Config{Limits: l})
	if err := fresh.Restore(0, s.State(0)); err != nil {
		t.Fatal(err)
	}
	if errs := fresh.SetSubnet(0, w.snapshot()); errs != nil {
		t.Fatal(errs)
	}
	s = fresh
	if got := makes(b, 30); got != sa.StatusNoResources {
		t.Errorf("after a restart it makes another: %s", got)
	}
	if got := makes(a, 30); got != mad.StatusOK {
		t.Errorf("after a restart the first makes another: %s", got)
	}
}
