package mad

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
)

// AttrClassPortInfo is the attribute that general management classes have in
// common.
const AttrClassPortInfo AttributeID = 0x0001

// ClassPortInfoSize is the length of ClassPortInfo in bytes.
const ClassPortInfoSize = 72

// ClassCapability is ClassPortInfo.CapabilityMask: what the agent of a class
// can do. Bits from 8 up have a meaning of their own in each class.
type ClassCapability uint16

// The bits of ClassCapability that all classes share.
const (
	ClassCapTraps           ClassCapability = 1 << 0 // it sends traps
	ClassCapNotice          ClassCapability = 1 << 1 // it answers Get and Set of Notice
	ClassCapCapabilityMask2 ClassCapability = 1 << 2 // CapabilityMask2 is valid
)

// Has reports whether all bits of want are set.
func (c ClassCapability) Has(want ClassCapability) bool { return c&want == want }

// ClassCapability2 is ClassPortInfo.CapabilityMask2, of 27 bits. All have a meaning of
// their own in each class, and none unless ClassCapCapabilityMask2 is set.
type ClassCapability2 uint32

// Has reports whether all bits of want are set.
func (c ClassCapability2) Has(want ClassCapability2) bool { return c&want == want }

// ClassAddress is where datagrams of a class are to go.
type ClassAddress struct {
	GID  ib.GID  `ib:"0,128"`
	TC   uint8   `ib:"128,8"` // traffic class
	SL   ib.SL   `ib:"136,4"`
	FL   uint32  `ib:"140,20"` // flow label, 20 bits
	LID  ib.LID  `ib:"160,16"` // 0: by GID
	PKey ib.PKey `ib:"176,16"`
	HL   uint8   `ib:"192,8"` // hop limit; reserved in ClassPortInfo.Redirect
	QP   ib.QPN  `ib:"200,24"`
	QKey ib.QKey `ib:"224,32"`
}

// ClassPortInfo describes the agent of a management class. All but Trap is read
// only.
type ClassPortInfo struct {
	BaseVersion     uint8            `ib:"0,8"`
	ClassVersion    uint8            `ib:"8,8"`
	CapabilityMask  ClassCapability  `ib:"16,16"`
	CapabilityMask2 ClassCapability2 `ib:"32,27"`
	RespTimeValue   ib.TimeValue     `ib:"59,5"`    // longest time to a response
	Redirect        ClassAddress     `ib:"64,256"`  // of the agent that answers in its place; zero for itself
	Trap            ClassAddress     `ib:"320,256"` // of the receiver of the agent's traps
}

var classPortInfoFormat = layout.Of[*ClassPortInfo]("ClassPortInfo", ClassPortInfoSize)

// ID is AttrClassPortInfo.
func (*ClassPortInfo) ID() AttributeID { return AttrClassPortInfo }

// UnmarshalBinary reads the first ClassPortInfoSize bytes of data.
func (c *ClassPortInfo) UnmarshalBinary(data []byte) error {
	return classPortInfoFormat.Unmarshal(c, data)
}

// AppendBinary appends the ClassPortInfoSize bytes of the attribute to b. It
// fails for a value that does not fit its bits.
func (c *ClassPortInfo) AppendBinary(b []byte) ([]byte, error) {
	return classPortInfoFormat.Append(b, c)
}
