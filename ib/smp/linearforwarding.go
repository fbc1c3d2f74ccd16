package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// LinearForwardingTable blocks: the modifier is the number of the block, and
// the blocks reach up to the highest unicast LID.
const (
	LIDsPerLinearBlock = 64
	LinearBlocks       = 768
)

// LinearForwardingTable is one block of a switch's unicast table: entry i of
// block b is the exit port of LID 64b+i, ib.PortNone for no route.
type LinearForwardingTable struct {
	Ports [LIDsPerLinearBlock]ib.PortNum `ib:"0,512"`
}

// AttrLinearForwardingTable is the number of LinearForwardingTable.
const AttrLinearForwardingTable mad.AttributeID = 0x0019

var linearForwardingTableFormat = add[LinearForwardingTable](Descriptor{ID: AttrLinearForwardingTable, Size: mad.DataSize, Access: AccessGetSet, Modifier: ModifierBlock, PerBlock: LIDsPerLinearBlock, Of: OfSwitch})

// ID is AttrLinearForwardingTable.
func (*LinearForwardingTable) ID() mad.AttributeID { return AttrLinearForwardingTable }

// String prints the fields; reserved bits are left out.
func (a LinearForwardingTable) String() string { return layout.Print(a) }

// UnmarshalBinary reads 64 bytes.
func (t *LinearForwardingTable) UnmarshalBinary(data []byte) error {
	return linearForwardingTableFormat.Unmarshal(t, data)
}

// Encode writes the 64 bytes of data; it cannot fail.
func (t *LinearForwardingTable) Encode(dst *[mad.DataSize]byte) error {
	return linearForwardingTableFormat.Encode(t, dst[:])
}

// AppendBinary appends the 64 bytes of data.
func (t *LinearForwardingTable) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, t) }

// LinearBlock is a block of a whole table, by LID from 0 up; LIDs past its end
// have no exit.
func LinearBlock(table []ib.PortNum, block int) (b [LIDsPerLinearBlock]ib.PortNum) {
	for i := range b {
		b[i] = ib.PortNone
	}
	if start := block * LIDsPerLinearBlock; start < len(table) {
		copy(b[:], table[start:])
	}
	return b
}
