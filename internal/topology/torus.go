package topology

import "github.com/ibwarden/ibwarden/ib"

const maxTorusSide = 128

// torus builds a grid of switches that is closed in each direction. Ports of a
// switch: its hosts, then one up and one down in x, in y and, if z is more than
// 1, in z. A side of 2 has two parallel links, a side of 1 none.
func torus(p *params) (*builder, error) {
	x := p.number("x", required, 1, maxTorusSide)
	y := p.number("y", required, 1, maxTorusSide)
	z := p.number("z", 1, 1, maxTorusSide)
	sides := []int{x, y, z}
	if z == 1 {
		sides = sides[:2]
	}
	hosts := p.number("hosts", 1, 1, MaxPorts-2*len(sides))
	if err := p.check(); err != nil {
		return nil, err
	}
	ports := hosts + 2*len(sides)
	if err := fits(x*y*z*hosts, x*y*z, x*y*z*(ports+1+2*hosts)); err != nil {
		return nil, err
	}
	b := newBuilder()
	grid := make([]*Node, x*y*z) // x runs fastest
	for i := range grid {
		if len(sides) == 2 {
			grid[i] = b.add(ib.NodeSwitch, ports, "T%d_%d", i%x, i/x)
		} else {
			grid[i] = b.add(ib.NodeSwitch, ports, "T%d_%d_%d", i%x, i/x%y, i/(x*y))
		}
	}
	for i, sw := range grid {
		stride := 1
		for d, side := range sides {
			up := i + stride
			if i/stride%side == side-1 {
				up -= side * stride
			}
			if up != i {
				b.link(sw, hosts+2*d+1, grid[up], hosts+2*d+2)
			}
			stride *= side
		}
		for h := range hosts {
			b.host(sw, h+1, "H%s_%d", sw.ID[1:], h)
		}
	}
	return b, nil
}
