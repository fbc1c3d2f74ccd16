package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// MulticastForwardingTableRecordSize is the length of MulticastForwardingTableRecord in bytes.
const MulticastForwardingTableRecordSize = 72

// MulticastForwardingTableRecord is one block of the table of a switch, for 16
// of its ports.
type MulticastForwardingTableRecord struct {
	LID      ib.LID
	Position uint8  // 4 bits
	BlockNum uint16 // 9 bits
	Table    smp.MulticastForwardingTable

	reserved2 uint8 // 3 bits
	reserved4 uint32
}

// AttrMulticastForwardingTableRecord is the number of MulticastForwardingTableRecord.
const AttrMulticastForwardingTableRecord mad.AttributeID = 0x0017

var _ = add(Descriptor{ID: AttrMulticastForwardingTableRecord, Name: "MulticastForwardingTableRecord", Size: MulticastForwardingTableRecordSize, New: func() Record { return new(MulticastForwardingTableRecord) }})

// ID is AttrMulticastForwardingTableRecord.
func (*MulticastForwardingTableRecord) ID() mad.AttributeID {
	return AttrMulticastForwardingTableRecord
}

// String prints the fields; reserved bits are left out.
func (r MulticastForwardingTableRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads MulticastForwardingTableRecordSize bytes.
func (r *MulticastForwardingTableRecord) UnmarshalBinary(data []byte) error {
	return decode(r, MulticastForwardingTableRecordSize, data)
}

// AppendBinary appends the record.
func (r *MulticastForwardingTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, MulticastForwardingTableRecordSize, b)
}

func (r *MulticastForwardingTableRecord) layout(c *coder) {
	number(c, "LID", &r.LID, 16)
	number(c, "Position", &r.Position, 4)
	number(c, "reserved2", &r.reserved2, 3)
	number(c, "BlockNum", &r.BlockNum, 9)
	number(c, "reserved4", &r.reserved4, 32)
	c.attribute("Table", &r.Table, mad.DataSize)
}

// The components of MulticastForwardingTableRecord.
const (
	MulticastForwardingTableRecordLID ComponentMask = 1 << iota
	MulticastForwardingTableRecordPosition
	_ // reserved
	MulticastForwardingTableRecordBlockNum
	_ // reserved
)
