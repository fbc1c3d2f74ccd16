package engine

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// unseen is an end port that an earlier sweep found and the last one did not,
// though its link may still carry data: it lies behind a switch port whose link
// is up and beyond which nobody was found. It may go on to use every key that
// it had, so that a policy has to take them from it where that can be done, at
// the switch port before it, and else may not give them to others.
type unseen struct {
	identity policy.EndPort
	cap      int
	keys     []ib.PKey // as last read
	// guard is what the switch port before it held, which may be out of sight
	// as well: the host could use that with a table that it forged.
	guard   []ib.PKey
	aliases []observed.Alias
	// at is the switch port that it is cabled to, if any, behind the one beyond
	// which nobody was found: the same, or one closer to the manager.
	at, behind Place
}

// port is the port at a place, nil when the last sweep did not find its node.
func (e *Engine) port(at Place) *observed.Port {
	if n := e.fabric.Node(at.Node); n != nil {
		return n.Port(at.Port)
	}
	return nil
}

// facesStranger reports whether the last sweep found nobody behind a port whose
// link is up.
func (e *Engine) facesStranger(at Place) bool {
	p := e.port(at)
	return p != nil && p.FacesStranger()
}

func placeOf(p *observed.Port) Place { return Place{p.Node.GUID(), p.Num} }

// loseSight works out which end ports are unseen after a sweep; old is what the
// sweep before it found.
func (e *Engine) loseSight(old *observed.Fabric) {
	found := make(map[ib.PortGUID]bool)
	for _, p := range e.ends {
		found[p.GUID] = true
	}
	before := e.unseen
	e.unseen = nil
	keep := func(u unseen) {
		if guid := u.identity.PortGUID; !found[guid] && !e.isShut(e.port(u.behind)) {
			found[guid] = true
			e.unseen = append(e.unseen, u)
		}
	}
	for _, u := range before {
		if e.facesStranger(u.at) {
			u.behind = u.at
		}
		if e.facesStranger(u.behind) {
			keep(u)
		}
	}
	passed := make(map[*observed.Node]bool)
	for _, n := range old.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil && e.facesStranger(placeOf(p)) {
				e.loseBehind(p, placeOf(p), passed, keep)
			}
		}
	}
}

// loseBehind calls keep for the end ports beyond p that the last sweep did not
// find. p belongs to the sweep before it.
func (e *Engine) loseBehind(p *observed.Port, behind Place, passed map[*observed.Node]bool, keep func(unseen)) {
	n := p.Peer.Node
	if n.Switch == nil {
		keep(e.lost(p.Peer, behind))
		return
	}
	if passed[n] || e.fabric.Node(n.GUID()) != nil {
		return
	}
	passed[n] = true
	keep(e.lost(&n.Ports[0], behind))
	for i := 1; i < len(n.Ports); i++ {
		if q := &n.Ports[i]; q.Peer != nil && q.Peer != p {
			e.loseBehind(q, behind, passed, keep)
		}
	}
}

func (e *Engine) lost(p *observed.Port, behind Place) unseen {
	u := unseen{identity: e.identity(p), cap: p.PKeyCap(), keys: p.PKeys, aliases: p.Aliases(), behind: behind}
	if p.Peer != nil {
		u.at, u.guard = placeOf(p.Peer), p.Peer.PKeys
	}
	return u
}

// unseenFacts is what there is to know of an unseen port and of the switch port
// before it, if that can be reached.
func (e *Engine) unseenFacts(u *unseen) partition.PortFacts {
	x := partition.PortFacts{
		PortGUID: u.identity.PortGUID, NodeGUID: u.identity.NodeGUID, PortNum: u.identity.PortNum,
		Cap: u.cap, Current: u.keys,
	}
	if q := e.port(u.at); q != nil && q.FacesStranger() && !q.IsEnd() {
		x.Facing = facts.OfGuard(q)
	}
	return x
}

// withheld lists the partitions that unseen ports may still use, or use as full
// members, and should not, with no switch port before them that sees to it.
// tables are those that end ports ought to hold, d what switch ports ought to.
func (e *Engine) withheld(d *desired, tables []partition.EndPort) []ib.PKeyBase {
	var out []ib.PKeyBase
	for i := range e.unseen {
		u := &e.unseen[i]
		if e.isShutting(e.port(u.behind)) {
			continue
		}
		q := e.port(u.at)
		guarded := q != nil && q.FacesStranger() && q.Enforces() && d.tables.Port(q).PKeys != nil
		for _, x := range tables {
			if x.PortGUID != u.identity.PortGUID {
				continue
			}
			for _, k := range u.keys {
				// A switch port takes a partition away; that its host is a
				// limited member now it cannot see to.
				if k.IsValid() && !x.Table.Allows(k) && !(guarded && !x.Table.Holds(k.Base())) {
					out = append(out, k.Base())
				}
			}
			for _, k := range u.guard {
				if q == nil && k.IsValid() && !x.Table.Holds(k.Base()) {
					out = append(out, k.Base())
				}
			}
		}
	}
	return out
}

// knowsBehind reports whether it is known what may come of whoever is behind a
// port beyond which the last sweep found nobody: it is known who that was, or the
// port is fenced.
func (e *Engine) knowsBehind(p *observed.Port) bool { return e.remembers(p) || e.isShutting(p) }

// remembers reports whether an earlier sweep found who is behind a port beyond
// which the last one found nobody.
func (e *Engine) remembers(p *observed.Port) bool {
	return slices.ContainsFunc(e.unseen, func(u unseen) bool { return u.behind == placeOf(p) })
}
