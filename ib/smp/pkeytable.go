package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// PKeyTable blocks. PartitionCap has 16 bits, so that a table has at most
// PKeyBlocksMax blocks, the last of them with one entry less.
const (
	PKeysPerBlock = 32
	PKeyBlocksMax = 2048
)

// PKeyTable is one block of a port's partition table: entry i of block b is
// the P_Key index 32b+i.
type PKeyTable struct {
	Keys [PKeysPerBlock]ib.PKey `ib:"0,512"`
}

// AttrPKeyTable is the number of PKeyTable.
const AttrPKeyTable mad.AttributeID = 0x0016

var pkeyTableFormat = add[PKeyTable](Descriptor{ID: AttrPKeyTable, Size: mad.DataSize, Access: AccessGetSet, Modifier: ModifierPortBlock, PerBlock: PKeysPerBlock, Of: OfPort})

// ID is AttrPKeyTable.
func (*PKeyTable) ID() mad.AttributeID { return AttrPKeyTable }

// String prints the fields; reserved bits are left out.
func (a PKeyTable) String() string { return layout.Print(a) }

// UnmarshalBinary reads 64 bytes.
func (t *PKeyTable) UnmarshalBinary(data []byte) error { return pkeyTableFormat.Unmarshal(t, data) }

// Encode writes the 64 bytes of data; it cannot fail.
func (t *PKeyTable) Encode(dst *[mad.DataSize]byte) error { return pkeyTableFormat.Encode(t, dst[:]) }

// AppendBinary appends the 64 bytes of data.
func (t *PKeyTable) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, t) }

// PKeyModifier names a block of the table of a switch port, 0 for the
// management port. CAs and routers look at the block only and take the table
// of the port that received the packet.
func PKeyModifier(port ib.PortNum, block uint16) uint32 {
	return uint32(port)<<16 | uint32(block)
}

// SplitPKeyModifier is the inverse of PKeyModifier. The port has 16 bits on
// the wire; ok reports that it is a port number.
func SplitPKeyModifier(modifier uint32) (port ib.PortNum, block uint16, ok bool) {
	return ib.PortNum(modifier >> 16), uint16(modifier), modifier>>24 == 0
}

// PKeyBlock is a block of a whole table, entries past its end empty.
func PKeyBlock(table []ib.PKey, block int) (b [PKeysPerBlock]ib.PKey) {
	if start := block * PKeysPerBlock; start < len(table) {
		copy(b[:], table[start:])
	}
	return b
}
