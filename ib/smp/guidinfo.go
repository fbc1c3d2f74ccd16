package smp

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// GUIDInfo blocks: the modifier is the number of the block.
const (
	GUIDsPerBlock  = 8
	GUIDInfoBlocks = 32
)

// GUIDInfo is one block of a port's table of GUIDs: entry i of block b is the
// GID index 8b+i. Index 0 is the PortGUID of NodeInfo and cannot be written.
type GUIDInfo struct {
	GUIDs [GUIDsPerBlock]uint64
}

// AttrGUIDInfo is the number of GUIDInfo.
const AttrGUIDInfo mad.AttributeID = 0x0014

var _ = add(Descriptor{
	ID: AttrGUIDInfo, Name: "GUIDInfo", Size: mad.DataSize, Access: AccessGetSet, Modifier: ModifierBlock, PerBlock: GUIDsPerBlock, Of: OfEndPort,
	New: func() Attribute { return new(GUIDInfo) },
})

// ID is AttrGUIDInfo.
func (*GUIDInfo) ID() mad.AttributeID { return AttrGUIDInfo }

// String prints the fields; reserved bits are left out.
func (a GUIDInfo) String() string { return show.Fields(a) }

// UnmarshalBinary reads 64 bytes.
func (g *GUIDInfo) UnmarshalBinary(data []byte) error {
	if err := checkLength("GUIDInfo", data, mad.DataSize); err != nil {
		return err
	}
	for i := range g.GUIDs {
		g.GUIDs[i] = binary.BigEndian.Uint64(data[8*i:])
	}
	return nil
}

// Encode writes the 64 bytes of data; it cannot fail.
func (g *GUIDInfo) Encode(dst *[mad.DataSize]byte) error {
	for i, guid := range g.GUIDs {
		binary.BigEndian.PutUint64(dst[8*i:], guid)
	}
	return nil
}

// AppendBinary appends the 64 bytes of data.
func (g *GUIDInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, g) }
