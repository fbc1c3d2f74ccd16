package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// PathProperties is what a path is like, or what a query wants of it.
type PathProperties struct {
	RawTraffic             bool         `ib:"0,1"`
	FlowLabel              uint32       `ib:"4,20"`
	HopLimit               uint8        `ib:"24,8"`
	TClass                 uint8        `ib:"32,8"`
	Reversible             bool         `ib:"40,1"`
	NumbPath               uint8        `ib:"41,7"` // most paths that a query wants
	PKey                   ib.PKey      `ib:"48,16"`
	QoSClass               uint16       `ib:"64,12"`
	SL                     ib.SL        `ib:"76,4"`
	MTUSelector            Selector     `ib:"80,2"`
	MTU                    ib.MTU       `ib:"82,6"`
	RateSelector           Selector     `ib:"88,2"`
	Rate                   ib.Rate      `ib:"90,6"`
	PacketLifeTimeSelector Selector     `ib:"96,2"`
	PacketLifeTime         ib.TimeValue `ib:"98,6"`

	reserved0 uint8 `ib:"1,3"`
}

// PathRecordSize is the length of PathRecord in bytes.
const PathRecordSize = 64

// PathRecord is a path from one port to another.
type PathRecord struct {
	ServiceID      uint64 `ib:"0,64"`
	DGID           ib.GID `ib:"64,128"`
	SGID           ib.GID `ib:"192,128"`
	DLID           ib.LID `ib:"320,16"`
	SLID           ib.LID `ib:"336,16"`
	PathProperties `ib:"352,104"`
	Preference     uint8 `ib:"456,8"` // lower is better

	reserved58 uint64 `ib:"464,48"`
}

// AttrPathRecord is the number of PathRecord.
const AttrPathRecord mad.AttributeID = 0x0035

var pathRecordFormat = add[PathRecord](Descriptor{ID: AttrPathRecord, Size: PathRecordSize})

// ID is AttrPathRecord.
func (*PathRecord) ID() mad.AttributeID { return AttrPathRecord }

// String prints the fields; reserved bits are left out.
func (r PathRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads PathRecordSize bytes.
func (r *PathRecord) UnmarshalBinary(data []byte) error { return pathRecordFormat.Unmarshal(r, data) }

// AppendBinary appends the record.
func (r *PathRecord) AppendBinary(b []byte) ([]byte, error) {
	return pathRecordFormat.Append(b, r)
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
