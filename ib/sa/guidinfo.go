package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// GUIDInfoRecordSize is the length of GUIDInfoRecord in bytes.
const GUIDInfoRecordSize = 72

// GUIDInfoRecord is one block of the GUIDs of a port.
type GUIDInfoRecord struct {
	LID      ib.LID
	BlockNum uint8
	Table    smp.GUIDInfo

	reserved3 uint64 // 40 bits
}

// AttrGUIDInfoRecord is the number of GUIDInfoRecord.
const AttrGUIDInfoRecord mad.AttributeID = 0x0030

var _ = add(Descriptor{ID: AttrGUIDInfoRecord, Name: "GUIDInfoRecord", Size: GUIDInfoRecordSize, New: func() Record { return new(GUIDInfoRecord) }})

// ID is AttrGUIDInfoRecord.
func (*GUIDInfoRecord) ID() mad.AttributeID { return AttrGUIDInfoRecord }

// String prints the fields; reserved bits are left out.
func (r GUIDInfoRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads GUIDInfoRecordSize bytes.
func (r *GUIDInfoRecord) UnmarshalBinary(data []byte) error {
	return decode(r, GUIDInfoRecordSize, data)
}

// AppendBinary appends the record.
func (r *GUIDInfoRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, GUIDInfoRecordSize, b)
}

func (r *GUIDInfoRecord) layout(c *coder) {
	number(c, "LID", &r.LID, 16)
	number(c, "BlockNum", &r.BlockNum, 8)
	number(c, "reserved3", &r.reserved3, 40)
	c.attribute("Table", &r.Table, mad.DataSize)
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
