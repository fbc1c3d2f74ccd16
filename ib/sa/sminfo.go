package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// SMInfoRecordSize is the length of SMInfoRecord in bytes.
const SMInfoRecordSize = 25

// SMInfoRecord is a subnet manager: the LID of its port and its SMInfo.
type SMInfoRecord struct {
	LID    ib.LID
	SMInfo smp.SMInfo

	reserved2 uint16
}

// AttrSMInfoRecord is the number of SMInfoRecord.
const AttrSMInfoRecord mad.AttributeID = 0x0018

var _ = add(Descriptor{ID: AttrSMInfoRecord, Name: "SMInfoRecord", Size: SMInfoRecordSize, New: func() Record { return new(SMInfoRecord) }})

// ID is AttrSMInfoRecord.
func (*SMInfoRecord) ID() mad.AttributeID { return AttrSMInfoRecord }

// String prints the fields; reserved bits are left out.
func (r SMInfoRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads SMInfoRecordSize bytes.
func (r *SMInfoRecord) UnmarshalBinary(data []byte) error { return decode(r, SMInfoRecordSize, data) }

// AppendBinary appends the record.
func (r *SMInfoRecord) AppendBinary(b []byte) ([]byte, error) { return encode(r, SMInfoRecordSize, b) }

func (r *SMInfoRecord) layout(c *coder) {
	number(c, "LID", &r.LID, 16)
	number(c, "reserved2", &r.reserved2, 16)
	c.attribute("SMInfo", &r.SMInfo, smp.SMInfoSize)
}

// The components of SMInfoRecord.
const (
	SMInfoRecordLID ComponentMask = 1 << iota
	_                             // reserved
	SMInfoRecordGUID
	SMInfoRecordSMKey
	SMInfoRecordActCount
	SMInfoRecordPriority
	SMInfoRecordSMState
)
