package routingtest

import (
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// FullDragonfly is groups of switches with a cable from each to each, and so many cables
// between any two groups. It returns the switches by group.
func (b *Builder) FullDragonfly(groups, switches, cables, hosts int) [][]*observed.Node {
	all := make([][]*observed.Node, groups)
	for g := range all {
		for i := range switches {
			s := b.Switch(hosts+switches+(groups*cables)/switches+1, "member %d.%d", g, i)
			b.Hosts(s, hosts)
			for _, other := range all[g] {
				subnettest.Join(s, other)
			}
			all[g] = append(all[g], s)
		}
		for other := range g {
			for i := range cables {
				subnettest.Join(all[g][(other*cables+i)%switches], all[other][((g-1)*cables+i)%switches])
			}
		}
	}
	return all
}
