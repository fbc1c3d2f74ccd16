package routing

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// builder makes snapshots of fabrics that are up, and lists whom routes lead to.
type builder struct {
	*subnettest.Builder
	f     *observed.Fabric
	rng   *rand.Rand
	dests []Destination
	lmc   ib.LMC // of CA ports
}

// newBuilder gives GUIDs in rising order, or in a random one when rng is set.
func newBuilder(rng *rand.Rand) *builder {
	b := subnettest.New()
	return &builder{Builder: b, f: b.Fabric, rng: rng}
}

func (b *builder) node(kind ib.NodeType, ports int, name string) *observed.Node {
	if b.rng != nil {
		b.GUID = ib.NodeGUID(b.rng.Uint64()<<20 | uint64(len(b.f.Nodes))<<4)
	}
	b.PortInfo.LMC = b.lmc
	return b.Node(kind, ports, name)
}

func (b *builder) own(p *observed.Port) {
	b.dests = append(b.dests, Destination{Port: p, LID: p.Info.LID, LMC: p.Info.LMC})
}

func (b *builder) sw(ports int, format string, args ...any) *observed.Node {
	n := b.node(ib.NodeSwitch, ports, fmt.Sprintf(format, args...))
	b.own(&n.Ports[0])
	return n
}

func cut(p *observed.Port) { subnettest.SetLink(p, smp.PortDown, smp.PhysPolling) }

// hosts puts CAs on a switch.
func (b *builder) hosts(s *observed.Node, count int) {
	for i := range count {
		n := b.node(ib.NodeCA, 1, fmt.Sprintf("host %d of %s", i, s.Description))
		subnettest.Join(n, s)
		b.own(&n.Ports[1])
	}
}

// fatTree2 has every leaf cabled to every spine, by so many cables.
func (b *builder) fatTree2(leaves, spines, hosts, cables int) (leaf, spine []*observed.Node) {
	for i := range spines {
		spine = append(spine, b.sw(leaves*cables+1, "spine %d", i))
	}
	for i := range leaves {
		l := b.sw(hosts+spines*cables, "leaf %d", i)
		b.hosts(l, hosts)
		leaf = append(leaf, l)
	}
	for _, l := range leaf {
		for _, s := range spine {
			for range cables {
				subnettest.Join(l, s)
			}
		}
	}
	return leaf, spine
}

// fatTree3 is the full three-level tree of switches with radix ports.
func (b *builder) fatTree3(radix int) (edge, middle, core []*observed.Node) {
	half := radix / 2
	for i := range half * half {
		core = append(core, b.sw(radix, "core %d", i))
	}
	for pod := range radix {
		var up []*observed.Node
		for i := range half {
			up = append(up, b.sw(radix, "middle %d.%d", pod, i))
		}
		for i := range half {
			e := b.sw(radix, "edge %d.%d", pod, i)
			b.hosts(e, half)
			for _, m := range up {
				subnettest.Join(e, m)
			}
			edge = append(edge, e)
		}
		for i, m := range up {
			for j := range half {
				subnettest.Join(m, core[i*half+j])
			}
		}
		middle = append(middle, up...)
	}
	return edge, middle, core
}

// torus is a torus of two dimensions; a ring when one of them is 1.
func (b *builder) torus(width, height, hosts int) {
	at := make([]*observed.Node, width*height)
	for i := range at {
		at[i] = b.sw(4+hosts, "switch %d,%d", i%width, i/width)
		b.hosts(at[i], hosts)
	}
	for y := range height {
		for x := range width {
			if width > 1 {
				subnettest.Join(at[y*width+x], at[y*width+(x+1)%width])
			}
			if height > 1 {
				subnettest.Join(at[y*width+x], at[(y+1)%height*width+x])
			}
		}
	}
}

// irregular is a random tree with extra cables, some doubled, and CAs on some
// of the switches.
func (b *builder) irregular(rng *rand.Rand, switches, extra int) {
	var all []*observed.Node
	for i := range switches {
		s := b.sw(200, "switch %d", i)
		b.hosts(s, max(0, rng.IntN(6)-2))
		if i > 0 {
			subnettest.Join(s, all[rng.IntN(i)])
		}
		all = append(all, s)
	}
	for range extra {
		x, y := all[rng.IntN(switches)], all[rng.IntN(switches)]
		if subnettest.Free(x).Num < 190 && subnettest.Free(y).Num < 190 {
			subnettest.Join(x, y) // may join a switch with itself
		}
	}
}

// dragonfly is groups of leaves and spines, one cable between any two groups.
func (b *builder) dragonfly(groups, leaves, spines, hosts int) {
	top := make([][]*observed.Node, groups)
	for g := range groups {
		for i := range spines {
			top[g] = append(top[g], b.sw(leaves+groups, "spine %d.%d", g, i))
		}
		for i := range leaves {
			l := b.sw(hosts+spines, "leaf %d.%d", g, i)
			b.hosts(l, hosts)
			for _, s := range top[g] {
				subnettest.Join(l, s)
			}
		}
		for other := range g {
			subnettest.Join(top[g][other%spines], top[other][(g-1)%spines])
		}
	}
}

func (b *builder) compute(t testing.TB, e Engine) *Tables {
	t.Helper()
	tables, err := Compute(b.f, b.dests, e)
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// step is one exit of a switch.
type step struct {
	from *observed.Node
	exit ib.PortNum
}

// walk follows the tables from a switch to a LID; ok is false when they drop
// the packet, lead out of the fabric, or go round.
func walk(b *builder, t *Tables, from *observed.Node, d Destination, lid ib.LID) (steps []step, ok bool) {
	for at := from; len(steps) <= len(b.f.Nodes); {
		exit := t.Linear[at.Index][lid]
		if exit == 0 {
			return steps, d.Port == &at.Ports[0]
		}
		if int(exit) >= len(at.Ports) {
			return steps, false
		}
		p := &at.Ports[exit]
		if !p.IsUp() || p.Peer == nil || !p.Peer.IsUp() {
			return steps, false
		}
		if p.Peer.Node.Switch == nil {
			return steps, d.Port == p.Peer
		}
		steps = append(steps, step{at, exit})
		at = p.Peer.Node
	}
	return steps, false
}

// eachRoute walks from every switch to every LID and fails on what does not
// arrive.
func eachRoute(t *testing.T, b *builder, tables *Tables, visit func(from *observed.Node, d Destination, lid ib.LID, steps []step)) {
	t.Helper()
	for _, s := range b.f.Switches() {
		for _, d := range b.dests {
			for l := range d.LMC.Count() {
				lid := d.LID + ib.LID(l)
				steps, ok := walk(b, tables, s, d, lid)
				if !ok {
					t.Fatalf("no way from %s to LID %d of %s: %v", s.Name(), lid, d.Port, steps)
				}
				if visit != nil {
					visit(s, d, lid, steps)
				}
			}
		}
	}
}

// hops are the shortest distances from one switch, found without the code
// under test.
func hops(from *observed.Node) map[*observed.Node]int {
	dist := map[*observed.Node]int{from: 0}
	for queue := []*observed.Node{from}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for i := 1; i < len(n.Ports); i++ {
			p := &n.Ports[i]
			if p.Peer == nil || !p.IsUp() || !p.Peer.IsUp() || p.Peer.Node.Switch == nil {
				continue
			}
			if _, seen := dist[p.Peer.Node]; !seen {
				dist[p.Peer.Node] = dist[n] + 1
				queue = append(queue, p.Peer.Node)
			}
		}
	}
	return dist
}

// behind is the switch that delivers to an end port.
func behind(p *observed.Port) *observed.Node {
	if p.Node.Switch != nil {
		return p.Node
	}
	return p.Peer.Node
}

// dependencyCycle reports whether the links that the routes use in turn
// depend on each other in a circle.
func dependencyCycle(t *testing.T, b *builder, tables *Tables) bool {
	t.Helper()
	after := map[step]map[step]bool{}
	eachRoute(t, b, tables, func(_ *observed.Node, _ Destination, _ ib.LID, steps []step) {
		for i := 1; i < len(steps); i++ {
			if after[steps[i-1]] == nil {
				after[steps[i-1]] = map[step]bool{}
			}
			after[steps[i-1]][steps[i]] = true
		}
	})
	const open, done = 1, 2
	state := map[step]int{}
	var visit func(step) bool
	visit = func(s step) bool {
		state[s] = open
		for next := range after[s] {
			if state[next] == open || state[next] == 0 && visit(next) {
				return true
			}
		}
		state[s] = done
		return false
	}
	for s := range after {
		if state[s] == 0 && visit(s) {
			return true
		}
	}
	return false
}
