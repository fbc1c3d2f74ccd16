package pm

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// bitsOf is how many bits a field of PortCounters has: some have less than their type.
func bitsOf(name string) (bits int) {
	for _, f := range portCountersFormat.Fields() {
		if f.Name == "PortCounters."+name {
			bits = f.Bits
		}
	}
	return bits
}

// Explain explains every field of an attribute of performance management, mad.ClassPortInfo among
// them.
func Explain(a Attribute) (out []ib.Explained) {
	_, narrow := a.(*PortCounters)
	_, info := a.(*mad.ClassPortInfo)
	layout.Walk(a, 0, func(l layout.Leaf) {
		x := ib.Explained{Name: l.Name, Value: l.Value()}
		switch v := l.Of.Interface().(type) {
		case ib.PortNum:
			if v == AllPorts {
				x.Meaning = "all ports together"
			}
		case mad.ClassCapability:
			x.Value, x.Meaning = fmt.Sprintf("0x%04x", uint16(v)), capabilities(v)
		case ib.TimeValue:
			x.Meaning = v.Duration().String()
		default:
			switch {
			case strings.HasPrefix(l.Name, "CounterSelect"), l.Name == "CapabilityMask2":
				x.Value = fmt.Sprintf("0x%0*x", 2*l.Of.Type().Size(), l.Number())
			case !info:
				bits := l.Of.Type().Bits()
				if narrow {
					bits = bitsOf(l.Name)
				}
				x.Meaning = counted(l.Name, l.Number(), bits)
			}
		}
		out = append(out, x)
	})
	return out
}

// counted says what a counter of so many bits shows.
func counted(name string, n uint64, bits int) string {
	if n == ^uint64(0)>>(64-bits) {
		return "it stopped here: set it to 0 and it counts again"
	}
	if name == "PortXmitData" || name == "PortRcvData" {
		return fmt.Sprintf("%d bytes", n*4)
	}
	return ""
}

// capabilities names the bits of ClassPortInfo.CapabilityMask.
func capabilities(c mad.ClassCapability) string {
	var out []string
	for _, x := range []struct {
		bit  mad.ClassCapability
		name string
	}{
		{mad.ClassCapTraps, "IsTrapSupported"}, {mad.ClassCapNotice, "IsNoticeSupported"}, {mad.ClassCapCapabilityMask2, "IsCapabilityMask2Supported"},
		{CapAllPortSelect, "AllPortSelect"}, {CapExtendedWidth, "IsExtendedWidthSupported"}, {CapExtendedWidthTotals, "IsExtendedWidthSupportedNoIETF"},
		{CapPortXmitWait, "PortXmitWaitSupported"}, {CapQP1Dropped, "IsQP1DroppedSupported"},
	} {
		if c.Has(x.bit) {
			out, c = append(out, x.name), c&^x.bit
		}
	}
	if c != 0 {
		out = append(out, fmt.Sprintf("bits 0x%04x", uint16(c)))
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}
