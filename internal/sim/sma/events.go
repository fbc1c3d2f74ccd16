package sma

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Limits of what an end port keeps about events, in notices. What does not fit
// is lost, as on a device: the counters and PortStateChange still tell.
const (
	MaxPendingTraps = 16
	MaxNotices      = 16
)

// EffectKind says what an Effect is.
type EffectKind uint8

const (
	// StateChanged: PortState of Port changed.
	StateChanged EffectKind = iota + 1
	// LinkMoved: a Set gave PortPhysicalState of Port another value. A link
	// that was up is down, and the peer has to be told; the two may train.
	LinkMoved
	// PKeysChanged: the P_Key table of Port changed.
	PKeysChanged
	// EnforcementChanged: partition enforcement or a raw filter of Port changed.
	EnforcementChanged
	// ForwardingChanged: a forwarding table or a setting of forwarding changed.
	ForwardingChanged
	// Reregister: software behind Port has to renew its subscriptions.
	Reregister
	// TrapSent: Trap is to be sent from Port.
	TrapSent
)

// Effect is something that follows from what an agent was told.
type Effect struct {
	Kind EffectKind
	Port ib.PortNum
	Trap *Trap // of TrapSent
}

// Trap is a packet to the subnet manager.
type Trap struct {
	SMP        mad.SMP
	DLID, SLID ib.LID
	SL         ib.SL
}

func (a *Agent) effect(e Effect) { a.effects = append(a.effects, e) }

// events are the traps and notices of an end port.
type events struct {
	pending []pendingTrap
	next    time.Duration // no trap is sent before
	notices []smp.Notice  // oldest first
	toggle  bool          // NoticeToggle of the oldest notice
}

type pendingTrap struct {
	id     uint64 // transaction
	notice smp.Notice
	sent   int
}

// raise makes an event known: as a trap when the port sends traps, and in the
// queue of notices when it keeps one.
func (a *Agent) raise(now time.Duration, n ib.PortNum, number smp.TrapNumber, details smp.TrapDetails) {
	p := &a.ports[n]
	traps := p.info.CapabilityMask.Has(smp.CapTrapSupported)
	queue := p.info.CapabilityMask.Has(smp.CapNoticeSupported)
	if !traps && !queue {
		return
	}
	notice, err := smp.NewTrap(number, uint32(a.node.NodeType), p.info.LID, details)
	if err != nil {
		return // the agent fills details with values that fit
	}
	if p.events == nil {
		p.events = new(events)
	}
	e := p.events
	if queue && len(e.notices) < MaxNotices {
		e.notices = append(e.notices, notice)
	}
	same := func(t pendingTrap) bool { return t.notice == notice }
	if traps && p.info.MasterSMLID.IsUnicast() && len(e.pending) < MaxPendingTraps && !slices.ContainsFunc(e.pending, same) {
		a.lastTrap++
		e.pending = append(e.pending, pendingTrap{id: a.lastTrap, notice: notice})
		a.sendDue(now, n)
	}
}

// sendDue sends the trap whose turn it is, if the port may send one now. It
// takes its place behind the others until it is repressed.
func (a *Agent) sendDue(now time.Duration, n ib.PortNum) {
	p := &a.ports[n]
	e := p.events
	if e == nil || len(e.pending) == 0 || now < e.next {
		return
	}
	if !p.info.MasterSMLID.IsUnicast() {
		e.pending = nil
		return
	}
	e.next = now + p.info.SubnetTimeOut.Duration()
	t := e.pending[0]
	t.sent++
	e.pending = slices.Delete(e.pending, 0, 1)
	if limit := a.options.TrapSends; limit == 0 || t.sent < limit {
		e.pending = append(e.pending, t)
	}
	trap := &Trap{
		SMP: mad.SMP{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion,
			Method: mad.MethodTrap, TransactionID: t.id, AttributeID: smp.AttrNotice,
		},
		DLID: p.info.MasterSMLID,
		SLID: p.info.LID,
		SL:   p.info.MasterSMSL,
	}
	if t.notice.Encode(&trap.SMP.Data) == nil {
		a.effect(Effect{Kind: TrapSent, Port: n, Trap: trap})
	}
}

// sent reports whether the trap that r is the answer to is one that the agent
// repeats.
func (a *Agent) sent(r request) bool {
	return r.end.events != nil && slices.ContainsFunc(r.end.events.pending, func(t pendingTrap) bool { return t.id == r.TransactionID })
}

// repress ends the repetition of a trap that the manager has seen.
func (a *Agent) repress(r request) {
	e := r.end.events
	if e == nil || r.AttributeID != smp.AttrNotice {
		return
	}
	var notice smp.Notice
	if notice.UnmarshalBinary(r.Data[:]) != nil {
		return
	}
	e.pending = slices.DeleteFunc(e.pending, func(t pendingTrap) bool {
		return t.id == r.TransactionID && t.notice == notice
	})
}

// serveNotice answers with the oldest event. A Set with the NoticeToggle that
// the answer had takes it off the queue.
func (a *Agent) serveNotice(r request) mad.Status {
	switch {
	case !r.end.info.CapabilityMask.Has(smp.CapNoticeSupported):
		return mad.StatusUnsupportedAttrib
	case r.AttributeModifier != 0:
		return mad.StatusInvalidField
	}
	e := r.end.events
	if e == nil {
		e = new(events) // empty
	}
	var notice smp.Notice
	if r.set {
		if err := notice.UnmarshalBinary(r.Data[:]); err != nil {
			return mad.StatusInvalidField
		}
		if len(e.notices) > 0 && notice.NoticeToggle == e.toggle {
			e.notices = slices.Delete(e.notices, 0, 1)
			e.toggle = !e.toggle
		}
	}
	notice = smp.Notice{IsGeneric: true, Type: smp.NoticeEmpty}
	if len(e.notices) > 0 {
		notice = e.notices[0]
		notice.NoticeCount = uint16(len(e.notices))
	}
	notice.NoticeToggle = e.toggle
	return done(notice.Encode(&r.Data))
}

// Deadline is when Expire has something to do, if ever.
func (a *Agent) Deadline() (at time.Duration, ok bool) {
	sooner := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for i := range a.ends() {
		p := &a.ports[i]
		if p.leased {
			sooner(p.leaseEnd)
		}
		if p.events != nil && len(p.events.pending) > 0 {
			sooner(p.events.next)
		}
	}
	return at, ok
}

// Expire does what is due: leases that ran out, traps that may be sent now.
func (a *Agent) Expire(now time.Duration) []Effect {
	a.effects = a.effects[:0]
	for i := range a.ends() {
		a.ports[i].expireLease(now)
		a.sendDue(now, ib.PortNum(i))
	}
	return a.effects
}

// ends is one more than the highest number of an end port.
func (a *Agent) ends() int {
	if a.fabric != nil {
		return 1
	}
	return len(a.ports)
}

// SetIsSM announces that a subnet manager runs behind port n, or no longer
// does. The agent hands on to it what is meant for a manager.
func (a *Agent) SetIsSM(now time.Duration, n ib.PortNum, running bool) []Effect {
	a.effects = a.effects[:0]
	p := a.endPort(n)
	if p == nil || p.info.CapabilityMask.Has(smp.CapIsSM) == running {
		return nil
	}
	p.info.CapabilityMask ^= smp.CapIsSM
	if p.info.CapabilityMask.Has(smp.CapCapabilityMaskNotice) {
		a.localChange(now, n, smp.LocalChangeDetails{})
	}
	return a.effects
}

// SetDescription changes the device's text on the device itself.
func (a *Agent) SetDescription(now time.Duration, text string) ([]Effect, error) {
	a.effects = a.effects[:0]
	if err := a.description.SetString(text); err != nil {
		return nil, err
	}
	for i := range a.ends() {
		p := a.port(ib.PortNum(i))
		if p != nil && p.info.CapabilityMask.Has(smp.CapOtherLocalChangesNotice) {
			a.localChange(now, ib.PortNum(i), smp.LocalChangeDetails{OtherLocalChanges: true, NodeDescriptionChange: true})
		}
	}
	return a.effects, nil
}

func (a *Agent) localChange(now time.Duration, n ib.PortNum, d smp.LocalChangeDetails) {
	n = a.endNumber(n)
	i := &a.ports[n].info
	d.LID, d.CapabilityMask, d.CapabilityMask2 = i.LID, i.CapabilityMask, i.CapabilityMask2
	a.raise(now, n, smp.TrapLocalChange, &d)
}
