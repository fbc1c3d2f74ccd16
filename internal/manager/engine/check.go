package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// round is where the reading of all tables in a drift period stands.
type round struct {
	next   time.Duration // when the next light sweep begins
	blocks []observed.Block
	cursor int // the next block
}

// share gives out the blocks that a light sweep reads, so that those of a drift period read all.
func (r *round) share(sweep, drift time.Duration) []observed.Block {
	n := len(r.blocks)
	if rounds := int(drift / sweep); rounds > 1 {
		n = (n + rounds - 1) / rounds
	}
	due := make([]observed.Block, n)
	for i := range due {
		due[i] = r.blocks[r.cursor%len(r.blocks)]
		r.cursor = (r.cursor + 1) % len(r.blocks)
	}
	return due
}

// checking is the phase of a light sweep.
type checking struct {
	base
	from int // where the cursor of the round stood when it began
}

func (*checking) state() state { return stateChecking }

func (*checking) expire(e *Engine, now time.Duration) {
	e.watchGuards(now)
	e.tickPeers(now)
}

func (*checking) deadline(e *Engine, sooner func(time.Duration, bool)) { sooner(e.guardsDue()) }

// giveWay has its share read by another one, which begins at once.
func (c *checking) giveWay(e *Engine, now time.Duration) bool {
	e.round.cursor, e.round.next = c.from, now
	return true
}

// listChecks lists everything that another manager could change. The position of the
// reading stays: repeated changes of one table must not keep the others from being read.
func (e *Engine) listChecks() {
	e.round.blocks = e.fabric.Blocks()
	e.listGuards()
}

// startCheck starts a light sweep: it asks every switch for changes, asks silent devices
// again, and reads back the next share of all tables.
func (e *Engine) startCheck() {
	e.step(onCheckDue, &checking{from: e.round.cursor})
	e.sweep.counts.Light++
	for _, n := range e.fabric.Switches() {
		p := &n.Ports[0]
		e.reread(p, smp.AttrSwitchInfo, 0, func() {
			if n.Switch.Info.PortStateChange {
				e.agenda.wantLook(p.Place(), false)
			}
		})
	}
	if self := e.fabric.Self; self != nil && e.policy.MasterLID() != ib.LIDReserved {
		before := seen{self.Info, self.InfoRead}
		e.reread(self, smp.AttrPortInfo, self.PortInfoBlock(), func() { e.judge(self, before) })
	}
	e.probe()
	if e.isMaster() {
		pollNotices(e.window, e.ends, e.heard)
	}
	e.master.RecheckAll()
	for _, c := range e.round.share(e.config.Periods.Sweep, e.config.Periods.Drift) {
		if c.Attribute == smp.AttrPortInfo {
			if c.Port.IsEnd() && c.Port != e.fabric.Self {
				e.recheckNode(c.Port)
			}
			before := seen{c.Port.Info, c.Port.InfoRead}
			e.reread(c.Port, c.Attribute, c.Modifier, func() { e.judge(c.Port, before) })
		} else {
			e.reread(c.Port, c.Attribute, c.Modifier, nil)
		}
	}
}

// reread reads one attribute for a light sweep.
func (e *Engine) reread(p *observed.Port, a mad.AttributeID, modifier uint32, then func()) {
	e.get(e.window, p, a, modifier, then, nil)
}

// advance ends a light sweep: a difference from the desired tables is a foreign change,
// unless the value could not be written in the first place.
func (*checking) advance(e *Engine, now time.Duration) bool {
	e.round.next = now + e.config.Periods.Sweep
	if e.agenda.sweep != "" || e.desired == nil || !e.isMaster() || e.ownLID.robbed {
		from := e.agenda.sweepFrom
		e.rest(now, onDone)
		e.agenda.sweepFrom = from // a light sweep puts off no other, however short its interval
		return true
	}
	if !e.master.Named() && e.agenda.election == "" { // one whose state has changed would have had the subnet swept
		e.emit(event.Asked{Alone: true})
	}
	e.step(onDone, watching{})
	if !e.agenda.links.OutOfDate(e.fabric) { // nothing is compared with one that is: what is left out of a plan
		// could be what has to be taken away before something is given; the pass that follows compares everything
		e.compare()
	}
	return true
}
