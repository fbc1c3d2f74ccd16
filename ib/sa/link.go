package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// LinkRecordSize is the length of LinkRecord in bytes.
const LinkRecordSize = 6

// LinkRecord is one direction of a link.
type LinkRecord struct {
	FromLID  ib.LID
	FromPort ib.PortNum
	ToPort   ib.PortNum
	ToLID    ib.LID
}

// AttrLinkRecord is the number of LinkRecord.
const AttrLinkRecord mad.AttributeID = 0x0020

var _ = add(Descriptor{ID: AttrLinkRecord, Name: "LinkRecord", Size: LinkRecordSize, New: func() Record { return new(LinkRecord) }})

// ID is AttrLinkRecord.
func (*LinkRecord) ID() mad.AttributeID { return AttrLinkRecord }

// String prints the fields; reserved bits are left out.
func (r LinkRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads LinkRecordSize bytes.
func (r *LinkRecord) UnmarshalBinary(data []byte) error { return decode(r, LinkRecordSize, data) }

// AppendBinary appends the record.
func (r *LinkRecord) AppendBinary(b []byte) ([]byte, error) { return encode(r, LinkRecordSize, b) }

func (r *LinkRecord) layout(c *coder) {
	number(c, "FromLID", &r.FromLID, 16)
	number(c, "FromPort", &r.FromPort, 8)
	number(c, "ToPort", &r.ToPort, 8)
	number(c, "ToLID", &r.ToLID, 16)
}

// The components of LinkRecord.
const (
	LinkRecordFromLID ComponentMask = 1 << iota
	LinkRecordFromPort
	LinkRecordToPort
	LinkRecordToLID
)
