package sa

import "github.com/ibwarden/ibwarden/ib/mad"

// ClassVersion is the class version of subnet administration.
const ClassVersion uint8 = 2

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
	Cap2SendOnlyFull mad.ClassCapability2 = 1 << 12
)

// ComponentMask says which components of a record a query looks at: bit n is
// the component n of the record, reserved ones counted. The constants are with
// the records.
type ComponentMask uint64

// Has reports whether all components of want are in m.
func (m ComponentMask) Has(want ComponentMask) bool { return m&want == want }

// Selector says how to compare a value of a path or group.
type Selector uint8

// The selectors. SelectBest is the largest MTU or rate and the smallest
// lifetime that there is.
const (
	SelectGreater Selector = 0
	SelectLess    Selector = 1
	SelectExactly Selector = 2
	SelectBest    Selector = 3
)
