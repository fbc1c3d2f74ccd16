package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// VLArbitrationTableRecordSize is the length of VLArbitrationTableRecord in bytes.
const VLArbitrationTableRecordSize = 72

// VLArbitrationTableRecord is one part of the arbitration tables of a port.
type VLArbitrationTableRecord struct {
	LID           ib.LID                 `ib:"0,16"`
	OutputPortNum ib.PortNum             `ib:"16,8"`
	BlockNum      smp.VLArbPart          `ib:"24,8"`
	Table         smp.VLArbitrationTable `ib:"64,512"`

	reserved4 uint32 `ib:"32,32"`
}

// AttrVLArbitrationTableRecord is the number of VLArbitrationTableRecord.
const AttrVLArbitrationTableRecord mad.AttributeID = 0x0036

var vlArbitrationTableRecordFormat = add[VLArbitrationTableRecord](Descriptor{ID: AttrVLArbitrationTableRecord, Size: VLArbitrationTableRecordSize})

// ID is AttrVLArbitrationTableRecord.
func (*VLArbitrationTableRecord) ID() mad.AttributeID { return AttrVLArbitrationTableRecord }

// String prints the fields; reserved bits are left out.
func (r VLArbitrationTableRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads VLArbitrationTableRecordSize bytes.
func (r *VLArbitrationTableRecord) UnmarshalBinary(data []byte) error {
	return vlArbitrationTableRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *VLArbitrationTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return vlArbitrationTableRecordFormat.Append(b, r)
}

// The components of VLArbitrationTableRecord.
const (
	VLArbitrationTableRecordLID ComponentMask = 1 << iota
	VLArbitrationTableRecordOutputPortNum
	VLArbitrationTableRecordBlockNum
)
