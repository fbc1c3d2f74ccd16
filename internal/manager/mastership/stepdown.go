package mastership

import (
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// stepDown is a planned handover: a master gives its place to a standby that it may
// outrank. It tells others a lower rank than its own from then on, until it is master
// again.
type stepDown struct {
	on bool
	to ib.PortGUID
	// priority is the one that is told, at most ElectionConfig.Priority.
	priority uint8
	// failed says why mastership was not taken; empty while that is not known.
	failed string
}

// ErrNoHandover says that mastership cannot be handed over now.
var ErrNoHandover = errors.New("mastership cannot be handed over")

// HandOver offers mastership to a standby, as an administrator wants it. The rank that
// this manager tells is lowered below the standby's, so that everybody agrees on who is
// master, also after the handover. A standby that shares the secret takes it although it
// cannot rank higher, because its priority is 0 and its GUID is the higher one; any other
// is refused then. The error is ErrNoHandover, with the reason.
func (e *Election) HandOver(now time.Duration, to Remote, others []Remote) (Effects, error) {
	info := &to.Info
	if err := e.mayHandOver(&to, others); err != nil {
		return e.still(), fmt.Errorf("%w: %w", ErrNoHandover, err)
	}
	lowered := min(e.config.Priority, info.Priority)
	if lowered == info.Priority && e.config.GUID < info.GUID && lowered > 0 {
		lowered--
	}
	own := e.info()
	own.Priority = lowered
	if !outranks(info, &own) && !e.isOurs(&to) {
		return e.still(), fmt.Errorf("%w: manager %s has priority 0 and a higher GUID than this one, and would hand it back at once: give it a higher priority", ErrNoHandover, info.GUID)
	}
	e.Reconsider(info.GUID)
	e.down = stepDown{on: true, to: info.GUID, priority: lowered}
	e.offer = offer{open: true, planned: true, to: to}
	effects := e.still()
	effects.Send = e.renewOffer(now)
	effects.Why = fmt.Sprintf("%s is offered mastership, as the administrator wants it", info.GUID)
	return effects, nil
}

func (e *Election) mayHandOver(to *Remote, others []Remote) error {
	info := &to.Info
	switch {
	case e.state != smp.SMMaster:
		return fmt.Errorf("this manager is %s, not master", e.state)
	case e.watch.on:
		return fmt.Errorf("manager %s is master too", e.watch.remote.Info.GUID)
	case e.offer.open:
		return fmt.Errorf("manager %s is being offered mastership", e.offer.to.Info.GUID)
	case !e.counts(to):
		return fmt.Errorf("manager %s is not trusted", info.GUID)
	case info.SMState != smp.SMStandby:
		return fmt.Errorf("manager %s is %s, not standby", info.GUID, info.SMState)
	case e.isFrozen(info):
		return fmt.Errorf("manager %s answers but does nothing", info.GUID)
	}
	if best, ok := e.highest(others, smp.SMStandby); ok && outranks(&best.Info, info) {
		return fmt.Errorf("manager %s outranks manager %s, and would be handed the subnet next", best.Info.GUID, info.GUID)
	}
	return nil
}

// Best is the standby that HandOver may be asked for; ok is false when there is none.
func (e *Election) Best(others []Remote) (r Remote, ok bool) { return e.highest(others, smp.SMStandby) }

// SteppedDown is to whom this manager has handed over, or is handing over, as an
// administrator wanted it, and why that failed; to is 0 when nobody has.
func (e *Election) SteppedDown() (to ib.PortGUID, failed string) { return e.down.to, e.down.failed }

// priority is the one that others are told.
func (e *Election) priority() uint8 {
	if e.down.on {
		return e.down.priority
	}
	return e.config.Priority
}

// withdraw ends an offer that is not taken.
func (e *Election) withdraw(why string) {
	if e.offer.planned {
		e.down.on, e.down.failed = false, why
	}
	e.offer = offer{}
}

// plans reports whether a planned handover is under way, and can go on: whom it is for
// still stands by.
func (e *Election) plans(others []Remote) bool {
	if !e.offer.open || !e.offer.planned {
		return false
	}
	for i := range others {
		if r := &others[i]; r.Info.GUID == e.offer.to.Info.GUID && e.counts(r) && r.Info.SMState != smp.SMNotActive {
			return true
		}
	}
	return false
}

// takesFrom reports whether mastership is taken from a manager that ranks higher: one
// that shares the secret, whose administrator wants it (HandOver).
func (e *Election) takesFrom(sender *Remote) bool {
	return e.config.Named && e.isOurs(sender) && (e.state == smp.SMStandby || e.state == smp.SMMaster && e.kept.GUID == sender.Info.GUID)
}

// willing leaves out of a list the standby that has handed over although it ranks
// higher. One that has another priority or another state, or has counted again, is one
// that counts again.
func (e *Election) willing(others []Remote) []Remote {
	if e.kept.GUID == 0 {
		return others
	}
	var out []Remote
	for _, r := range others {
		if r.Info.GUID != e.kept.GUID {
			out = append(out, r)
			continue
		}
		if r.Info.SMState != smp.SMStandby || r.Info.Priority != e.kept.Priority || r.Info.ActCount < e.kept.ActCount {
			e.kept = smp.SMInfo{}
			return others
		}
		e.kept.ActCount = r.Info.ActCount
	}
	return out
}

// Reconsider makes a standby count that had handed over: it says that it ranks higher, or
// was started again.
func (e *Election) Reconsider(guid ib.PortGUID) {
	if e.kept.GUID == guid {
		e.kept = smp.SMInfo{}
	}
}
