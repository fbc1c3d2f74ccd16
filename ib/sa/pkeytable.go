package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// PKeyTableRecordSize is the length of PKeyTableRecord in bytes.
const PKeyTableRecordSize = 72

// PKeyTableRecord is one block of the partition table of a port.
type PKeyTableRecord struct {
	LID      ib.LID        `ib:"0,16"`
	BlockNum uint16        `ib:"16,16"`
	PortNum  ib.PortNum    `ib:"32,8"`
	Table    smp.PKeyTable `ib:"64,512"`

	reserved5 uint32 `ib:"40,24"`
}

// AttrPKeyTableRecord is the number of PKeyTableRecord.
const AttrPKeyTableRecord mad.AttributeID = 0x0033

var pkeyTableRecordFormat = add[PKeyTableRecord](Descriptor{ID: AttrPKeyTableRecord, Size: PKeyTableRecordSize})

// ID is AttrPKeyTableRecord.
func (*PKeyTableRecord) ID() mad.AttributeID { return AttrPKeyTableRecord }

// String prints the fields; reserved bits are left out.
func (r PKeyTableRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads PKeyTableRecordSize bytes.
func (r *PKeyTableRecord) UnmarshalBinary(data []byte) error {
	return pkeyTableRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *PKeyTableRecord) AppendBinary(b []byte) ([]byte, error) {
	return pkeyTableRecordFormat.Append(b, r)
}

// The components of PKeyTableRecord.
const (
	PKeyTableRecordLID ComponentMask = 1 << iota
	PKeyTableRecordBlockNum
	PKeyTableRecordPortNum
)
