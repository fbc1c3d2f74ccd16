package sm

import (
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/plan"
	"github.com/ibwarden/ibwarden/internal/subnet"
	"github.com/ibwarden/ibwarden/internal/transact"
)

// listChecks lists everything that somebody else could change. Where reading
// had got to stays: who keeps changing one table must not keep the others from
// being looked at.
func (e *Engine) listChecks() { e.checks = e.fabric.Blocks() }

// startCheck begins a light sweep: every switch is asked for changes, devices
// that did not answer are asked again, and the next share of all tables is read
// back.
func (e *Engine) startCheck() {
	e.state = stateChecking
	for _, n := range e.fabric.Switches() {
		p := &n.Ports[0]
		e.reread(p, smp.AttrSwitchInfo, 0, func() {
			if n.Switch.Info.PortStateChange {
				e.wantSweep(p.String() + " reports a port state change")
			}
		})
	}
	e.probe()
	e.recheckRivals()
	share := len(e.checks)
	if rounds := int(e.config.DriftPeriod / e.config.SweepInterval); rounds > 1 {
		share = (len(e.checks) + rounds - 1) / rounds
	}
	for range share {
		c := e.checks[e.cursor%len(e.checks)]
		e.cursor = (e.cursor + 1) % len(e.checks)
		if c.Attribute == smp.AttrPortInfo {
			e.recheckPort(c)
		} else {
			e.reread(c.Port, c.Attribute, c.Modifier, nil)
		}
	}
}

// probe asks again where nothing answered behind a link that is up.
func (e *Engine) probe() {
	for _, n := range e.fabric.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Silent && !undeclared(p) {
				continue
			}
			e.askBehind(p, append(slices.Clone(p.Path), p.Num), func(r transact.Reply) {
				if r.Err == nil && e.fits(p, r.SMP.Data[:]) {
					e.wantSweep("the device behind " + p.String() + " answers now")
				}
			})
		}
	}
}

func (e *Engine) reread(p *subnet.Port, a mad.AttributeID, modifier uint32, then func()) {
	e.window.Do(transact.Request{
		Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: mad.MethodGet, Attribute: a, Modifier: modifier,
	}, func(r transact.Reply) {
		err := r.Err
		if err == nil {
			err = p.Absorb(a, modifier, r.SMP.Data[:])
		}
		if err != nil {
			p.Doubt(a, modifier)
			e.wantSweep(fmt.Sprintf("%s: %s: %v", p, smp.AttributeName(a), err))
			return
		}
		if then != nil {
			then()
		}
	})
}

// recheckPort reads PortInfo again and looks for what calls for a sweep: a
// link that came or went, other capabilities, and managers that came or went
// since the last election.
func (e *Engine) recheckPort(c subnet.Block) {
	before := c.Port.Info
	e.reread(c.Port, c.Attribute, c.Modifier, func() {
		now := &c.Port.Info
		if e.named() {
			e.sawManager(c.Port, now.CapabilityMask.Has(smp.CapIsSM))
		}
		if now.LID != before.LID || now.LMC != before.LMC {
			e.lookAtLIDs()
		}
		switch {
		case e.keys.Lost(c.Port):
			e.wantSweep(c.Port.String() + " has lost its M_Key")
		case now.CapabilityMask&^smp.CapIsSM != before.CapabilityMask&^smp.CapIsSM, !e.named() && e.isRival(c.Port) != e.asked(c.Port):
			e.wantSweep(c.Port.String() + " has another CapabilityMask")
		case now.PortState != before.PortState:
			e.wantSweep(fmt.Sprintf("%s went from %s to %s", c.Port, before.PortState, now.PortState))
		}
	})
}

// wantSweep keeps the first reason for reading the whole subnet again.
func (e *Engine) wantSweep(reason string) {
	if e.resweep == "" {
		e.resweep = reason
	}
}

// checked ends a light sweep: what differs from the desired tables now was
// changed by somebody else, unless it could not be written in the first place.
func (e *Engine) checked(now time.Duration) {
	if e.resweep != "" || e.desired == nil || !e.isMaster() {
		from := e.sweepFrom
		e.rest(now, stateWatching)
		e.sweepFrom = from // a light sweep puts off no other, however short its interval
		return
	}
	p := plan.Diff(e.fabric, e.desired.tables)
	if p.Len() == 0 {
		e.state, e.nextCheck = stateWatching, now+e.config.SweepInterval
		return
	}
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			if !e.unfinished[unfinished{op.Port, op.Attribute}] {
				e.emit(Drifted{op})
			}
		}
	}
	e.compiled = 0
	e.write(p)
}

// receiveRequest takes what others ask of the manager, or tell it.
func (e *Engine) receiveRequest(now time.Duration, p *mad.SMP, slid ib.LID) {
	switch {
	case p.Method == mad.MethodTrap && p.AttributeID == smp.AttrNotice:
		e.receiveTrap(now, p, slid)
	case p.AttributeID == smp.AttrSMInfo && (p.Method == mad.MethodGet || p.Method == mad.MethodSet):
		e.receiveSMInfo(now, p, slid)
	}
}

// receiveTrap answers a trap with TrapRepress, so that its sender stops, and
// looks where it points.
func (e *Engine) receiveTrap(now time.Duration, p *mad.SMP, slid ib.LID) {
	var n smp.Notice
	if n.UnmarshalBinary(p.Data[:]) != nil {
		return
	}
	if !e.repress(now, p, slid, &n) || !n.IsGeneric {
		return
	}
	number := n.TrapNumber
	trapped := Trapped{number, n.IssuerLID, n, slid}
	e.emit(trapped)
	if number == smp.TrapLocalChange && e.fabric != nil {
		e.lookForManager(e.ownerOf(slid))
	}
	switch number {
	case smp.TrapLinkStateChanged, smp.TrapLocalChange:
		e.wantSweep(trapped.String())
	}
}

// outboxMax bounds the answers that wait to be sent: whoever asks faster than
// they leave has to ask again.
const outboxMax = 256

func (e *Engine) answer(p mad.SMP, dlid ib.LID) {
	if len(e.outbox) < outboxMax {
		e.outbox = append(e.outbox, outgoing{p, dlid})
	}
}
