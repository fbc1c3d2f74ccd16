package smp

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// RandomForwardingTable blocks: the modifier is the number of the block.
const (
	RandomEntriesPerBlock = 16
	RandomBlocks          = 3072
)

// RandomEntry sends the LIDs of one end port to an exit port.
type RandomEntry struct {
	LID   ib.LID // base LID
	Valid bool   // false: the entry is empty
	LMC   ib.LMC // 3 bits: so many low bits of LID do not count
	Port  ib.PortNum
}

// Covers reports whether the entry holds the exit port of lid.
func (e RandomEntry) Covers(lid ib.LID) bool {
	return e.Valid && e.LID>>e.LMC == lid>>e.LMC
}

// RandomForwardingTable is one block of a switch's unicast table in which each
// entry names its LIDs.
type RandomForwardingTable struct {
	Entries [RandomEntriesPerBlock]RandomEntry

	spare spare
}

// AttrRandomForwardingTable is the number of RandomForwardingTable.
const AttrRandomForwardingTable mad.AttributeID = 0x001A

var _ = add(Descriptor{
	ID: AttrRandomForwardingTable, Name: "RandomForwardingTable", Size: mad.DataSize, Access: AccessGetSet, Modifier: ModifierBlock, PerBlock: RandomEntriesPerBlock, Of: OfSwitch,
	New: func() Attribute { return new(RandomForwardingTable) },
})

// ID is AttrRandomForwardingTable.
func (*RandomForwardingTable) ID() mad.AttributeID { return AttrRandomForwardingTable }

// String prints the fields; reserved bits are left out.
func (a RandomForwardingTable) String() string { return show.Fields(a) }

// UnmarshalBinary reads 64 bytes.
func (t *RandomForwardingTable) UnmarshalBinary(data []byte) error {
	if err := checkLength("RandomForwardingTable", data, mad.DataSize); err != nil {
		return err
	}
	*t = RandomForwardingTable{}
	for i := range t.Entries {
		at := data[4*i : 4*i+4]
		t.Entries[i] = RandomEntry{
			LID:   ib.LID(binary.BigEndian.Uint16(at)),
			Valid: isSet(at[2], 7),
			LMC:   ib.LMC(at[2] >> 4 & 7),
			Port:  ib.PortNum(at[3]),
		}
		t.spare[4*i+2] = at[2] & 0x0F
	}
	return nil
}

// Encode writes the 64 bytes of data.
func (t *RandomForwardingTable) Encode(dst *[mad.DataSize]byte) error {
	var w widths
	for i := range t.Entries {
		w.check("LMC", uint64(t.Entries[i].LMC), 3)
	}
	if err := w.err("RandomForwardingTable"); err != nil {
		return err
	}
	*dst = t.spare
	for i, e := range t.Entries {
		at := dst[4*i : 4*i+4]
		binary.BigEndian.PutUint16(at, uint16(e.LID))
		at[2] |= flag(e.Valid, 7) | byte(e.LMC)<<4
		at[3] = byte(e.Port)
	}
	return nil
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
