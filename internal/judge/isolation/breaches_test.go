package isolation

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

// TestBreaches: the pairs are those of a proof, each once with its worst verdict; a limit leaves
// out none of those that are asked for.
func TestBreaches(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	found := map[Verdict]int{}
	for range 300 {
		s := newSite()
		p := NewProver(s.f, s.allowed)
		for range 1 + r.IntN(12) {
			mutate(r, s, p)
		}
		proof := p.Proof()
		if proof.Counts.Violations > len(proof.Violations) || proof.Counts.Exposed > len(proof.Exposed) {
			continue // it does not list all
		}
		want := map[[2]ib.PortGUID]Verdict{}
		for v, list := range map[Verdict][]Violation{Violated: proof.Violations, ByEndPorts: proof.Exposed} {
			for _, x := range list {
				k := [2]ib.PortGUID{min(x.From, x.To), max(x.From, x.To)}
				want[k] = max(want[k], v)
			}
		}
		got := map[[2]ib.PortGUID]Verdict{}
		all, more := p.Breaches(1000, nil)
		for _, b := range all {
			got[[2]ib.PortGUID{b.From, b.To}] = b.Verdict
			found[b.Verdict]++
		}
		if more || len(all) != len(got) || !maps.Equal(got, want) {
			t.Fatalf("%d pairs, more %v: %v\nwant %v", len(all), more, got, want)
		}
		if len(all) < 3 {
			continue
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		first := [][2]ib.PortGUID{{all[0].From, all[0].To}, {all[1].To, all[1].From}, {1, 2}}
		some, more := p.Breaches(2, first)
		if !more || len(some) != 2 || !slices.Contains(some, all[0]) || !slices.Contains(some, all[1]) {
			t.Fatalf("%v, more %v: want %v and %v, and that there are more", some, more, all[0], all[1])
		}
	}
	if found[Violated] == 0 || found[ByEndPorts] == 0 {
		t.Errorf("found %v, want some of both", found)
	}
}
