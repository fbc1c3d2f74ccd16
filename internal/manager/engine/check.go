package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// round is the light sweep, and where the reading of all tables in a drift period stands.
type round struct {
	next         time.Duration // when the next one begins
	blocks       []observed.Block
	cursor, from int // the next block, and where it stood when the light sweep began
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
	e.step(onCheckDue, other{is: stateChecking})
	e.round.from = e.round.cursor
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
	share := len(e.round.blocks)
	if rounds := int(e.config.DriftPeriod / e.config.SweepInterval); rounds > 1 {
		share = (len(e.round.blocks) + rounds - 1) / rounds
	}
	for range share {
		c := e.round.blocks[e.round.cursor%len(e.round.blocks)]
		e.round.cursor = (e.round.cursor + 1) % len(e.round.blocks)
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

// checked ends a light sweep: a difference from the desired tables is a foreign change,
// unless the value could not be written in the first place.
func (e *Engine) checked(now time.Duration) {
	e.round.next = now + e.config.SweepInterval
	if e.agenda.sweep != "" || e.desired == nil || !e.isMaster() || e.ownLID.robbed {
		from := e.agenda.sweepFrom
		e.rest(now, onDone)
		e.agenda.sweepFrom = from // a light sweep puts off no other, however short its interval
		return
	}
	if !e.master.Named() && e.agenda.election == "" { // one whose state has changed would have had the subnet swept
		e.emit(event.Asked{Alone: true})
	}
	e.step(onDone, watching{})
	if e.agenda.links.OutOfDate(e.fabric) { // nothing is compared with it: what is left out of a plan
		// could be what has to be taken away before something is given
		return // the pass that follows compares everything
	}
	e.compare()
}

// receiveRequest handles requests and traps of other nodes.
func (e *Engine) receiveRequest(now time.Duration, p *mad.SMP, slid ib.LID) {
	switch {
	case p.Method == mad.MethodTrap && p.AttributeID == smp.AttrNotice:
		e.receiveTrap(now, p, slid)
	case p.AttributeID == smp.AttrSMInfo && (p.Method == mad.MethodGet || p.Method == mad.MethodSet):
		e.master.Receive(now, p, slid)
	}
}
