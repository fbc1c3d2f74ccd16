package sa

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
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

// PathRecordSize is the length of PathRecord in bytes.
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

// AttrPathRecord is the number of PathRecord.
const AttrPathRecord mad.AttributeID = 0x0035

var _ = add(Descriptor{ID: AttrPathRecord, Name: "PathRecord", Size: PathRecordSize, New: func() Record { return new(PathRecord) }})

// ID is AttrPathRecord.
func (*PathRecord) ID() mad.AttributeID { return AttrPathRecord }

// String prints the fields; reserved bits are left out.
func (r PathRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads PathRecordSize bytes. Paths are asked for more often
// than all other records together: they do not go through layout, which says
// the same.
func (r *PathRecord) UnmarshalBinary(data []byte) error {
	if len(data) < PathRecordSize {
		return decode(r, PathRecordSize, data) // which says what is wrong
	}
	b := data[:PathRecordSize]
	flow, qos := binary.BigEndian.Uint32(b[44:]), binary.BigEndian.Uint16(b[52:])
	r.ServiceID = binary.BigEndian.Uint64(b)
	r.DGID, r.SGID = ib.GID(b[8:24]), ib.GID(b[24:40])
	r.DLID, r.SLID = ib.LID(binary.BigEndian.Uint16(b[40:])), ib.LID(binary.BigEndian.Uint16(b[42:]))
	r.PathProperties = PathProperties{
		RawTraffic: b[44]&0x80 != 0, reserved0: b[44] >> 4 & 7, FlowLabel: flow >> 8 & 0xF_FFFF, HopLimit: b[47],
		TClass: b[48], Reversible: b[49]&0x80 != 0, NumbPath: b[49] & 0x7F,
		PKey: ib.PKey(binary.BigEndian.Uint16(b[50:])), QoSClass: qos >> 4, SL: ib.SL(qos & 0x0F),
		MTUSelector: Selector(b[54] >> 6), MTU: ib.MTU(b[54] & 0x3F),
		RateSelector: Selector(b[55] >> 6), Rate: ib.Rate(b[55] & 0x3F),
		PacketLifeTimeSelector: Selector(b[56] >> 6), PacketLifeTime: ib.TimeValue(b[56] & 0x3F),
	}
	r.Preference = b[57]
	r.reserved58 = binary.BigEndian.Uint64(b[56:]) & (1<<48 - 1)
	return nil
}

// fits reports whether every field fits its bits.
func (r *PathRecord) fits() bool {
	return r.FlowLabel>>20 == 0 && r.NumbPath>>7 == 0 && r.QoSClass>>12 == 0 && r.SL>>4 == 0 &&
		r.MTUSelector>>2 == 0 && r.MTU>>6 == 0 && r.RateSelector>>2 == 0 && r.Rate>>6 == 0 &&
		r.PacketLifeTimeSelector>>2 == 0 && r.PacketLifeTime>>6 == 0 && r.reserved0>>3 == 0 && r.reserved58>>48 == 0
}

// AppendBinary appends the record.
func (r *PathRecord) AppendBinary(b []byte) ([]byte, error) {
	if !r.fits() {
		return encode(r, PathRecordSize, b) // which says what does not
	}
	var raw, reversible byte
	if r.RawTraffic {
		raw = 0x80
	}
	if r.Reversible {
		reversible = 0x80
	}
	b = binary.BigEndian.AppendUint64(b, r.ServiceID)
	b = append(append(b, r.DGID[:]...), r.SGID[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(r.DLID))
	b = binary.BigEndian.AppendUint16(b, uint16(r.SLID))
	b = append(b, raw|r.reserved0<<4|byte(r.FlowLabel>>16), byte(r.FlowLabel>>8), byte(r.FlowLabel), r.HopLimit,
		r.TClass, reversible|r.NumbPath)
	b = binary.BigEndian.AppendUint16(b, uint16(r.PKey))
	b = binary.BigEndian.AppendUint16(b, r.QoSClass<<4|uint16(r.SL))
	b = append(b, byte(r.MTUSelector)<<6|byte(r.MTU), byte(r.RateSelector)<<6|byte(r.Rate),
		byte(r.PacketLifeTimeSelector)<<6|byte(r.PacketLifeTime), r.Preference)
	b = binary.BigEndian.AppendUint16(b, uint16(r.reserved58>>32))
	return binary.BigEndian.AppendUint32(b, uint32(r.reserved58)), nil
}

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
