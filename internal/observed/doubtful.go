package observed

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Doubtful lists the partitions that devices may use which a sweep did not find:
// something is behind a link that carries data, and has not answered. Whoever is
// given such a partition may reach what nobody meant him to reach. A switch port
// that checks keys holds what is behind it to the partitions of its table;
// where none does, it is every partition that tables are to give. The default
// partition does not count where everybody is in it. ofSomebody tells ports behind
// which it is known who is; it may be nil.
func Doubtful(f *Fabric, tables *Desired, ofSomebody func(*Port) bool) []ib.PKeyBase {
	var out []ib.PKeyBase
	all := false
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			carries := p.Info.PortState == smp.PortArmed || p.Info.PortState == smp.PortActive
			if !p.FacesStranger() || !carries || ofSomebody != nil && ofSomebody(p) {
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
	if i := slices.Index(out, ib.PKeyBaseDefault); i >= 0 && everybodys(f, tables) {
		out = slices.Delete(out, i, i+1)
	}
	return out
}

// everybodys reports whether every end port whose table is to be written is to be
// in the default partition.
func everybodys(f *Fabric, tables *Desired) bool {
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

// MeetsStranger reports whether any port faces a stranger that is as asked.
func (f *Fabric) MeetsStranger(as func(*Port) bool) bool {
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
