package engine

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// cutsShort says of which ports a table too small is no reason to refuse p. A
// policy that is new is refused whole: whoever wrote it can correct it. One that
// stands does not fall because of a device that came, or says something else of
// itself, since then; nor does a new one because of a device that is fenced
// already. With a profile no policy falls because of a host that says that it has
// less room than most: it may say so to keep what was revoked. The manager's own
// port is never fenced.
func (e *Engine) cutsShort(p *policy.Policy) func(ib.PortGUID) bool {
	stands := e.settled && p == e.policy
	var odd map[ib.PortGUID]bool
	if e.config.Profile != protect.None {
		odd = facts.SmallTables(e.ends)
	}
	return func(g ib.PortGUID) bool {
		return g != e.fabric.Self.GUID && (stands || e.known.Fenced[g] || odd[g])
	}
}

// shortReason begins the reason of every fence that stands for a table too small.
const shortReason = "its P_Key table does not hold what the policy gives it"

// cutShort says which ports are cut short and remembers them. With a profile they
// are fenced: what a device says of its own room takes no port out of what the
// policy wants of it.
func (d *desired) cutShort(e *Engine, ports []partition.Overflow) {
	d.assigned.Fenced = make(map[ib.PortGUID]bool, len(ports))
	short := make(map[Place]bool)
	for _, o := range ports {
		d.assigned.Fenced[o.PortGUID] = true
		if e.config.Profile == protect.None {
			d.warn("fenced: it gets the default partition only until it fits: %v", o)
			continue
		}
		p := e.port(Place{o.NodeGUID, o.PortNum})
		if p == nil || p.Peer == nil || !p.Peer.FacesEnd() {
			d.warn("it gets no more than fits, and is behind no switch port that could be fenced: %v", o)
			continue
		}
		at := placeOf(p.Peer)
		if short[at] = true; e.known.Fences[at] == "" {
			e.enclose(at, fmt.Sprintf("%s: %v", shortReason, o))
		}
	}
	for _, f := range e.fences() {
		if strings.HasPrefix(f.Reason, shortReason) && !short[f.At] && e.port(f.At) != nil {
			e.disclose(f.At, "it fits now")
		}
	}
}

// isExpelled reports whether a port is fenced, or faces a port that is, for any
// reason but that its table is too small: as soon as it fits it is a member again.
func (e *Engine) isExpelled(at Place) bool {
	reason, fenced := e.known.Fences[at]
	return fenced && !strings.HasPrefix(reason, shortReason)
}
