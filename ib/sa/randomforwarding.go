package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// RandomForwardingTableRecordSize is the length of RandomForwardingTableRecord in bytes.
const RandomForwardingTableRecordSize = 72

// RandomForwardingTableRecord is one block of the table of a switch.
type RandomForwardingTableRecord struct {
	LID      ib.LID
	BlockNum uint16
	Table    smp.RandomForwardingTable

	reserved4 uint32
}

// AttrRandomForwardingTableRecord is the number of RandomForwardingTableRecord.
const AttrRandomForwardingTableRecord mad.AttributeID = 0x0016

var _ = add(Descriptor{ID: AttrRandomForwardingTableRecord, Name: "RandomForwardingTableRecord", Size: RandomForwardingTableRecordSize, New: func() Record { return new(RandomForwardingTableRecord) }})

// ID is AttrRandomForwardingTableRecord.
func (*RandomForwardingTableRecord) ID() mad.AttributeID { return AttrRandomForwardingTableRecord }

// String prints the fields; reserved bits are left out.
func (r RandomForwardingTableRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads RandomForwardingTableRecordSize bytes.
func (r *RandomForwardingTableRecord) UnmarshalBinary(data []byte) error {
	return decode(r, RandomForwardingTableRecordSize, data)
}

// AppendBinary appends the record.
func (r *RandomForwardingTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, RandomForwardingTableRecordSize, b)
}

func (r *RandomForwardingTableRecord) layout(c *coder) {
	number(c, "LID", &r.LID, 16)
	number(c, "BlockNum", &r.BlockNum, 16)
	number(c, "reserved4", &r.reserved4, 32)
	c.attribute("Table", &r.Table, mad.DataSize)
}

// The components of RandomForwardingTableRecord.
const (
	RandomForwardingTableRecordLID ComponentMask = 1 << iota
	RandomForwardingTableRecordBlockNum
)
