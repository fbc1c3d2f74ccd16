package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Engine is one subnet manager. What a phase needs is in a value of its own, which ends with it; the
// rest is what the manager knows of the subnet, and what it has to do.
type Engine struct {
	config  Config
	observe func(event.Event)
	now     time.Duration // as the engine was last told
	phase   phase         // what it is doing
	broken  bool          // a step was refused: recover

	// What it is to do, and by what.
	policy *policy.Policy
	agenda agenda
	window *transact.Window // of passes
	outbox []outgoing
	due    *soonest // Deadline

	// What one phase leaves to others.
	sweep    survey
	round    round
	standby  standby
	handover handover
	carried  Carried

	// What it knows.
	snapshot                 // the subnet as it was last read
	desired  *desired.Result // of policy
	known    desired.Assigned
	// settled reports whether a policy stands on the subnet: from then on sweeps
	// may clear PortStateChange, and a refused policy leaves the old one.
	settled   bool
	proof     proof
	routing   routes
	multicast grouping
	cabling   cabling
	keys      mkey.Keying
	names     facts.PolicyNames
	beside    beside
	least     uint64 // Least

	// Who is master, and what follows from that.
	master *mastership.Mastership
	bounds bounds
	ownLID ownLID
	hosts  hosts
}

type outgoing struct {
	smp  mad.SMP
	dlid ib.LID
}

// New returns an engine that starts to sweep when it is first driven. observe
// sees every event as it happens and must not call back; it may be nil.
func New(c Config, p *policy.Policy, observe func(event.Event)) *Engine {
	c.SetDefaults()
	if observe == nil {
		observe = func(event.Event) {}
	}
	e := &Engine{config: c, policy: p, window: transact.NewWindow(c.Limits), known: c.Known, observe: observe, agenda: newAgenda(), phase: unstarted{}, due: newSoonest()}
	e.openKeys()
	e.names.Known = c.Known.Names
	e.cabling.list = c.Cables
	e.window.Seed(c.Seed)
	e.openSide(c)
	e.openMastership(c)
	e.startSweep()
	return e
}

// Settled reports whether the engine has nothing to do until time passes or something
// arrives, so that Fabric has its result.
func (e *Engine) Settled() bool { return e.atRest() && !e.rekeys() && !e.keys.Unsure() }

// Fabric is the subnet as it was last read; nil before the first sweep ended.
func (e *Engine) Fabric() *observed.Fabric { return e.fabric }

// Assigned is what the engine assigned, to be given to the next run.
func (e *Engine) Assigned() desired.Assigned {
	a := e.known
	a.Names = e.names.All()
	return a
}

// SetPolicy replaces the policy. It takes effect at the next call that tells
// the time: a pass or a look that is under way gives way to it. While the subnet
// has to be read again first, or a master elected, what the policy takes away is
// written at once, as far as the last snapshot knows it, and the rest after that.
// A policy that does not fit is refused (event Refused) and the old one stays.
//
// After a takeover from another manager it is what lets the policy give more than the
// tables held then; after AcceptPolicy, where that is known to have had another policy.
func (e *Engine) SetPolicy(p *policy.Policy) {
	e.agenda.policy = p
	e.master.Nap.ToldOfPolicy()
	e.accept()
	e.emit(event.PolicyGiven{})
}

// FollowPolicy replaces the policy by one that another manager has set, as a standby learns
// of it. Unlike SetPolicy it lifts no bound: after a takeover the tables may be newer.
func (e *Engine) FollowPolicy(p *policy.Policy) {
	e.agenda.policy = p
	e.master.Nap.ToldOfPolicy()
	e.emit(event.PolicyGiven{})
}

// Next gives out the next packet: answers to others first, then requests.
func (e *Engine) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	e.timeIs(now)
	if len(e.outbox) > 0 {
		*p = e.outbox[0].smp
		dlid := e.outbox[0].dlid
		e.outbox = e.outbox[1:]
		return dlid, true
	}
	from := e.nextWindow(now, p)
	if from == nil && e.master.Nap.On() {
		return 0, false
	}
	if from == nil {
		some := e.beside.window.Next(now, p)
		return e.beside.window.LIDOf(p), some
	}
	e.master.Act()
	return from.LIDOf(p), true
}

// LastWait is how long the engine waits for the answer to a request that Next gave
// out, if it will not be sent again; else 0.
func (e *Engine) LastWait(p *mad.SMP) time.Duration { return e.owner(p).LastWait(p) }

// Receive takes a packet: the answer to a request, a trap, or a question of another manager.
func (e *Engine) Receive(now time.Duration, p *mad.SMP, slid ib.LID) {
	e.timeIs(now)
	if p.Method == mad.MethodGetResp {
		e.hears(p)
		e.owner(p).Receive(now, p)
	} else {
		e.master.Heard(now)
		e.receiveRequest(now, p, slid)
	}
	e.goOn(now)
}

// Lost takes back a request that nobody answered.
func (e *Engine) Lost(now time.Duration, p *mad.SMP) {
	e.timeIs(now)
	e.owner(p).Lost(now, p)
	e.goOn(now)
}

// Expire reports whether time has passed.
func (e *Engine) Expire(now time.Duration) {
	e.timeIs(now)
	e.master.Expire(now)
	if e.master.Nap.On() {
		e.tickPeers(now)
		e.goOn(now)
		return
	}
	e.window.Expire(now)
	e.beside.window.Expire(now)
	e.phase.expire(e, now)
	e.goOn(now)
}

// goOn goes on as far as it can without an answer.
func (e *Engine) goOn(now time.Duration) {
	e.master.Advance(now)
	e.lookAtLease(now)
	if e.naps(now) {
		return
	}
	e.abandonReading()
	e.giveWay(now)
	e.recover()
	for e.window.Idle() && e.phase.advance(e, now) {
		e.recover()
	}
}

// wanted is the policy that the next pass is for.
func (e *Engine) wanted() *policy.Policy {
	if e.agenda.policy != nil {
		return e.agenda.policy
	}
	return e.policy
}

// startPass works out what the policy wants of the fabric as it was read, and
// starts to write the difference.
func (e *Engine) startPass(now time.Duration) {
	if e.lacksAliases() {
		e.emit(event.Resweeping{Reason: "a policy with alias GUIDs, which were not read yet"})
		e.startSweep()
		return
	}
	e.bind()
	e.reportForeign()
	e.bounds.others = false
	e.cancelLooks()
	e.begin(event.PhasePlan)
	p := e.wanted()
	cut := e.agenda.narrowed == p
	e.sweep.forget()
	e.agenda.planning()
	e.noteChanges()
	var want *desired.Result
	var at []*observed.Port
	var updated bool
	of, err := e.resolve(p)
	if err == nil {
		want, at, updated = e.update(of)
	}
	if !updated {
		if err == nil {
			want, err = e.desire(of, e.begin)
		}
		if err != nil {
			if e.settled && e.names.LooksAgain(p, err) {
				e.agenda.policy = p
				e.emit(event.Resweeping{Reason: "a policy that names what was not found yet"})
				e.startSweep()
				return
			}
			if cut && p != e.policy {
				e.agenda.policy = e.policy // which has lost what p takes away
			}
			e.refuse(now, p, err)
			return
		}
		e.proof.baseline = nil
	}
	for _, w := range want.Warnings {
		e.emit(event.Warned{Text: w})
	}
	want.Assigned.Forgets, want.Assigned.Fences, want.Assigned.Managed = e.known.Forgets, e.known.Fences, e.known.Managed
	e.keys.Due = e.keys.Due || e.givesKeys() && e.guardOf(p) != e.guardOf(e.policy)
	e.policy, e.desired, e.known = p, want, want.Assigned
	e.names.Accept(p)
	e.lookAtLIDs()
	e.multicast.fresh = false
	e.tellUngrouped(nil)
	if updated {
		clear(e.proof.baseline.amiss) // all of it is in the plan, or was found right
		e.write(writePass, plan.DiffAt(e.fabric, want.Tables, at), want.Compiled)
	} else {
		e.write(writePass, plan.Diff(e.fabric, want.Tables), want.Compiled)
	}
}
