package netlist

import (
	"fmt"
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
// parallel. All take random ports, so that the free ones lie between. Each port
// of a host goes to another switch; every fourth or so but the first has no
// cable.
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
	nodes := switches + hosts + routers
	if err := fits(nodes, switches*(ports+1)+hosts*(caPorts+1)+routers*(routerPorts+1)); err != nil {
		return nil, err
	}
	b := &randomBuilder{builder: newBuilder(), rng: rand.New(rand.NewPCG(uint64(seed), 0))}
	b.tree(switches, ports)
	for i := range hosts {
		b.hostOn(b.add(ib.NodeCA, caPorts, "H%d", i))
	}
	for i := range routers {
		r := b.add(ib.NodeRouter, routerPorts, "R%d", i)
		b.linkTo(r, 1, b.pick(nil))
	}
	for i := 0; i < extra && len(b.open) > 1; i++ {
		x := b.pick(nil)
		y := b.pick([]*openSwitch{x})
		b.linkTo(x.node, b.take(x), y)
	}
	return b.builder, nil
}

// randomBuilder knows the free ports of switches.
type randomBuilder struct {
	*builder
	rng  *rand.Rand
	open []*openSwitch // with free ports
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
			b.linkTo(s.node, b.take(s), b.pick(nil))
		}
		b.open = append(b.open, s)
	}
}

// hostOn cables a host's ports to different switches.
func (b *randomBuilder) hostOn(h *Node) {
	var used []*openSwitch
	for p := 1; p <= h.NumPorts(); p++ {
		if p > 1 && b.rng.IntN(4) == 0 {
			continue
		}
		s := b.pick(used)
		if s == nil {
			return
		}
		used = append(used, s)
		b.linkTo(h, p, s)
	}
}

// pick chooses a switch with a free port, but none of those excluded; nil if there
// is none.
func (b *randomBuilder) pick(excluded []*openSwitch) *openSwitch {
	if len(b.open) == 0 {
		return nil
	}
	start := b.rng.IntN(len(b.open))
	for i := range b.open {
		if s := b.open[(start+i)%len(b.open)]; !slices.Contains(excluded, s) {
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

// linkTo cables a port of n to any free port of s.
func (b *randomBuilder) linkTo(n *Node, port int, s *openSwitch) {
	if s == nil {
		if b.err == nil {
			b.err = fmt.Errorf("no switch has a free port for %q", n.ID)
		}
		return
	}
	b.link(n, port, s.node, b.take(s))
}
