package mastership

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
)

// Verdict says what the manager may do until it hears otherwise.
type Verdict uint8

// The verdicts. Only the first allows to write to the subnet.
const (
	// Master manages the subnet.
	Master Verdict = iota + 1
	// Standby polls a master, or the manager that is about to become it.
	Standby
	// WaitHandover polls a master that has to hand over, or that is offered
	// mastership.
	WaitHandover
	// Inactive waits until a master returns it to standby.
	Inactive
)

// String names the verdict.
func (v Verdict) String() string {
	switch v {
	case Master:
		return "master"
	case Standby:
		return "standby"
	case WaitHandover:
		return "waiting for the handover"
	case Inactive:
		return "not active"
	}
	return fmt.Sprintf("unknown verdict %d", uint8(v))
}

// Decide is called when a discovery has ended, with all subnet managers that
// answered. A discovering engine becomes master or standby. A master offers
// its place to the highest manager that outranks it, and goes on until that
// one acknowledges, but writes nothing while there is a second master.
func (e *Election) Decide(now time.Duration, others []Remote) (Verdict, Effects) {
	switch e.state {
	case smp.SMDiscovering:
		return e.elect(now, others)
	case smp.SMMaster:
		return e.defend(now, others)
	case smp.SMStandby:
		return e.standbyVerdict(), e.still()
	}
	return Inactive, e.still()
}

func (e *Election) elect(now time.Duration, others []Remote) (Verdict, Effects) {
	if master, ok := e.highest(others, smp.SMMaster); ok {
		e.observe(now, master)
		effects := e.move(smp.SMStandby, "%s is master", master.Info.GUID)
		return e.standbyVerdict(), effects
	}
	if best, ok := e.highest(others, smp.SMDiscovering, smp.SMStandby); ok && !e.outranks(&best.Info) {
		e.observe(now, best)
		return Standby, e.move(smp.SMStandby, "%s ranks higher", best.Info.GUID)
	}
	e.watch = polled{}
	return Master, e.move(smp.SMMaster, "no manager ranks higher")
}

// standbyVerdict tells a standby that waits for mastership from one that does
// not.
func (e *Election) standbyVerdict() Verdict {
	if w := &e.watch; w.on && !e.down.on && w.remote.Info.SMState == smp.SMMaster && e.outranks(&w.remote.Info) {
		return WaitHandover
	}
	return Standby
}

func (e *Election) defend(now time.Duration, others []Remote) (Verdict, Effects) {
	effects := e.still()
	others = e.willing(others)
	if e.offer.planned && !e.plans(others) {
		e.withdraw(e.offer.to.Info.GUID.String() + " is not there any more")
	}
	best, ok := e.highest(others, smp.SMStandby, smp.SMMaster)
	switch {
	case e.offer.planned:
	case !ok || e.outranks(&best.Info):
		e.offer = offer{}
	case !e.offer.open || e.offer.to.Info.GUID != best.Info.GUID:
		e.offer = offer{open: true, to: best}
		effects.Send = e.renewOffer(now)
		effects.Why = fmt.Sprintf("%s ranks higher and is offered mastership", best.Info.GUID)
	}
	second, ok := e.highest(others, smp.SMMaster)
	if !ok {
		e.watch = polled{}
		return Master, effects
	}
	if !e.watch.on || e.watch.remote.Info.GUID != second.Info.GUID {
		e.observe(now, second)
		effects.Why = fmt.Sprintf("%s is master too", second.Info.GUID)
	}
	return WaitHandover, effects
}

// highest returns the one of others that outranks the rest, among those that
// count and are in one of the given states.
func (e *Election) highest(others []Remote, states ...smp.SMState) (best Remote, found bool) {
	for _, r := range others {
		counts := e.counts(&r) && !e.isFrozen(&r.Info)
		for _, s := range states {
			if counts && r.Info.SMState == s && (!found || outranks(&r.Info, &best.Info)) {
				best, found = r, true
			}
		}
	}
	return best, found
}

// isFrozen reports whether a manager was found to do nothing any more and
// still does nothing.
func (e *Election) isFrozen(info *smp.SMInfo) bool {
	return e.frozen.GUID != 0 && info.GUID == e.frozen.GUID && info.ActCount == e.frozen.ActCount
}
