package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Fence is a switch port behind which nobody is let into the subnet: its P_Key
// table is empty, it checks keys in both directions, its link does not become
// Active, and what is behind it is a member of nothing.
type Fence struct {
	At Place
	// Name is the port for people, Reason why it is fenced, or no more.
	Name, Reason string
}

// Fence fences a switch port until Unfence. A port that leads to the rest of the
// subnet, or to the manager itself, cannot be fenced: false.
func (e *Engine) Fence(at Place, reason string) bool {
	p := e.port(at)
	if p != nil && (p.IsEnd() || p.Peer != nil && (p.Peer.Node.Switch != nil || p.Peer == e.fabric.Self)) {
		return false
	}
	if e.known.Fences[at] != reason {
		e.enclose(at, reason)
		e.membersChanged()
	}
	return true
}

// enclose enters a fence.
func (e *Engine) enclose(at Place, reason string) {
	e.known.Fences = maps.Clone(e.known.Fences)
	if e.known.Fences == nil {
		e.known.Fences = make(map[Place]string)
	}
	e.known.Fences[at] = reason
	e.emit(Fenced{e.fenceAt(at, reason)})
}

// Unfence lets who is behind a switch port into the subnet again.
func (e *Engine) Unfence(at Place, reason string) {
	if _, fenced := e.known.Fences[at]; !fenced {
		return
	}
	e.disclose(at, reason)
	e.membersChanged()
}

// disclose takes a fence away.
func (e *Engine) disclose(at Place, reason string) {
	e.known.Fences = maps.Clone(e.known.Fences)
	delete(e.known.Fences, at)
	e.emit(Unfenced{e.fenceAt(at, reason)})
	if p := e.port(at); p != nil && e.cabling.list != nil {
		e.fenceUndeclared(p) // which the other fence stood for as well
	}
}

func (e *Engine) fenceAt(at Place, reason string) Fence {
	name := fmt.Sprintf("%v:%d", at.Node, at.Port)
	if p := e.port(at); p != nil {
		name = p.String()
	}
	return Fence{at, name, reason}
}

// membersChanged has the policy worked out anew for whoever counts as a member
// from now on.
func (e *Engine) membersChanged() {
	e.standing = nil
	if e.resolver == nil {
		return // the sweep that is under way ends with it
	}
	e.resolver = e.names.Resolver(e.identities())
	if e.newPolicy == nil {
		e.newPolicy = e.policy
	}
}

// isFenced reports whether p is a fenced switch port, or faces one.
func (e *Engine) isFenced(p *observed.Port) bool {
	if len(e.known.Fences) == 0 {
		return false
	}
	if p.IsEnd() {
		if p = p.Peer; p == nil {
			return false
		}
	}
	_, fenced := e.known.Fences[placeOf(p)]
	return fenced
}

// fences lists the fences that stand, in order.
func (e *Engine) fences() []Fence {
	var out []Fence
	for _, at := range slices.SortedFunc(maps.Keys(e.known.Fences), comparePlaces) {
		out = append(out, e.fenceAt(at, e.known.Fences[at]))
	}
	return out
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
}

// fenceOff wants fenced switch ports to let nothing pass. A switch that cannot
// check keys, or holds no table, can only leave the link inactive.
func (d *desired) fenceOff(e *Engine) {
	for _, f := range e.fences() {
		q := e.port(f.At)
		if q == nil || q.IsEnd() || q.Peer != nil && q.Peer.Node.Switch != nil {
			continue
		}
		info := &q.Node.Switch.Info
		want := d.tables.Port(q)
		want.PKeys = nil
		if q.PKeyCap() > 0 {
			want.PKeys = []ib.PKey{}
		}
		want.Elements |= observed.ElementEnforcement
		want.Info.PartitionEnforcementInbound = info.InboundEnforcementCap && q.PKeyCap() > 0
		want.Info.PartitionEnforcementOutbound = info.OutboundEnforcementCap && q.PKeyCap() > 0
		if !want.Info.PartitionEnforcementInbound || !want.Info.PartitionEnforcementOutbound {
			d.warn("%s is fenced, but its switch cannot check keys: only a link that is not Active yet is kept so", q)
		}
	}
}
