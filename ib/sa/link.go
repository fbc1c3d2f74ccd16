package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// LinkRecordSize is the length of LinkRecord in octets.
const LinkRecordSize = 6

// LinkRecord is one direction of a link.
type LinkRecord struct {
	FromLID  ib.LID
	FromPort ib.PortNum
	ToPort   ib.PortNum
	ToLID    ib.LID
}

// ID is AttrLinkRecord.
func (*LinkRecord) ID() mad.AttributeID { return AttrLinkRecord }

// UnmarshalBinary reads LinkRecordSize octets.
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
