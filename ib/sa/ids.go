package sa

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// ClassVersion is the class version of subnet administration.
const ClassVersion uint8 = 2

// The attributes of subnet administration. ClassPortInfo is
// mad.AttrClassPortInfo.
const (
	AttrNotice                         mad.AttributeID = 0x0002
	AttrInformInfo                     mad.AttributeID = 0x0003
	AttrNodeRecord                     mad.AttributeID = 0x0011
	AttrPortInfoRecord                 mad.AttributeID = 0x0012
	AttrSLToVLMappingTableRecord       mad.AttributeID = 0x0013
	AttrSwitchInfoRecord               mad.AttributeID = 0x0014
	AttrLinearForwardingTableRecord    mad.AttributeID = 0x0015
	AttrRandomForwardingTableRecord    mad.AttributeID = 0x0016
	AttrMulticastForwardingTableRecord mad.AttributeID = 0x0017
	AttrSMInfoRecord                   mad.AttributeID = 0x0018
	AttrLinkRecord                     mad.AttributeID = 0x0020
	AttrGUIDInfoRecord                 mad.AttributeID = 0x0030
	AttrServiceRecord                  mad.AttributeID = 0x0031
	AttrPKeyTableRecord                mad.AttributeID = 0x0033
	AttrPathRecord                     mad.AttributeID = 0x0035
	AttrVLArbitrationTableRecord       mad.AttributeID = 0x0036
	AttrMCMemberRecord                 mad.AttributeID = 0x0038
	AttrTraceRecord                    mad.AttributeID = 0x0039
	AttrMultiPathRecord                mad.AttributeID = 0x003A
	AttrInformInfoRecord               mad.AttributeID = 0x00F3
)

// AttributeName is the name of a subnet-administration attribute, or its
// number when it has none.
func AttributeName(id mad.AttributeID) string {
	switch id {
	case mad.AttrClassPortInfo:
		return "ClassPortInfo"
	case AttrNotice:
		return "Notice"
	case AttrInformInfo:
		return "InformInfo"
	case AttrNodeRecord:
		return "NodeRecord"
	case AttrPortInfoRecord:
		return "PortInfoRecord"
	case AttrSLToVLMappingTableRecord:
		return "SLToVLMappingTableRecord"
	case AttrSwitchInfoRecord:
		return "SwitchInfoRecord"
	case AttrLinearForwardingTableRecord:
		return "LinearForwardingTableRecord"
	case AttrRandomForwardingTableRecord:
		return "RandomForwardingTableRecord"
	case AttrMulticastForwardingTableRecord:
		return "MulticastForwardingTableRecord"
	case AttrSMInfoRecord:
		return "SMInfoRecord"
	case AttrLinkRecord:
		return "LinkRecord"
	case AttrGUIDInfoRecord:
		return "GUIDInfoRecord"
	case AttrServiceRecord:
		return "ServiceRecord"
	case AttrPKeyTableRecord:
		return "PKeyTableRecord"
	case AttrPathRecord:
		return "PathRecord"
	case AttrVLArbitrationTableRecord:
		return "VLArbitrationTableRecord"
	case AttrMCMemberRecord:
		return "MCMemberRecord"
	case AttrTraceRecord:
		return "TraceRecord"
	case AttrMultiPathRecord:
		return "MultiPathRecord"
	case AttrInformInfoRecord:
		return "InformInfoRecord"
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(id))
}

// Status codes of subnet administration.
const (
	StatusNoResources            mad.Status = 0x0100
	StatusRequestInvalid         mad.Status = 0x0200
	StatusNoRecords              mad.Status = 0x0300
	StatusTooManyRecords         mad.Status = 0x0400 // a Get that more than one record matches
	StatusInvalidGID             mad.Status = 0x0500
	StatusInsufficientComponents mad.Status = 0x0600
	StatusDenied                 mad.Status = 0x0700
	StatusPrioritySuggested      mad.Status = 0x0800
)

// The bits of ClassPortInfo.CapabilityMask that subnet administration adds.
const (
	CapOptionalRecords      mad.ClassCapability = 1 << 8
	CapUDMulticast          mad.ClassCapability = 1 << 9
	CapMultiPath            mad.ClassCapability = 1 << 10
	CapReinit               mad.ClassCapability = 1 << 11
	CapGIDScopedMultiPath   mad.ClassCapability = 1 << 12
	CapPortInfoCapMaskMatch mad.ClassCapability = 1 << 13 // PortInfoRecordMatchCapabilities works
	CapLinkSpeedWidthPairs  mad.ClassCapability = 1 << 14
	CapPAServices           mad.ClassCapability = 1 << 15

	// Cap2SendOnlyFull is a bit of ClassPortInfo.CapabilityMask2: JoinSendOnlyFull
	// is known. Linux asks for it before it joins so.
	Cap2SendOnlyFull uint32 = 1 << 12
)

// ComponentMask tells which components of a record a query looks at: bit n is
// the component n of the record, reserved ones counted. The constants are with
// the records.
type ComponentMask uint64

// Has reports whether all components of want are in m.
func (m ComponentMask) Has(want ComponentMask) bool { return m&want == want }

// Selector says how a value of a path or group is meant.
type Selector uint8

// The selectors. SelectBest is the largest MTU or rate and the smallest
// lifetime that there is.
const (
	SelectGreater Selector = 0
	SelectLess    Selector = 1
	SelectExactly Selector = 2
	SelectBest    Selector = 3
)
