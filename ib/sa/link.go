package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// LinkRecordSize is the length of LinkRecord in bytes.
const LinkRecordSize = 6

// LinkRecord is one direction of a link.
type LinkRecord struct {
	FromLID  ib.LID     `ib:"0,16"`
	FromPort ib.PortNum `ib:"16,8"`
	ToPort   ib.PortNum `ib:"24,8"`
	ToLID    ib.LID     `ib:"32,16"`
}

// AttrLinkRecord is the number of LinkRecord.
const AttrLinkRecord mad.AttributeID = 0x0020

var linkRecordFormat = add[LinkRecord](Descriptor{ID: AttrLinkRecord, Size: LinkRecordSize})

// ID is AttrLinkRecord.
func (*LinkRecord) ID() mad.AttributeID { return AttrLinkRecord }

// String prints the fields; reserved bits are left out.
func (r LinkRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads LinkRecordSize bytes.
func (r *LinkRecord) UnmarshalBinary(data []byte) error { return linkRecordFormat.Unmarshal(r, data) }

// AppendBinary appends the record.
func (r *LinkRecord) AppendBinary(b []byte) ([]byte, error) {
	return linkRecordFormat.Append(b, r)
}

// The components of LinkRecord.
const (
	LinkRecordFromLID ComponentMask = 1 << iota
	LinkRecordFromPort
	LinkRecordToPort
	LinkRecordToLID
)
