package sma

import (
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// maxVendorModifier is the highest modifier of VendorDiag and of the vendor's
// own attributes.
const maxVendorModifier = 0xFFFF

func (a *Agent) serveNodeInfo(r request) mad.Status {
	switch {
	case r.set:
		return mad.StatusUnsupportedAttrib
	case r.AttributeModifier != 0:
		return mad.StatusInvalidField
	}
	n := a.NodeInfo(r.from.Port)
	return done(n.Encode(&r.Data))
}

func (a *Agent) serveNodeDescription(r request) mad.Status {
	has := r.end.info
	switch {
	case r.set && !(has.CapabilityMask.Has(smp.CapHasCapabilityMask2) && has.CapabilityMask2.Has(smp.Cap2SetNodeDescription)):
		return mad.StatusUnsupportedAttrib
	case r.AttributeModifier != 0:
		return mad.StatusInvalidField
	case r.set:
		a.description.NodeString = r.Data
	}
	r.Data = a.description.NodeString
	return mad.StatusOK
}

// serveLEDInfo answers with what the light does, not with what was asked for.
func (a *Agent) serveLEDInfo(r request) mad.Status {
	switch {
	case !r.end.info.CapabilityMask.Has(smp.CapLEDInfo):
		return mad.StatusUnsupportedAttrib
	case r.AttributeModifier != 0:
		return mad.StatusInvalidField
	}
	var l smp.LEDInfo
	if r.set {
		if err := l.UnmarshalBinary(r.Data[:]); err != nil {
			return mad.StatusInvalidField
		}
		r.end.led = l.LEDMask && !a.options.LEDStuck
	}
	l = smp.LEDInfo{LEDMask: r.end.led}
	return done(l.Encode(&r.Data))
}

// serveVendor answers the vendor's own attributes, and refuses all others.
func (a *Agent) serveVendor(r request) mad.Status {
	data, known := a.vendor[r.AttributeID]
	switch {
	case !known || r.set:
		return mad.StatusUnsupportedAttrib
	case r.AttributeModifier > maxVendorModifier:
		return mad.StatusInvalidField
	}
	r.Data = data
	return mad.StatusOK
}

// Description is the text of the device, as NodeDescription has it.
func (a *Agent) Description() string { return a.description.String() }
