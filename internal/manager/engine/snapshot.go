package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// snapshot is the subnet as a sweep read it. A sweep makes a new one; what is read or written after
// that changes its values, not its devices.
type snapshot struct {
	fabric *observed.Fabric
	counts observed.Counts
	faults []sweep.Fault    // what of it could not be read or used
	silent []*observed.Port // behind them nobody answered
	// ends are its end ports by GUID, unseen those of earlier sweeps that no sweep finds any more,
	// and resolver finds the members of a policy among both.
	ends     []*observed.Port
	unseen   []facts.UnseenPort
	resolver *policy.Resolver
}

// siteOf are the devices of a snapshot by the names that a policy may use.
func (e *Engine) siteOf(s *snapshot) func() *policy.Site {
	return func() *policy.Site { return facts.Site(s.fabric, s.ends, e.cabling.list) }
}

// recognize looks who there is after a sweep; old is what the one before it found.
func (e *Engine) recognize(old *observed.Fabric) {
	e.ends = e.fabric.EndPorts()
	e.remember(old)
	e.resolver = e.newResolver()
}

// remember carries over what an earlier sweep taught about the devices.
func (e *Engine) remember(old *observed.Fabric) {
	if old == nil {
		e.known.Recall(e.fabric)
		return
	}
	before := e.unseen
	e.unseen = facts.UnseenAfter(old, e.fabric, e.ends, before, e.known.Fences, e.cabling.list)
	e.fabric.Recall(old)
	facts.RecallUnseen(e.fabric, e.ends, before)
	down, up := watch.CompareLinks(old, e.fabric)
	if len(down.Links)+len(down.Gone) > 0 {
		e.emit(down)
	}
	if len(up.Links)+len(up.New) > 0 {
		e.emit(up)
	}
}
