package engine

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// following is the phase in which what is behind links that changed is read.
type following struct{ sweeping }

// revisitRest is how long a changed link is left alone when following it was interrupted,
// so that it does not delay the interrupting policy again.
const revisitRest = 100 * time.Millisecond

// linkMoved records that the link of a port has changed since the subnet was read: what
// is behind it has to be discovered again. A link that changes often is left alone for
// longer and longer; it carries no data meanwhile.
func (e *Engine) linkMoved(p *observed.Port, reason string) { e.linkMovedAt(p, reason, e.now) }

// linkMovedAt has what is behind a link discovered again, not before a time.
func (e *Engine) linkMovedAt(p *observed.Port, reason string, at time.Duration) {
	if p.IsEnd() && p.Peer != nil {
		p = p.Peer // the switch's, whatever its host calls itself next
	}
	e.noteOften(p, e.agenda.links.Add(e.now, p, reason, at))
}

func (e *Engine) noteOften(p *observed.Port, often bool) {
	if often {
		e.emit(event.Flooded{Sender: p.String(), Link: true})
	}
}

// cutMoved removes the links that have changed from the snapshot, and reports whether no
// device is behind one of them any more: no policy relies on the former ones.
func (e *Engine) cutMoved() bool {
	if !e.agenda.links.OutOfDate(e.fabric) {
		return true
	}
	cut := e.agenda.links.Ports(e.fabric)
	if !sweep.CanCut(e.fabric, cut) {
		return false
	}
	rivals := e.master.Rivals()
	e.takeOver(sweep.Cut(e.fabric, cut))
	e.master.Keep(rivals)
	e.sweep.forget() // this one has tables too
	return true
}

// revisit starts to follow the changed links that are due, and reports whether there are
// any. The rest of the snapshot stays; if that is not possible, the subnet is swept.
func (e *Engine) revisit(now time.Duration) bool {
	if e.agenda.links.Len() == 0 {
		return false
	}
	due, reason := e.agenda.links.Follow(e.fabric, now)
	if len(due) == 0 {
		return e.leaveOut(now)
	}
	all := e.agenda.links.Ports(e.fabric)
	o := e.Reads()
	if o.QoS && !e.sweep.lanes || o.Aliases != e.sweep.aliases || !sweep.CanCut(e.fabric, all) {
		e.agenda.wantSweep(reason)
		e.agenda.links.Forget(due)
		return true
	}
	e.cancelLooks()
	e.sweep.counts.Links++
	e.emit(event.Resweeping{Reason: reason, Links: len(due)})
	e.begin(event.PhaseDiscover)
	e.step(onLinksChanged, following{})
	e.sweep.discovery = sweep.Again(e.window, o, e.fabric, all, due)
	return true
}

// leaveOut goes on without the devices behind changed links that are not due yet.
func (e *Engine) leaveOut(now time.Duration) bool {
	if !e.agenda.links.OutOfDate(e.fabric) {
		return false
	}
	if !e.bounds.others && e.cutMoved() {
		e.startPass(now)
	} else {
		e.agenda.wantSweep("a link has moved that the manager cannot do without")
	}
	return true
}

func (following) advance(e *Engine, now time.Duration) bool {
	if e.sweep.discovery.Advance() {
		e.revisited(now)
	}
	return true
}

// giveWay leaves the links that moved to be followed later.
func (following) giveWay(e *Engine, now time.Duration) bool {
	e.agenda.links.Interrupted(now + revisitRest)
	e.sweep.discovery = nil
	return true
}

// revisited takes over what was found behind changed links. Other managers are asked only
// when one of them is new, or gone.
func (e *Engine) revisited(now time.Duration) {
	d := e.sweep.discovery
	if d.Conflicts() { // a device has moved from one place to another
		e.sweep.discovery = nil
		e.step(onContested, watching{})
		e.agenda.wantSweep("a device answers that the snapshot has elsewhere")
		return
	}
	e.foundLeast()
	if again := e.agenda.links.Followed(d.Fabric()); len(again.Links) > 0 {
		e.emit(again)
	}
	e.faults = slices.DeleteFunc(slices.Clone(e.faults), func(f sweep.Fault) bool { return f.Port != nil && !d.Kept(f.Port) })
	e.faults = append(e.faults, d.Faults()...)
	e.sweep.told = len(d.Faults())
	e.tell(d.Faults())
	rivals := e.master.Rivals()
	e.takeOver(d.Fabric())
	e.master.Keep(rivals)
	for _, p := range d.Fallen() {
		e.linkMoved(p, "the switch behind a link does not answer, and the link is down")
	}
	if len(d.Fallen()) > 0 && e.revisit(now) { // before routes lead over these links
		if e.state() == stateSweeping && e.sweep.discovery == d { // what is found is taken over before the whole subnet is read again
			e.swept(now)
		}
		return
	}
	if !e.givesKeys() {
		e.sweep.discovery = nil
	}
	switch err := d.CheckLIDs(e.config.LMC); {
	case err != nil:
		e.refuse(now, e.wanted(), err)
	case e.master.Named():
		e.master.Ask() // a master does not wait for what they say
		e.lead(now)
	case e.agenda.election != "" || len(e.master.Rivals()) != len(rivals) || slices.ContainsFunc(e.ends, func(p *observed.Port) bool { return e.master.IsRival(p) != e.master.Asked(p) }):
		e.startElection(now)
	default:
		e.lead(now)
	}
}
