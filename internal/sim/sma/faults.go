package sma

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// faults counts towards the thresholds of a port with a link.
type faults struct {
	phyErrors uint8 // since the last report
	overruns  uint8 // flow-control periods in a row
	exceeded  Exceeded
}

// Exceeded is how often a port has passed its thresholds, reported or not.
type Exceeded struct {
	LinkIntegrity uint64 // LocalPhyErrors
	BufferOverrun uint64 // OverrunErrors
}

// Exceeded is how often port n has passed its thresholds since it was switched on.
func (a *Agent) Exceeded(n ib.PortNum) Exceeded {
	if p := a.port(n); p != nil {
		return p.faults.exceeded
	}
	return Exceeded{}
}

// BadPKey counts a packet that port n refused for its P_Key, and reports it
// when the device does that.
func (a *Agent) BadPKey(now time.Duration, n ib.PortNum, offence smp.BadKeyDetails) []Effect {
	a.effects = a.effects[:0]
	p := a.port(n)
	if p == nil {
		return nil
	}
	count(&p.info.PKeyViolations)
	switch {
	case p.kind == external:
		a.raiseSwitchBadPKey(now, n, &offence)
	case p.info.MulticastPKeyTrapSuppressionEnabled != 0 && offence.LID2.IsMulticast():
	case a.options.PKeyTraps:
		a.raise(now, n, smp.TrapBadPKey, &offence)
	}
	return a.effects
}

// raiseSwitchBadPKey reports a packet that an external port refused.
func (a *Agent) raiseSwitchBadPKey(now time.Duration, n ib.PortNum, offence *smp.BadKeyDetails) {
	info := &a.ports[0].info
	if !info.CapabilityMask.Has(smp.CapPKeySwitchExternalPortTrap) {
		return
	}
	d := smp.SwitchBadPKeyDetails{
		DataValid: allButGIDs,
		LID1:      offence.LID1,
		LID2:      offence.LID2,
		PKey:      ib.PKey(offence.Key),
		SL:        offence.SL,
		QP1:       offence.QP1,
		QP2:       offence.QP2,
		GID1:      offence.GID1,
		GID2:      offence.GID2,
		SwitchLID: info.LID,
		Port:      n,
	}
	if offence.GID1 != (ib.GID{}) || offence.GID2 != (ib.GID{}) {
		d.DataValid = allFields
	}
	a.raise(now, 0, smp.TrapSwitchBadPKey, &d)
}

// SwitchBadPKeyDetails.DataValid: bit 0 LID1, 1 LID2, 2 PKey, 3 SL, 4 QP1,
// 5 QP2, 6 GID1, 7 GID2.
const (
	allButGIDs = 0x3F
	allFields  = 0xFF
)

// BadQKey counts a datagram that end port n refused for its Q_Key, and reports
// it.
func (a *Agent) BadQKey(now time.Duration, n ib.PortNum, offence smp.BadKeyDetails) []Effect {
	a.effects = a.effects[:0]
	p := a.port(n)
	if p == nil || !p.kind.isEnd() {
		return nil
	}
	count(&p.info.QKeyViolations)
	a.raise(now, n, smp.TrapBadQKey, &offence)
	return a.effects
}

// PhyError counts a soft error of port n's link. One more than LocalPhyErrors
// is reported, and the count begins again.
func (a *Agent) PhyError(now time.Duration, n ib.PortNum) []Effect {
	a.effects = a.effects[:0]
	p := a.port(n)
	if p == nil || !p.kind.hasLink() {
		return nil
	}
	if p.faults.phyErrors++; p.faults.phyErrors > p.info.LocalPhyErrors {
		p.faults.phyErrors = 0
		p.faults.exceeded.LinkIntegrity++
		a.raisePort(now, n, smp.TrapLinkIntegrity)
	}
	return a.effects
}

// FlowControlPeriod reports whether the buffers of port n's data virtual lanes overran in
// the flow-control period that has ended. More such periods in a row than
// OverrunErrors are reported, and the count begins again.
func (a *Agent) FlowControlPeriod(now time.Duration, n ib.PortNum, overrun bool) []Effect {
	a.effects = a.effects[:0]
	p := a.port(n)
	if p == nil || !p.kind.hasLink() {
		return nil
	}
	if !overrun {
		p.faults.overruns = 0
		return nil
	}
	if p.faults.overruns++; p.faults.overruns > p.info.OverrunErrors {
		p.faults.overruns = 0
		p.faults.exceeded.BufferOverrun++
		a.raisePort(now, n, smp.TrapBufferOverrun)
	}
	return a.effects
}

// raisePort reports trouble with a port's link.
func (a *Agent) raisePort(now time.Duration, n ib.PortNum, number smp.TrapNumber) {
	end := a.endNumber(n)
	a.raise(now, end, number, &smp.PortDetails{LID: a.ports[end].info.LID, Port: n})
}
