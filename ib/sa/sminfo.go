package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// SMInfoRecordSize is the length of SMInfoRecord in bytes.
const SMInfoRecordSize = 25

// SMInfoRecord is a subnet manager: the LID of its port and its SMInfo.
type SMInfoRecord struct {
	LID    ib.LID     `ib:"0,16"`
	SMInfo smp.SMInfo `ib:"32,168"`

	reserved2 uint16 `ib:"16,16"`
}

// AttrSMInfoRecord is the number of SMInfoRecord.
const AttrSMInfoRecord mad.AttributeID = 0x0018

var smInfoRecordFormat = add[SMInfoRecord](Descriptor{ID: AttrSMInfoRecord, Size: SMInfoRecordSize})

// ID is AttrSMInfoRecord.
func (*SMInfoRecord) ID() mad.AttributeID { return AttrSMInfoRecord }

// String prints the fields; reserved bits are left out.
func (r SMInfoRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads SMInfoRecordSize bytes.
func (r *SMInfoRecord) UnmarshalBinary(data []byte) error {
	return smInfoRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *SMInfoRecord) AppendBinary(b []byte) ([]byte, error) {
	return smInfoRecordFormat.Append(b, r)
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
