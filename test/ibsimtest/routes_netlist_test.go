package ibsimtest

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// Builder makes the fabric of a netlist, whose nodes get their ids as descriptions. Every CA
// port is a CA of its own, named like NODE:2 from the second on: a dump of OpenSM names nodes,
// and not ports.
func Builder(l *topology.Netlist) *routingtest.Builder {
	b := routingtest.New(nil)
	made := map[ib.NodeGUID][]*observed.Port{}
	for _, n := range l.Nodes {
		ports := make([]*observed.Port, len(n.Ports))
		if n.Type == ib.NodeSwitch {
			b.GUID = n.GUID
			s := b.Switch(len(n.Ports)-1, "%s", n.ID)
			for i := range ports {
				ports[i] = &s.Ports[i]
			}
		}
		made[n.GUID] = ports
	}
	for _, n := range l.Nodes {
		if n.Type == ib.NodeSwitch {
			continue
		}
		for i := 1; i < len(n.Ports); i++ {
			name := n.ID
			if i > 1 {
				name += ":" + string(rune('0'+i))
			}
			b.GUID = n.GUID + ib.NodeGUID(i-1)
			ca := b.CA(name)
			made[n.GUID][i] = &ca.Ports[1]
		}
	}
	for _, link := range l.Links() {
		p, q := made[link.A][link.APort], made[link.B][link.BPort]
		if p.Node.Switch != nil || q.Node.Switch != nil {
			subnettest.Cable(p, q)
		}
	}
	return b
}
