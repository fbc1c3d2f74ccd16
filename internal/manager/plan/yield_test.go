package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// A port that has a LID which another is to have loses it before that one gets it, and two
// that change places lose theirs before either may be asked by it.
func TestPortsYieldTheirLIDs(t *testing.T) {
	for _, x := range []struct {
		name        string
		now, wanted []ib.LID // of hosts 1, 2, 3
		lmc         ib.LMC
		want        []string
	}{
		{"nothing moves", []ib.LID{1, 2, 3}, []ib.LID{1, 2, 3}, 0, nil},
		{"one free LID for another", []ib.LID{1, 2, 3}, []ib.LID{7, 2, 3}, 0, []string{"port settings 1"}},
		{"from one to the other", []ib.LID{1, 2, 3}, []ib.LID{7, 1, 3}, 0, []string{"LIDs that others get 1", "port settings 2"}},
		{"in a ring", []ib.LID{1, 2, 3}, []ib.LID{2, 3, 1}, 0, []string{"LIDs that others get 1", "LIDs that others get 2", "LIDs that others get 3"}},
		{"to a port without one", []ib.LID{1, 0, 3}, []ib.LID{7, 1, 3}, 0, []string{"LIDs that others get 1", "port settings 2"}},
		{"within a range", []ib.LID{8, 12, 16}, []ib.LID{20, 12, 10}, 2, []string{"LIDs that others get 1", "port settings 3"}},
	} {
		f := star(3, func(int) bool { return false }, smp.PortActive)
		d := observed.NewDesired(f)
		for i := range x.now {
			p := f.Nodes[0].Ports[i+1].Peer
			p.Info.LID, p.Info.LMC = x.now[i], x.lmc
			w := d.Port(p)
			w.Elements, w.Info.LID, w.Info.LMC = observed.ElementLID|observed.ElementLMC, x.wanted[i], x.lmc
			if x.wanted[i]&3 != 0 {
				w.Info.LMC = 0
			}
		}
		var got []string
		plan := Diff(f, d)
		for _, s := range plan.Stages {
			for _, op := range s.Ops {
				got = append(got, fmt.Sprintf("%s %d", s.Name, op.Port.Peer.Num))
				carryOut(t, plan, op)
			}
		}
		if x.lmc == 0 && !slices.Equal(got, x.want) || x.lmc != 0 && (len(got) == 0 || got[0] != x.want[0]) {
			t.Errorf("%s: writes %q, want %q", x.name, got, x.want)
		}
		if left := Diff(f, d).Len(); left != 0 {
			t.Errorf("%s: %d writes left", x.name, left)
		}
	}
}
