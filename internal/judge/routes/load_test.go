package routes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// In a whole fat tree whose tables are by destination, a shift puts one flow on a link, and
// all to all the same number on each.
func TestLoadOfATree(t *testing.T) {
	in := tree(3, 6)
	j := Prepare(in)
	// 54 hosts: each edge switch sends its 3*51 flows by 3 links.
	if l := j.AllToAll(); l.Flows != 54*53 || l.Lost != 0 || l.Worst != 51 || l.Longest != 4 || l.Rounds != 1 || l.Links != 2*2*54 || l.Used != l.Links || l.Mean != 51-2*9/6.0 {
		t.Errorf("all to all: %+v", l)
	}
	if l := j.Shift(1000); l.Rounds != 53 || l.Flows != 53*54 || l.Worst < 1 || l.Longest != 4 {
		t.Errorf("shift: %+v", l)
	}
	if l := j.Shift(5); l.Rounds != 5 || l.Flows != 5*54 {
		t.Errorf("five shifts: %+v", l)
	}
	a, b := j.Bisection(20, 1), j.Bisection(20, 1)
	if a != b || a.Flows != 20*54 || a.Worst < 2 || a.MeanWorst > float64(a.Worst) || a == j.Bisection(20, 2) {
		t.Errorf("bisection: %+v, again %+v", a, b)
	}
}

// What is counted by trees is what following each pair counts, on random fabrics.
func TestLoadEqualsBruteForce(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 19))
		in := randomInput(rng)
		j := Prepare(in)
		var tenants []Tenant
		var hosts []*observed.Port
		lids := map[*observed.Port][]ib.LID{}
		for _, e := range in.Ends {
			if at, _ := firstSwitch(e.Port); at == nil || isSwitch(e.Port) {
				continue
			}
			hosts = append(hosts, e.Port)
			for lid := e.LID; lid <= e.last(); lid++ {
				lids[e.Port] = append(lids[e.Port], lid)
			}
		}
		for range 1 + rng.IntN(3) {
			var x Tenant
			for _, p := range hosts {
				switch rng.IntN(4) {
				case 0:
					x.Full = append(x.Full, p)
				case 1:
					x.Limited = append(x.Limited, p)
				}
			}
			tenants = append(tenants, x)
		}
		count := map[*observed.Port]uint64{}
		var want Load
		flow := func(from, to *observed.Port) {
			o := &opinion{in: in}
			at, num := firstSwitch(from)
			for _, lid := range lids[to] {
				steps, why := o.route(at, num, to, lid, map[string]bool{})
				if why != Delivered {
					want.Lost++
					continue
				}
				want.Flows++
				for _, s := range steps {
					if s.between {
						count[s.out]++
						want.Passed++
					}
				}
			}
		}
		for _, x := range tenants {
			for _, a := range slices.Concat(x.Full, x.Limited) {
				for _, b := range slices.Concat(x.Full, x.Limited) {
					if a != b && (slices.Contains(x.Full, a) || slices.Contains(x.Full, b)) {
						flow(a, b)
					}
				}
			}
		}
		for _, n := range count {
			want.Worst = max(want.Worst, n)
		}
		got := j.Tenants(tenants)
		if got.Flows != want.Flows || got.Lost != want.Lost || got.Passed != want.Passed || got.Worst != want.Worst || got.Used != len(count) ||
			got.Worst > 0 && count[got.WorstAt] != got.Worst {
			t.Fatalf("seed %d: %+v, want %+v and %d links", seed, got, want, len(count))
		}
		all := j.AllToAll()
		want, count = Load{}, map[*observed.Port]uint64{}
		for _, a := range hosts {
			for _, b := range hosts {
				if a != b {
					flow(a, b)
				}
			}
		}
		if all.Flows != want.Flows || all.Lost != want.Lost || all.Passed != want.Passed {
			t.Fatalf("seed %d, all to all: %+v, want %+v", seed, all, want)
		}
		for _, one := range []Load{j.Shift(7), j.Bisection(3, seed)} {
			if n := uint64(len(hosts)); one.Flows+one.Lost != uint64(one.Rounds)*n && fmt.Sprint(n%2) == "0" {
				t.Fatalf("seed %d: %+v of %d hosts", seed, one, n)
			}
		}
	}
}
