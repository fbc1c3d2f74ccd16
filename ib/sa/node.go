package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// NodeRecordSize is the length of NodeRecord in bytes.
const NodeRecordSize = 108

// NodeRecord is a port of a device: its LID and what the device tells about
// itself through it.
type NodeRecord struct {
	LID             ib.LID
	NodeInfo        smp.NodeInfo
	NodeDescription smp.NodeDescription

	reserved2 uint16
}

// AttrNodeRecord is the number of NodeRecord.
const AttrNodeRecord mad.AttributeID = 0x0011

var _ = add(Descriptor{ID: AttrNodeRecord, Name: "NodeRecord", Size: NodeRecordSize, New: func() Record { return new(NodeRecord) }})

// ID is AttrNodeRecord.
func (*NodeRecord) ID() mad.AttributeID { return AttrNodeRecord }

// String prints the fields; reserved bits are left out.
func (r NodeRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads NodeRecordSize bytes.
func (r *NodeRecord) UnmarshalBinary(data []byte) error { return decode(r, NodeRecordSize, data) }

// AppendBinary appends the record.
func (r *NodeRecord) AppendBinary(b []byte) ([]byte, error) { return encode(r, NodeRecordSize, b) }

func (r *NodeRecord) layout(c *coder) {
	number(c, "LID", &r.LID, 16)
	number(c, "reserved2", &r.reserved2, 16)
	c.attribute("NodeInfo", &r.NodeInfo, smp.NodeInfoSize)
	c.attribute("NodeDescription", &r.NodeDescription, mad.DataSize)
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
