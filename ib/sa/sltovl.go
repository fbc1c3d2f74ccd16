package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// SLToVLMappingTableRecordSize is the length of SLToVLMappingTableRecord in bytes.
const SLToVLMappingTableRecordSize = 16

// SLToVLMappingTableRecord is the mapping of one pair of ports of a switch, or
// of one port of a CA or router.
type SLToVLMappingTableRecord struct {
	LID           ib.LID
	InputPortNum  ib.PortNum
	OutputPortNum ib.PortNum
	Table         smp.SLToVLMappingTable

	reserved4 uint32
}

// AttrSLToVLMappingTableRecord is the number of SLToVLMappingTableRecord.
const AttrSLToVLMappingTableRecord mad.AttributeID = 0x0013

var _ = add(Descriptor{ID: AttrSLToVLMappingTableRecord, Name: "SLToVLMappingTableRecord", Size: SLToVLMappingTableRecordSize, New: func() Record { return new(SLToVLMappingTableRecord) }})

// ID is AttrSLToVLMappingTableRecord.
func (*SLToVLMappingTableRecord) ID() mad.AttributeID { return AttrSLToVLMappingTableRecord }

// String prints the fields; reserved bits are left out.
func (r SLToVLMappingTableRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads SLToVLMappingTableRecordSize bytes.
func (r *SLToVLMappingTableRecord) UnmarshalBinary(data []byte) error {
	return decode(r, SLToVLMappingTableRecordSize, data)
}

// AppendBinary appends the record.
func (r *SLToVLMappingTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, SLToVLMappingTableRecordSize, b)
}

func (r *SLToVLMappingTableRecord) layout(c *coder) {
	number(c, "LID", &r.LID, 16)
	number(c, "InputPortNum", &r.InputPortNum, 8)
	number(c, "OutputPortNum", &r.OutputPortNum, 8)
	number(c, "reserved4", &r.reserved4, 32)
	c.attribute("Table", &r.Table, smp.SLToVLMappingTableSize)
}

// The components of SLToVLMappingTableRecord.
const (
	SLToVLMappingTableRecordLID ComponentMask = 1 << iota
	SLToVLMappingTableRecordInputPortNum
	SLToVLMappingTableRecordOutputPortNum
)
