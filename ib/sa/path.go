package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// PathProperties is what a path is like, or what a query wants of it.
type PathProperties struct {
	RawTraffic             bool
	FlowLabel              uint32 // 20 bits
	HopLimit               uint8
	TClass                 uint8
	Reversible             bool
	NumbPath               uint8 // 7 bits: most paths that a query wants
	PKey                   ib.PKey
	QoSClass               uint16       // 12 bits
	SL                     ib.SL        // 4 bits
	MTUSelector            Selector     // 2 bits
	MTU                    ib.MTU       // 6 bits
	RateSelector           Selector     // 2 bits
	Rate                   ib.Rate      // 6 bits
	PacketLifeTimeSelector Selector     // 2 bits
	PacketLifeTime         ib.TimeValue // 6 bits

	reserved0 uint8 // 3 bits
}

func (r *PathProperties) layoutProperties(c *coder) {
	c.flag(&r.RawTraffic)
	number(c, "reserved0", &r.reserved0, 3)
	number(c, "FlowLabel", &r.FlowLabel, 20)
	number(c, "HopLimit", &r.HopLimit, 8)
	number(c, "TClass", &r.TClass, 8)
	c.flag(&r.Reversible)
	number(c, "NumbPath", &r.NumbPath, 7)
	number(c, "PKey", &r.PKey, 16)
	number(c, "QoSClass", &r.QoSClass, 12)
	number(c, "SL", &r.SL, 4)
	number(c, "MTUSelector", &r.MTUSelector, 2)
	number(c, "MTU", &r.MTU, 6)
	number(c, "RateSelector", &r.RateSelector, 2)
	number(c, "Rate", &r.Rate, 6)
	number(c, "PacketLifeTimeSelector", &r.PacketLifeTimeSelector, 2)
	number(c, "PacketLifeTime", &r.PacketLifeTime, 6)
}

// PathRecordSize is the length of PathRecord in octets.
const PathRecordSize = 64

// PathRecord is a path from one port to another.
type PathRecord struct {
	ServiceID uint64
	DGID      ib.GID
	SGID      ib.GID
	DLID      ib.LID
	SLID      ib.LID
	PathProperties
	Preference uint8 // lower is better

	reserved58 uint64 // 48 bits
}

// ID is AttrPathRecord.
func (*PathRecord) ID() mad.AttributeID { return AttrPathRecord }

// UnmarshalBinary reads PathRecordSize octets.
func (r *PathRecord) UnmarshalBinary(data []byte) error { return decode(r, PathRecordSize, data) }

// AppendBinary appends the record.
func (r *PathRecord) AppendBinary(b []byte) ([]byte, error) { return encode(r, PathRecordSize, b) }

func (r *PathRecord) layout(c *coder) {
	number(c, "ServiceID", &r.ServiceID, 64)
	c.bytes(r.DGID[:])
	c.bytes(r.SGID[:])
	number(c, "DLID", &r.DLID, 16)
	number(c, "SLID", &r.SLID, 16)
	r.layoutProperties(c)
	number(c, "Preference", &r.Preference, 8)
	number(c, "reserved58", &r.reserved58, 48)
}

// The components of PathRecord.
const (
	PathRecordServiceID8MSB ComponentMask = 1 << iota
	PathRecordServiceID56LSB
	PathRecordDGID
	PathRecordSGID
	PathRecordDLID
	PathRecordSLID
	PathRecordRawTraffic
	_ // reserved
	PathRecordFlowLabel
	PathRecordHopLimit
	PathRecordTClass
	PathRecordReversible
	PathRecordNumbPath
	PathRecordPKey
	PathRecordQoSClass
	PathRecordSL
	PathRecordMTUSelector
	PathRecordMTU
	PathRecordRateSelector
	PathRecordRate
	PathRecordPacketLifeTimeSelector
	PathRecordPacketLifeTime
)
