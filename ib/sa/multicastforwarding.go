package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// MulticastForwardingTableRecordSize is the length of MulticastForwardingTableRecord in bytes.
const MulticastForwardingTableRecordSize = 72

// MulticastForwardingTableRecord is one block of the table of a switch, for 16
// of its ports.
type MulticastForwardingTableRecord struct {
	LID      ib.LID                       `ib:"0,16"`
	Position uint8                        `ib:"16,4"`
	BlockNum uint16                       `ib:"23,9"`
	Table    smp.MulticastForwardingTable `ib:"64,512"`

	reserved2 uint8  `ib:"20,3"`
	reserved4 uint32 `ib:"32,32"`
}

// AttrMulticastForwardingTableRecord is the number of MulticastForwardingTableRecord.
const AttrMulticastForwardingTableRecord mad.AttributeID = 0x0017

var multicastForwardingTableRecordFormat = add[MulticastForwardingTableRecord](Descriptor{ID: AttrMulticastForwardingTableRecord, Size: MulticastForwardingTableRecordSize})

// ID is AttrMulticastForwardingTableRecord.
func (*MulticastForwardingTableRecord) ID() mad.AttributeID {
	return AttrMulticastForwardingTableRecord
}

// String prints the fields; reserved bits are left out.
func (r MulticastForwardingTableRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads MulticastForwardingTableRecordSize bytes.
func (r *MulticastForwardingTableRecord) UnmarshalBinary(data []byte) error {
	return multicastForwardingTableRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *MulticastForwardingTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return multicastForwardingTableRecordFormat.Append(b, r)
}

// The components of MulticastForwardingTableRecord.
const (
	MulticastForwardingTableRecordLID ComponentMask = 1 << iota
	MulticastForwardingTableRecordPosition
	_ // reserved
	MulticastForwardingTableRecordBlockNum
	_ // reserved
)
