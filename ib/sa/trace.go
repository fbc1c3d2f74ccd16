package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// TraceRecordSize is the length of TraceRecord in bytes.
const TraceRecordSize = 46

// TraceRecord is one device that a path goes through. One source only confirms
// its layout.
type TraceRecord struct {
	GIDPrefix    uint64      `ib:"0,64"`
	IDGeneration uint16      `ib:"64,16"`
	NodeType     ib.NodeType `ib:"88,8"`
	NodeID       uint64      `ib:"96,64"`
	ChassisID    uint64      `ib:"160,64"`
	EntryPortID  uint64      `ib:"224,64"`
	ExitPortID   uint64      `ib:"288,64"`
	EntryPort    ib.PortNum  `ib:"352,8"`
	ExitPort     ib.PortNum  `ib:"360,8"`

	reserved10 uint8 `ib:"80,8"`
}

// AttrTraceRecord is the number of TraceRecord.
const AttrTraceRecord mad.AttributeID = 0x0039

var traceRecordFormat = add[TraceRecord](Descriptor{ID: AttrTraceRecord, Size: TraceRecordSize})

// ID is AttrTraceRecord.
func (*TraceRecord) ID() mad.AttributeID { return AttrTraceRecord }

// String prints the fields; reserved bits are left out.
func (r TraceRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads TraceRecordSize bytes.
func (r *TraceRecord) UnmarshalBinary(data []byte) error { return traceRecordFormat.Unmarshal(r, data) }

// AppendBinary appends the record.
func (r *TraceRecord) AppendBinary(b []byte) ([]byte, error) {
	return traceRecordFormat.Append(b, r)
}
