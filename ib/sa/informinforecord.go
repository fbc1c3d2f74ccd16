package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// InformInfoRecordSize is the length of InformInfoRecord in bytes.
const InformInfoRecordSize = 60

// InformInfoRecord is a subscription.
type InformInfoRecord struct {
	SubscriberGID ib.GID
	Enum          uint16 // distinguishes the subscriptions of one subscriber
	InformInfo    InformInfo

	reserved18 uint64 // 48 bits
}

// AttrInformInfoRecord is the number of InformInfoRecord.
const AttrInformInfoRecord mad.AttributeID = 0x00F3

var _ = add(Descriptor{ID: AttrInformInfoRecord, Name: "InformInfoRecord", Size: InformInfoRecordSize, New: func() Record { return new(InformInfoRecord) }})

// ID is AttrInformInfoRecord.
func (*InformInfoRecord) ID() mad.AttributeID { return AttrInformInfoRecord }

// String prints the fields; reserved bits are left out.
func (r InformInfoRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads InformInfoRecordSize bytes.
func (r *InformInfoRecord) UnmarshalBinary(data []byte) error {
	return decode(r, InformInfoRecordSize, data)
}

// AppendBinary appends the record.
func (r *InformInfoRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, InformInfoRecordSize, b)
}

func (r *InformInfoRecord) layout(c *coder) {
	c.bytes(r.SubscriberGID[:])
	number(c, "Enum", &r.Enum, 16)
	number(c, "reserved18", &r.reserved18, 48)
	r.InformInfo.layout(c)
}

// The components of InformInfoRecord.
const (
	InformInfoRecordSubscriberGID ComponentMask = 1 << iota
	InformInfoRecordEnum
	_ // reserved
	InformInfoRecordGID
	InformInfoRecordLIDRangeBegin
	InformInfoRecordLIDRangeEnd
	_ // reserved
	InformInfoRecordIsGeneric
	InformInfoRecordSubscribe
	InformInfoRecordType
	InformInfoRecordTrapNumber
	InformInfoRecordQPN
	_ // reserved
	InformInfoRecordRespTimeValue
	_ // reserved
	InformInfoRecordProducer
)
