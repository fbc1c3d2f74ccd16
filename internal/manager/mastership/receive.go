package mastership

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Serve turns an SMInfo request into its response. ok is false, and nothing
// is changed, when the packet is something else. M_Keys are the business of
// the agent that passed it on.
func (e *Election) Serve(now time.Duration, from Address, p *mad.SMP) (effects Effects, ok bool) {
	if p.AttributeID != smp.AttrSMInfo || p.Method != mad.MethodGet && p.Method != mad.MethodSet {
		return e.still(), false
	}
	var asker smp.SMInfo
	if err := asker.UnmarshalBinary(p.Data[:]); err != nil {
		return e.still(), false
	}
	reply, status, effects := e.Receive(now, from, p.Method, p.AttributeModifier, asker)
	if err := reply.Encode(&p.Data); err != nil {
		return effects, false
	}
	p.MakeResponse(status)
	return effects, true
}

// Receive answers a Get, whose modifier does not count, or a Set, whose
// modifier says what the sender wants. asker is the SMInfo in the request.
func (e *Election) Receive(now time.Duration, from Address, method mad.Method, modifier uint32, asker smp.SMInfo) (smp.SMInfo, mad.Status, Effects) {
	status, effects := mad.StatusOK, e.still()
	sender := Remote{Info: asker, Address: from}
	if method == mad.MethodSet {
		if !from.known() && e.watch.remote.Info.GUID == asker.GUID {
			sender.Address = e.watch.remote.Address
			sender.Address.Port = from.Port
		}
		var legal bool
		if effects, legal = e.obey(now, smp.SMControl(modifier), sender); !legal {
			status = mad.StatusInvalidField
		}
	}
	e.actCount++
	reply := e.info()
	reply.SMKey = e.shownTo(&sender)
	return reply, status, effects
}

// obey carries out a control packet, unless it is not legal.
func (e *Election) obey(now time.Duration, c smp.SMControl, sender Remote) (effects Effects, legal bool) {
	info := &sender.Info
	if !e.mayOrder(&sender) {
		return e.still(), false
	}
	if c == smp.SMControlAcknowledge {
		return e.acknowledged(now, sender)
	}
	if info.SMState != smp.SMMaster {
		return e.still(), false
	}
	switch {
	case c != smp.SMControlStandby && !e.isWatched(info.GUID):
		return e.still(), false
	case c == smp.SMControlHandover && (e.state == smp.SMStandby || e.state == smp.SMMaster) && e.outranks(info):
		return e.takeOver(sender), true
	case c == smp.SMControlHandover && e.takesFrom(&sender):
		effects = e.takeOver(sender) // its administrator wants it: HandOver
		e.kept = *info
		return effects, true
	case c == smp.SMControlDisable && e.state == smp.SMStandby:
		e.watch = polled{}
		return e.move(smp.SMNotActive, "disabled by %s", info.GUID), true
	case c == smp.SMControlStandby && e.state == smp.SMNotActive:
		e.observe(now, sender)
		return e.move(smp.SMStandby, "made standby by %s", info.GUID), true
	case c == smp.SMControlDiscover && e.state == smp.SMStandby:
		e.watch = polled{}
		effects = e.move(smp.SMDiscovering, "sent to discover by %s", info.GUID)
		effects.Sweep = true
		return effects, true
	}
	return e.still(), false
}

// takeOver accepts the mastership that sender hands over. The acknowledgement
// still carries the old state: some managers take it from a standby only.
func (e *Election) takeOver(sender Remote) Effects {
	e.watch, e.offer, e.kept = polled{}, offer{}, smp.SMInfo{}
	acknowledge := e.control(smp.SMControlAcknowledge, sender)
	effects := e.move(smp.SMMaster, "took over from %s", sender.Info.GUID)
	effects.Send = []Message{acknowledge}
	effects.Sweep, effects.Former = true, sender.Info.GUID
	return effects
}

// hasOffered reports whether mastership was offered to a manager. An offer that was given
// up counts, since it may have been taken before: there are two masters if it is not
// honoured.
func (e *Election) hasOffered(guid ib.PortGUID) bool {
	return e.state == smp.SMMaster && e.offered.open && e.offered.to.Info.GUID == guid
}

// handedOver ends mastership, which another manager has taken.
func (e *Election) handedOver(to ib.PortGUID) Effects {
	if e.offered.planned && e.down.to == to {
		e.down.on, e.down.failed = true, ""
	}
	e.offer = offer{}
	return e.move(smp.SMStandby, "handed over to %s", to)
}

// acknowledged ends a handover: the manager that was offered mastership has
// taken it.
func (e *Election) acknowledged(now time.Duration, sender Remote) (Effects, bool) {
	info := &sender.Info
	switch {
	case info.SMState != smp.SMStandby && info.SMState != smp.SMMaster:
	case e.hasOffered(info.GUID):
		if !sender.Address.known() {
			port := sender.Address.Port
			sender.Address = e.offered.to.Address
			sender.Address.Port = port
		}
		e.observe(now, sender)
		return e.handedOver(info.GUID), true
	case e.state == smp.SMStandby && e.watch.on && e.watch.remote.Info.GUID == info.GUID:
		return e.still(), true // again, because the first reply was lost
	}
	return e.still(), false
}
