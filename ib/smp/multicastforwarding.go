package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// MulticastForwardingTable blocks and positions.
const (
	MLIDsPerBlock     = 32
	MulticastBlocks   = 512
	PortsPerPosition  = 16
	MulticastPosition = 16 // positions, for ports 0 to 255
)

// MulticastForwardingTable is one block of a switch's multicast table, for 16
// of its ports: bit k of mask i of block b at position p sends a copy of a
// packet for LID 0xC000+32b+i to port 16p+k.
type MulticastForwardingTable struct {
	Masks [MLIDsPerBlock]uint16 `ib:"0,512"`
}

// AttrMulticastForwardingTable is the number of MulticastForwardingTable.
const AttrMulticastForwardingTable mad.AttributeID = 0x001B

var multicastForwardingTableFormat = add[MulticastForwardingTable](Descriptor{ID: AttrMulticastForwardingTable, Size: mad.DataSize, Access: AccessGetSet, Modifier: ModifierBlockPosition, Of: OfSwitch})

// ID is AttrMulticastForwardingTable.
func (*MulticastForwardingTable) ID() mad.AttributeID { return AttrMulticastForwardingTable }

// String prints the fields; reserved bits are left out.
func (a MulticastForwardingTable) String() string { return layout.Print(a) }

// UnmarshalBinary reads 64 bytes.
func (t *MulticastForwardingTable) UnmarshalBinary(data []byte) error {
	return multicastForwardingTableFormat.Unmarshal(t, data)
}

// Encode writes the 64 bytes of data; it cannot fail.
func (t *MulticastForwardingTable) Encode(dst *[mad.DataSize]byte) error {
	return multicastForwardingTableFormat.Encode(t, dst[:])
}

// AppendBinary appends the 64 bytes of data.
func (t *MulticastForwardingTable) AppendBinary(b []byte) ([]byte, error) {
	return appendEncoded(b, t)
}

// MFTModifier names a block (9 bits) and a position (4 bits); higher bits of
// both are cut off.
func MFTModifier(block uint16, position uint8) uint32 {
	return uint32(position)<<28 | uint32(block)&(MulticastBlocks-1)
}

// SplitMFTModifier is the inverse of MFTModifier; ok reports that no other bit
// is set.
func SplitMFTModifier(modifier uint32) (block uint16, position uint8, ok bool) {
	block, position = uint16(modifier&(MulticastBlocks-1)), uint8(modifier>>28)
	return block, position, MFTModifier(block, position) == modifier
}

// MFTPlace is the block and the index in it of a multicast LID.
func MFTPlace(mlid ib.LID) (block uint16, index int) {
	offset := mlid - ib.LIDMulticastMin
	return uint16(offset / MLIDsPerBlock), int(offset % MLIDsPerBlock)
}
