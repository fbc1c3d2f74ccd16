// Package routingtest builds fabrics for the tests of routing engines, and checks routes by
// following every one of them: it shares nothing with the engines or with the judge of routes.
package routingtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// Builder makes snapshots of fabrics that are up, and lists whom routes lead to.
type Builder struct {
	*subnettest.Builder
	rng          *rand.Rand
	Destinations []graph.Destination
	LMC          ib.LMC // of CA ports
	Spare        int    // ports that switches have beyond those that are cabled here

	placed map[*observed.Node]uint16 // as a graph orders switches, when there were so many nodes
	of     int
}

// New gives GUIDs in rising order, or in a random one when rng is set.
func New(rng *rand.Rand) *Builder {
	return &Builder{Builder: subnettest.New(), rng: rng}
}

func (b *Builder) node(kind ib.NodeType, ports int, name string) *observed.Node {
	if b.rng != nil {
		b.GUID = ib.NodeGUID(b.rng.Uint64()<<20 | uint64(len(b.Fabric.Nodes))<<4)
	}
	b.PortInfo.LMC = b.LMC
	return b.Node(kind, ports, name)
}

// Own makes an end port a destination, by the LID that it has.
func (b *Builder) Own(p *observed.Port) {
	b.Destinations = append(b.Destinations, graph.Destination{Port: p, LID: p.Info.LID, LMC: p.Info.LMC})
}

// Switch adds a switch and its LID.
func (b *Builder) Switch(ports int, format string, args ...any) *observed.Node {
	n := b.node(ib.NodeSwitch, ports+b.Spare, fmt.Sprintf(format, args...))
	b.Own(&n.Ports[0])
	return n
}

// Repair has a link that was cut come up again.
func Repair(p *observed.Port) { subnettest.SetLink(p, smp.PortActive, smp.PhysLinkUp) }

// Cut takes the link of a port down, at both ends.
func Cut(p *observed.Port) { subnettest.SetLink(p, smp.PortDown, smp.PhysPolling) }

// Hosts puts CAs on a switch.
func (b *Builder) Hosts(s *observed.Node, count int) {
	for i := range count {
		subnettest.Join(b.CA(fmt.Sprintf("host %d of %s", i, s.Description)), s)
	}
}

// CA adds a CA of one port, without a cable.
func (b *Builder) CA(name string) *observed.Node {
	n := b.node(ib.NodeCA, 1, name)
	b.Own(&n.Ports[1])
	return n
}

// CAs is the number of destinations that are no switches.
func (b *Builder) CAs() int { return len(b.Destinations) - len(b.Fabric.Switches()) }

// FatTree2 has every leaf cabled to every spine, by so many cables.
func (b *Builder) FatTree2(leaves, spines, hosts, cables int) (leaf, spine []*observed.Node) {
	for i := range spines {
		spine = append(spine, b.Switch(leaves*cables+1, "spine %d", i))
	}
	for i := range leaves {
		l := b.Switch(hosts+spines*cables, "leaf %d", i)
		b.Hosts(l, hosts)
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

// FatTree3 is the full three-level tree of switches with radix ports.
func (b *Builder) FatTree3(radix int) (edge, middle, core []*observed.Node) {
	half := radix / 2
	for i := range half * half {
		core = append(core, b.Switch(radix, "core %d", i))
	}
	for pod := range radix {
		var up []*observed.Node
		for i := range half {
			up = append(up, b.Switch(radix, "middle %d.%d", pod, i))
		}
		for i := range half {
			e := b.Switch(radix, "edge %d.%d", pod, i)
			b.Hosts(e, half)
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

// Torus is a Torus of two dimensions; a ring when one of them is 1.
func (b *Builder) Torus(width, height, hosts int) {
	at := make([]*observed.Node, width*height)
	for i := range at {
		at[i] = b.Switch(4+hosts, "switch %d,%d", i%width, i/width)
		b.Hosts(at[i], hosts)
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

// Irregular is a random tree with extra cables, some doubled, and CAs on some
// of the switches.
func (b *Builder) Irregular(rng *rand.Rand, switches, extra int) {
	var all []*observed.Node
	for i := range switches {
		s := b.Switch(200, "switch %d", i)
		b.Hosts(s, max(0, rng.IntN(6)-2))
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

// Dragonfly is groups of leaves and spines, one cable between any two groups.
func (b *Builder) Dragonfly(groups, leaves, spines, hosts int) {
	top := make([][]*observed.Node, groups)
	for g := range groups {
		for i := range spines {
			top[g] = append(top[g], b.Switch(leaves+groups, "spine %d.%d", g, i))
		}
		for i := range leaves {
			l := b.Switch(hosts+spines, "leaf %d.%d", g, i)
			b.Hosts(l, hosts)
			for _, s := range top[g] {
				subnettest.Join(l, s)
			}
		}
		for other := range g {
			subnettest.Join(top[g][other%spines], top[other][(g-1)%spines])
		}
	}
}
