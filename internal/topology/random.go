package topology

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

const (
	maxRandomSwitches = 4096
	maxRandomHosts    = 32 * 1024
	maxRandomRouters  = 1024
	maxCAPorts        = 4
	routerPorts       = 2 // the second has no cable
)

// random builds a connected fabric: a random tree of switches, hosts and routers
// on random switches, and random further links between switches, some of them
// parallel. All take random ports, so that the free ones lie between. The ports
// of a host go to different switches; one in four beyond the first, and those
// for which no port is left, have no cable.
func random(p *params) (*builder, error) {
	seed := p.number("seed", 1, 0, math.MaxInt)
	switches := p.number("switches", 8, 1, maxRandomSwitches)
	hosts := p.number("hosts", 20, 1, maxRandomHosts)
	ports := p.number("ports", 36, 2, MaxPorts)
	routers := p.number("routers", 0, 0, maxRandomRouters)
	caPorts := p.number("ca-ports", 1, 1, maxCAPorts)
	extra := p.number("extra", switches, 0, MaxTotalPorts)
	free := switches*ports - 2*(switches-1)
	if hosts+routers > free {
		p.fail("ports", "%d on %d switches, joined by %d links, leave %d free: want at least %d, for hosts and routers",
			ports, switches, switches-1, free, hosts+routers)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := fits(hosts+routers, switches, switches*(ports+1)+hosts*(caPorts+1)+routers*(routerPorts+1)); err != nil {
		return nil, err
	}
	b := &randomBuilder{builder: newBuilder(), rng: rand.New(rand.NewPCG(uint64(seed), 0))}
	b.tree(switches, ports)
	for i := range hosts {
		b.cable(b.add(ib.NodeCA, caPorts, "H%d", i), 1)
	}
	for i := range routers {
		b.cable(b.add(ib.NodeRouter, routerPorts, "R%d", i), 1)
	}
	for _, h := range b.nodes[ib.NodeCA] {
		for p := 2; p <= caPorts; p++ {
			if b.rng.IntN(4) > 0 {
				b.cable(h, p)
			}
		}
	}
	for range extra {
		if len(b.open) < 2 {
			break
		}
		x := b.pick(func(*Node) bool { return true })
		y := b.pick(func(n *Node) bool { return n != x.node })
		b.link(x.node, b.take(x), y.node, b.take(y))
	}
	return b.builder, nil
}

// randomBuilder knows the free ports of switches.
type randomBuilder struct {
	*builder
	rng  *rand.Rand
	open []*openSwitch // those with free ports
}

type openSwitch struct {
	node *Node
	free []int // ports, in the order in which they are taken
}

// tree adds switches, each but the first cabled to one before it.
func (b *randomBuilder) tree(switches, ports int) {
	for i := range switches {
		s := &openSwitch{node: b.add(ib.NodeSwitch, ports, "S%d", i), free: b.rng.Perm(ports)}
		if i > 0 {
			b.cable(s.node, b.take(s))
		}
		b.open = append(b.open, s)
	}
}

// cable cables a port of n to a random switch to which no other port of n goes,
// if one has a free port.
func (b *randomBuilder) cable(n *Node, port int) {
	s := b.pick(func(sw *Node) bool {
		return !slices.ContainsFunc(n.Ports, func(p Port) bool { return p.Peer == sw })
	})
	if s != nil {
		b.link(n, port, s.node, b.take(s))
	}
}

// pick chooses among the open switches that will do, nil if there is none.
func (b *randomBuilder) pick(willDo func(*Node) bool) *openSwitch {
	start := b.rng.IntN(max(len(b.open), 1))
	for i := range b.open {
		if s := b.open[(start+i)%len(b.open)]; willDo(s.node) {
			return s
		}
	}
	return nil
}

// take uses up a free port of s.
func (b *randomBuilder) take(s *openSwitch) int {
	port := s.free[0] + 1
	s.free = s.free[1:]
	if len(s.free) == 0 {
		b.open = slices.DeleteFunc(b.open, func(o *openSwitch) bool { return o == s })
	}
	return port
}
