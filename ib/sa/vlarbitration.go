package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// VLArbitrationTableRecordSize is the length of VLArbitrationTableRecord in bytes.
const VLArbitrationTableRecordSize = 72

// VLArbitrationTableRecord is one part of the arbitration tables of a port.
type VLArbitrationTableRecord struct {
	LID           ib.LID
	OutputPortNum ib.PortNum
	BlockNum      smp.VLArbPart // 8 bits
	Table         smp.VLArbitrationTable

	reserved4 uint32
}

// AttrVLArbitrationTableRecord is the number of VLArbitrationTableRecord.
const AttrVLArbitrationTableRecord mad.AttributeID = 0x0036

var _ = add(Descriptor{ID: AttrVLArbitrationTableRecord, Name: "VLArbitrationTableRecord", Size: VLArbitrationTableRecordSize, New: func() Record { return new(VLArbitrationTableRecord) }})

// ID is AttrVLArbitrationTableRecord.
func (*VLArbitrationTableRecord) ID() mad.AttributeID { return AttrVLArbitrationTableRecord }

// String prints the fields; reserved bits are left out.
func (r VLArbitrationTableRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads VLArbitrationTableRecordSize bytes.
func (r *VLArbitrationTableRecord) UnmarshalBinary(data []byte) error {
	return decode(r, VLArbitrationTableRecordSize, data)
}

// AppendBinary appends the record.
func (r *VLArbitrationTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, VLArbitrationTableRecordSize, b)
}

func (r *VLArbitrationTableRecord) layout(c *coder) {
	number(c, "LID", &r.LID, 16)
	number(c, "OutputPortNum", &r.OutputPortNum, 8)
	number(c, "BlockNum", &r.BlockNum, 8)
	number(c, "reserved4", &r.reserved4, 32)
	c.attribute("Table", &r.Table, mad.DataSize)
}

// The components of VLArbitrationTableRecord.
const (
	VLArbitrationTableRecordLID ComponentMask = 1 << iota
	VLArbitrationTableRecordOutputPortNum
	VLArbitrationTableRecordBlockNum
)
