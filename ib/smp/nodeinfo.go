package smp

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// NodeInfoSize is the length of NodeInfo in bytes.
const NodeInfoSize = 40

// NodeInfo describes a device. PortGUID and LocalPortNum are of the port
// that received the packet, all else is the same through every port. Read only.
type NodeInfo struct {
	BaseVersion     uint8
	ClassVersion    uint8
	NodeType        ib.NodeType
	NumPorts        uint8  // physical ports; port 0 of a switch is not counted
	SystemImageGUID uint64 // of the assembly that the device is part of, or 0
	NodeGUID        ib.NodeGUID
	PortGUID        ib.PortGUID
	PartitionCap    uint16 // entries of PKeyTable at CA and router ports and switch port 0
	DeviceID        uint16
	Revision        uint32
	LocalPortNum    ib.PortNum
	VendorID        uint32 // 24 bits, assigned by the IEEE

	spare spare
}

// AttrNodeInfo is the number of NodeInfo.
const AttrNodeInfo mad.AttributeID = 0x0011

var _ = add(Descriptor{
	ID: AttrNodeInfo, Name: "NodeInfo", Size: NodeInfoSize, Access: AccessGet, Modifier: ModifierNone, Of: OfNode,
	New: func() Attribute { return new(NodeInfo) },
})

// ID is AttrNodeInfo.
func (*NodeInfo) ID() mad.AttributeID { return AttrNodeInfo }

// String prints the fields; reserved bits are left out.
func (a NodeInfo) String() string { return show.Fields(a) }

// UnmarshalBinary reads NodeInfoSize bytes.
func (n *NodeInfo) UnmarshalBinary(data []byte) error {
	if err := checkLength("NodeInfo", data, NodeInfoSize); err != nil {
		return err
	}
	*n = NodeInfo{
		BaseVersion:     data[0],
		ClassVersion:    data[1],
		NodeType:        ib.NodeType(data[2]),
		NumPorts:        data[3],
		SystemImageGUID: binary.BigEndian.Uint64(data[4:]),
		NodeGUID:        ib.NodeGUID(binary.BigEndian.Uint64(data[12:])),
		PortGUID:        ib.PortGUID(binary.BigEndian.Uint64(data[20:])),
		PartitionCap:    binary.BigEndian.Uint16(data[28:]),
		DeviceID:        binary.BigEndian.Uint16(data[30:]),
		Revision:        binary.BigEndian.Uint32(data[32:]),
		LocalPortNum:    ib.PortNum(data[36]),
		VendorID:        uint24(data[37:]),
	}
	copy(n.spare[NodeInfoSize:], data[NodeInfoSize:])
	return nil
}

// Encode writes the 64 bytes of data.
func (n *NodeInfo) Encode(dst *[mad.DataSize]byte) error {
	var w widths
	w.check("VendorID", uint64(n.VendorID), 24)
	if err := w.err("NodeInfo"); err != nil {
		return err
	}
	*dst = n.spare
	dst[0] = n.BaseVersion
	dst[1] = n.ClassVersion
	dst[2] = byte(n.NodeType)
	dst[3] = n.NumPorts
	binary.BigEndian.PutUint64(dst[4:], n.SystemImageGUID)
	binary.BigEndian.PutUint64(dst[12:], uint64(n.NodeGUID))
	binary.BigEndian.PutUint64(dst[20:], uint64(n.PortGUID))
	binary.BigEndian.PutUint16(dst[28:], n.PartitionCap)
	binary.BigEndian.PutUint16(dst[30:], n.DeviceID)
	binary.BigEndian.PutUint32(dst[32:], n.Revision)
	dst[36] = byte(n.LocalPortNum)
	putUint24(dst[37:], n.VendorID)
	return nil
}

// AppendBinary appends the 64 bytes of data.
func (n *NodeInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, n) }
