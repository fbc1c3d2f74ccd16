package mastership

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Right is the right to write of an engine. The zero value is that of a manager that shares
// no store: it may always write.
type Right struct {
	required bool
	windows  []*transact.Window // that writes leave by; the first is read-only while it is not master
	master   bool
	grant    Grant
	promised time.Duration // until when this manager has said that it writes nothing
	assent   time.Duration // until when the others have, if assented
	assented bool
	lapsed   time.Duration // since when it may not write, while it may not
	halted   bool
	asked    time.Duration // when the others were asked last; 0 for never
	roundAt  time.Duration // when the next round of questions is due, while it may not write
	hearing
}

// hearing is whether a manager hears anything of its subnet.
type hearing struct {
	heard, pinged time.Duration
	silent        time.Duration // when the first question was sent that nobody has answered; 0 for none
	deaf          bool
}

// Others are the other managers, as Peers knows them.
type Others interface {
	// AskOthers asks all that were ever met whether they are master. Said is the time of
	// the oldest question of those in answer to which each said last that it is not; all is
	// false where one has never.
	AskOthers(now time.Duration)
	Said() (asked time.Duration, all bool)
	// Promised is when this manager last told a master that it is not master itself.
	Promised() (at time.Duration, some bool)
	// Ping asks the device next to this manager for anything.
	Ping()
	// AskRound begins a round of questions, by which one of two masters hands over.
	AskRound()
}

// Require has writes leave by these windows only as far as Set allows.
func (r *Right) Require(windows ...*transact.Window) {
	r.required, r.windows = true, windows
	r.bound()
}

// Master reports whether this manager is master: a mastership begins without the right.
func (r *Right) Master(now time.Duration, is bool) {
	if !r.required || is == r.master {
		return
	}
	r.master, r.grant, r.assented, r.lapsed, r.asked, r.roundAt = is, Grant{}, false, now, 0, now+RoundEvery
	r.hearing = hearing{heard: now}
	r.halt(false)
	r.bound()
}

// Heard reports whether a device has answered, another than the manager's own. It reports whether
// the manager was deaf until now.
func (r *Right) Heard(now time.Duration) (wasDeaf bool) {
	wasDeaf = r.deaf
	r.heard, r.silent, r.deaf = now, 0, false
	return wasDeaf
}

// Deaf reports whether no device answers this manager, which is master: it is to give up the
// right to write, and not to take it.
func (r *Right) Deaf() bool { return r.deaf }

// listen asks somebody when nothing was heard.
func (r *Right) listen(now time.Duration, o Others) {
	if now < r.pingAt() {
		return
	}
	if r.silent == 0 {
		r.silent = now
	}
	r.deaf = now >= r.silent+DeafAfter
	r.pinged = now
	o.Ping()
}

func (r *Right) pingAt() time.Duration { return max(r.heard, r.pinged) + PingEvery }

// Set takes what the store has granted. It reports whether this begins a term, before which
// another manager may have written until since.
func (r *Right) Set(g Grant) (begins bool, since time.Duration) {
	if !r.required || !r.master {
		return false, 0
	}
	if begins = g.Term != 0 && g.Term != r.grant.Term; begins {
		g.Since = max(g.Since, r.promised)
	} else {
		g.Since = r.grant.Since
	}
	r.grant = g
	r.bound()
	return begins && g.Since > 0, g.Since
}

// Had reports whether this manager has, or had, the right in this mastership, and nobody is
// known to have taken it.
func (r *Right) Had() bool { return !r.required || r.grant.Term != 0 }

// Stands reports whether there is a subnet to go on with: this manager had the right to write,
// has not been without it for long, and is not deaf.
func (r *Right) Stands() bool { return r.Had() && !r.halted && !r.deaf }

// Alone takes how many nodes this manager has found: with its own only it is deaf. It reports
// whether it is.
func (r *Right) Alone(nodes int) bool {
	if r.required && nodes <= 1 {
		r.deaf = true
	}
	return r.deaf
}

// Why says for people why the store gives no right to write; "" where nothing is known.
func (r *Right) Why() string { return r.grant.Why }

// Halted reports whether writes fail for want of the right.
func (r *Right) Halted() bool { return r.halted }

// May reports whether the engine may write now, as far as its right goes.
func (r *Right) May(now time.Duration) bool {
	from, until := r.between()
	return !r.required || now >= from && now < until
}

// between is from when until when.
func (r *Right) between() (from, until time.Duration) {
	if r.grant.Term == 0 {
		return 0, 0
	}
	until = r.grant.Until
	if r.assented {
		until = max(until, r.assent)
	}
	return r.grant.Since, until
}

// bound tells the windows.
func (r *Right) bound() {
	from, until := r.between()
	for _, w := range r.windows {
		w.WriteBetween(from, until)
	}
}

// halt has writes fail, or wait for the right again.
func (r *Right) halt(on bool) {
	r.halted = on
	for _, w := range r.windows {
		w.ReadOnly(on)
	}
}

// Change is what Look has found.
type Change uint8

// The changes.
const (
	Same    Change = iota
	Halted         // it has not had the right for Patience, and writes fail
	Resumed        // it has it again
)

// Look lets time pass. It is to be called when At says, and when something arrived.
func (r *Right) Look(now time.Duration, o Others) Change {
	if !r.required {
		return Same
	}
	if at, some := o.Promised(); some {
		r.promised = at + AnswerTTL
	}
	if !r.master {
		return Same
	}
	if r.grant.Term != 0 && now >= r.askAt() {
		r.asked = now
		o.AskOthers(now)
	}
	r.listen(now, o)
	if !r.May(now) && now >= r.roundAt {
		r.roundAt = now + RoundEvery
		o.AskRound()
	}
	said, all := o.Said()
	r.assent, r.assented = said+AnswerTTL-Margin(AnswerTTL), all
	r.bound()
	switch {
	case r.May(now):
		r.lapsed = now
		if r.halted {
			r.halt(false)
			return Resumed
		}
	case !r.halted && now >= max(r.lapsed, r.grant.Since)+Patience:
		r.halt(true)
		return Halted
	}
	return Same
}

// askAt is when the others are to be asked: since the store has not renewed the right, early
// enough for their answers.
func (r *Right) askAt() time.Duration {
	at := r.grant.Until - AnswerTTL/2
	if r.asked != 0 {
		at = max(at, r.asked+AskEvery)
	}
	return at
}

// At is when Look has something to do; false for never.
func (r *Right) At(now time.Duration) (at time.Duration, some bool) {
	if !r.required || !r.master {
		return 0, false
	}
	at = r.pingAt()
	if !r.May(now) {
		at = min(at, r.roundAt)
		if !r.halted {
			at = min(at, max(r.lapsed, r.grant.Since)+Patience)
		}
	}
	if r.grant.Term != 0 {
		at = min(at, r.askAt())
		if r.grant.Since > now {
			at = min(at, r.grant.Since)
		}
	}
	return at, true
}
