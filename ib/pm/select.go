package pm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// selectable are the counters of PortCounters in the order of the bits of CounterSelect.
var selectable = []string{
	"SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortRcvRemotePhysicalErrors",
	"PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors", "PortRcvConstraintErrors", "LocalLinkIntegrityErrors",
	"ExcessiveBufferOverrunErrors", "VL15Dropped", "PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts",
}

// Resettable lists the counters of an attribute that a Set can set back to zero; nil for an attribute
// without any.
func Resettable(id mad.AttributeID) (out []string) {
	d, known := Describe(id)
	switch {
	case !known:
		return nil
	case id == AttrPortCounters:
		return append(slices.Clone(selectable), "PortXmitWait")
	}
	layout.Walk(d.New(), 0, func(l layout.Leaf) {
		if l.Name != "PortSelect" && !strings.HasPrefix(l.Name, "CounterSelect") {
			out = append(out, l.Name)
		}
	})
	return out
}

// Reset is the attribute of a Set that sets these counters back to zero and leaves the others; its
// PortSelect is 0. It fails for a counter that is not Resettable.
func Reset(id mad.AttributeID, counters ...string) (Attribute, error) {
	can := Resettable(id)
	var chosen uint64
	for _, c := range counters {
		n := slices.Index(can, c)
		if n < 0 {
			return nil, fmt.Errorf("%s.%s cannot be set back", AttributeName(id), c)
		}
		chosen |= 1 << n
	}
	d, _ := Describe(id)
	a := d.New()
	switch v := a.(type) {
	case *PortCounters:
		v.CounterSelect, v.CounterSelect2 = CounterSelect(chosen), CounterSelect2(chosen>>len(selectable))
	case *PortCountersExtended:
		const first = 8 // as many counters has CounterSelect
		v.CounterSelect, v.CounterSelect2 = ExtendedSelect(chosen&(1<<first-1)), uint32(chosen>>first)
	case *PortRcvErrorDetails:
		v.CounterSelect = uint16(chosen)
	case *PortXmitDiscardDetails:
		v.CounterSelect = uint16(chosen)
	}
	return a, nil
}
