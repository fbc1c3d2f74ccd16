package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// GUIDInfoRecordSize is the length of GUIDInfoRecord in bytes.
const GUIDInfoRecordSize = 72

// GUIDInfoRecord is one block of the GUIDs of a port.
type GUIDInfoRecord struct {
	LID      ib.LID       `ib:"0,16"`
	BlockNum uint8        `ib:"16,8"`
	Table    smp.GUIDInfo `ib:"64,512"`

	reserved3 uint64 `ib:"24,40"`
}

// AttrGUIDInfoRecord is the number of GUIDInfoRecord.
const AttrGUIDInfoRecord mad.AttributeID = 0x0030

var guidInfoRecordFormat = add[GUIDInfoRecord](Descriptor{ID: AttrGUIDInfoRecord, Size: GUIDInfoRecordSize})

// ID is AttrGUIDInfoRecord.
func (*GUIDInfoRecord) ID() mad.AttributeID { return AttrGUIDInfoRecord }

// String prints the fields; reserved bits are left out.
func (r GUIDInfoRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads GUIDInfoRecordSize bytes.
func (r *GUIDInfoRecord) UnmarshalBinary(data []byte) error {
	return guidInfoRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *GUIDInfoRecord) AppendBinary(b []byte) ([]byte, error) {
	return guidInfoRecordFormat.Append(b, r)
}

// The components of GUIDInfoRecord.
const (
	GUIDInfoRecordLID ComponentMask = 1 << iota
	GUIDInfoRecordBlockNum
	_ // reserved
	_ // reserved
	GUIDInfoRecordGUID0
	GUIDInfoRecordGUID1
	GUIDInfoRecordGUID2
	GUIDInfoRecordGUID3
	GUIDInfoRecordGUID4
	GUIDInfoRecordGUID5
	GUIDInfoRecordGUID6
	GUIDInfoRecordGUID7
)
