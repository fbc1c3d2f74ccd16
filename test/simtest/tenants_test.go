package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// tenant is a partition with its members, as a model of its own.
type tenant struct {
	base          ib.PKeyBase
	sl            ib.SL
	full, limited []ib.PortGUID
}

// tenancy is all partitions, and what everybody is in the default partition.
type tenancy struct {
	full    bool // of the default partition, else limited
	none    bool // there is no default partition, and the manager is in every other
	tenants []tenant
	// masterLID is the LID that belongs to the master; 0 for none.
	masterLID ib.LID
}

// policy is the tenancy as the manager is told it.
func (y tenancy) policy() *policy.Policy {
	p := &policy.Policy{Default: policy.Limited, AbsentWarns: true} // hosts lie, and are off, from the start
	if y.full {
		p.Default = policy.Full
	}
	if y.none {
		p.Default = policy.None
	}
	for _, x := range y.tenants {
		part := policy.Partition{Name: fmt.Sprintf("tenant-%d", x.base), PKey: x.base, SL: x.sl}
		for _, g := range x.full {
			part.Members = append(part.Members, member(g, policy.Full))
		}
		for _, g := range x.limited {
			part.Members = append(part.Members, member(g, policy.Limited))
		}
		p.Partitions = append(p.Partitions, part)
	}
	if y.masterLID != 0 {
		withMasterLID(p, y.masterLID)
	}
	return p
}

func member(g ib.PortGUID, m policy.Membership) policy.Member {
	return policy.Member{Selector: policy.Selector{Kind: policy.SelectPort, GUID: uint64(g)}, Membership: m}
}

// keys is what the P_Key table of an end port has to hold, sorted. The
// manager's own port is a full member of the default partition, or where there is
// none of every partition that has a member.
func (y tenancy) keys(g, self ib.PortGUID) []ib.PKey {
	out := []ib.PKey{ib.PKeyDefaultLimited}
	switch {
	case y.none:
		out = nil
	case y.full || g == self:
		out[0] = ib.PKeyDefaultFull
	}
	for _, x := range y.tenants {
		switch {
		case y.none && g == self && len(x.full)+len(x.limited) > 0:
			out = append(out, x.base.Full())
		case slices.Contains(x.full, g):
			out = append(out, x.base.Full())
		case slices.Contains(x.limited, g):
			out = append(out, x.base.Limited())
		}
	}
	slices.Sort(out)
	return out
}

// randomTenancy deals out end ports to so many partitions; a port may be in
// several.
func randomTenancy(r *rand.Rand, ports []ib.PortGUID, tenants int) tenancy {
	y := tenancy{full: r.IntN(4) == 0}
	for i := range tenants {
		x := tenant{base: ib.PKeyBase(1 + i*257)}
		for _, g := range ports {
			switch r.IntN(3 * tenants) {
			case 0, 1:
				x.full = append(x.full, g)
			case 2:
				x.limited = append(x.limited, g)
			}
		}
		y.tenants = append(y.tenants, x)
	}
	return y
}

// halves are two partitions of a full half of the ports each.
func halves(ports []ib.PortGUID) tenancy {
	half := len(ports) / 2
	return tenancy{tenants: []tenant{{base: 0x10, full: ports[:half]}, {base: 0x20, full: ports[half:]}}}
}

// move takes a port from one partition to another.
func (y tenancy) move(g ib.PortGUID, from, to ib.PKeyBase) tenancy {
	out := tenancy{full: y.full, none: y.none}
	for _, x := range y.tenants {
		x.full, x.limited = slices.Clone(x.full), slices.Clone(x.limited)
		if x.base == from {
			other := func(h ib.PortGUID) bool { return h == g }
			x.full, x.limited = slices.DeleteFunc(x.full, other), slices.DeleteFunc(x.limited, other)
		}
		if x.base == to {
			x.full = append(x.full, g)
		}
		out.tenants = append(out.tenants, x)
	}
	return out
}

// hosts are the GUIDs of the CA and router ports that have a cable, in order
// of the topology.
func hosts(l *topology.Netlist) []ib.PortGUID {
	var out []ib.PortGUID
	for _, n := range l.Nodes {
		for num := range n.Ports {
			if n.Type != ib.NodeSwitch && n.Ports[num].Peer != nil {
				out = append(out, n.Ports[num].GUID)
			}
		}
	}
	return out
}

// ends are the GUIDs of all end ports that can be reached: hosts and the
// management ports of switches.
func ends(l *topology.Netlist) []ib.PortGUID {
	out := hosts(l)
	for _, n := range l.Nodes {
		if n.Type == ib.NodeSwitch {
			out = append(out, n.Ports[0].GUID)
		}
	}
	return out
}

// guidOf is the GUID of the first port of a host.
func guidOf(l *topology.Netlist, id string) ib.PortGUID {
	for _, n := range l.Nodes {
		if n.ID == id {
			return n.Ports[1].GUID
		}
	}
	return 0
}
