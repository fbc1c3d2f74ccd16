package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// PKeyTableRecordSize is the length of PKeyTableRecord in bytes.
const PKeyTableRecordSize = 72

// PKeyTableRecord is one block of the partition table of a port.
type PKeyTableRecord struct {
	LID      ib.LID
	BlockNum uint16
	PortNum  ib.PortNum
	Table    smp.PKeyTable

	reserved5 uint32 // 24 bits
}

// AttrPKeyTableRecord is the number of PKeyTableRecord.
const AttrPKeyTableRecord mad.AttributeID = 0x0033

var _ = add(Descriptor{ID: AttrPKeyTableRecord, Name: "PKeyTableRecord", Size: PKeyTableRecordSize, New: func() Record { return new(PKeyTableRecord) }})

// ID is AttrPKeyTableRecord.
func (*PKeyTableRecord) ID() mad.AttributeID { return AttrPKeyTableRecord }

// String prints the fields; reserved bits are left out.
func (r PKeyTableRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads PKeyTableRecordSize bytes.
func (r *PKeyTableRecord) UnmarshalBinary(data []byte) error {
	return decode(r, PKeyTableRecordSize, data)
}

// AppendBinary appends the record.
func (r *PKeyTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, PKeyTableRecordSize, b)
}

func (r *PKeyTableRecord) layout(c *coder) {
	number(c, "LID", &r.LID, 16)
	number(c, "BlockNum", &r.BlockNum, 16)
	number(c, "PortNum", &r.PortNum, 8)
	number(c, "reserved5", &r.reserved5, 24)
	c.attribute("Table", &r.Table, mad.DataSize)
}

// The components of PKeyTableRecord.
const (
	PKeyTableRecordLID ComponentMask = 1 << iota
	PKeyTableRecordBlockNum
	PKeyTableRecordPortNum
)
