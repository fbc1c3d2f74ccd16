package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// TraceRecordSize is the length of TraceRecord in bytes.
const TraceRecordSize = 46

// TraceRecord is one device that a path goes through. One source only confirms
// its layout.
type TraceRecord struct {
	GIDPrefix    uint64
	IDGeneration uint16
	NodeType     ib.NodeType
	NodeID       uint64
	ChassisID    uint64
	EntryPortID  uint64
	ExitPortID   uint64
	EntryPort    ib.PortNum
	ExitPort     ib.PortNum

	reserved10 uint8
}

// AttrTraceRecord is the number of TraceRecord.
const AttrTraceRecord mad.AttributeID = 0x0039

var _ = add(Descriptor{ID: AttrTraceRecord, Name: "TraceRecord", Size: TraceRecordSize, New: func() Record { return new(TraceRecord) }})

// ID is AttrTraceRecord.
func (*TraceRecord) ID() mad.AttributeID { return AttrTraceRecord }

// String prints the fields; reserved bits are left out.
func (r TraceRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads TraceRecordSize bytes.
func (r *TraceRecord) UnmarshalBinary(data []byte) error { return decode(r, TraceRecordSize, data) }

// AppendBinary appends the record.
func (r *TraceRecord) AppendBinary(b []byte) ([]byte, error) { return encode(r, TraceRecordSize, b) }

func (r *TraceRecord) layout(c *coder) {
	number(c, "GIDPrefix", &r.GIDPrefix, 64)
	number(c, "IDGeneration", &r.IDGeneration, 16)
	number(c, "reserved10", &r.reserved10, 8)
	number(c, "NodeType", &r.NodeType, 8)
	number(c, "NodeID", &r.NodeID, 64)
	number(c, "ChassisID", &r.ChassisID, 64)
	number(c, "EntryPortID", &r.EntryPortID, 64)
	number(c, "ExitPortID", &r.ExitPortID, 64)
	number(c, "EntryPort", &r.EntryPort, 8)
	number(c, "ExitPort", &r.ExitPort, 8)
}
