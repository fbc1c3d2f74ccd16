package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// LinearForwardingTableRecordSize is the length of LinearForwardingTableRecord in bytes.
const LinearForwardingTableRecordSize = 72

// LinearForwardingTableRecord is one block of the table of a switch.
type LinearForwardingTableRecord struct {
	LID      ib.LID                    `ib:"0,16"`
	BlockNum uint16                    `ib:"16,16"`
	Table    smp.LinearForwardingTable `ib:"64,512"`

	reserved4 uint32 `ib:"32,32"`
}

// AttrLinearForwardingTableRecord is the number of LinearForwardingTableRecord.
const AttrLinearForwardingTableRecord mad.AttributeID = 0x0015

var linearForwardingTableRecordFormat = add[LinearForwardingTableRecord](Descriptor{ID: AttrLinearForwardingTableRecord, Size: LinearForwardingTableRecordSize})

// ID is AttrLinearForwardingTableRecord.
func (*LinearForwardingTableRecord) ID() mad.AttributeID { return AttrLinearForwardingTableRecord }

// String prints the fields; reserved bits are left out.
func (r LinearForwardingTableRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads LinearForwardingTableRecordSize bytes.
func (r *LinearForwardingTableRecord) UnmarshalBinary(data []byte) error {
	return linearForwardingTableRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *LinearForwardingTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return linearForwardingTableRecordFormat.Append(b, r)
}

// The components of LinearForwardingTableRecord.
const (
	LinearForwardingTableRecordLID ComponentMask = 1 << iota
	LinearForwardingTableRecordBlockNum
)
