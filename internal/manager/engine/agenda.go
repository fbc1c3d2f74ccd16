package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// agenda is what the engine is to do next, and why. Whoever finds that something has to be done
// notes it here; watching.advance takes it up when nothing is under way, in its order (watch.go). A want
// ends when what it asks for begins.
type agenda struct {
	// sweep says why the whole subnet is to be read again, "" for not; not before sweepFrom, however
	// many traps and changes ask for it. retryAt is when it is read in any case, 0 for never.
	sweep              string
	sweepFrom, retryAt time.Duration
	// election says why the other managers are to be asked again, "" for not.
	election string
	// policy is the one to put in force, nil for none. wayFor is the one for which something was
	// interrupted, narrowed the one whose revocations were written.
	policy, wayFor, narrowed *policy.Policy
	// looks are nodes to be read again, by the place of their port 0, or of the port of a CA or
	// router; true: all ports of a switch, whatever PortStateChange says.
	looks map[observed.Place]bool
	// waits reports whether a policy waits for a look at a switch, since waitsFrom.
	waits     bool
	waitsFrom time.Duration
	// links are those that changed: what is behind them is to be read.
	links watch.ChangedLinks
	// repairs are ports at which a foreign value was read, that is to be written back.
	repairs map[*observed.Port]bool
	// compare reports whether all tables are to be compared: a device answers again to which something
	// could not be written. replan says that the policy is to be computed again, restate that it
	// is to be proved again.
	compare, replan, restate bool
}

// lookPatience is how long a policy waits for a look at a switch that has reported a change.
const lookPatience = 200 * time.Millisecond

func newAgenda() agenda {
	return agenda{looks: make(map[observed.Place]bool), repairs: make(map[*observed.Port]bool)}
}

// wantSweep notes the first reason for reading the whole subnet again.
func (a *agenda) wantSweep(reason string) { a.sweep = cmp.Or(a.sweep, reason) }

// wantSweepAt does the same, and has the subnet read from a time on, sooner than after another pass.
func (a *agenda) wantSweepAt(now time.Duration, reason string) {
	a.wantSweep(reason)
	a.sweepFrom = now
}

// sweepsAt is when the subnet is to be read; false for never.
func (a *agenda) sweepsAt() (at time.Duration, some bool) {
	if a.sweep != "" {
		return a.sweepFrom, true
	}
	return a.retryAt, a.retryAt != 0
}

// sweeping takes out what a sweep of the whole subnet finds anyway.
func (a *agenda) sweeping() {
	a.sweep, a.retryAt = "", 0
	a.links.Clear()
	clear(a.looks)
}

// wantElection notes the first reason for asking the other managers again.
func (a *agenda) wantElection(reason string) { a.election = cmp.Or(a.election, reason) }

// wantLook asks for a look at a node; cleared says that PortStateChange was cleared by a look that was ended.
func (a *agenda) wantLook(at observed.Place, cleared bool) { a.looks[at] = a.looks[at] || cleared }

// takeLooks gives out the looks that are due, in order, but for those at busy nodes.
func (a *agenda) takeLooks(busy map[observed.Place]bool, look func(at observed.Place, cleared bool)) {
	for _, at := range slices.SortedFunc(maps.Keys(a.looks), observed.Place.Compare) {
		if _, is := busy[at]; is {
			continue
		}
		cleared := a.looks[at]
		delete(a.looks, at)
		look(at, cleared)
	}
}

// waitsForLook reports whether a policy goes on waiting for a look at a switch, if one is pending.
func (a *agenda) waitsForLook(now time.Duration, pending bool) bool {
	if pending && !a.waits {
		a.waitsFrom = now
	}
	a.waits = pending && (!a.waits || now < a.waitsFrom+lookPatience)
	return a.waits
}

// takeRepairs gives out the ports with foreign values.
func (a *agenda) takeRepairs() []*observed.Port {
	ports := slices.Collect(maps.Keys(a.repairs))
	clear(a.repairs)
	return ports
}

// comparing takes out what a comparison of all tables finds anyway.
func (a *agenda) comparing() {
	clear(a.repairs)
	a.compare = false
}

// planning takes out what a pass is for: the policy, and what has it computed again.
func (a *agenda) planning() {
	a.waits, a.replan = false, false
	a.dropPolicy()
}

// dropPolicy takes out the next policy.
func (a *agenda) dropPolicy() { a.policy, a.wayFor, a.narrowed = nil, nil, nil }

// due is when the next want but for a sweep can be taken up; false where there is none.
func (a *agenda) due() (at time.Duration, some bool) {
	if a.waits && (a.policy != nil || a.links.Len() > 0 || len(a.repairs) > 0 || a.compare) {
		return a.waitsFrom + lookPatience, true
	}
	if len(a.repairs) > 0 || a.election != "" || a.compare {
		return 0, true
	}
	if a.replan {
		at, some = a.sweepFrom, true
	}
	if due, any := a.links.Due(); any && (!some || due < at) {
		return due, true
	}
	return at, some
}
