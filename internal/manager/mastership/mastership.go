package mastership

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Mastership is a manager's part in who is master of the subnet.
type Mastership struct {
	// Peers are the other managers, by SMInfo.
	*Peers
	// Right is the right to write by a store that managers share; Nap the doubt of a master that did
	// not run; Wait that for what an earlier manager sent.
	Right Right
	Nap   Nap
	Wait  Wait
	// pass is the window of the requests of passes.
	pass *transact.Window
}

// Open returns the part of a manager that has just started, whose passes write by the window pass,
// and anything else by beside. With leased it writes only as far as SetLease allows.
func Open(c Config, host Host, leased bool, pass, beside *transact.Window) *Mastership {
	m := &Mastership{Peers: New(c, host), pass: pass, Wait: Wait{AtStart: true}}
	if leased {
		m.Right.Require(pass, beside)
	}
	return m
}

// Forever is the time until which a manager may write that shares no store: until it hears of
// another master.
const Forever = never

// MayWrite reports whether this manager may write to devices now, and until when that stands
// unless it is renewed. It is the one answer: what the election says, what the lease says, and
// whether the manager knows that both still hold. The windows follow it: a Set leaves only in that
// time. The wait for what an earlier manager sent is not in it (MustWait): a master that waits may
// announce itself.
func (m *Mastership) MayWrite(now time.Duration) (until time.Duration, ok bool) {
	switch {
	case !m.IsMaster() || m.Nap.On():
		return 0, false
	case !m.Right.required:
		return Forever, true
	}
	from, until := m.Right.between()
	return until, now >= from && now < until
}

// Became has what leaves by the windows follow a change of the state in the election: who is
// not master any more sends no Set again, since the next master may have written otherwise.
func (m *Mastership) Became(now time.Duration, f Effects) {
	m.Right.Master(now, f.To == smp.SMMaster)
	switch {
	case f.To == smp.SMMaster:
		m.pass.ReadOnly(m.Right.Halted())
	case f.From == smp.SMMaster:
		m.pass.ReadOnly(true)
	}
}

// TimeIs enters the time. The wait of a start, which takes as long as pause, begins when it is
// first told.
func (m *Mastership) TimeIs(now, pause time.Duration) {
	if !m.Wait.Began {
		m.Wait.Began, m.Wait.Until = true, now+pause
	}
}

// MustWait reports whether the wait is not over: a former master may have the right to write
// until this one has. pause is that of a manager which was not told the time yet.
func (m *Mastership) MustWait(now, pause time.Duration) bool {
	if !m.Wait.Began {
		return pause > 0 || m.Right.required
	}
	return now < m.Wait.Until || !m.Right.Stands()
}

// Succeeds begins the wait of a takeover. A master that was given up has sent nothing since it
// did not answer; one that handed over, until now. lifetime is how long a packet can be under way.
func (m *Mastership) Succeeds(now, lifetime time.Duration, f Effects) {
	since := now
	if f.Lost {
		since = f.Since
	}
	m.waitSince(since, lifetime)
	m.Wait.AtStart, m.Wait.Abandon = false, true
}

// SetLease takes the right that the store has granted. It reports whether a term begins before
// which another manager may have written: then the wait is as long as its packets can be under way.
func (m *Mastership) SetLease(g Grant, lifetime time.Duration) (begins bool) {
	begins, since := m.Right.Set(g)
	if begins {
		m.waitSince(since, lifetime)
	}
	return begins
}

func (m *Mastership) waitSince(since, lifetime time.Duration) {
	m.Wait.Until = max(m.Wait.Until, since+lifetime)
}
