package group

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// TestRandomLives has ports join and leave at random and holds what must always
// be true against the set: an MLID belongs to one group and never passes from
// one partition to another unless it was released, nobody is in a group of a
// partition that it is not in, groups without anybody who keeps them are gone,
// limits hold, and a state that was restored is the same.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		l := Limits{Groups: 12, PerPort: 5, Created: 4, LastMLID: ib.LIDMulticastMin + 9}
		s := New(l)
		owner := map[ib.LID]ib.PKeyBase{}
		holds := func(p ib.PortGUID, base ib.PKeyBase) bool { return base.IsValid() && uint64(p)%3 != uint64(base)%3 }
		for step := range 400 {
			port, base := ib.PortGUID(1+r.IntN(6)), ib.PKeyBase(r.IntN(5))
			rec := sa.MCMemberRecord{
				MGID: ib.GID{0: 0xFF, 1: 0x12, 15: byte(1 + r.IntN(14))}, PortGID: ib.MakeGID(ib.DefaultGIDPrefix, port),
				PKey: base.Full(), QKey: ib.QKey(1 + r.IntN(2)), JoinState: sa.JoinState(r.IntN(16)),
			}
			switch r.IntN(8) {
			case 0, 1, 2:
				s.Leave(port, &rec, joinNeeds|sa.MCMemberRecordMGID)
			case 3:
				s.Prune(func(p ib.PortGUID, base ib.PKeyBase) bool { return holds(p, base) && p != port })
			case 4:
				lid := ib.LIDMulticastMin + ib.LID(r.IntN(10))
				if s.ByMLID(lid) == nil {
					s.Release([]ib.LID{lid})
					delete(owner, lid)
				}
			default:
				before := s.State()
				j := Joiner{Port: port, MTU: ib.MTU2048, Rate: 3, Lifetime: 18, Holds: func(b ib.PKeyBase) bool { return holds(port, b) }}
				mask := createNeeds | sa.MCMemberRecordMGID
				if r.IntN(5) == 0 {
					mask &^= sa.MCMemberRecordMGID
				}
				if _, _, status := s.Join(j, &rec, mask); status != mad.StatusOK {
					after := s.State()
					after.Serial = before.Serial // MGIDs that were thought of are not given again
					if !reflect.DeepEqual(before, after) {
						t.Fatalf("seed %d step %d: a refused join (%s) changed\n%+v to\n%+v", seed, step, status, before, after)
					}
				}
			}
			joined := map[ib.PortGUID]int{}
			for _, g := range s.Groups() {
				if was, known := owner[g.MLID]; known && was != g.Partition {
					t.Fatalf("seed %d step %d: MLID %s passed from partition %s to %s", seed, step, g.MLID, was, g.Partition)
				}
				owner[g.MLID] = g.Partition
				if g.isEmpty() || g.MLID > l.LastMLID || s.ByMLID(g.MLID) != g {
					t.Fatalf("seed %d step %d: group %+v", seed, step, g)
				}
				for _, m := range g.Members {
					joined[m.Port]++
					if !holds(m.Port, g.Partition) || m.State == 0 {
						t.Fatalf("seed %d step %d: member %+v of partition %s", seed, step, m, g.Partition)
					}
				}
			}
			for port, n := range joined {
				if n > l.PerPort || s.joined[port] != n {
					t.Fatalf("seed %d step %d: port %s is in %d groups, counted as %d", seed, step, port, n, s.joined[port])
				}
			}
			fresh := New(l)
			if err := fresh.Restore(s.State()); err != nil || !reflect.DeepEqual(fresh.State(), s.State()) {
				t.Fatalf("seed %d step %d: restored as %+v, want %+v (%v)", seed, step, fresh.State(), s.State(), err)
			}
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	g := Group{MGID: ib.GID{0: 0xFF, 1: 0x12, 15: 1}, MLID: 0xC001, Partition: 1}
	same := g
	same.MGID[15] = 2
	unicast := g
	unicast.MLID = 5
	for name, state := range map[string]State{
		"an MLID twice":  {Groups: []Group{g, same}},
		"a unicast MLID": {Groups: []Group{unicast}},
		"in use and not": {Groups: []Group{g}, Retired: []Retired{{0xC001, 1}}},
		"a member twice": {Groups: []Group{{MGID: g.MGID, MLID: 0xC002, Partition: 1, Members: []Member{{Port: 1, State: 1}, {Port: 1, State: 1}}}}},
	} {
		s := New(DefaultLimits())
		if err := s.Restore(state); err == nil || len(s.Groups()) != 0 {
			t.Errorf("%s was taken: %v", name, err)
		}
	}
}

// Multicast LIDs that an unknown hand left in tables are given to nobody until
// they are released, and are no part of what is kept.
func TestWithhold(t *testing.T) {
	s := New(DefaultLimits())
	fixed := func(base ib.PKeyBase) Group {
		return Group{MGID: ib.GID{0: 0xFF, 1: 0x12, 4: byte(base), 15: 1}, Partition: base}
	}
	s.Withhold([]ib.LID{0xC000, 0xC001, 0xC003})
	if errs := s.Fix([]Group{fixed(1), fixed(2)}); len(errs) != 0 {
		t.Fatal(errs)
	}
	if a, b := s.Group(fixed(1).MGID).MLID, s.Group(fixed(2).MGID).MLID; a != 0xC002 || b != 0xC004 {
		t.Errorf("groups got %s and %s, want 0xc002 and 0xc004", a, b)
	}
	s.Withhold([]ib.LID{0xC002}) // a group's own
	if kept := s.Retired(); len(kept) != 3 {
		t.Errorf("%v are withheld", kept)
	}
	state := s.State()
	if len(state.Retired) != 0 || len(state.Groups) != 2 {
		t.Errorf("kept: %+v", state)
	}
	if err := New(DefaultLimits()).Restore(state); err != nil {
		t.Error(err)
	}
	s.Release([]ib.LID{0xC000})
	if errs := s.Fix([]Group{fixed(1), fixed(2), fixed(3)}); len(errs) != 0 || s.Group(fixed(3).MGID).MLID != 0xC000 {
		t.Errorf("after the release the next group got %s (%v), want 0xc000", s.Group(fixed(3).MGID).MLID, errs)
	}
}
