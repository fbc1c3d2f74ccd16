// Package facts converts between the snapshot and the policy: end ports of a snapshot as
// input of the policy, resolved partitions as input of the judges and of subnet
// administration, and the owner of a packet. It also keeps what the snapshot alone
// does not say: the fenced switch ports, the end ports that are out of sight and may
// still send, and the names that policies have used. It is pure.
package facts

import (
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Identity is by what a policy knows an end port; self says that it is the
// manager's own.
func Identity(p *observed.Port, self bool) policy.EndPort {
	x := policy.EndPort{
		PortGUID: p.GUID, NodeGUID: p.Node.GUID(), PortNum: p.Num,
		Description: p.Node.Description, NodeType: p.Node.Type(), SM: self,
	}
	if p.Peer != nil && p.Peer.FacesEnd() {
		x.Switch, x.SwitchName, x.SwitchPort = p.Peer.Node.GUID(), p.Peer.Node.Description, p.Peer.Num
	}
	return x
}

// OfEnd are the facts of an end port, and of the switch port before it.
func OfEnd(p *observed.Port) partition.PortFacts {
	x := partition.PortFacts{
		PortGUID: p.GUID, NodeGUID: p.Node.GUID(), PortNum: p.Num,
		Cap: p.PKeyCap(), Current: p.PKeys,
	}
	if p.Peer != nil && p.Peer.FacesEnd() {
		x.Facing = OfGuard(p.Peer)
	}
	return x
}

// OfGuard are those of a switch port that faces an end port.
func OfGuard(q *observed.Port) *partition.SwitchPortFacts {
	info := &q.Node.Switch.Info
	return &partition.SwitchPortFacts{
		SwitchGUID: q.Node.GUID(), PortNum: q.Num, Cap: q.PKeyCap(),
		InboundCap: info.InboundEnforcementCap, OutboundCap: info.OutboundEnforcementCap,
	}
}
