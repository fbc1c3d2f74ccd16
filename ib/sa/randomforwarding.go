package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// RandomForwardingTableRecordSize is the length of RandomForwardingTableRecord in bytes.
const RandomForwardingTableRecordSize = 72

// RandomForwardingTableRecord is one block of the table of a switch.
type RandomForwardingTableRecord struct {
	LID      ib.LID                    `ib:"0,16"`
	BlockNum uint16                    `ib:"16,16"`
	Table    smp.RandomForwardingTable `ib:"64,512"`

	reserved4 uint32 `ib:"32,32"`
}

// AttrRandomForwardingTableRecord is the number of RandomForwardingTableRecord.
const AttrRandomForwardingTableRecord mad.AttributeID = 0x0016

var randomForwardingTableRecordFormat = add[RandomForwardingTableRecord](Descriptor{ID: AttrRandomForwardingTableRecord, Size: RandomForwardingTableRecordSize})

// ID is AttrRandomForwardingTableRecord.
func (*RandomForwardingTableRecord) ID() mad.AttributeID { return AttrRandomForwardingTableRecord }

// String prints the fields; reserved bits are left out.
func (r RandomForwardingTableRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads RandomForwardingTableRecordSize bytes.
func (r *RandomForwardingTableRecord) UnmarshalBinary(data []byte) error {
	return randomForwardingTableRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *RandomForwardingTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return randomForwardingTableRecordFormat.Append(b, r)
}

// The components of RandomForwardingTableRecord.
const (
	RandomForwardingTableRecordLID ComponentMask = 1 << iota
	RandomForwardingTableRecordBlockNum
)
