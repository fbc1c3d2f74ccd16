package sm

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/partition"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// cutsShort says of which ports a table too small is no reason to refuse p. A
// policy that is new is refused whole: whoever wrote it can correct it. One that
// stands does not fall because of a device that came, or says something else of
// itself, since then; nor does a new one because of a device that is fenced
// already. The manager's own port is never fenced.
func (e *Engine) cutsShort(p *policy.Policy) func(ib.PortGUID) bool {
	stands := e.settled && p == e.policy
	return func(g ib.PortGUID) bool { return g != e.fabric.Self.GUID && (stands || e.known.Fenced[g]) }
}

// cutShort says which ports are cut short and remembers them.
func (d *desired) cutShort(ports []partition.Overflow) {
	d.assigned.Fenced = make(map[ib.PortGUID]bool, len(ports))
	for _, o := range ports {
		d.assigned.Fenced[o.PortGUID] = true
		d.warn("fenced: it gets the default partition only until it fits: %v", o)
	}
}
