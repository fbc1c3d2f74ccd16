package smp

import (
	"github.com/ibwarden/ibwarden/ib/internal/layout"
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
	GUIDs [GUIDsPerBlock]uint64 `ib:"0,512"`
}

// AttrGUIDInfo is the number of GUIDInfo.
const AttrGUIDInfo mad.AttributeID = 0x0014

var guidInfoFormat = add[GUIDInfo](Descriptor{ID: AttrGUIDInfo, Size: mad.DataSize, Access: AccessGetSet, Modifier: ModifierBlock, PerBlock: GUIDsPerBlock, Of: OfEndPort})

// ID is AttrGUIDInfo.
func (*GUIDInfo) ID() mad.AttributeID { return AttrGUIDInfo }

// String prints the fields; reserved bits are left out.
func (a GUIDInfo) String() string { return layout.Print(a) }

// UnmarshalBinary reads 64 bytes.
func (g *GUIDInfo) UnmarshalBinary(data []byte) error { return guidInfoFormat.Unmarshal(g, data) }

// Encode writes the 64 bytes of data; it cannot fail.
func (g *GUIDInfo) Encode(dst *[mad.DataSize]byte) error { return guidInfoFormat.Encode(g, dst[:]) }

// AppendBinary appends the 64 bytes of data.
func (g *GUIDInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, g) }
