package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// InformInfoSize is the length of InformInfo in bytes.
const InformInfoSize = 36

// InformInfo subscribes to notices, or ends a subscription. A field of ones
// takes every value.
type InformInfo struct {
	GID           ib.GID // of the port that notices are about; zero for the range of LIDs
	LIDRangeBegin ib.LID // 0xFFFF for all
	LIDRangeEnd   ib.LID
	IsGeneric     uint8  // 1: generic notices, 0: the vendor's own
	Subscribe     uint8  // 1: subscribe, 0: end the subscription
	Type          uint16 // a smp.NoticeType
	// TrapNumber is the DeviceID of notices that are not generic.
	TrapNumber    smp.TrapNumber
	QPN           ib.QPN       // 24 bits: where reports go
	RespTimeValue ib.TimeValue // 5 bits
	// Producer is the kind of device that generic notices come from, the
	// VendorID of any other; 24 bits.
	Producer uint32

	reserved20 uint16
	reserved31 uint8 // 3 bits
	reserved32 uint8
}

// AttrInformInfo is the number of InformInfo.
const AttrInformInfo mad.AttributeID = 0x0003

var _ = add(Descriptor{ID: AttrInformInfo, Name: "InformInfo", Size: InformInfoSize, New: func() Record { return new(InformInfo) }})

// ID is AttrInformInfo.
func (*InformInfo) ID() mad.AttributeID { return AttrInformInfo }

// String prints the fields; reserved bits are left out.
func (r InformInfo) String() string { return show.Fields(r) }

// UnmarshalBinary reads InformInfoSize bytes.
func (r *InformInfo) UnmarshalBinary(data []byte) error { return decode(r, InformInfoSize, data) }

// AppendBinary appends the record.
func (r *InformInfo) AppendBinary(b []byte) ([]byte, error) { return encode(r, InformInfoSize, b) }

func (r *InformInfo) layout(c *coder) {
	c.bytes(r.GID[:])
	number(c, "LIDRangeBegin", &r.LIDRangeBegin, 16)
	number(c, "LIDRangeEnd", &r.LIDRangeEnd, 16)
	number(c, "reserved20", &r.reserved20, 16)
	number(c, "IsGeneric", &r.IsGeneric, 8)
	number(c, "Subscribe", &r.Subscribe, 8)
	number(c, "Type", &r.Type, 16)
	number(c, "TrapNumber", &r.TrapNumber, 16)
	number(c, "QPN", &r.QPN, 24)
	number(c, "reserved31", &r.reserved31, 3)
	number(c, "RespTimeValue", &r.RespTimeValue, 5)
	number(c, "reserved32", &r.reserved32, 8)
	number(c, "Producer", &r.Producer, 24)
}
