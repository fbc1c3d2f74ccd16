package sma

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// What package smp says of an attribute is what agents do: what nobody can write is
// refused as such, all else is not; and what only switches have, others have not.
func TestAttributesAreAsDescribed(t *testing.T) {
	refused := func(s mad.Status) bool {
		return s == mad.StatusUnsupportedMethod || s == mad.StatusUnsupportedAttrib
	}
	for _, x := range []struct {
		name  string
		agent *device
		has   func(smp.Descriptor) bool
	}{
		{"CA", start(t, optional(caConfig(1))), func(d smp.Descriptor) bool { return d.Of != smp.OfSwitch }},
		{"switch", start(t, optional(switchConfig(2))), func(d smp.Descriptor) bool { return d.ID != smp.AttrRandomForwardingTable }},
		{"switch with random forwarding", start(t, optional(randomConfig(2))), func(d smp.Descriptor) bool { return d.ID != smp.AttrLinearForwardingTable }},
	} {
		for _, d := range smp.Attributes() {
			if d.ID == smp.AttrSMInfo || d.ID == smp.AttrPortInfoExtended {
				continue // answered by managers; and by no agent of ours
			}
			modifier := d.Modifier.For(1, 0, 1)
			if d.Modifier == smp.ModifierPartPort {
				modifier = d.Modifier.For(1, 1, 0)
			}
			got := x.agent.request(1, mad.MethodGet, d.ID, modifier, [mad.DataSize]byte{})
			if has := !refused(got.Status); has != x.has(d) {
				t.Errorf("%s: Get(%s) is answered %v", x.name, d.Name, got.Status)
			}
			set := x.agent.request(1, mad.MethodSet, d.ID, modifier, got.Data)
			if can := !refused(set.Status); can != (x.has(d) && d.Access.CanSet()) {
				t.Errorf("%s: Set(%s) is answered %v", x.name, d.Name, set.Status)
			}
		}
	}
}

// optional turns on the attributes that devices may be without.
func optional(c Config) Config {
	p := &c.Ports[0]
	if c.Switch != nil {
		p = &c.Switch.Port0
	}
	p.CapabilityMask |= smp.CapNoticeSupported | smp.CapLEDInfo | smp.CapSLMapping
	return c
}
