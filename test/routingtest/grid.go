package routingtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// Grid is a torus, or a mesh where rings is false, with so many positions in each
// dimension, cables between neighbours and hosts at every switch. A ring of two has
// twice the cables. It returns the switches, those of the first dimension next to each
// other.
func (b *Builder) Grid(sizes []int, rings bool, cables, hosts int) []*observed.Node {
	total := 1
	for _, n := range sizes {
		total *= n
	}
	all := make([]*observed.Node, total)
	for i := range all {
		name, rest := "switch", i
		for _, n := range sizes {
			name += fmt.Sprintf(" %d", rest%n)
			rest /= n
		}
		all[i] = b.Switch(hosts+2*cables*len(sizes), "%s", name)
		b.Hosts(all[i], hosts)
	}
	stride := 1
	for _, n := range sizes {
		for i, s := range all {
			at := i / stride % n
			if n == 1 || at == n-1 && !rings {
				continue
			}
			for range cables {
				subnettest.Join(s, all[i+((at+1)%n-at)*stride])
			}
		}
		stride *= n
	}
	return all
}

// Break takes links between switches down, each with the share given, and all links of
// some of the switches.
func (b *Builder) Break(rng *rand.Rand, links, switches float64) {
	for _, s := range b.Fabric.Switches() {
		dead := rng.Float64() < switches
		for i := 1; i < len(s.Ports); i++ {
			p := &s.Ports[i]
			if p.Peer == nil || p.Peer.Node.Switch == nil {
				continue
			}
			if dead || s.Index < p.Peer.Node.Index && rng.Float64() < links {
				Cut(p)
			}
		}
	}
}

// Clique is so many switches, each with a cable to each other one.
func (b *Builder) Clique(switches, hosts int) []*observed.Node {
	all := make([]*observed.Node, switches)
	for i := range all {
		all[i] = b.Switch(hosts+switches, "member %d", i)
		b.Hosts(all[i], hosts)
		for _, other := range all[:i] {
			subnettest.Join(all[i], other)
		}
	}
	return all
}
