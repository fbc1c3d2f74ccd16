package engine

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// survey is what the manager knows of its reading of the subnet, which goes through several phases.
type survey struct {
	// discovery is what is being read, nil for nothing: by Sweeping, and with the tables by Reading.
	discovery *sweep.Discovery
	told      int // of its faults
	// before is the subnet before it was found out who there is, with its tables.
	before snapshot
	// stood is what was wanted of before, nil where that is not known; drifted are ports of it that were
	// found to differ.
	stood   *observed.Desired
	drifted []*observed.Port
	// aliases and lanes report whether the last sweep of the whole subnet, or the one under way, reads
	// GUIDInfo and the tables of virtual lanes.
	aliases, lanes bool
	counts         event.Sweeps
}

// forget drops the subnet as it was before.
func (s *survey) forget() { s.before, s.stood, s.drifted = snapshot{}, nil, nil }

// surveying is what the phases have in common that read the whole subnet.
type surveying struct{ base }

func (surveying) giveWay(e *Engine, now time.Duration) bool {
	e.agenda.wantSweepAt(now, "a new policy came while the subnet was read")
	e.sweep.discovery = nil
	return true
}

// sweeping is the phase in which it is read who there is.
type sweeping struct{ surveying }

func (e *Engine) startSweep() {
	e.cancelLooks()
	e.sweep.counts.Full++
	e.step(onSubnetUnread, sweeping{})
	e.round.next = 0
	e.agenda.sweeping()
	e.begin(event.PhaseDiscover)
	e.master.Wait.Stale = e.mustWait()
	e.sweep.aliases = e.readsAliases()
	e.keys.Begin()
	o := e.Reads()
	e.sweep.lanes = o.QoS
	e.sweep.discovery = sweep.Discover(e.window, o)
}

// Reads is what a sweep of the whole subnet asks for.
func (e *Engine) Reads() sweep.Options {
	return sweep.Options{
		Keys: e.keys.Config.Shown(), MKey: e.config.MKey, InParts: e.givesKeys() || e.master.Wait.Stale, ClearChange: e.settled && e.MayWrite(), Forwarding: !e.config.KeepRoutes,
		Multicast: !e.config.LeaveMulticast && !e.config.Hold,
		QoS:       e.config.ReadLanes || e.config.Routing.UsesLanes() || e.routing.routes.UsesLanes() || e.wanted().UsesLanes(),
		Aliases:   e.sweep.aliases,
		Cables:    e.cabling.list, Verify: e.learns(), Last: e.cabling.learning.Last,
		Placed: e.master.Placed,
	}
}

func (sweeping) state() state { return stateSweeping }

func (sweeping) advance(e *Engine, now time.Duration) bool {
	if e.sweep.discovery.Advance() {
		e.swept(now)
	}
	return true
}

func (sweeping) resign(e *Engine) { e.sweep.discovery.WriteNothing() }

func (sweeping) work(*Engine) (apply.Work, bool) { return apply.Work{Phase: event.PhaseDiscover}, true }

// swept takes over the result of a sweep, which is not complete if it continues with tables.
func (e *Engine) swept(now time.Duration) {
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
	e.foundLeast()
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

// foundLeast counts what a discovery takes at the least, with the tables that it has read already.
func (e *Engine) foundLeast() {
	d := e.sweep.discovery
	found, tables := d.Least()
	if e.least += found; d.HasTables() {
		e.least += tables
	}
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
		if e.desired != nil {
			e.sweep.stood, e.sweep.drifted = e.desired.Tables, e.agenda.takeRepairs()
		}
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
