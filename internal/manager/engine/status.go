package engine

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Status returns the state of the election and the number of sweeps.
func (e *Engine) Status() event.Status {
	m := event.Status{State: e.master.State(), Rogues: e.master.Rogues(), Sweeps: e.sweep.counts, Guards: e.bounds.inherited != nil && e.bounds.inherited.Other, Halted: e.master.Right.Halted()}
	for _, info := range e.master.Rivals() {
		if info.GUID != 0 {
			m.Others++
		}
	}
	return m
}

// Least is how many packets all that was read and written so far takes at the least, computed from
// what was found and what was wanted (sweep.Discovery.Least, plan.Plan.Least). Counts has what was sent.
func (e *Engine) Least() uint64 { return e.least }

// Faults lists what of Fabric could not be read or used. It stays as it is.
func (e *Engine) Faults() []sweep.Fault { return slices.Clone(e.faults) }

// Managers are this manager and every other that is known of, by their ports; nil before
// the subnet was read.
func (e *Engine) Managers() []observed.SubnetManager { return e.master.Managers() }

// NamesManager reports whether the manager behind an end port is this one, or one that counts.
func (e *Engine) NamesManager(p *observed.Port) bool { return e.master.Names(p) }

// AskManagers asks every manager of the subnet for its state, also those that do not count.
func (e *Engine) AskManagers() { e.master.AskAll() }

// Asking is how many managers have not answered what they were asked.
func (e *Engine) Asking() int { return e.master.Asking() }

// HandOver offers mastership to the standby at a port, or for 0 to the highest one, as an
// administrator wants it. What comes of it, SteppedDown and the events tell. The error is
// mastership.ErrAsking while they are being asked, or mastership.ErrNoHandover.
func (e *Engine) HandOver(to ib.PortGUID) (ib.PortGUID, error) { return e.master.HandOver(e.now, to) }

// SteppedDown is to whom mastership was, or is being, handed over as planned, and why that
// failed.
func (e *Engine) SteppedDown() (to ib.PortGUID, failed string) { return e.master.SteppedDown() }

// Subnet returns what subnet administration needs to know of the subnet: the
// fabric as it was read back and the partitions of the policy. After a takeover, until the
// first pass, that is the fabric as it was last read as standby, and of the partitions what has
// not changed since. ok is false while no policy
// stands, or while another manager is master. It is worth asking for after every Completed.
func (e *Engine) Subnet() (s observed.Subnet, ok bool) {
	stands := e.desired
	if e.standby.serves {
		stands = e.standby.ready
	} else if !e.settled {
		stands = nil
	}
	if stands == nil || !e.isMaster() {
		return observed.Subnet{}, false
	}
	s = stands.Subnet(e.known.Fences)
	if e.standby.serves && !e.unchanged(&s) {
		return observed.Subnet{}, false
	}
	s.Manager, s.Epoch = e.master.Info(), e.proof.epoch
	for p, info := range e.master.Rivals() {
		if info.GUID != 0 {
			s.Others = append(s.Others, observed.OtherManager{Port: p, Info: info})
		}
	}
	slices.SortFunc(s.Others, func(a, b observed.OtherManager) int { return cmp.Compare(a.Port.GUID, b.Port.GUID) })
	return s, true
}
