package engine

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// listGuards updates the lists of isolating tables, from that of all tables that can change.
func (e *Engine) listGuards() {
	if e.GuardPeriod() == 0 {
		return
	}
	if g := &e.beside.guards; g.List(e.fabric, e.round.blocks) {
		e.emit(event.Warned{Text: fmt.Sprintf("guards of %d ports are read back in %v, not in %v: no more than %d tables a second are read",
			g.Near(), g.InForce().Round(time.Millisecond), g.Period, g.Rate)})
	}
}

// GuardPeriod is the time in which a foreign change of a guard is seen while no
// pass is under way: Config.Periods.Guard, or longer where more tables would have
// to be read a second than Config.Periods.GuardRate; 0 when guards are not watched.
func (e *Engine) GuardPeriod() time.Duration {
	if !e.config.WatchesGuards() {
		return 0
	}
	e.beside.guards.Period, e.beside.guards.Rate = e.config.Periods.Guard, e.config.Periods.GuardRate
	return e.beside.guards.InForce()
}

// watchGuards asks for the next guards when they are due. It goes on while nothing else
// does, and during light sweeps. guardsDue is when that is.
func (e *Engine) watchGuards(now time.Duration) {
	if !e.guarding() {
		return
	}
	e.beside.guards.Next(now, func(b observed.Block, done func(answered bool)) {
		if b.Attribute == smp.AttrPortInfo {
			e.look(b.Port, func() { done(b.Port.InfoRead) })
			return
		}
		e.get(e.beside.window, b.Port, b.Attribute, b.Modifier, func() {
			done(true)
			if b.Attribute == smp.AttrSwitchInfo && b.Port.Node.Switch.Info.PortStateChange {
				e.agenda.wantLook(b.Port.Place(), false)
			}
		}, func() { done(false) })
	})
	if read, some := e.beside.guards.Read(); some && len(e.agenda.repairs) == 0 && !e.agenda.compare && !e.agenda.links.OutOfDate(e.fabric) {
		e.beside.checked = read
	}
}

// Checked is how long ago the last reading of every table that isolates began that found them as
// they were proved; false where there was none yet.
func (e *Engine) Checked() (age time.Duration, some bool) {
	return e.now - e.beside.checked, e.beside.checked != 0
}

func (e *Engine) guardsDue() (time.Duration, bool) { return e.beside.guards.At(), e.guarding() }

// guarding reports whether there are guards to monitor.
func (e *Engine) guarding() bool {
	return e.config.WatchesGuards() && e.desired != nil && e.beside.guards.Len() > 0
}

// foreign counts a foreign change that gave a port more than it should have: a port that
// benefits repeatedly is fenced. A device that accepts Sets from anyone may have been
// changed by anyone, perhaps to get its port fenced: there a change is only corrected.
func (e *Engine) foreign(op plan.Op, wanted *observed.Desired) {
	if e.config.Profile == protect.None || !plan.Widened(op, wanted) || !op.Port.Guarded() {
		return
	}
	at, ok := watch.GuardOf(op.Port)
	if !ok {
		return
	}
	if e.beside.offenders.Count(e.now, at) {
		e.Fence(at, fmt.Sprintf("its keys or its guard were overwritten %d times in %v", watch.Offences, watch.OffenceMemory))
	}
}

// suspect reports the sender of a packet with a wrong M_Key, by the path that the
// refusing device reports. It does so once, and again after many more.
func (e *Engine) suspect(device *observed.Port, d *smp.BadMKeyDetails) {
	from := e.directory().Origin(device, d)
	if from == nil || from == e.fabric.Self {
		return
	}
	at, ok := watch.GuardOf(from)
	if !ok {
		return
	}
	if e.beside.offenders.Tried(e.now, at) {
		e.emit(event.Tried{By: from.String(), At: device.String(), Method: d.Method.String(), Attribute: smp.AttributeName(d.AttributeID)})
	}
}
