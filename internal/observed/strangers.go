package observed

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// StrangersPartitions lists the partitions that undiscovered devices may use: devices
// behind a link that carries data which did not answer. A port that is
// given such a partition could reach them. An enforcing switch port
// limits the device behind it to the partitions of its table;
// without one it may use every partition that tables are to hold. The default
// partition does not count if every port is in it. isKnown reports ports behind
// which the device is known; it may be nil.
func StrangersPartitions(f *Fabric, tables *Desired, isKnown func(*Port) bool) []ib.PKeyBase {
	var out []ib.PKeyBase
	all := false
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			carries := p.Info.PortState == smp.PortArmed || p.Info.PortState == smp.PortActive
			if !p.FacesStranger() || !carries || isKnown != nil && isKnown(p) {
				continue
			}
			if p.IsEnd() || !p.Enforces() || !p.PKeysKnown() {
				all = true
				continue
			}
			out = appendBases(out, p.PKeys)
		}
	}
	for i := 0; all && i < len(f.Nodes); i++ {
		for num := range f.Nodes[i].Ports {
			if p := &f.Nodes[i].Ports[num]; p.IsEnd() {
				out = appendBases(out, tables.Port(p).PKeys)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if i := slices.Index(out, ib.PKeyBaseDefault); i >= 0 && allInDefault(f, tables) {
		out = slices.Delete(out, i, i+1)
	}
	return out
}

// allInDefault reports whether every end port whose table is to be written will be
// in the default partition.
func allInDefault(f *Fabric, tables *Desired) bool {
	return !slices.ContainsFunc(f.EndPorts(), func(p *Port) bool {
		want := tables.Port(p).PKeys
		return want != nil && !slices.ContainsFunc(want, func(k ib.PKey) bool { return k.IsValid() && k.Base() == ib.PKeyBaseDefault })
	})
}

func appendBases(out []ib.PKeyBase, keys []ib.PKey) []ib.PKeyBase {
	for _, k := range keys {
		if k.IsValid() {
			out = append(out, k.Base())
		}
	}
	return out
}

// HasStranger reports whether any port that faces an undiscovered device satisfies as.
func (f *Fabric) HasStranger(as func(*Port) bool) bool {
	return slices.ContainsFunc(f.Nodes, func(n *Node) bool {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.FacesStranger() && as(p) {
				return true
			}
		}
		return false
	})
}

// Inactive counts the links that should be Active and are not.
func (d *Desired) Inactive(f *Fabric) (n int) {
	for _, node := range f.Nodes {
		for i := range node.Ports {
			if p := &node.Ports[i]; d.Port(p).Activate && p.Info.PortState != smp.PortActive {
				n++
			}
		}
	}
	return n
}
