package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// SLToVLMappingTableRecordSize is the length of SLToVLMappingTableRecord in bytes.
const SLToVLMappingTableRecordSize = 16

// SLToVLMappingTableRecord is the mapping of one pair of ports of a switch, or
// of one port of a CA or router.
type SLToVLMappingTableRecord struct {
	LID           ib.LID                 `ib:"0,16"`
	InputPortNum  ib.PortNum             `ib:"16,8"`
	OutputPortNum ib.PortNum             `ib:"24,8"`
	Table         smp.SLToVLMappingTable `ib:"64,64"`

	reserved4 uint32 `ib:"32,32"`
}

// AttrSLToVLMappingTableRecord is the number of SLToVLMappingTableRecord.
const AttrSLToVLMappingTableRecord mad.AttributeID = 0x0013

var slToVLMappingTableRecordFormat = add[SLToVLMappingTableRecord](Descriptor{ID: AttrSLToVLMappingTableRecord, Size: SLToVLMappingTableRecordSize})

// ID is AttrSLToVLMappingTableRecord.
func (*SLToVLMappingTableRecord) ID() mad.AttributeID { return AttrSLToVLMappingTableRecord }

// String prints the fields; reserved bits are left out.
func (r SLToVLMappingTableRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads SLToVLMappingTableRecordSize bytes.
func (r *SLToVLMappingTableRecord) UnmarshalBinary(data []byte) error {
	return slToVLMappingTableRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *SLToVLMappingTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return slToVLMappingTableRecordFormat.Append(b, r)
}

// The components of SLToVLMappingTableRecord.
const (
	SLToVLMappingTableRecordLID ComponentMask = 1 << iota
	SLToVLMappingTableRecordInputPortNum
	SLToVLMappingTableRecordOutputPortNum
)
