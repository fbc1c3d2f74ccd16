package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// InformInfoRecordSize is the length of InformInfoRecord in bytes.
const InformInfoRecordSize = 60

// InformInfoRecord is a subscription.
type InformInfoRecord struct {
	SubscriberGID ib.GID     `ib:"0,128"`
	Enum          uint16     `ib:"128,16"` // distinguishes the subscriptions of one subscriber
	InformInfo    InformInfo `ib:"192,288"`

	reserved18 uint64 `ib:"144,48"`
}

// AttrInformInfoRecord is the number of InformInfoRecord.
const AttrInformInfoRecord mad.AttributeID = 0x00F3

var informInfoRecordFormat = add[InformInfoRecord](Descriptor{ID: AttrInformInfoRecord, Size: InformInfoRecordSize})

// ID is AttrInformInfoRecord.
func (*InformInfoRecord) ID() mad.AttributeID { return AttrInformInfoRecord }

// String prints the fields; reserved bits are left out.
func (r InformInfoRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads InformInfoRecordSize bytes.
func (r *InformInfoRecord) UnmarshalBinary(data []byte) error {
	return informInfoRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *InformInfoRecord) AppendBinary(b []byte) ([]byte, error) {
	return informInfoRecordFormat.Append(b, r)
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
