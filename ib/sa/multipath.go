package sa

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
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

var _ = descriptors.Add(AttrMultiPathRecord, Descriptor{ID: AttrMultiPathRecord, Name: "MultiPathRecord", New: func() Record { return new(MultiPathRecord) }})

// multiPathHead is what comes before the GIDs.
type multiPathHead struct {
	PathProperties       `ib:"0,104"`
	ServiceID8MSB        uint8  `ib:"104,8"`
	IndependenceSelector uint8  `ib:"112,2"`
	GIDScope             uint8  `ib:"114,6"`
	SGIDCount            uint8  `ib:"120,8"`
	DGIDCount            uint8  `ib:"128,8"`
	ServiceID56LSB       uint64 `ib:"136,56"`
}

var multiPathFormat = layout.Of[*multiPathHead]("MultiPathRecord", multiPathFixedSize)

// ID is AttrMultiPathRecord.
func (*MultiPathRecord) ID() mad.AttributeID { return AttrMultiPathRecord }

// String prints the fields; reserved bits are left out.
func (r MultiPathRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads 24 bytes and as many GIDs as they announce.
func (r *MultiPathRecord) UnmarshalBinary(data []byte) error {
	var h multiPathHead
	if err := multiPathFormat.Unmarshal(&h, data); err != nil {
		return err
	}
	n := int(h.SGIDCount) + int(h.DGIDCount)
	if size := multiPathFixedSize + gidSize*n; len(data) < size {
		return fmt.Errorf("MultiPathRecord: %d bytes, want %d", len(data), size)
	}
	gids := make([]ib.GID, n)
	for i := range gids {
		gids[i] = ib.GID(data[multiPathFixedSize+gidSize*i:])
	}
	*r = MultiPathRecord{
		h.PathProperties, uint64(h.ServiceID8MSB)<<56 | h.ServiceID56LSB, h.IndependenceSelector, h.GIDScope,
		gids[:h.SGIDCount:h.SGIDCount], gids[h.SGIDCount:],
	}
	return nil
}

// AppendBinary appends the record.
func (r *MultiPathRecord) AppendBinary(b []byte) ([]byte, error) {
	if max(len(r.SGIDs), len(r.DGIDs)) > MultiPathGIDsMax {
		return b, fmt.Errorf("MultiPathRecord: %d SGIDs and %d DGIDs, want at most %d of each", len(r.SGIDs), len(r.DGIDs), MultiPathGIDsMax)
	}
	whole, err := multiPathFormat.Append(b, &multiPathHead{
		r.PathProperties, uint8(r.ServiceID >> 56), r.IndependenceSelector, r.GIDScope,
		uint8(len(r.SGIDs)), uint8(len(r.DGIDs)), r.ServiceID & (1<<56 - 1),
	})
	if err != nil {
		return b, err
	}
	for _, gids := range [][]ib.GID{r.SGIDs, r.DGIDs} {
		for i := range gids {
			whole = append(whole, gids[i][:]...)
		}
	}
	return whole, nil
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
