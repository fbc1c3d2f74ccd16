package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/bound"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// inheritance is what bounds the policy while another manager is, or just was, master.
type inheritance struct {
	sharing           bool // another that counts is master too
	shared, inherited *bound.Bound
	// others tells that another manager may have written since the tables were last read.
	// A block that is written from them could give what that one has taken away.
	others bool
	// back is the bound of a store that was rolled back, and why there is one, or will be once
	// the tables are read; older tells that the policy is older than they may be.
	back    *bound.Bound
	whyBack string
	older   bool
	// accepts tells that the next policy lifts the bound after a master with another policy.
	accepts bool
}

// heldNow is what ports hold in the present snapshot.
func (e *Engine) heldNow(why string, untilRead bool) *bound.Bound {
	b := bound.Of(e.ends, why, untilRead)
	for i := range e.unseen {
		b.Add(e.unseen[i].Identity.PortGUID, e.unseen[i].Keys)
	}
	return b
}

// bind records what the subnet holds, as it was read, when this manager has taken it over
// from another master, or another is master too.
func (e *Engine) bind() {
	if e.whyBack != "" && e.back == nil {
		e.back, e.baseline = e.heldNow(e.whyBack, false), nil
		e.back.Older = e.older
	}
	if !e.master.Named() {
		return
	}
	if e.sharing && e.shared == nil {
		e.shared = e.heldNow("another manager is master too", false)
	}
	if why, other := e.master.StoodBy, e.master.Other; why != "" && (other || !e.config.AcceptPolicy) {
		e.inherited, e.baseline = e.heldNow(why, true), nil
		if e.inherited.Other = other; other {
			e.emit(event.Guarding{Reason: why})
		}
	}
	e.master.StoodBy, e.master.Other = "", false
}

// share records whether another manager that counts is master too. Monitoring goes on,
// but no port is given anything new: the other manager's policy may be newer.
func (e *Engine) share(shared bool) {
	if shared == e.sharing {
		return
	}
	e.sharing, e.shared = shared, nil
	if shared {
		e.emit(event.Warned{Text: "another manager that counts is master too: until one of them hands over, this one gives no port anything new"})
	} else {
		e.emit(event.Warned{Text: "no other manager is master any more"})
	}
	e.membersChanged()
}

// HoldBack has the policy give no port more than the tables hold, as they were read last,
// because the store that it is from was rolled back; "" ends it. older tells that the policy
// is older than the tables may be: then it gives nothing that tables do not show either.
// What it takes away, it takes away.
func (e *Engine) HoldBack(why string, older bool) {
	if why == "" && e.whyBack == "" {
		return
	}
	e.whyBack, e.older, e.back, e.baseline = why, older, nil, nil
	e.emit(event.Warned{Text: bound.RolledBack(why)})
	if e.policy != nil {
		e.membersChanged()
	}
}

// AcceptPolicy tells that a person wants what SetPolicy brings next, whatever another had.
func (e *Engine) AcceptPolicy() { e.accepts = true }

// accept removes the bounds of an earlier manager's tables, and those that were to come once
// they are read, because the policy was set again. What somebody changes through the API
// does not tell that the rest of the policy is right.
func (e *Engine) accept() {
	if !e.accepts && (e.master.Other || e.inherited != nil && e.inherited.Other) {
		return
	}
	e.accepts = false
	e.master.StoodBy, e.master.Other = "", false
	if e.inherited != nil {
		e.inherited, e.baseline = nil, nil
	}
}

// isBound reports whether bounds of an earlier manager's tables apply to the policy.
func (e *Engine) isBound() bool { return e.sharing || e.inherited != nil || e.whyBack != "" }
