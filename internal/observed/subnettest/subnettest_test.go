package subnettest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// pair is a leaf and a spine with two hosts at the leaf and one at the spine.
func pair() (b *Builder, leaf, spine *observed.Node, hosts []*observed.Port) {
	b = New()
	leaf, spine = b.Switch(4, "leaf"), b.Switch(3, "spine")
	hosts = []*observed.Port{b.Host(leaf, "h1"), b.Host(leaf, "h2")}
	Join(leaf, spine)
	return b, leaf, spine, append(hosts, b.Host(spine, "h3"))
}

func TestBuilder(t *testing.T) {
	b, leaf, spine, hosts := pair()
	if c := b.Fabric.Count(); c != (observed.Counts{Nodes: 5, Switches: 2, CAs: 3, Links: 4}) {
		t.Errorf("%+v", c)
	}
	seen := map[ib.PortGUID]bool{}
	for i, p := range b.Fabric.EndPorts() {
		if p.Info.LID != ib.LID(i+1) || p.GUID == 0 || seen[p.GUID] || !p.PKeysKnown() || p.PKeyCap() != 32 || !p.IsUp() {
			t.Errorf("%s: GUID %s, LID %d, %d P_Keys read %v, up %v", p, p.GUID, p.Info.LID, p.PKeyCap(), p.PKeysRead, p.IsUp())
		}
		seen[p.GUID] = true
	}
	for p, want := range map[*observed.Port]bool{&leaf.Ports[1]: true, &leaf.Ports[2]: true, &leaf.Ports[3]: false, &leaf.Ports[4]: false, &spine.Ports[2]: true, hosts[0]: false} {
		if p.Enforces() != want {
			t.Errorf("%s enforces: %v, want %v", p, !want, want)
		}
	}
	if leaf.Ports[4].IsUp() || Free(leaf) != &leaf.Ports[4] {
		t.Error("the port without a cable is the free one, and down")
	}
	SetPKeysThrough(hosts[0], 0x8010, 0x0011)
	for _, p := range []*observed.Port{hosts[0], &leaf.Ports[1]} {
		if !slices.Equal(p.PKeys[:3], []ib.PKey{0x8010, 0x0011, 0}) {
			t.Errorf("%s: %v", p, p.PKeys[:3])
		}
	}
	SetLink(hosts[1], smp.PortInit, smp.PhysLinkUp)
	if leaf.Ports[2].Info.PortState != smp.PortInit {
		t.Error("a link has two ends")
	}
	same := Join(spine, b.Switch(1, "third"))
	if loop := b.Switch(2, "loop"); Join(loop, loop).Peer != &loop.Ports[2] || same.Num != 3 {
		t.Error("a switch that is cabled to itself")
	}
}

func TestLMC(t *testing.T) {
	b := New()
	b.PortInfo.LMC = 2
	sw := b.Switch(2, "switch")
	p, q := b.Host(sw, "a"), b.Host(sw, "b")
	if sw.Ports[0].Info.LID != 1 || p.Info.LID != 4 || q.Info.LID != 8 || b.LID != 12 {
		t.Errorf("LIDs %d, %d, %d, next %d", sw.Ports[0].Info.LID, p.Info.LID, q.Info.LID, b.LID)
	}
	b.Route()
	if got := sw.Switch.LFT[:13]; !slices.Equal(got, []ib.PortNum{255, 0, 255, 255, 1, 1, 1, 1, 2, 2, 2, 2, 255}) {
		t.Errorf("table %v", got)
	}
}

func TestPKeys(t *testing.T) {
	all := []observed.Partition{{Base: 0x10, Full: []ib.PortGUID{7}, Limited: []ib.PortGUID{7, 8}}, {Base: 0x11, Limited: []ib.PortGUID{7}}}
	if got := PKeys(all, 7); !slices.Equal(got, []ib.PKey{0x8010, 0x0011}) {
		t.Errorf("%v", got)
	}
	if got := PKeys(all, 9); got != nil {
		t.Errorf("%v", got)
	}
}

// On random fabrics every LID is reached from every switch, in as few steps as
// walking back from it takes, and every directed route leads where it says.
func TestRoutes(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := New()
		for i := range 2 + r.IntN(8) {
			b.Switch(40, fmt.Sprint("s", i))
		}
		b.RandomTree(r.IntN)
		switches := b.Fabric.Switches()
		for range 1 + r.IntN(8) {
			b.Host(switches[r.IntN(len(switches))], "host")
		}
		b.Route()
		ends := b.Fabric.EndPorts()
		b.ManagedFrom(ends[r.IntN(len(ends))])
		for _, to := range ends {
			if got := follow(b.Fabric.Self, to.Path); got.Agent() != to {
				t.Fatalf("seed %d: the directed route %v leads to %s, not to %s", seed, to.Path, got, to)
			}
			for _, n := range switches {
				at, steps := n, 0
				for ; at.Switch.LFT[to.Info.LID] != 0 && at != to.Node; steps++ {
					p := &at.Ports[at.Switch.LFT[to.Info.LID]]
					if p.Peer == to {
						break
					}
					if at = p.Peer.Node; at.Switch == nil || steps > len(switches) {
						t.Fatalf("seed %d: from %s to LID %d: stray", seed, n.Name(), to.Info.LID)
					}
				}
				want := to.Node
				if want.Switch == nil {
					want = to.Peer.Node
				}
				if at != want || steps != distance(n, want) {
					t.Fatalf("seed %d: from %s to %s: %d steps to %s, want %d", seed, n.Name(), to, steps, at.Name(), distance(n, want))
				}
			}
		}
	}
}

// follow goes where a directed route leads.
func follow(at *observed.Port, path mad.Path) *observed.Port {
	for _, exit := range path {
		at = at.Node.Ports[exit].Peer
	}
	return at
}

// distance is found by widening the circle of all switches near enough.
func distance(from, to *observed.Node) int {
	near := map[*observed.Node]bool{from: true}
	for d := 0; ; d++ {
		if near[to] {
			return d
		}
		for n := range maps.Clone(near) {
			for i := range n.Ports {
				if q := n.Ports[i].Peer; q != nil && q.Node.Switch != nil {
					near[q.Node] = true
				}
			}
		}
	}
}
