package mastership

import "time"

const (
	// Beats is how often in the time that its partners wait a master with partners wants to be
	// called: one that is not called for all that time did not run.
	Beats = 4
	// rounds is the time between two rounds of questions while a master that did not run
	// for a while sends nothing else.
	rounds = 500 * time.Millisecond
	// most bounds that time: a store, or a manager, that does not answer ends no mastership.
	most = 10 * time.Second
)

// Nap is such a doubt. The zero value is none.
type Nap struct {
	// Confirms has it wait for Confirm.
	Confirms bool
	on       bool
	asked    bool // a round that was begun after the nap has ended, and no other manager was master
	unsure   bool // Confirm is awaited
	changed  bool // another manager was master meanwhile, or the policy became another
	rounds   int  // that have to end until one counts: one may have been under way
	next     time.Duration
	until    time.Duration
}

// On reports whether there is a doubt.
func (n *Nap) On() bool { return n.on }

// Begin begins it, with so many rounds of questions that have to end until one counts.
func (n *Nap) Begin(now time.Duration, ends int) {
	*n = Nap{Confirms: n.Confirms, on: true, unsure: n.Confirms, rounds: ends, next: now + rounds, until: now + most}
}

// Confirm reports whether the policy is known to be the one in force, and whether it was another.
func (n *Nap) Confirm(changed bool) {
	if n.on {
		n.unsure, n.changed = false, n.changed || changed
	}
}

// ToldOfMasters takes the end of a round.
func (n *Nap) ToldOfMasters(alone bool) {
	if n.on {
		n.rounds--
		n.asked = alone && n.rounds <= 0
		n.changed = n.changed || !alone
	}
}

// ToldOfPolicy notes that a policy came. Whoever keeps it may have found before Confirm
// that another manager had it, and confirms what it found.
func (n *Nap) ToldOfPolicy() { n.changed = n.changed || n.on }

// over reports whether all is known that has to be.
func (n *Nap) over() bool { return n.asked && !n.unsure }

// Lasts lets time pass, and reports whether the doubt lasts, and whether another round of
// questions is to be begun. A manager that is not master any more has none.
func (n *Nap) Lasts(now time.Duration, master bool) (lasts, ask bool) {
	if n.on = n.on && master && now < n.until && !n.over(); n.on && now >= n.next {
		n.next, ask = now+rounds, true
	}
	return n.on, ask
}

// Changed reports whether, by the end of it, what was under way is to be begun again.
func (n *Nap) Changed() bool { return n.changed }

// Due is when Lasts has something to do while it lasts.
func (n *Nap) Due(now time.Duration) time.Duration {
	if n.over() {
		return now
	}
	return min(n.next, n.until)
}
