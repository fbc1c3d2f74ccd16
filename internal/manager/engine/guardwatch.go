package engine

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// DefaultGuardPeriod is the time in which a foreign change of a guard is seen,
// DefaultGuardRate how many tables a second are read back for that at the most.
const (
	DefaultGuardPeriod = time.Second
	DefaultGuardRate   = 4096
)

const (
	// guardShare is what share of GuardRate is for the guards; the rest is for
	// the tables of end ports, of which those behind a guard isolate nobody.
	guardShare = 0.75
	// guardTick is how often the next few are asked for.
	guardTick = 10 * time.Millisecond
	// offences is how often a port may get more than the policy gives it, by
	// somebody else's hand, within offenceMemory before it is fenced.
	offences      = 3
	offenceMemory = 10 * time.Minute
	// attempts is how many requests with a wrong key a port may send within
	// offenceMemory before an event names it once more.
	attempts = 1024
)

// guards is the watch over what isolates.
type guards struct {
	// near are the tables and settings of switch ports before end ports and
	// strangers, far those of end ports.
	near, far round
	at        time.Duration // when the next are due
	reported  time.Duration // the period that was told last
	offenders map[observed.Place]*offender
}

// round is a list that is read again and again.
type round struct {
	list []observed.Block
	next int
	due  float64 // of them, to be asked for now
	out  int     // asked for and not answered
}

// offender is a switch port behind which somebody profits, or tries to.
type offender struct {
	times []time.Duration
	tried int
	since time.Duration
}

// watchesGuards reports whether there is a watch of guards at all.
func (c *Config) watchesGuards() bool {
	return !c.Hold && (c.Profile != protect.None || c.GuardPeriod > 0)
}

// listGuards makes the lists anew, from that of all that can change.
func (e *Engine) listGuards() {
	g := &e.guards
	if !e.config.watchesGuards() {
		return
	}
	g.near.list, g.far.list = g.near.list[:0], g.far.list[:0]
	for _, n := range e.fabric.Switches() {
		g.near.list = append(g.near.list, observed.Block{Port: &n.Ports[0], Attribute: smp.AttrSwitchInfo})
	}
	for _, b := range e.checks {
		switch p := b.Port; {
		case b.Attribute != smp.AttrPKeyTable && b.Attribute != smp.AttrPortInfo:
		case p.IsEnd():
			g.far.list = append(g.far.list, b)
		case p.FacesEnd() || p.FacesStranger():
			g.near.list = append(g.near.list, b)
		}
	}
	g.near.next, g.far.next = min(g.near.next, len(g.near.list)), min(g.far.next, len(g.far.list))
	if period := e.GuardPeriod(); period != g.reported {
		g.reported = period
		if period > e.config.GuardPeriod {
			e.emit(event.Warned{Text: fmt.Sprintf("guards of %d ports are read back in %v, not in %v: no more than %d tables a second are read",
				len(g.near.list), period.Round(time.Millisecond), e.config.GuardPeriod, e.config.GuardRate)})
		}
	}
}

// GuardPeriod is the time in which a foreign change of a guard is seen while no
// pass is under way: Config.GuardPeriod, or longer where more tables would have
// to be read a second than Config.GuardRate; 0 when guards are not watched.
func (e *Engine) GuardPeriod() time.Duration {
	if !e.config.watchesGuards() {
		return 0
	}
	return max(e.config.GuardPeriod, time.Duration(float64(len(e.guards.near.list))/(guardShare*float64(e.config.GuardRate))*float64(time.Second)))
}

// watchGuards asks for the next guards when they are due. It goes on while
// nothing else does, beside light sweeps too.
func (e *Engine) watchGuards(now time.Duration) {
	g := &e.guards
	if !e.guarding() || now < g.at {
		return
	}
	passed := now - g.at + guardTick
	if g.at == 0 || passed > 4*guardTick {
		passed = guardTick // it was not watched meanwhile
	}
	g.at = now + guardTick
	near := float64(len(g.near.list)) / e.GuardPeriod().Seconds()
	far := min(float64(len(g.far.list))/e.config.GuardPeriod.Seconds(), float64(e.config.GuardRate)-near)
	e.goRound(&g.near, near*passed.Seconds())
	e.goRound(&g.far, far*passed.Seconds())
}

// guarding reports whether guards are watched now.
func (e *Engine) guarding() bool {
	return e.config.watchesGuards() && e.desired != nil && (e.state == stateWatching || e.state == stateChecking) && len(e.guards.near.list)+len(e.guards.far.list) > 0
}

// goRound asks for so many more of a list. Devices that do not answer slow down
// nobody else's turn, but no more than a round is outstanding.
func (e *Engine) goRound(r *round, more float64) {
	r.due = min(r.due+more, float64(len(r.list)))
	for r.due >= 1 && len(r.list) > 0 && r.out < len(r.list) {
		r.due--
		b := r.list[r.next%len(r.list)]
		r.next = (r.next + 1) % len(r.list)
		r.out++
		done := func() { r.out-- }
		if b.Attribute == smp.AttrPortInfo {
			e.look(b.Port, done)
		} else {
			e.askOr(b.Port, b.Attribute, b.Modifier, func() {
				done()
				if b.Attribute == smp.AttrSwitchInfo && b.Port.Node.Switch.Info.PortStateChange {
					e.lookAgain(b.Port.Place())
				}
			}, done)
		}
	}
}

// foreign counts a change by somebody else that gave a port more than it should
// have: who profits again and again is fenced. Where a device takes Sets of
// anybody, that may be anybody's doing, and who is meant to be fenced by it would
// be: there a change is put right and no more.
func (e *Engine) foreign(op plan.Op) {
	if e.config.Profile == protect.None || !e.widened(op) || !op.Port.Guarded() {
		return
	}
	at, ok := guardOf(op.Port)
	if !ok {
		return
	}
	o := e.offender(at)
	if o.times = append(o.times, e.now); len(o.times) >= offences {
		o.times = nil
		e.Fence(at, fmt.Sprintf("its keys or its guard were changed by somebody else %d times in %v", offences, offenceMemory))
	}
}

// offender is the account of a switch port, without what is long past.
func (e *Engine) offender(at observed.Place) *offender {
	g := &e.guards
	if g.offenders == nil {
		g.offenders = make(map[observed.Place]*offender)
	}
	o := g.offenders[at]
	if o == nil {
		o = &offender{since: e.now}
		g.offenders[at] = o
	}
	for len(o.times) > 0 && o.times[0]+offenceMemory < e.now {
		o.times = o.times[1:]
	}
	if o.since+offenceMemory < e.now {
		o.tried, o.since = 0, e.now
	}
	return o
}

// widened reports whether what op puts right let its port do more than it should:
// a key that it should not have, or a guard that does not check.
func (e *Engine) widened(op plan.Op) bool {
	want := e.desired.Tables.Port(op.Port)
	switch op.Attribute {
	case smp.AttrPKeyTable:
		for _, k := range op.Port.PKeys {
			if k.IsValid() && plan.Permitted(want.PKeys, k) != k {
				return true
			}
		}
	case smp.AttrPortInfo:
		return !op.Port.IsEnd() && want.Elements&observed.ElementEnforcement != 0 &&
			(want.Info.PartitionEnforcementInbound && !op.Port.Info.PartitionEnforcementInbound ||
				want.Info.PartitionEnforcementOutbound && !op.Port.Info.PartitionEnforcementOutbound)
	}
	return false
}

// guardOf is the switch port before an end port, or the switch port itself. The
// link between two switches, and a switch's own port, has none.
func guardOf(p *observed.Port) (observed.Place, bool) {
	if p.IsEnd() {
		if p = p.Peer; p == nil || p.IsEnd() {
			return observed.Place{}, false
		}
	}
	return p.Place(), p.FacesEnd() || p.FacesStranger()
}

// suspect names who sent a packet with a wrong M_Key, by what the device that
// refused it says of its way. It is told once, and again after many more.
func (e *Engine) suspect(device *observed.Port, d *smp.BadMKeyDetails) {
	from := e.directory().Origin(device, d)
	if from == nil || from == e.fabric.Self {
		return
	}
	at, ok := guardOf(from)
	if !ok {
		return
	}
	o := e.offender(at)
	if o.tried%attempts == 0 {
		e.emit(event.Tried{By: from.String(), At: device.String(), Method: d.Method.String(), Attribute: smp.AttributeName(d.AttributeID)})
	}
	o.tried++
}
