package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Sizes of MultiPathRecord.
const (
	// MultiPathGIDsMax is the number of GIDs that each list can have.
	MultiPathGIDsMax = 255
	// MultiPathGIDsPerMAD is the number of GIDs, of both lists together, that
	// fit one datagram.
	MultiPathGIDsPerMAD = (DataSize - multiPathFixedSize) / gidSize

	multiPathFixedSize = 24 // bytes before the GIDs
	offSGIDCount       = 15
	offDGIDCount       = 16
	gidSize            = 16 // bytes
)

// MultiPathRecord asks for paths between many ports. It occurs in queries only;
// the answer is PathRecords.
type MultiPathRecord struct {
	PathProperties
	ServiceID            uint64   // its upper 8 bits are separate on the wire
	IndependenceSelector uint8    // 2 bits
	GIDScope             uint8    // 6 bits
	SGIDs                []ib.GID // at most MultiPathGIDsMax
	DGIDs                []ib.GID // at most MultiPathGIDsMax
}

// AttrMultiPathRecord is the number of MultiPathRecord.
const AttrMultiPathRecord mad.AttributeID = 0x003A

var _ = add(Descriptor{ID: AttrMultiPathRecord, Name: "MultiPathRecord", New: func() Record { return new(MultiPathRecord) }})

// ID is AttrMultiPathRecord.
func (*MultiPathRecord) ID() mad.AttributeID { return AttrMultiPathRecord }

// String prints the fields; reserved bits are left out.
func (r MultiPathRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads 24 bytes and as many GIDs as they announce.
func (r *MultiPathRecord) UnmarshalBinary(data []byte) error {
	gids := 0
	if len(data) >= multiPathFixedSize {
		gids = int(data[offSGIDCount]) + int(data[offDGIDCount])
	}
	return decode(r, multiPathFixedSize+gidSize*gids, data)
}

// AppendBinary appends the record.
func (r *MultiPathRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, multiPathFixedSize+gidSize*(len(r.SGIDs)+len(r.DGIDs)), b)
}

func (r *MultiPathRecord) layout(c *coder) {
	serviceMSB, serviceLSB := uint8(r.ServiceID>>56), r.ServiceID&(1<<56-1)
	sgids, dgids := uint64(len(r.SGIDs)), uint64(len(r.DGIDs))
	r.layoutProperties(c)
	number(c, "ServiceID", &serviceMSB, 8)
	number(c, "IndependenceSelector", &r.IndependenceSelector, 2)
	number(c, "GIDScope", &r.GIDScope, 6)
	number(c, "SGIDs", &sgids, 8)
	number(c, "DGIDs", &dgids, 8)
	number(c, "ServiceID", &serviceLSB, 56)
	if !c.writing {
		r.ServiceID = uint64(serviceMSB)<<56 | serviceLSB
		r.SGIDs = make([]ib.GID, sgids)
		r.DGIDs = make([]ib.GID, dgids)
	}
	for i := range r.SGIDs {
		c.bytes(r.SGIDs[i][:])
	}
	for i := range r.DGIDs {
		c.bytes(r.DGIDs[i][:])
	}
}

// The components of MultiPathRecord.
const (
	MultiPathRecordRawTraffic ComponentMask = 1 << iota
	_                                       // reserved
	MultiPathRecordFlowLabel
	MultiPathRecordHopLimit
	MultiPathRecordTClass
	MultiPathRecordReversible
	MultiPathRecordNumbPath
	MultiPathRecordPKey
	MultiPathRecordQoSClass
	MultiPathRecordSL
	MultiPathRecordMTUSelector
	MultiPathRecordMTU
	MultiPathRecordRateSelector
	MultiPathRecordRate
	MultiPathRecordPacketLifeTimeSelector
	MultiPathRecordPacketLifeTime
	MultiPathRecordServiceID8MSB
	MultiPathRecordIndependenceSelector
	MultiPathRecordGIDScope
	MultiPathRecordSGIDCount
	MultiPathRecordDGIDCount
	MultiPathRecordServiceID56LSB
)
