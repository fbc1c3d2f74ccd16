package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// RandomForwardingTable blocks: the modifier is the number of the block.
const (
	RandomEntriesPerBlock = 16
	RandomBlocks          = 3072
)

// RandomEntry sends the LIDs of one end port to an exit port.
type RandomEntry struct {
	LID   ib.LID     `ib:"0,16"` // base LID
	Valid bool       `ib:"16,1"` // false: the entry is empty
	LMC   ib.LMC     `ib:"17,3"` // so many low bits of LID do not count
	Port  ib.PortNum `ib:"24,8"`
}

// Covers reports whether the entry holds the exit port of lid.
func (e RandomEntry) Covers(lid ib.LID) bool {
	return e.Valid && e.LID>>e.LMC == lid>>e.LMC
}

// RandomForwardingTable is one block of a switch's unicast table in which each
// entry names its LIDs.
type RandomForwardingTable struct {
	Entries [RandomEntriesPerBlock]RandomEntry `ib:"0,512"`

	spare spare `ib:"spare"`
}

// AttrRandomForwardingTable is the number of RandomForwardingTable.
const AttrRandomForwardingTable mad.AttributeID = 0x001A

var randomForwardingTableFormat = add[RandomForwardingTable](Descriptor{ID: AttrRandomForwardingTable, Size: mad.DataSize, Access: AccessGetSet, Modifier: ModifierBlock, PerBlock: RandomEntriesPerBlock, Of: OfSwitch})

// ID is AttrRandomForwardingTable.
func (*RandomForwardingTable) ID() mad.AttributeID { return AttrRandomForwardingTable }

// String prints the fields; reserved bits are left out.
func (a RandomForwardingTable) String() string { return layout.Print(a) }

// UnmarshalBinary reads 64 bytes.
func (t *RandomForwardingTable) UnmarshalBinary(data []byte) error {
	return randomForwardingTableFormat.Unmarshal(t, data)
}

// Encode writes the 64 bytes of data.
func (t *RandomForwardingTable) Encode(dst *[mad.DataSize]byte) error {
	return randomForwardingTableFormat.Encode(t, dst[:])
}

// AppendBinary appends the 64 bytes of data.
func (t *RandomForwardingTable) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, t) }

// RandomBlock is a block of a whole table, entries past its end empty.
func RandomBlock(table []RandomEntry, block int) (b [RandomEntriesPerBlock]RandomEntry) {
	if start := block * RandomEntriesPerBlock; start < len(table) {
		copy(b[:], table[start:])
	}
	return b
}
