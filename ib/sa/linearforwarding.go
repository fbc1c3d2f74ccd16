package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// LinearForwardingTableRecordSize is the length of LinearForwardingTableRecord in bytes.
const LinearForwardingTableRecordSize = 72

// LinearForwardingTableRecord is one block of the table of a switch.
type LinearForwardingTableRecord struct {
	LID      ib.LID
	BlockNum uint16
	Table    smp.LinearForwardingTable

	reserved4 uint32
}

// AttrLinearForwardingTableRecord is the number of LinearForwardingTableRecord.
const AttrLinearForwardingTableRecord mad.AttributeID = 0x0015

var _ = add(Descriptor{ID: AttrLinearForwardingTableRecord, Name: "LinearForwardingTableRecord", Size: LinearForwardingTableRecordSize, New: func() Record { return new(LinearForwardingTableRecord) }})

// ID is AttrLinearForwardingTableRecord.
func (*LinearForwardingTableRecord) ID() mad.AttributeID { return AttrLinearForwardingTableRecord }

// String prints the fields; reserved bits are left out.
func (r LinearForwardingTableRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads LinearForwardingTableRecordSize bytes.
func (r *LinearForwardingTableRecord) UnmarshalBinary(data []byte) error {
	return decode(r, LinearForwardingTableRecordSize, data)
}

// AppendBinary appends the record.
func (r *LinearForwardingTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, LinearForwardingTableRecordSize, b)
}

func (r *LinearForwardingTableRecord) layout(c *coder) {
	number(c, "LID", &r.LID, 16)
	number(c, "BlockNum", &r.BlockNum, 16)
	number(c, "reserved4", &r.reserved4, 32)
	c.attribute("Table", &r.Table, mad.DataSize)
}

// The components of LinearForwardingTableRecord.
const (
	LinearForwardingTableRecordLID ComponentMask = 1 << iota
	LinearForwardingTableRecordBlockNum
)
