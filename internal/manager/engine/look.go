package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// beside is what is done beside passes: looks, probes and guards. It is kept by location, since a
// sweep makes new ports.
type beside struct {
	window    *transact.Window
	senders   watch.Senders
	owners    watch.Owners
	looking   map[observed.Place]bool // looks under way
	probing   map[observed.Place]int  // questions that are open
	mutes     watch.Mutes
	guards    watch.Guards
	checked   time.Duration // since then all guards were read, and were as proved; 0 for never
	offenders watch.Offenders
	traps     watch.Heard // that were not repressed
}

const (
	// sideWindow is the most requests outstanding at once apart from those of a pass.
	sideWindow = 64
)

// openSide opens the window for requests that no pass waits for.
func (e *Engine) openSide(c Config) {
	limits := c.Limits
	limits.Window = min(limits.Window, sideWindow)
	e.beside.window = transact.NewWindow(limits)
	seed := c.Seed
	for i := range seed {
		seed[i] = ^seed[i]
	}
	e.beside.window.Seed(seed)
	e.beside.looking, e.beside.probing = make(map[observed.Place]bool), make(map[observed.Place]int)
}

// cancelLooks ends the requests that run in parallel to passes, so that no answer older than a
// write is taken for the present value. Looks become due again.
func (e *Engine) cancelLooks() {
	e.beside.window.Forget()
	e.beside.guards.Forget()
	for at, cleared := range e.beside.looking {
		e.agenda.wantLook(at, cleared)
	}
	clear(e.beside.looking)
	clear(e.beside.probing)
}

// startLooks starts the looks that are due. A running look ends first.
func (e *Engine) startLooks() {
	if len(e.agenda.looks) == 0 || !e.watches() || e.agenda.sweep != "" {
		return
	}
	e.agenda.takeLooks(e.beside.looking, func(at observed.Place, cleared bool) {
		p := e.fabric.At(at)
		if p == nil || !p.Reached {
			return
		}
		e.beside.looking[at] = cleared
		if p.Node.Switch != nil {
			e.lookAtSwitch(p, at)
			return
		}
		e.recheckNode(p)
		e.look(p, func() { delete(e.beside.looking, at) })
	})
}

// looksAtSwitch reports whether a look at a switch is about to end whose result a policy
// should use. It waits only a short time: a switch that does not answer delays nothing.
func (e *Engine) looksAtSwitch(now time.Duration) bool {
	pending := false
	for _, list := range []map[observed.Place]bool{e.beside.looking, e.agenda.looks} {
		for at := range list {
			if p := e.fabric.At(at); p != nil && p.Node.Switch != nil {
				pending = true
			}
		}
	}
	return e.agenda.waitsForLook(now, pending)
}

// lookAtSwitch reads SwitchInfo for PortStateChange and reads the ports of the switch if
// it is set. It clears the bit first, so that a later change shows.
func (e *Engine) lookAtSwitch(p *observed.Port, at observed.Place) {
	done := func() { delete(e.beside.looking, at) }
	e.get(e.beside.window, p, smp.AttrSwitchInfo, 0, func() {
		if !p.Node.Switch.Info.PortStateChange && !e.beside.looking[at] {
			e.look(p, done) // the settings of port 0 may have changed all the same
			return
		}
		e.beside.looking[at] = true
		e.clearChange(p, func() {
			left := len(p.Node.Ports)
			for i := range p.Node.Ports {
				q := &p.Node.Ports[i]
				e.look(q, func() {
					if q.Num != 0 && q.IsUp() && q.Info.PortState != smp.PortActive {
						// It may have been down and be as it was before.
						e.linkMoved(q, fmt.Sprintf("%s is %s", q, q.Info.PortState))
					}
					if left--; left == 0 {
						done()
					}
				})
			}
		})
	}, done)
}

// clearChange writes SwitchInfo as it was read, with PortStateChange set, which clears
// the bit.
func (e *Engine) clearChange(p *observed.Port, then func()) {
	r := transact.Request{
		Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: mad.MethodSet, Attribute: smp.AttrSwitchInfo,
	}
	if err := p.Node.Switch.Info.Encode(&r.Data); err != nil {
		then()
		return
	}
	e.beside.window.Do(r, func(reply transact.Reply) {
		if reply.Err == nil {
			_ = p.Absorb(smp.AttrSwitchInfo, 0, reply.SMP.Data[:]) // what makes no sense changes nothing
		}
		then()
	})
}

// look reads PortInfo of a port again and evaluates the changes. done is called in any
// case.
func (e *Engine) look(p *observed.Port, done func()) {
	apply.AskKey(e.beside.window, p.Agent(), func() {
		before := seen{p.Info, p.InfoRead}
		e.get(e.beside.window, p, smp.AttrPortInfo, p.PortInfoBlock(), func() {
			e.judge(p, before)
			done()
		}, done)
	}, done)
}

// get reads a block of an attribute through one of the windows, e.beside.window in parallel to passes. A
// changed value is compared with the desired one, and a node that does not answer is discovered again.
//
// Which of two keys the device has is asked first where that is in doubt: a question with the wrong one
// is as good as lost, and tried again for seconds. It is answered when it is known, and what
// could not be written is written then.
func (e *Engine) get(w *transact.Window, p *observed.Port, a mad.AttributeID, block uint32, then, failed func()) {
	if agent := p.Agent(); agent.Offered != 0 {
		apply.AskKey(w, agent, func() {
			e.agenda.compare = true
			e.get(w, p, a, block, then, failed)
		}, func() {
			p.MarkUnread(a, block)
			e.beside.mutes.Add(e.now, agent.Place(), watch.Write)
			if failed != nil {
				failed()
			}
		})
		return
	}
	sent := p.Modifier(a, block)
	w.Do(transact.Request{
		Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: mad.MethodGet, Attribute: a, Modifier: sent,
	}, func(r transact.Reply) {
		if !e.absorbed(p, a, block, r) {
			then = failed
		} else if p.Unlocks(a, block, sent) {
			e.get(w, p, a, block, then, failed)
			return
		}
		if then != nil {
			then()
		}
	})
}

// absorbed enters an answer. Without one the node may be gone.
func (e *Engine) absorbed(p *observed.Port, a mad.AttributeID, modifier uint32, r transact.Reply) bool {
	err, noted := r.Err, e.fabric.Noted()
	if err == nil {
		err = p.Absorb(a, modifier, r.SMP.Data[:])
	}
	if err != nil {
		p.MarkUnread(a, modifier)
		e.missed(p, fmt.Sprintf("%s: %s: %v", p, smp.AttributeName(a), err))
		return false
	}
	if e.fabric.Noted() != noted {
		e.agenda.repairs[p] = true
	}
	return true
}

// missed has the links that lead to the node of p discovered again.
func (e *Engine) missed(p *observed.Port, reason string) {
	if e.fabric.Self == nil || p.Node == e.fabric.Self.Node {
		e.agenda.wantSweep(reason)
		return
	}
	for i := range p.Node.Ports {
		if q := p.Node.Ports[i].Peer; q != nil {
			e.linkMute(q, reason)
		}
	}
}

// seen is the state of a port before it was read again.
type seen struct {
	smp.PortInfo
	read bool
}

// judge finds changes that take more than writing a value back: a link that came up or
// went down, other capabilities, managers that appeared or disappeared since the last
// election.
func (e *Engine) judge(p *observed.Port, before seen) {
	now := &p.Info
	if e.master.Named() {
		if isSM := now.CapabilityMask.Has(smp.CapIsSM); e.state() == stateChecking {
			e.master.Note(p, isSM)
		} else if isSM != before.CapabilityMask.Has(smp.CapIsSM) {
			e.master.LookFor(p)
		}
	} else if e.master.IsRival(p) != e.master.Asked(p) {
		e.agenda.wantElection(p.String() + " has another manager behind it, or none any more")
	}
	if now.LID != before.LID || now.LMC != before.LMC {
		e.lookAtLIDs()
		e.noteOwnLID(p, before)
	}
	switch {
	case e.keys.Lost(p) && p.Node.Switch != nil:
		e.agenda.wantSweep(p.String() + " has lost its M_Key")
	case e.keys.Lost(p):
		e.linkMoved(p, p.String()+" has lost its M_Key")
	case !before.read && p.IsUp() && p.Peer == nil && p.Num != 0: // what is behind it was not followed
		e.linkMute(p, p.String()+" is "+now.PortState.String())
	case before.read && now.PortState != before.PortState || p.IsUp() != (before.PortState != smp.PortDown && before.PortPhysicalState == smp.PhysLinkUp):
		e.linkMoved(p, fmt.Sprintf("%s went from %s to %s", p, before.PortState, now.PortState))
	case !before.read: // routes were worked out without it
		e.routing.routes = nil
		e.agenda.replan = true
	case now.CapabilityMask&^smp.CapIsSM != before.CapabilityMask&^smp.CapIsSM:
		e.emit(event.Changed{What: p.String() + " has another CapabilityMask"})
		e.agenda.replan = true
	}
}

// compare starts to write what differs from the desired tables, and reports whether there is
// anything.
func (e *Engine) compare() bool {
	e.agenda.comparing()
	p := plan.Diff(e.fabric, e.desired.Tables)
	if p.Len() == 0 {
		return false
	}
	e.reportDrift(p)
	e.write(writePass, p, 0)
	return true
}

// putRight writes back foreign changes where the engine has looked, and reports whether
// there were any. While another write has failed no port is given anything: that is for a
// light sweep, which compares everything.
func (e *Engine) putRight() bool {
	if len(e.agenda.repairs) == 0 {
		return false
	}
	ports := e.agenda.takeRepairs()
	p := plan.DiffAt(e.fabric, e.desired.Tables, ports)
	if len(e.proof.unfinished) > 0 {
		p = plan.NarrowingAt(e.fabric, e.desired.Tables, ports)
	}
	if p.Len() == 0 {
		return false
	}
	e.reportDrift(p)
	e.write(writeRepair, p, 0)
	return true
}

// reportDrift reports foreign changes.
func (e *Engine) reportDrift(p *plan.Plan) {
	var ops []plan.Op
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			if op.Kind != plan.Counters && !e.proof.unfinished[unfinished{op.Port, op.Attribute}] {
				ops = append(ops, op)
			}
		}
	}
	e.reportOverwritten(ops, e.desired.Tables)
}

// reportForeign reports foreign changes that were made while the subnet was read again. The pass
// that is about to start corrects them.
func (e *Engine) reportForeign() {
	if e.sweep.stood == nil || e.bounds.others || !e.settled || !e.isMaster() {
		return
	}
	ops, wanted := plan.Foreign(e.sweep.before.fabric, e.sweep.stood, e.sweep.drifted, e.fabric)
	e.reportOverwritten(ops, wanted)
}

// reportOverwritten reports blocks that somebody else wrote. A table of many blocks counts once
// against its port.
func (e *Engine) reportOverwritten(ops []plan.Op, wanted *observed.Desired) {
	counted := make(map[unfinished]bool)
	for _, op := range ops {
		e.emit(event.Drifted{Op: op})
		if at := (unfinished{op.Port, op.Attribute}); !counted[at] {
			counted[at] = true
			e.foreign(op, wanted)
		}
	}
}

// probe asks again where another device answered than the list of cables has there.
func (e *Engine) probe() {
	for _, p := range facts.AllUndeclared(e.fabric) {
		e.probeBehind(p, false, e.linkMoved)
	}
}

// probeBehind asks who is behind a port, if nobody does yet; answers is called when a device
// is there that fits.
func (e *Engine) probeBehind(p *observed.Port, once bool, answers func(p *observed.Port, reason string)) {
	at := p.Place()
	if e.beside.probing[at] > 0 {
		return
	}
	e.beside.probing[at] = e.askBehind(p, append(slices.Clone(p.Path), p.Num), once, func(r transact.Reply) {
		e.beside.probing[at]--
		if r.Err == nil && e.fits(p, r.SMP.Data[:]) {
			answers(p, "the device behind "+p.String()+" answers now")
		}
	})
}

// recheckNode asks an end node for its GUIDs and its description: a node that is another
// than before is discovered again.
func (e *Engine) recheckNode(p *observed.Port) {
	described := p.Node.Description
	e.get(e.beside.window, p, smp.AttrNodeDescription, 0, func() {
		if p.Node.Description != described {
			e.tellDescriptions()
			e.agenda.replan = e.agenda.replan || e.cabling.list == nil
		}
	}, nil)
	e.beside.window.Do(transact.Request{
		Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: mad.MethodGet, Attribute: smp.AttrNodeInfo,
	}, func(r transact.Reply) {
		var now smp.NodeInfo
		if r.Err != nil || now.UnmarshalBinary(r.SMP.Data[:]) != nil {
			return // who does not answer at all is missed by other means
		}
		was := &p.Node.Info
		same := now.NodeGUID == was.NodeGUID && now.NodeType == was.NodeType && now.NumPorts == was.NumPorts && now.PartitionCap == was.PartitionCap
		if !same || p.Node.Switch == nil && (now.PortGUID != p.GUID || now.LocalPortNum != p.Num) {
			e.linkMoved(p, p.String()+" reports another identity now")
		}
	})
}

// rereadAliases reads the GUID tables again that could not be written: entries that are
// not known would not be removed.
func (e *Engine) rereadAliases() {
	for x := range e.proof.unfinished {
		if x.attribute != smp.AttrGUIDInfo {
			continue
		}
		for block := range x.port.GUIDBlocks() {
			e.get(e.beside.window, x.port, smp.AttrGUIDInfo, uint32(block), nil, nil)
		}
	}
}
