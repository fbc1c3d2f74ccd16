package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// bounds is what bounds the policy while another manager is, or just was, master.
type bounds struct {
	sharing           bool // another that counts is master too
	shared, inherited *desired.Bound
	// others reports whether another manager may have written since the tables were last read.
	// A block that is written from them could give what that one has taken away.
	others bool
	// back is the bound of a store that was rolled back, and why there is one, or will be once
	// the tables are read; older says that the policy is older than they may be.
	back    *desired.Bound
	whyBack string
	older   bool
	// accepts reports whether the next policy lifts the bound after a master with another policy.
	accepts bool
}

// heldNow is what ports hold in the present snapshot.
func (e *Engine) heldNow(why string, untilRead bool) *desired.Bound {
	b := desired.BoundOf(e.ends, why, untilRead)
	for i := range e.unseen {
		b.Add(e.unseen[i].Identity.PortGUID, e.unseen[i].Keys)
	}
	return b
}

// bind records what the subnet holds, as it was read, when this manager has taken it over
// from another master, or another is master too.
func (e *Engine) bind() {
	if e.bounds.whyBack != "" && e.bounds.back == nil {
		e.bounds.back, e.proof.baseline = e.heldNow(e.bounds.whyBack, false), nil
		e.bounds.back.Older = e.bounds.older
	}
	if !e.master.Named() {
		return
	}
	if e.bounds.sharing && e.bounds.shared == nil {
		e.bounds.shared = e.heldNow("another manager is master too", false)
	}
	if why, other := e.master.StoodBy, e.master.Other; why != "" && (other || !e.config.Election.AcceptPolicy) {
		e.bounds.inherited, e.proof.baseline = e.heldNow(why, true), nil
		if e.bounds.inherited.Other = other; other {
			e.emit(event.Guarding{Reason: why})
		}
	}
	e.master.StoodBy, e.master.Other = "", false
}

// share records whether another manager that counts is master too. Monitoring goes on,
// but no port is given anything new: the other manager's policy may be newer.
func (e *Engine) share(shared bool) {
	if shared == e.bounds.sharing {
		return
	}
	e.bounds.sharing, e.bounds.shared = shared, nil
	if shared {
		e.emit(event.Warned{Text: "another manager that counts is master too: until one of them hands over, this one gives no port anything new"})
	} else {
		e.emit(event.Warned{Text: "no other manager is master any more"})
	}
	e.membersChanged()
}

// HoldBack has the policy give no port more than the tables hold, as they were read last,
// because the store that it is from was rolled back; "" ends it. older says that the policy
// is older than the tables may be: then it gives nothing that tables do not show either.
// What it takes away, it takes away.
func (e *Engine) HoldBack(why string, older bool) {
	if why == "" && e.bounds.whyBack == "" {
		return
	}
	e.bounds.whyBack, e.bounds.older, e.bounds.back, e.proof.baseline = why, older, nil, nil
	e.emit(event.Warned{Text: desired.RolledBackBound(why)})
	if e.policy != nil {
		e.membersChanged()
	}
}

// AcceptPolicy reports whether a person wants what SetPolicy brings next, whatever another had.
func (e *Engine) AcceptPolicy() { e.bounds.accepts = true }

// accept removes the bounds of an earlier manager's tables, and those that were to come once
// they are read, because the policy was set again. What somebody changes through the API
// does not tell that the rest of the policy is right.
func (e *Engine) accept() {
	if !e.bounds.accepts && (e.master.Other || e.bounds.inherited != nil && e.bounds.inherited.Other) {
		return
	}
	e.bounds.accepts = false
	e.master.StoodBy, e.master.Other = "", false
	if e.bounds.inherited != nil {
		e.bounds.inherited, e.proof.baseline = nil, nil
	}
}

// isBound reports whether bounds of an earlier manager's tables apply to the policy.
func (e *Engine) isBound() bool {
	return e.bounds.sharing || e.bounds.inherited != nil || e.bounds.whyBack != ""
}
