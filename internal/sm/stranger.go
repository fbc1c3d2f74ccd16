package sm

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/subnet"
)

// Doubtful lists the partitions that devices may use which a sweep did not find:
// something is behind a link that carries data, and has not answered. Whoever is
// given such a partition may reach what nobody meant him to reach. A switch port
// that checks keys holds what is behind it to the partitions of its table;
// where none does, it is every partition that tables are to give. The default
// partition does not count: everybody is in it. ofSomebody tells ports behind
// which it is known who is; it may be nil.
func Doubtful(f *subnet.Fabric, tables *subnet.Desired, ofSomebody func(*subnet.Port) bool) []ib.PKeyBase {
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
	return slices.Compact(out)
}

func appendBases(out []ib.PKeyBase, keys []ib.PKey) []ib.PKeyBase {
	for _, k := range keys {
		if k.IsValid() && k.Base() != ib.PKeyBaseDefault {
			out = append(out, k.Base())
		}
	}
	return out
}

// remembers reports whether an earlier sweep found who is behind a port beyond
// which the last one found nobody.
func (e *Engine) remembers(p *subnet.Port) bool {
	return slices.ContainsFunc(e.unseen, func(u unseen) bool { return u.behind == placeOf(p) })
}
