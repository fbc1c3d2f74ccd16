package perfmgr

import (
	"math"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
)

// Counter is one counter of a port.
type Counter uint8

// The counters, with the names that the architecture gives them.
const (
	PortXmitData Counter = iota // bytes: the wire has units of 4
	PortRcvData                 // bytes
	PortXmitPkts
	PortRcvPkts
	PortUnicastXmitPkts
	PortUnicastRcvPkts
	PortMulticastXmitPkts
	PortMulticastRcvPkts
	SymbolErrorCounter
	LinkErrorRecoveryCounter
	LinkDownedCounter
	PortRcvErrors
	PortRcvRemotePhysicalErrors
	PortRcvSwitchRelayErrors
	PortXmitDiscards
	PortXmitConstraintErrors
	PortRcvConstraintErrors
	LocalLinkIntegrityErrors
	ExcessiveBufferOverrunErrors
	VL15Dropped
	PortXmitWait
	QP1Dropped
	PortLocalPhysicalErrors
	PortMalformedPacketErrors
	PortBufferOverrunErrors
	PortDLIDMappingErrors
	PortVLMappingErrors
	PortLoopingErrors

	// Counters is how many there are.
	Counters
)

var counterNames = [Counters]string{
	"PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortUnicastXmitPkts", "PortUnicastRcvPkts",
	"PortMulticastXmitPkts", "PortMulticastRcvPkts", "SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter",
	"PortRcvErrors", "PortRcvRemotePhysicalErrors", "PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors",
	"PortRcvConstraintErrors", "LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors", "VL15Dropped", "PortXmitWait", "QP1Dropped",
	"PortLocalPhysicalErrors", "PortMalformedPacketErrors", "PortBufferOverrunErrors", "PortDLIDMappingErrors", "PortVLMappingErrors",
	"PortLoopingErrors",
}

// String is the counter's name; empty for a number that is none's.
func (c Counter) String() string {
	if c >= Counters {
		return ""
	}
	return counterNames[c]
}

// set is a set of counters.
type set uint32

func (s set) has(c Counter) bool { return s>>c&1 != 0 }

// bytesPerUnit is what PortXmitData and PortRcvData count in.
const bytesPerUnit = 4

// values takes in what the attributes of one port show.
type values struct {
	value        [Counters]uint64
	known, stuck set
}

// put enters a counter that is so many bits wide.
func (v *values) put(c Counter, n uint64, bits uint) {
	v.known |= 1 << c
	v.stuck &^= 1 << c
	if n == math.MaxUint64>>(64-bits) {
		v.stuck |= 1 << c
	}
	if c == PortXmitData || c == PortRcvData {
		n = min(n, math.MaxUint64/bytesPerUnit) * bytesPerUnit
	}
	v.value[c] = n
}

// ask is one of the attributes that are read of a port.
type ask uint8

const (
	askClassPortInfo ask = iota
	askExtended
	askCounters
	askRcvErrors
)

var askAttributes = [...]mad.AttributeID{
	askClassPortInfo: mad.AttrClassPortInfo, askExtended: pm.AttrPortCountersExtended,
	askCounters: pm.AttrPortCounters, askRcvErrors: pm.AttrPortRcvErrorDetails,
}

// capability is what an agent says that it has.
type capability struct {
	extended, unicast, errors, wait, qp1 bool
}

func capabilityOf(info *mad.ClassPortInfo) (c capability) {
	m := info.CapabilityMask
	c.unicast = m.Has(pm.CapExtendedWidth)
	c.extended = c.unicast || m.Has(pm.CapExtendedWidthTotals)
	c.errors = c.unicast && m.Has(mad.ClassCapCapabilityMask2) && info.CapabilityMask2.Has(pm.Cap2ExtendedErrors)
	c.wait, c.qp1 = m.Has(pm.CapPortXmitWait), m.Has(pm.CapQP1Dropped)
	return c
}

// asks are the attributes to read of a port of such an agent.
func (c capability) asks() []ask {
	switch {
	case c.errors:
		return []ask{askExtended, askRcvErrors}
	case c.extended:
		return []ask{askExtended, askCounters, askRcvErrors}
	}
	return []ask{askCounters, askRcvErrors}
}

// of are the counters that an attribute shows of an agent with these capabilities.
func (c capability) of(a ask) (s set) {
	var v values
	switch a {
	case askExtended:
		v.takeExtended(&pm.PortCountersExtended{}, c)
	case askCounters:
		v.takeCounters(&pm.PortCounters{}, c)
	case askRcvErrors:
		v.takeRcvErrors(&pm.PortRcvErrorDetails{})
	}
	return v.known
}

func (v *values) takeExtended(e *pm.PortCountersExtended, c capability) {
	const wide = 64
	v.put(PortXmitData, e.PortXmitData, wide)
	v.put(PortRcvData, e.PortRcvData, wide)
	v.put(PortXmitPkts, e.PortXmitPkts, wide)
	v.put(PortRcvPkts, e.PortRcvPkts, wide)
	if c.unicast {
		v.put(PortUnicastXmitPkts, e.PortUnicastXmitPkts, wide)
		v.put(PortUnicastRcvPkts, e.PortUnicastRcvPkts, wide)
		v.put(PortMulticastXmitPkts, e.PortMulticastXmitPkts, wide)
		v.put(PortMulticastRcvPkts, e.PortMulticastRcvPkts, wide)
	}
	if !c.errors {
		return
	}
	v.put(SymbolErrorCounter, e.SymbolErrorCounter, wide)
	v.put(LinkErrorRecoveryCounter, e.LinkErrorRecoveryCounter, wide)
	v.put(LinkDownedCounter, e.LinkDownedCounter, wide)
	v.put(PortRcvErrors, e.PortRcvErrors, wide)
	v.put(PortRcvRemotePhysicalErrors, e.PortRcvRemotePhysicalErrors, wide)
	v.put(PortRcvSwitchRelayErrors, e.PortRcvSwitchRelayErrors, wide)
	v.put(PortXmitDiscards, e.PortXmitDiscards, wide)
	v.put(PortXmitConstraintErrors, e.PortXmitConstraintErrors, wide)
	v.put(PortRcvConstraintErrors, e.PortRcvConstraintErrors, wide)
	v.put(LocalLinkIntegrityErrors, e.LocalLinkIntegrityErrors, wide)
	v.put(ExcessiveBufferOverrunErrors, e.ExcessiveBufferOverrunErrors, wide)
	v.put(VL15Dropped, e.VL15Dropped, wide)
	v.put(PortXmitWait, e.PortXmitWait, wide)
	v.put(QP1Dropped, e.QP1Dropped, wide)
}

func (v *values) takeCounters(n *pm.PortCounters, c capability) {
	if !c.extended {
		v.put(PortXmitData, uint64(n.PortXmitData), 32)
		v.put(PortRcvData, uint64(n.PortRcvData), 32)
		v.put(PortXmitPkts, uint64(n.PortXmitPkts), 32)
		v.put(PortRcvPkts, uint64(n.PortRcvPkts), 32)
	}
	v.put(SymbolErrorCounter, uint64(n.SymbolErrorCounter), 16)
	v.put(LinkErrorRecoveryCounter, uint64(n.LinkErrorRecoveryCounter), 8)
	v.put(LinkDownedCounter, uint64(n.LinkDownedCounter), 8)
	v.put(PortRcvErrors, uint64(n.PortRcvErrors), 16)
	v.put(PortRcvRemotePhysicalErrors, uint64(n.PortRcvRemotePhysicalErrors), 16)
	v.put(PortRcvSwitchRelayErrors, uint64(n.PortRcvSwitchRelayErrors), 16)
	v.put(PortXmitDiscards, uint64(n.PortXmitDiscards), 16)
	v.put(PortXmitConstraintErrors, uint64(n.PortXmitConstraintErrors), 8)
	v.put(PortRcvConstraintErrors, uint64(n.PortRcvConstraintErrors), 8)
	v.put(LocalLinkIntegrityErrors, uint64(n.LocalLinkIntegrityErrors), 4)
	v.put(ExcessiveBufferOverrunErrors, uint64(n.ExcessiveBufferOverrunErrors), 4)
	v.put(VL15Dropped, uint64(n.VL15Dropped), 16)
	if c.wait {
		v.put(PortXmitWait, uint64(n.PortXmitWait), 32)
	}
	if c.qp1 {
		v.put(QP1Dropped, uint64(n.QP1Dropped), 16)
	}
}

func (v *values) takeRcvErrors(d *pm.PortRcvErrorDetails) {
	v.put(PortLocalPhysicalErrors, uint64(d.PortLocalPhysicalErrors), 16)
	v.put(PortMalformedPacketErrors, uint64(d.PortMalformedPacketErrors), 16)
	v.put(PortBufferOverrunErrors, uint64(d.PortBufferOverrunErrors), 16)
	v.put(PortDLIDMappingErrors, uint64(d.PortDLIDMappingErrors), 16)
	v.put(PortVLMappingErrors, uint64(d.PortVLMappingErrors), 16)
	v.put(PortLoopingErrors, uint64(d.PortLoopingErrors), 16)
}

// take enters an answer; false where it is not about this port, or is none.
func (v *values) take(a ask, data []byte, num ib.PortNum, c capability) bool {
	switch a {
	case askExtended:
		var e pm.PortCountersExtended
		if e.UnmarshalBinary(data) != nil || e.PortSelect != num {
			return false
		}
		v.takeExtended(&e, c)
	case askCounters:
		var n pm.PortCounters
		if n.UnmarshalBinary(data) != nil || n.PortSelect != num {
			return false
		}
		v.takeCounters(&n, c)
	case askRcvErrors:
		var d pm.PortRcvErrorDetails
		if d.UnmarshalBinary(data) != nil || d.PortSelect != num {
			return false
		}
		v.takeRcvErrors(&d)
	}
	return true
}
