package engine

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// sweeping is the phase in which the subnet is read, with its tables.
type sweeping struct {
	discovery *sweep.Discovery // nil when nothing is being read
	// links reports whether only what is behind links that changed is read.
	links bool
	told  int // of its faults
	// before is the subnet before it was found out who there is, with its tables.
	before snapshot
	// aliases and lanes tell that the last sweep of the whole subnet, or the one under way, reads
	// GUIDInfo and the tables of virtual lanes.
	aliases, lanes bool
	counts         event.Sweeps
}

// end drops what is being read.
func (s *sweeping) end() { s.discovery, s.links = nil, false }

// swept takes over the result of a sweep, which is not complete if it continues with tables.
func (e *Engine) swept(now time.Duration) {
	if e.sweep.links {
		e.revisited(now)
		return
	}
	if e.learns() {
		if err := e.lockedOut(e.sweep.discovery.Fabric()); err != nil {
			e.lockOut(now, err)
			return
		}
		again, err := e.learnCables()
		if again {
			e.startSweep()
			return
		}
		if err != nil {
			e.refuse(now, nil, err)
			return
		}
	}
	e.faults = slices.Clone(e.sweep.discovery.Faults())
	e.sweep.told = len(e.faults)
	e.tell(e.faults)
	old := e.fabric
	e.takeOver(e.sweep.discovery.Fabric())
	e.round.cursor = 0 // all of it was read just now
	if e.robbedSince(old) {
		e.rest(now, onRobbed)
		return
	}
	if err := e.sweep.discovery.CheckLIDs(e.config.LMC); err != nil {
		e.refuse(now, e.wanted(), err)
		return
	}
	if err := e.vetWanted(); err != nil && !e.names.HasPolicy() {
		e.refuse(now, e.wanted(), err)
		return
	} else if err != nil { // the pass goes on with the policy in force
		e.emit(event.Refused{Err: err, Policy: e.agenda.policy})
		e.agenda.dropPolicy()
	}
	if !e.givesKeys() && !e.master.Wait.Stale {
		e.sweep.discovery = nil
	}
	e.startElection(now)
}

// vetWanted checks the names of the next policy, before anything is written.
func (e *Engine) vetWanted() error {
	if e.config.Hold || e.lockedOut(e.fabric) != nil {
		return nil // Predict does; nothing is known of who does not let the manager in
	}
	return e.names.VetAmong(e.resolver, e.wanted(), e.known.PKeys, e.siteOf(&e.snapshot))
}

func (e *Engine) tell(faults []sweep.Fault) {
	for _, f := range faults {
		e.emit(event.SweepFault{Fault: f})
	}
}

// takeOver makes f the subnet as it was last read.
func (e *Engine) takeOver(f *observed.Fabric) {
	old := e.fabric
	if old != nil && e.sweep.before.fabric == nil {
		e.sweep.before = e.snapshot
	}
	e.fabric = f
	e.counts, e.proof.baseline, e.silent = e.fabric.Count(), nil, e.fabric.Silent()
	// What was desired belongs to the fabric as it was: until the policy has
	// been worked out again there is nothing to compare with, or to write.
	e.desired, e.round.blocks = nil, nil
	clear(e.agenda.repairs)
	e.emit(event.Found{Counts: e.counts})
	e.editFences((*facts.FenceEdit).HoldToList)
	e.tellDescriptions()
	e.recognize(old)
}

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
	e.sweep.before = snapshot{} // this one has tables too
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
	e.step(onLinksChanged, other{is: stateSweeping})
	e.sweep.links = true
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

// revisited takes over what was found behind changed links. Other managers are asked only
// when one of them is new, or gone.
func (e *Engine) revisited(now time.Duration) {
	d := e.sweep.discovery
	e.sweep.links = false
	if d.Conflicts() { // a device has moved from one place to another
		e.sweep.discovery = nil
		e.step(onContested, watching{})
		e.agenda.wantSweep("a device answers that the snapshot has elsewhere")
		return
	}
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
	if len(d.Fallen()) > 0 && e.revisit(now) {
		return // before routes lead over these links
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
