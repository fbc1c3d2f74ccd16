package sma

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// selected is the port that a PortInfo modifier names, nil when there is none
// such. extended says that the sender knows extended speeds.
func (a *Agent) selected(r request) (n ib.PortNum, p *port, extended bool) {
	n, extended, ok := smp.SplitPortInfoModifier(r.AttributeModifier)
	if n == 0 && a.fabric == nil {
		n = r.from.Port
	}
	if !ok || extended && a.options.RefusesExtendedSpeeds {
		return 0, nil, false
	}
	return n, a.port(n), extended
}

func (a *Agent) servePortInfo(r request) mad.Status {
	n, p, extended := a.selected(r)
	if p == nil {
		return mad.StatusInvalidField
	}
	p.unlocked = p.unlocked || extended && !r.set
	status := mad.StatusOK
	reregister := false
	if r.set {
		if a.fabric == nil && n != r.from.Port {
			status = a.bad() // another port's PortInfo can only be read
		} else {
			reregister, status = a.setPortInfo(r, n, p, extended)
		}
	}
	answer := p.info
	answer.MKey = p.shownMKey(r.SMP)
	if r.set && p == r.end {
		answer.MKey = p.info.MKey // the sender had the old key and chose the new one
	}
	if !extended && a.options.HidesExtendedSpeeds {
		hideExtendedSpeeds(&answer)
	}
	answer.LocalPortNum = r.from.Port
	answer.ClientReregister = reregister
	if err := answer.Encode(&r.Data); err != nil {
		return mad.StatusInvalidField
	}
	return status
}

// hideExtendedSpeeds makes of PortInfo what a manager may understand that does not know extended
// speeds: a link that has one runs at the fastest of the speeds that it does know.
func hideExtendedSpeeds(i *smp.PortInfo) {
	if i.LinkSpeedExtActive != 0 || i.LinkSpeedExtActive2 != 0 {
		i.LinkSpeedActive, _, _ = smp.FastestSpeed(i.LinkSpeedEnabled, 0, 0).Bits()
	}
	i.LinkSpeedExtActive, i.LinkSpeedExtSupported, i.LinkSpeedExtEnabled = 0, 0, 0
	i.LinkSpeedExtActive2, i.LinkSpeedExtSupported2, i.LinkSpeedExtEnabled2 = 0, 0, 0
}

// LockedBytes is how many bytes of a packet a port passes at the most that HidesExtendedSpeeds
// and that nobody has asked for them. linux-rdma/opensm 38 says about 400.
const LockedBytes = 400

// IsLocked reports whether a port passes LockedBytes of a packet at the most.
func (a *Agent) IsLocked(n ib.PortNum) bool {
	p := a.port(n)
	return a.options.HidesExtendedSpeeds && p != nil && !p.unlocked && (p.info.LinkSpeedExtActive != 0 || p.info.LinkSpeedExtActive2 != 0)
}

// portWrite carries one Set of PortInfo through the groups of elements.
type portWrite struct {
	*port
	want     smp.PortInfo
	extended bool // the sender knows extended speeds
	bad      bool // some element had a value without meaning
	// whole: such an element refuses the Set, which then changes nothing.
	whole bool
}

// setPortInfo carries out a Set, states last: all of it, or nothing when an element is
// refused. A device that is set otherwise takes the elements that can be taken.
func (a *Agent) setPortInfo(r request, n ib.PortNum, p *port, extended bool) (reregister bool, status mad.Status) {
	w := portWrite{port: p, extended: extended, whole: a.options.BadInput == BadInputRefused}
	if err := w.want.UnmarshalBinary(r.Data[:]); err != nil {
		return false, mad.StatusInvalidField
	}
	before := p.info
	effects := len(a.effects)
	if p.kind.isEnd() {
		w.address()
		w.endSettings()
		reregister = w.want.ClientReregister && p.info.CapabilityMask.Has(smp.CapClientReregistration)
	}
	if p.kind.hasLink() {
		w.rates()
		w.buffers()
	}
	if p.kind.isExit() {
		p.info.VLStallCount, p.info.HOQLife = w.want.VLStallCount, w.want.HOQLife
		a.setEnforcement(&w)
	}
	w.counters()
	if reregister {
		a.effect(Effect{Kind: Reregister, Port: n})
	}
	if enforcement(&before) != enforcement(&p.info) {
		a.effect(Effect{Kind: EnforcementChanged, Port: n})
	}
	if p.kind.hasLink() {
		a.setState(&w, n)
	}
	if w.bad && w.whole {
		// What was done is in PortInfo and in the effects, which nobody has seen yet.
		p.info, a.effects = before, a.effects[:effects]
		return false, mad.StatusInvalidField
	}
	if w.bad {
		return reregister, a.bad()
	}
	return reregister, mad.StatusOK
}

// accept reports whether a value is legal and remembers when one is not.
func (w *portWrite) accept(legal bool) bool {
	w.bad = w.bad || !legal
	return legal
}

// back reports whether a LID is written back as it stands, 0 after power-up: no reason to
// refuse all the rest, or nothing could be written before both LIDs are.
func (w *portWrite) back(want, held ib.LID) bool { return w.whole && want == held }

func (w *portWrite) address() {
	i, want := &w.info, &w.want
	i.MKey, i.GIDPrefix, i.MKeyLeasePeriod = want.MKey, want.GIDPrefix, want.MKeyLeasePeriod
	i.MKeyProtectBits = want.MKeyProtectBits
	if i.MKeyLeasePeriod == 0 {
		w.leased = false
	}
	lmc := want.LMC
	if w.kind == basePort0 {
		lmc = 0
	}
	// The two make one address range and are taken together.
	if w.accept(want.LID.IsUnicast() && int(want.LID)%lmc.Count() == 0 || w.back(want.LID, i.LID) && lmc == i.LMC) {
		i.LID, i.LMC = want.LID, lmc
	}
	if w.accept(want.MasterSMLID.IsUnicast() || w.back(want.MasterSMLID, i.MasterSMLID)) {
		i.MasterSMLID = want.MasterSMLID
	}
	i.MasterSMSL = want.MasterSMSL
}

func (w *portWrite) endSettings() {
	i, want := &w.info, &w.want
	i.SubnetTimeOut = want.SubnetTimeOut
	if i.CapabilityMask.Has(smp.CapReinit) {
		i.InitType = want.InitType
	}
	if i.CapabilityMask.Has(smp.CapMulticastPKeyTrapSuppression) {
		i.MulticastPKeyTrapSuppressionEnabled = want.MulticastPKeyTrapSuppressionEnabled
	}
}

// rates takes the widths and speeds that the link may train with next time.
func (w *portWrite) rates() {
	i, want := &w.info, &w.want
	switch width := want.LinkWidthEnabled; {
	case width == 0:
	case width == smp.LinkWidthAll:
		i.LinkWidthEnabled = i.LinkWidthSupported
	case w.accept(width&^i.LinkWidthSupported == 0):
		i.LinkWidthEnabled = width
	}
	switch speed := want.LinkSpeedEnabled; {
	case speed == 0:
	case speed == smp.LinkSpeedAll:
		i.LinkSpeedEnabled = i.LinkSpeedSupported
	case w.accept(speed&^i.LinkSpeedSupported == 0):
		i.LinkSpeedEnabled = speed
	}
	switch speed := want.LinkSpeedExtEnabled; {
	case speed == 0 || !w.extended: // who does not know the field means nothing by it
	case speed == smp.LinkSpeedExtDisable:
		i.LinkSpeedExtEnabled = 0
	case speed == smp.LinkSpeedExtAll:
		i.LinkSpeedExtEnabled = i.LinkSpeedExtSupported
	case w.accept(speed&^i.LinkSpeedExtSupported == 0):
		i.LinkSpeedExtEnabled = speed
	}
	// Without XDR the bits are reserved, and count for nothing.
	if speed := want.LinkSpeedExtEnabled2; speed != 0 && i.LinkSpeedExtSupported2 != 0 && w.extended && w.accept(speed&^i.LinkSpeedExtSupported2 == 0) {
		i.LinkSpeedExtEnabled2 = speed
	}
}

func (w *portWrite) buffers() {
	i, want := &w.info, &w.want
	if w.accept(want.NeighborMTU.IsValid() && want.NeighborMTU <= i.MTUCap) {
		i.NeighborMTU = want.NeighborMTU
	}
	if want.OperationalVLs != 0 && w.accept(want.OperationalVLs <= i.VLCap) {
		i.OperationalVLs = want.OperationalVLs
	}
	i.VLHighLimit = want.VLHighLimit
	i.LocalPhyErrors, i.OverrunErrors = want.LocalPhyErrors, want.OverrunErrors
}

// setEnforcement takes the bits that the device has the means for; the others
// stay zero, so that reading them back tells the truth.
func (a *Agent) setEnforcement(w *portWrite) {
	i, want := &w.info, &w.want
	if w.kind == routerPort {
		has := a.options.RouterEnforcement
		i.PartitionEnforcementInbound = has && want.PartitionEnforcementInbound
		i.PartitionEnforcementOutbound = has && want.PartitionEnforcementOutbound
		i.FilterRawInbound = has && want.FilterRawInbound
		i.FilterRawOutbound = has && want.FilterRawOutbound
		return
	}
	s := &a.fabric.info
	hasTable := s.PartitionEnforcementCap != 0
	i.PartitionEnforcementInbound = hasTable && s.InboundEnforcementCap && want.PartitionEnforcementInbound
	i.PartitionEnforcementOutbound = hasTable && s.OutboundEnforcementCap && want.PartitionEnforcementOutbound
	i.FilterRawInbound = s.FilterRawInboundCap && want.FilterRawInbound
	i.FilterRawOutbound = s.FilterRawOutboundCap && want.FilterRawOutbound
}

func enforcement(i *smp.PortInfo) [4]bool {
	return [4]bool{i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound, i.FilterRawInbound, i.FilterRawOutbound}
}

// counters clears those that are written as zero; other values are ignored, so
// that an attribute that was read can be written back.
func (w *portWrite) counters() {
	clearIfZero(&w.info.MKeyViolations, w.want.MKeyViolations)
	clearIfZero(&w.info.PKeyViolations, w.want.PKeyViolations)
	clearIfZero(&w.info.QKeyViolations, w.want.QKeyViolations)
}

func clearIfZero(counter *uint16, written uint16) {
	if written == 0 {
		*counter = 0
	}
}

// setState carries out what a Set asks of the link.
func (a *Agent) setState(w *portWrite, n ib.PortNum) {
	i, want := &w.info, &w.want
	down := want.LinkDownDefaultState
	if down != smp.PhysNoChange && w.accept(down == smp.PhysSleep || down == smp.PhysPolling) {
		i.LinkDownDefaultState = down
	}
	state, phys := want.PortState, want.PortPhysicalState
	if phys != smp.PhysNoChange {
		legal := phys <= smp.PhysDisabled && state <= smp.PortDown && w.kind.hasCable()
		if w.accept(legal) {
			a.moveLink(w.port, n, phys)
		}
		return
	}
	switch {
	case state == smp.PortStateNoChange:
	case state == smp.PortDown && w.kind.hasCable():
		if i.PortState != smp.PortDown {
			a.moveLink(w.port, n, i.LinkDownDefaultState)
		}
	case state == smp.PortDown:
		// The link inside the switch trains again at once.
		a.changeState(w.port, n, smp.PortInit)
	case state == i.PortState && (state == smp.PortArmed || state == smp.PortActive):
		// The answer to the first such Set was lost.
	case !i.DiagCode.IsOperative() && !w.accept(state < smp.PortArmed):
	case w.accept(state == smp.PortArmed && i.PortState == smp.PortInit || state == smp.PortActive && i.PortState == smp.PortArmed):
		a.changeState(w.port, n, state)
	}
}
