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

var attributeNames = map[mad.AttributeID]string{
	AttrNotice:                   "Notice",
	AttrNodeDescription:          "NodeDescription",
	AttrNodeInfo:                 "NodeInfo",
	AttrSwitchInfo:               "SwitchInfo",
	AttrGUIDInfo:                 "GUIDInfo",
	AttrPortInfo:                 "PortInfo",
	AttrPKeyTable:                "PKeyTable",
	AttrSLToVLMappingTable:       "SLToVLMappingTable",
	AttrVLArbitrationTable:       "VLArbitrationTable",
	AttrLinearForwardingTable:    "LinearForwardingTable",
	AttrRandomForwardingTable:    "RandomForwardingTable",
	AttrMulticastForwardingTable: "MulticastForwardingTable",
	AttrSMInfo:                   "SMInfo",
	AttrVendorDiag:               "VendorDiag",
	AttrLEDInfo:                  "LEDInfo",
	AttrPortInfoExtended:         "PortInfoExtended",
}

// AttributeName is the name of a subnet-management attribute, or its number
// when it has none.
func AttributeName(id mad.AttributeID) string {
	if name, ok := attributeNames[id]; ok {
		return name
	}
	if id >= AttrVendorMin {
		return fmt.Sprintf("vendor attribute 0x%04x", uint16(id))
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(id))
}

// ID is the number of the attribute; the same for each type below.
func (*Notice) ID() mad.AttributeID                   { return AttrNotice }
func (*NodeDescription) ID() mad.AttributeID          { return AttrNodeDescription }
func (*NodeInfo) ID() mad.AttributeID                 { return AttrNodeInfo }
func (*SwitchInfo) ID() mad.AttributeID               { return AttrSwitchInfo }
func (*GUIDInfo) ID() mad.AttributeID                 { return AttrGUIDInfo }
func (*PortInfo) ID() mad.AttributeID                 { return AttrPortInfo }
func (*PKeyTable) ID() mad.AttributeID                { return AttrPKeyTable }
func (*SLToVLMappingTable) ID() mad.AttributeID       { return AttrSLToVLMappingTable }
func (*VLArbitrationTable) ID() mad.AttributeID       { return AttrVLArbitrationTable }
func (*LinearForwardingTable) ID() mad.AttributeID    { return AttrLinearForwardingTable }
func (*RandomForwardingTable) ID() mad.AttributeID    { return AttrRandomForwardingTable }
func (*MulticastForwardingTable) ID() mad.AttributeID { return AttrMulticastForwardingTable }
func (*SMInfo) ID() mad.AttributeID                   { return AttrSMInfo }
func (*VendorDiag) ID() mad.AttributeID               { return AttrVendorDiag }
func (*LEDInfo) ID() mad.AttributeID                  { return AttrLEDInfo }
func (*PortInfoExtended) ID() mad.AttributeID         { return AttrPortInfoExtended }
