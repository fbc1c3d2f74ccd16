package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// NodeRecordSize is the length of NodeRecord in bytes.
const NodeRecordSize = 108

// NodeRecord is a port of a device: its LID and what the device tells about
// itself through it.
type NodeRecord struct {
	LID             ib.LID              `ib:"0,16"`
	NodeInfo        smp.NodeInfo        `ib:"32,320"`
	NodeDescription smp.NodeDescription `ib:"352,512"`

	reserved2 uint16 `ib:"16,16"`
}

// AttrNodeRecord is the number of NodeRecord.
const AttrNodeRecord mad.AttributeID = 0x0011

var nodeRecordFormat = add[NodeRecord](Descriptor{ID: AttrNodeRecord, Size: NodeRecordSize})

// ID is AttrNodeRecord.
func (*NodeRecord) ID() mad.AttributeID { return AttrNodeRecord }

// String prints the fields; reserved bits are left out.
func (r NodeRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads NodeRecordSize bytes.
func (r *NodeRecord) UnmarshalBinary(data []byte) error { return nodeRecordFormat.Unmarshal(r, data) }

// AppendBinary appends the record.
func (r *NodeRecord) AppendBinary(b []byte) ([]byte, error) {
	return nodeRecordFormat.Append(b, r)
}

// The components of NodeRecord.
const (
	NodeRecordLID ComponentMask = 1 << iota
	_                           // reserved
	NodeRecordBaseVersion
	NodeRecordClassVersion
	NodeRecordNodeType
	NodeRecordNumPorts
	NodeRecordSystemImageGUID
	NodeRecordNodeGUID
	NodeRecordPortGUID
	NodeRecordPartitionCap
	NodeRecordDeviceID
	NodeRecordRevision
	NodeRecordLocalPortNum
	NodeRecordVendorID
	NodeRecordNodeDescription
)
