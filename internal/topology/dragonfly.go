package topology

import "github.com/ibwarden/ibwarden/ib"

// dragonfly builds a dragonfly+: groups of leaf and spine switches, every leaf
// cabled to every spine of its group, and one cable between every two groups.
// The cable to the k-th other group leaves by spine k modulo spines. Ports of a
// leaf: hosts, spines. Ports of a spine: leafs, other groups.
func dragonfly(p *params) (*builder, error) {
	groups := p.number("groups", required, 2, 1024)
	leafs := p.number("leafs", 2, 1, MaxPorts-1)
	spines := p.number("spines", 2, 1, MaxPorts-1)
	hosts := p.number("hosts", 2, 1, MaxPorts-spines)
	global := p.number("global", (groups-2)/spines+1, 1, MaxPorts-leafs)
	if global > MaxPorts-leafs {
		p.fail("global", "%d are needed by default: want at most %d in addition to %d leafs", global, MaxPorts-leafs, leafs)
	}
	if groups-1 > spines*global {
		p.fail("groups", "%d: want at most %d, one more than spines times global", groups, spines*global+1)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	ports := groups * (leafs*(hosts+spines+1+2*hosts) + spines*(leafs+global+1))
	if err := fits(groups*leafs*hosts, groups*(leafs+spines), ports); err != nil {
		return nil, err
	}
	b := newBuilder()
	tops := make([][]*Node, groups)
	for g := range groups {
		var bottom []*Node
		for l := range leafs {
			leaf := b.add(ib.NodeSwitch, hosts+spines, "G%d_L%d", g, l)
			bottom = append(bottom, leaf)
			for h := range hosts {
				b.host(leaf, h+1, "H%d_%d_%d", g, l, h)
			}
		}
		for s := range spines {
			spine := b.add(ib.NodeSwitch, leafs+global, "G%d_S%d", g, s)
			tops[g] = append(tops[g], spine)
			for l, leaf := range bottom {
				b.link(leaf, hosts+s+1, spine, l+1)
			}
		}
		for o := range g {
			// To group o, g is other number g-1; to g, o is other number o.
			b.link(tops[g][o%spines], leafs+o/spines+1, tops[o][(g-1)%spines], leafs+(g-1)/spines+1)
		}
	}
	return b, nil
}
