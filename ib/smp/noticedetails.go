package smp

import (
	"reflect"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// spareDetails holds the bits of Notice.Details that no field covers.
type spareDetails [NoticeDetailsSize]byte

// detailsOf is the layout of what a P points to. Unmarshal reads exactly NoticeDetailsSize bytes.
func detailsOf[P any]() *layout.Layout[P] {
	return layout.Of[P](reflect.TypeFor[P]().Elem().Name(), NoticeDetailsSize).From(NoticeDetailsSize)
}

// GIDDetails belong to traps 64 to 67: the GID of a port, or of a multicast
// group, that came or went.
type GIDDetails struct {
	GID ib.GID `ib:"48,128"`

	spare spareDetails `ib:"spare"`
}

var gidDetails = detailsOf[*GIDDetails]()

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *GIDDetails) UnmarshalBinary(data []byte) error { return gidDetails.Unmarshal(d, data) }

// Encode writes the details; it cannot fail.
func (d *GIDDetails) Encode(dst *[NoticeDetailsSize]byte) error { return gidDetails.Encode(d, dst[:]) }

// PathDetails belong to traps 68 and 69. The path record that follows the two
// fields is kept, but not read.
type PathDetails struct {
	ComponentMask uint64 `ib:"0,64"`
	WaitForRepath bool   `ib:"64,1"`

	spare spareDetails `ib:"spare"`
}

var pathDetails = detailsOf[*PathDetails]()

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *PathDetails) UnmarshalBinary(data []byte) error { return pathDetails.Unmarshal(d, data) }

// Encode writes the details; it cannot fail.
func (d *PathDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	return pathDetails.Encode(d, dst[:])
}

// LinkStateDetails belong to trap 128: the switch of which some port came up
// or went down.
type LinkStateDetails struct {
	LID ib.LID `ib:"0,16"`

	spare spareDetails `ib:"spare"`
}

var linkStateDetails = detailsOf[*LinkStateDetails]()

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *LinkStateDetails) UnmarshalBinary(data []byte) error {
	return linkStateDetails.Unmarshal(d, data)
}

// Encode writes the details; it cannot fail.
func (d *LinkStateDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	return linkStateDetails.Encode(d, dst[:])
}

// PortDetails belong to traps 129 to 131: the port that is in trouble.
type PortDetails struct {
	LID  ib.LID     `ib:"16,16"`
	Port ib.PortNum `ib:"32,8"`

	spare spareDetails `ib:"spare"`
}

var portDetails = detailsOf[*PortDetails]()

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *PortDetails) UnmarshalBinary(data []byte) error { return portDetails.Unmarshal(d, data) }

// Encode writes the details; it cannot fail.
func (d *PortDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	return portDetails.Encode(d, dst[:])
}

// LocalChangeDetails belong to trap 144: what changed at a port.
type LocalChangeDetails struct {
	LID               ib.LID          `ib:"16,16"`
	OtherLocalChanges bool            `ib:"47,1"` // the Change fields are valid
	CapabilityMask    CapabilityMask  `ib:"48,32"`
	CapabilityMask2   CapabilityMask2 `ib:"96,16"`

	CapabilityMask2Change  bool `ib:"90,1"`
	HierarchyInfoChange    bool `ib:"91,1"`
	SMPriorityChange       bool `ib:"92,1"`
	LinkSpeedEnabledChange bool `ib:"93,1"`
	LinkWidthEnabledChange bool `ib:"94,1"`
	NodeDescriptionChange  bool `ib:"95,1"`

	spare spareDetails `ib:"spare"`
}

var localChangeDetails = detailsOf[*LocalChangeDetails]()

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *LocalChangeDetails) UnmarshalBinary(data []byte) error {
	return localChangeDetails.Unmarshal(d, data)
}

// Encode writes the details; it cannot fail.
func (d *LocalChangeDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	return localChangeDetails.Encode(d, dst[:])
}

// SystemImageGUIDDetails belong to trap 145.
type SystemImageGUIDDetails struct {
	LID             ib.LID `ib:"16,16"`
	SystemImageGUID uint64 `ib:"48,64"`

	spare spareDetails `ib:"spare"`
}

var systemImageGUIDDetails = detailsOf[*SystemImageGUIDDetails]()

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *SystemImageGUIDDetails) UnmarshalBinary(data []byte) error {
	return systemImageGUIDDetails.Unmarshal(d, data)
}

// Encode writes the details; it cannot fail.
func (d *SystemImageGUIDDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	return systemImageGUIDDetails.Encode(d, dst[:])
}

// NoticeReturnPathSize is the length of BadMKeyDetails.DRNoticeReturnPath.
const NoticeReturnPathSize = 30

// BadMKeyDetails belong to trap 256: the packet whose M_Key was wrong.
type BadMKeyDetails struct {
	LID               ib.LID          `ib:"16,16"` // where the packet came from
	DrSLID            ib.LID          `ib:"32,16"` // directed route only
	Method            mad.Method      `ib:"48,8"`
	AttributeID       mad.AttributeID `ib:"64,16"`
	AttributeModifier uint32          `ib:"80,32"`
	MKey              ib.MKey         `ib:"112,64"` // the wrong one
	DRNotice          bool            `ib:"184,1"`  // the packet was directed route
	DRPathTruncated   bool            `ib:"185,1"`  // DRNoticeReturnPath is not the whole path
	DRHopCount        uint8           `ib:"186,6"`
	// DRNoticeReturnPath is the beginning of the packet's ReturnPath.
	DRNoticeReturnPath [NoticeReturnPathSize]byte `ib:"192,240"`

	spare spareDetails `ib:"spare"`
}

var badMKeyDetails = detailsOf[*BadMKeyDetails]()

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *BadMKeyDetails) UnmarshalBinary(data []byte) error { return badMKeyDetails.Unmarshal(d, data) }

// Encode writes the details.
func (d *BadMKeyDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	return badMKeyDetails.Encode(d, dst[:])
}

// BadKeyDetails belong to traps 257 and 258: the packet whose P_Key or Q_Key
// was wrong. Fields in 1 are of its source, fields in 2 of its destination;
// the GIDs are zero when it had no global route header.
type BadKeyDetails struct {
	LID1 ib.LID `ib:"16,16"`
	LID2 ib.LID `ib:"32,16"`
	Key  uint32 `ib:"48,32"` // a P_Key is in the low 16 bits
	SL   ib.SL  `ib:"80,4"`
	QP1  ib.QPN `ib:"88,24"`
	QP2  ib.QPN `ib:"120,24"`
	GID1 ib.GID `ib:"144,128"`
	GID2 ib.GID `ib:"272,128"`

	spare spareDetails `ib:"spare"`
}

var badKeyDetails = detailsOf[*BadKeyDetails]()

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *BadKeyDetails) UnmarshalBinary(data []byte) error { return badKeyDetails.Unmarshal(d, data) }

// Encode writes the details.
func (d *BadKeyDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	return badKeyDetails.Encode(d, dst[:])
}

// SwitchBadPKeyDetails belong to trap 259: the packet whose P_Key a switch
// port refused. Fields in 1 are of its source, fields in 2 of its destination.
type SwitchBadPKeyDetails struct {
	DataValid uint16     `ib:"0,16"` // which of the fields from LID1 to GID2 are filled
	LID1      ib.LID     `ib:"16,16"`
	LID2      ib.LID     `ib:"32,16"`
	PKey      ib.PKey    `ib:"48,16"`
	SL        ib.SL      `ib:"64,4"`
	QP1       ib.QPN     `ib:"72,24"`
	QP2       ib.QPN     `ib:"104,24"`
	GID1      ib.GID     `ib:"128,128"`
	GID2      ib.GID     `ib:"256,128"`
	SwitchLID ib.LID     `ib:"384,16"`
	Port      ib.PortNum `ib:"400,8"`

	spare spareDetails `ib:"spare"`
}

var switchBadPKeyDetails = detailsOf[*SwitchBadPKeyDetails]()

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *SwitchBadPKeyDetails) UnmarshalBinary(data []byte) error {
	return switchBadPKeyDetails.Unmarshal(d, data)
}

// Encode writes the details.
func (d *SwitchBadPKeyDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	return switchBadPKeyDetails.Encode(d, dst[:])
}
