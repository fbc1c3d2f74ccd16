package smp

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// The attributes of subnet management.
const (
	AttrNotice                   mad.AttributeID = 0x0002
	AttrNodeDescription          mad.AttributeID = 0x0010
	AttrNodeInfo                 mad.AttributeID = 0x0011
	AttrSwitchInfo               mad.AttributeID = 0x0012
	AttrGUIDInfo                 mad.AttributeID = 0x0014
	AttrPortInfo                 mad.AttributeID = 0x0015
	AttrPKeyTable                mad.AttributeID = 0x0016
	AttrSLToVLMappingTable       mad.AttributeID = 0x0017
	AttrVLArbitrationTable       mad.AttributeID = 0x0018
	AttrLinearForwardingTable    mad.AttributeID = 0x0019
	AttrRandomForwardingTable    mad.AttributeID = 0x001A
	AttrMulticastForwardingTable mad.AttributeID = 0x001B
	AttrSMInfo                   mad.AttributeID = 0x0020
	AttrVendorDiag               mad.AttributeID = 0x0030
	AttrLEDInfo                  mad.AttributeID = 0x0031
	AttrPortInfoExtended         mad.AttributeID = 0x0033

	// AttrVendorMin is the lowest of the attributes left to vendors, which
	// reach up to 0xFFFF.
	AttrVendorMin mad.AttributeID = 0xFF00
)

// AttributeName is the name of a subnet-management attribute, or its number
// when it has none.
func AttributeName(id mad.AttributeID) string {
	switch id {
	case AttrNotice:
		return "Notice"
	case AttrNodeDescription:
		return "NodeDescription"
	case AttrNodeInfo:
		return "NodeInfo"
	case AttrSwitchInfo:
		return "SwitchInfo"
	case AttrGUIDInfo:
		return "GUIDInfo"
	case AttrPortInfo:
		return "PortInfo"
	case AttrPKeyTable:
		return "PKeyTable"
	case AttrSLToVLMappingTable:
		return "SLToVLMappingTable"
	case AttrVLArbitrationTable:
		return "VLArbitrationTable"
	case AttrLinearForwardingTable:
		return "LinearForwardingTable"
	case AttrRandomForwardingTable:
		return "RandomForwardingTable"
	case AttrMulticastForwardingTable:
		return "MulticastForwardingTable"
	case AttrSMInfo:
		return "SMInfo"
	case AttrVendorDiag:
		return "VendorDiag"
	case AttrLEDInfo:
		return "LEDInfo"
	case AttrPortInfoExtended:
		return "PortInfoExtended"
	}
	if id >= AttrVendorMin {
		return fmt.Sprintf("vendor attribute 0x%04x", uint16(id))
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(id))
}
