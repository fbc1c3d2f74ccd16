package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// InformInfoSize is the length of InformInfo in bytes.
const InformInfoSize = 36

// InformInfo subscribes to notices, or ends a subscription. A field of ones
// takes every value.
type InformInfo struct {
	GID           ib.GID `ib:"0,128"`  // of the port that notices are about; zero for the range of LIDs
	LIDRangeBegin ib.LID `ib:"128,16"` // 0xFFFF for all
	LIDRangeEnd   ib.LID `ib:"144,16"`
	IsGeneric     uint8  `ib:"176,8"`  // 1: generic notices, 0: the vendor's own
	Subscribe     uint8  `ib:"184,8"`  // 1: subscribe, 0: end the subscription
	Type          uint16 `ib:"192,16"` // a smp.NoticeType
	// TrapNumber is the DeviceID of notices that are not generic.
	TrapNumber    smp.TrapNumber `ib:"208,16"`
	QPN           ib.QPN         `ib:"224,24"` // where reports go
	RespTimeValue ib.TimeValue   `ib:"251,5"`
	// Producer is the kind of device that generic notices come from, the
	// VendorID of any other; 24 bits.
	Producer uint32 `ib:"264,24"`

	reserved20 uint16 `ib:"160,16"`
	reserved31 uint8  `ib:"248,3"`
	reserved32 uint8  `ib:"256,8"`
}

// AttrInformInfo is the number of InformInfo.
const AttrInformInfo mad.AttributeID = 0x0003

var informInfoFormat = add[InformInfo](Descriptor{ID: AttrInformInfo, Size: InformInfoSize})

// ID is AttrInformInfo.
func (*InformInfo) ID() mad.AttributeID { return AttrInformInfo }

// String prints the fields; reserved bits are left out.
func (r InformInfo) String() string { return layout.Print(r) }

// UnmarshalBinary reads InformInfoSize bytes.
func (r *InformInfo) UnmarshalBinary(data []byte) error { return informInfoFormat.Unmarshal(r, data) }

// AppendBinary appends the record.
func (r *InformInfo) AppendBinary(b []byte) ([]byte, error) {
	return informInfoFormat.Append(b, r)
}
