package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// NodeInfoSize is the length of NodeInfo in bytes.
const NodeInfoSize = 40

// NodeInfo describes a device. PortGUID and LocalPortNum are of the port
// that received the packet, all else is the same through every port. Read only.
type NodeInfo struct {
	BaseVersion     uint8       `ib:"0,8"`
	ClassVersion    uint8       `ib:"8,8"`
	NodeType        ib.NodeType `ib:"16,8"`
	NumPorts        uint8       `ib:"24,8"`  // physical ports; port 0 of a switch is not counted
	SystemImageGUID uint64      `ib:"32,64"` // of the assembly that the device is part of, or 0
	NodeGUID        ib.NodeGUID `ib:"96,64"`
	PortGUID        ib.PortGUID `ib:"160,64"`
	PartitionCap    uint16      `ib:"224,16"` // entries of PKeyTable at CA and router ports and switch port 0
	DeviceID        uint16      `ib:"240,16"`
	Revision        uint32      `ib:"256,32"`
	LocalPortNum    ib.PortNum  `ib:"288,8"`
	VendorID        uint32      `ib:"296,24"` // assigned by the IEEE

	spare spare `ib:"spare"`
}

// AttrNodeInfo is the number of NodeInfo.
const AttrNodeInfo mad.AttributeID = 0x0011

var nodeInfoFormat = add[NodeInfo](Descriptor{ID: AttrNodeInfo, Size: NodeInfoSize, Access: AccessGet, Modifier: ModifierNone, Of: OfNode})

// ID is AttrNodeInfo.
func (*NodeInfo) ID() mad.AttributeID { return AttrNodeInfo }

// String prints the fields; reserved bits are left out.
func (a NodeInfo) String() string { return layout.Print(a) }

// UnmarshalBinary reads NodeInfoSize bytes.
func (n *NodeInfo) UnmarshalBinary(data []byte) error { return nodeInfoFormat.Unmarshal(n, data) }

// Encode writes the 64 bytes of data.
func (n *NodeInfo) Encode(dst *[mad.DataSize]byte) error { return nodeInfoFormat.Encode(n, dst[:]) }

// AppendBinary appends the 64 bytes of data.
func (n *NodeInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, n) }
