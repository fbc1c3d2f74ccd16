package pma

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib/pm"
)

// Port is what a port has counted.
type Port struct {
	// Of this attribute only the counters are used.
	pm.PortCountersExtended

	// What PortRcvErrors is made of, as far as anybody said.
	LocalPhysicalErrors, MalformedPacketErrors, BufferOverrunErrors uint64
	DLIDMappingErrors, VLMappingErrors, LoopingErrors               uint64
	// What PortXmitDiscards is made of, as far as anybody said.
	InactiveDiscards, NeighborMTUDiscards               uint64
	SwLifetimeLimitDiscards, SwHOQLifetimeLimitDiscards uint64
}

// Sent counts a unicast packet of so many words of 4 bytes, from LRH to ICRC,
// that left by the port.
func (p *Port) Sent(words uint64) {
	p.PortXmitPkts++
	p.PortUnicastXmitPkts++
	p.PortXmitData += words
}

// Received counts a unicast packet that came in.
func (p *Port) Received(words uint64) {
	p.PortRcvPkts++
	p.PortUnicastRcvPkts++
	p.PortRcvData += words
}

// Set gives a counter of an attribute a value, or the highest that the
// attribute has room for. Names are IBTA's; case makes no difference.
func (p *Port) Set(attribute, name string, value uint64) error {
	v, ok := map[string]pm.Attribute{
		"portcounters":           new(pm.PortCounters),
		"portcountersextended":   new(pm.PortCountersExtended),
		"portrcverrordetails":    new(pm.PortRcvErrorDetails),
		"portxmitdiscarddetails": new(pm.PortXmitDiscardDetails),
	}[strings.ToLower(attribute)]
	if !ok {
		return fmt.Errorf("attribute %q: want PortCounters, PortCountersExtended, PortRcvErrorDetails or PortXmitDiscardDetails", attribute)
	}
	for _, c := range countersOf(v, p) {
		if strings.EqualFold(c.name, name) {
			put(c.field, value, c.bits)
			*c.register = get(c.field)
			return nil
		}
	}
	return fmt.Errorf("%s has no counter %q", attribute, name)
}

// counter joins a field of an attribute to the register behind it.
type counter struct {
	name     string
	selected bool // by the attribute's CounterSelect
	register *uint64
	field    any  // pointer to an unsigned integer
	bits     uint // of the field on the wire
}

// countersOf lists the counters of an attribute that a port has.
func countersOf(v pm.Attribute, p *Port) []counter {
	switch v := v.(type) {
	case *pm.PortCounters:
		return narrow(v, p)
	case *pm.PortCountersExtended:
		return wide(v, p)
	case *pm.PortRcvErrorDetails:
		sel := func(n uint) bool { return v.CounterSelect>>n&1 != 0 }
		return []counter{
			{"PortLocalPhysicalErrors", sel(0), &p.LocalPhysicalErrors, &v.PortLocalPhysicalErrors, 16},
			{"PortMalformedPacketErrors", sel(1), &p.MalformedPacketErrors, &v.PortMalformedPacketErrors, 16},
			{"PortBufferOverrunErrors", sel(2), &p.BufferOverrunErrors, &v.PortBufferOverrunErrors, 16},
			{"PortDLIDMappingErrors", sel(3), &p.DLIDMappingErrors, &v.PortDLIDMappingErrors, 16},
			{"PortVLMappingErrors", sel(4), &p.VLMappingErrors, &v.PortVLMappingErrors, 16},
			{"PortLoopingErrors", sel(5), &p.LoopingErrors, &v.PortLoopingErrors, 16},
		}
	case *pm.PortXmitDiscardDetails:
		sel := func(n uint) bool { return v.CounterSelect>>n&1 != 0 }
		return []counter{
			{"PortInactiveDiscards", sel(0), &p.InactiveDiscards, &v.PortInactiveDiscards, 16},
			{"PortNeighborMTUDiscards", sel(1), &p.NeighborMTUDiscards, &v.PortNeighborMTUDiscards, 16},
			{"PortSwLifetimeLimitDiscards", sel(2), &p.SwLifetimeLimitDiscards, &v.PortSwLifetimeLimitDiscards, 16},
			{"PortSwHOQLifetimeLimitDiscards", sel(3), &p.SwHOQLifetimeLimitDiscards, &v.PortSwHOQLifetimeLimitDiscards, 16},
		}
	}
	return nil
}

// narrow are the counters of PortCounters. QP1Dropped can only be read.
func narrow(v *pm.PortCounters, p *Port) []counter {
	sel := func(bit pm.CounterSelect) bool { return v.CounterSelect&bit != 0 }
	return []counter{
		{"SymbolErrorCounter", sel(pm.SelectSymbolError), &p.SymbolErrorCounter, &v.SymbolErrorCounter, 16},
		{"LinkErrorRecoveryCounter", sel(pm.SelectLinkErrorRecovery), &p.LinkErrorRecoveryCounter, &v.LinkErrorRecoveryCounter, 8},
		{"LinkDownedCounter", sel(pm.SelectLinkDowned), &p.LinkDownedCounter, &v.LinkDownedCounter, 8},
		{"PortRcvErrors", sel(pm.SelectPortRcvErrors), &p.PortRcvErrors, &v.PortRcvErrors, 16},
		{"PortRcvRemotePhysicalErrors", sel(pm.SelectPortRcvRemotePhysicalErrors), &p.PortRcvRemotePhysicalErrors, &v.PortRcvRemotePhysicalErrors, 16},
		{"PortRcvSwitchRelayErrors", sel(pm.SelectPortRcvSwitchRelayErrors), &p.PortRcvSwitchRelayErrors, &v.PortRcvSwitchRelayErrors, 16},
		{"PortXmitDiscards", sel(pm.SelectPortXmitDiscards), &p.PortXmitDiscards, &v.PortXmitDiscards, 16},
		{"PortXmitConstraintErrors", sel(pm.SelectPortXmitConstraintErrors), &p.PortXmitConstraintErrors, &v.PortXmitConstraintErrors, 8},
		{"PortRcvConstraintErrors", sel(pm.SelectPortRcvConstraintErrors), &p.PortRcvConstraintErrors, &v.PortRcvConstraintErrors, 8},
		{"LocalLinkIntegrityErrors", sel(pm.SelectLocalLinkIntegrityErrors), &p.LocalLinkIntegrityErrors, &v.LocalLinkIntegrityErrors, 4},
		{"ExcessiveBufferOverrunErrors", sel(pm.SelectExcessiveBufferOverrunErrors), &p.ExcessiveBufferOverrunErrors, &v.ExcessiveBufferOverrunErrors, 4},
		{"QP1Dropped", false, &p.QP1Dropped, &v.QP1Dropped, 16},
		{"VL15Dropped", sel(pm.SelectVL15Dropped), &p.VL15Dropped, &v.VL15Dropped, 16},
		{"PortXmitData", sel(pm.SelectPortXmitData), &p.PortXmitData, &v.PortXmitData, 32},
		{"PortRcvData", sel(pm.SelectPortRcvData), &p.PortRcvData, &v.PortRcvData, 32},
		{"PortXmitPkts", sel(pm.SelectPortXmitPkts), &p.PortXmitPkts, &v.PortXmitPkts, 32},
		{"PortRcvPkts", sel(pm.SelectPortRcvPkts), &p.PortRcvPkts, &v.PortRcvPkts, 32},
		{"PortXmitWait", v.CounterSelect2&pm.Select2PortXmitWait != 0, &p.PortXmitWait, &v.PortXmitWait, 32},
	}
}

// wide are the counters of PortCountersExtended. Bit n of CounterSelect2 is the n-th
// of those that the newer form has.
func wide(v *pm.PortCountersExtended, p *Port) []counter {
	sel := func(bit pm.ExtendedSelect) bool { return v.CounterSelect&bit != 0 }
	sel2 := func(n uint) bool { return v.CounterSelect2>>n&1 != 0 }
	return []counter{
		{"PortXmitData", sel(pm.ExtendedPortXmitData), &p.PortXmitData, &v.PortXmitData, 64},
		{"PortRcvData", sel(pm.ExtendedPortRcvData), &p.PortRcvData, &v.PortRcvData, 64},
		{"PortXmitPkts", sel(pm.ExtendedPortXmitPkts), &p.PortXmitPkts, &v.PortXmitPkts, 64},
		{"PortRcvPkts", sel(pm.ExtendedPortRcvPkts), &p.PortRcvPkts, &v.PortRcvPkts, 64},
		{"PortUnicastXmitPkts", sel(pm.ExtendedPortUnicastXmitPkts), &p.PortUnicastXmitPkts, &v.PortUnicastXmitPkts, 64},
		{"PortUnicastRcvPkts", sel(pm.ExtendedPortUnicastRcvPkts), &p.PortUnicastRcvPkts, &v.PortUnicastRcvPkts, 64},
		{"PortMulticastXmitPkts", sel(pm.ExtendedPortMulticastXmitPkts), &p.PortMulticastXmitPkts, &v.PortMulticastXmitPkts, 64},
		{"PortMulticastRcvPkts", sel(pm.ExtendedPortMulticastRcvPkts), &p.PortMulticastRcvPkts, &v.PortMulticastRcvPkts, 64},
		{"SymbolErrorCounter", sel2(0), &p.SymbolErrorCounter, &v.SymbolErrorCounter, 64},
		{"LinkErrorRecoveryCounter", sel2(1), &p.LinkErrorRecoveryCounter, &v.LinkErrorRecoveryCounter, 64},
		{"LinkDownedCounter", sel2(2), &p.LinkDownedCounter, &v.LinkDownedCounter, 64},
		{"PortRcvErrors", sel2(3), &p.PortRcvErrors, &v.PortRcvErrors, 64},
		{"PortRcvRemotePhysicalErrors", sel2(4), &p.PortRcvRemotePhysicalErrors, &v.PortRcvRemotePhysicalErrors, 64},
		{"PortRcvSwitchRelayErrors", sel2(5), &p.PortRcvSwitchRelayErrors, &v.PortRcvSwitchRelayErrors, 64},
		{"PortXmitDiscards", sel2(6), &p.PortXmitDiscards, &v.PortXmitDiscards, 64},
		{"PortXmitConstraintErrors", sel2(7), &p.PortXmitConstraintErrors, &v.PortXmitConstraintErrors, 64},
		{"PortRcvConstraintErrors", sel2(8), &p.PortRcvConstraintErrors, &v.PortRcvConstraintErrors, 64},
		{"LocalLinkIntegrityErrors", sel2(9), &p.LocalLinkIntegrityErrors, &v.LocalLinkIntegrityErrors, 64},
		{"ExcessiveBufferOverrunErrors", sel2(10), &p.ExcessiveBufferOverrunErrors, &v.ExcessiveBufferOverrunErrors, 64},
		{"VL15Dropped", sel2(11), &p.VL15Dropped, &v.VL15Dropped, 64},
		{"PortXmitWait", sel2(12), &p.PortXmitWait, &v.PortXmitWait, 64},
		{"QP1Dropped", sel2(13), &p.QP1Dropped, &v.QP1Dropped, 64},
	}
}

// put gives a field a value, or all ones when it has not room for it.
func put(field any, value uint64, bits uint) {
	value = min(value, 1<<bits-1) // 1<<64 is 0, and 0-1 all ones
	switch f := field.(type) {
	case *uint8:
		*f = uint8(value)
	case *uint16:
		*f = uint16(value)
	case *uint32:
		*f = uint32(value)
	case *uint64:
		*f = value
	}
}

func get(field any) uint64 {
	switch f := field.(type) {
	case *uint8:
		return uint64(*f)
	case *uint16:
		return uint64(*f)
	case *uint32:
		return uint64(*f)
	case *uint64:
		return *f
	}
	return 0
}
