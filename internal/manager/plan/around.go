package plan

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// DiffForwarding is what of Diff is about the unicast forwarding tables of some switches
// alone.
func DiffForwarding(f *observed.Fabric, d *observed.Desired, switches []*observed.Node) *Plan {
	p, ops := &Plan{fabric: f, desired: d}, &collected{}
	for _, n := range switches {
		p.diffForwarding(n, ops.add)
	}
	p.arrange(ops)
	return p
}

// postponed are the writes of forwarding tables at their usual time, first and in waves, and
// those that wait until links are Active: where routes that there are move to a link which is
// not, packets would be lost until it is. Tables of switches that have no routes do not wait,
// nor does anything where a switch has to be told a new top of its table after it.
func (p *Plan) postponed(waves [][]Op, settings []Op) (first []Op, more, late [][]Op) {
	some := false
	for _, ops := range waves {
		some = some || slices.ContainsFunc(ops, p.leadsOntoInactive)
	}
	if !some {
		return waves[0], waves[1:], nil
	}
	told := make(map[*observed.Node]bool, len(settings))
	for _, op := range settings {
		told[op.Port.Node] = true
	}
	for i, ops := range waves {
		var wait []Op
		for _, op := range ops {
			switch {
			case i == 0 && (op.Attribute != smp.AttrLinearForwardingTable || !routes(op)):
				first = append(first, op)
			case told[op.Port.Node] && !routes(op) && !carriesAny(op.Port.Node): // it begins again
				first = append(first, op)
			case told[op.Port.Node]:
				return waves[0], waves[1:], nil
			default:
				wait = append(wait, op)
			}
		}
		if len(wait) > 0 {
			late = append(late, wait)
		}
	}
	return first, nil, late
}

// leadsOntoInactive reports whether a write moves a route to a link that is not Active yet.
func (p *Plan) leadsOntoInactive(op Op) bool {
	if op.Attribute != smp.AttrLinearForwardingTable {
		return false
	}
	n := op.Port.Node
	held, wanted := n.Switch.LFT, p.desired.Nodes[n.Index].LFT
	first := int(op.Modifier) * smp.LIDsPerLinearBlock
	for lid := first; lid < min(first+smp.LIDsPerLinearBlock, len(held), len(wanted)); lid++ {
		exit := wanted[lid]
		if held[lid] == exit || held[lid] == ib.PortNone || exit == 0 || int(exit) >= len(n.Ports) {
			continue
		}
		if q := &n.Ports[exit]; q.InfoRead && q.Info.PortState != smp.PortActive && p.desired.Port(q).Activate {
			return true
		}
	}
	return false
}
