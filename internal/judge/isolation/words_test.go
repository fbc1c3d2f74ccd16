package isolation

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// TestOnlyMembersCount: the proof takes names, numbers and members from a policy.
// Index 0, order, service levels and multicast groups are there for others: however
// wrong, they change no verdict. The proof changes nothing of the policy either.
func TestOnlyMembersCount(t *testing.T) {
	const fabrics, seed = 300, 0x51
	for i := range uint64(fabrics) {
		r := rand.New(rand.NewPCG(seed, i))
		f, allowed := randomSite(r)
		odd := slices.Clone(allowed)
		for k := range odd {
			p := &odd[k]
			p.Order, p.SL = r.IntN(9), ib.SL(r.IntN(16))
			for _, end := range f.EndPorts() {
				if r.IntN(3) == 0 { // a member or not
					p.Index0 = append(p.Index0, end.GUID)
				}
			}
			if r.IntN(2) == 0 { // of another partition
				p.Multicast = []group.Group{{MGID: ib.GID{0: 0xFF, 1: 0x12, 15: byte(k)}, Partition: p.Base ^ 1, MLID: 0xC000, Settings: group.Settings{SL: 9}}}
			}
		}
		was := slices.Clone(odd)
		if d := cmp.Diff(Prove(f, allowed), Prove(f, odd)); d != "" {
			t.Fatalf("seed %#x, fabric %d: (-members only +all)\n%s", seed, i, d)
		}
		if d := cmp.Diff(ProveMulticast(f, allowed, nil), ProveMulticast(f, odd, nil)); d != "" {
			t.Fatalf("seed %#x, fabric %d: multicast (-members only +all)\n%s", seed, i, d)
		}
		if d := cmp.Diff(was, odd); d != "" {
			t.Fatalf("seed %#x, fabric %d: the proof changed the policy\n%s", seed, i, d)
		}
	}
}
