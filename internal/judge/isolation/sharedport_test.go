package isolation

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// sharedByTrying names the end ports that can talk to two others which cannot talk to
// each other, in the order of GUIDs: every three ports are tried.
func sharedByTrying(f *observed.Fabric) (out []string) {
	ports := f.EndPorts()
	talk := make([][]bool, len(ports))
	for i, a := range ports {
		talk[i] = make([]bool, len(ports))
		for j, b := range ports {
			talk[i][j] = slices.ContainsFunc(a.PKeys, func(x ib.PKey) bool {
				return x.IsValid() && slices.ContainsFunc(b.PKeys, x.Matches)
			})
		}
	}
	for i, p := range ports {
		is := false
		for j := range ports {
			for k := range j {
				is = is || i != j && i != k && talk[i][j] && talk[i][k] && !talk[j][k]
			}
		}
		if is {
			out = append(out, p.String())
		}
	}
	return out
}

// Ports get, keep and lose keys at random, one at a time and many at once; after each
// step the shared ports are those that trying finds, and those of a look at everything.
func TestSharedPortsFollowChanges(t *testing.T) {
	seen, gave := map[int]bool{}, map[int]bool{}
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 16))
		s := newTree(3, 4)
		for _, h := range s.hosts {
			h.Peer.PKeys[0] = 0x8001 // none is shut off
		}
		bases := []ib.PKeyBase{0x11, 0x12, 0x13, 0x14, 0x15}[:2+r.IntN(4)]
		p, weary := NewProver(s.f, nil), NewProver(s.f, nil)
		weary.shared.most = 4
		for step := range 120 {
			some := 1
			if r.IntN(10) == 0 {
				some = 2 * maxMade
			}
			for range some {
				h := s.hosts[r.IntN(len(s.hosts))]
				k := bases[r.IntN(len(bases))].Limited()
				switch r.IntN(6) {
				case 0:
					k = 0
				case 1, 2, 3:
					k = k.Base().Full()
				case 4: // as another has it
					copy(h.PKeys, s.hosts[r.IntN(len(s.hosts))].PKeys)
				}
				h.PKeys[r.IntN(3)] = k
				p.Changed(h)
				weary.Changed(h)
			}
			got := p.Proof()
			var names []string
			for _, x := range got.SharedPorts {
				names = append(names, x.Name)
			}
			seen[len(names)] = true
			if want := sharedByTrying(s.f); !slices.Equal(names, want) || got.Counts.SharedPorts != len(want) {
				t.Fatalf("seed %d, step %d: %v shared, %d; want %v", seed, step, names, got.Counts.SharedPorts, want)
			}
			// One that gives up says so, and never names a port wrongly.
			found := weary.Proof()
			gave[len(found.Caveats)] = true
			for _, x := range found.SharedPorts {
				if !slices.Contains(names, x.Name) {
					t.Fatalf("seed %d, step %d: %s is no shared port", seed, step, x.Name)
				}
			}
			if len(found.Caveats) == 0 && len(found.SharedPorts) != len(names) {
				t.Fatalf("seed %d, step %d: found %d shared ports of %d and did not give up", seed, step, len(found.SharedPorts), len(names))
			}
			if diff := cmp.Diff(Prove(s.f, nil).SharedPorts, got.SharedPorts); diff != "" {
				t.Fatalf("seed %d, step %d: (-again +kept)\n%s", seed, step, diff)
			}
		}
	}
	if !gave[0] || !gave[1] {
		t.Errorf("gave up: %v", gave)
	}
	for n := range 10 {
		if !seen[n] {
			t.Errorf("never %d shared ports", n)
		}
	}
}
