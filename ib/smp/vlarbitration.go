package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// VLArbitrationTable sizes: each of the two tables of a port has up to 64
// entries and is moved in two parts.
const (
	VLArbitrationPerPart = 32
	VLArbitrationMax     = 64
)

// VLArbitrationEntry gives a virtual lane its turn.
type VLArbitrationEntry struct {
	VL     ib.VL `ib:"4,4"`
	Weight uint8 `ib:"8,8"` // units of 64 bytes; 0 skips the entry
}

// VLArbitrationTable is one half of a port's high-priority or low-priority
// table.
type VLArbitrationTable struct {
	Entries [VLArbitrationPerPart]VLArbitrationEntry `ib:"0,512"`

	spare spare `ib:"spare"`
}

// AttrVLArbitrationTable is the number of VLArbitrationTable.
const AttrVLArbitrationTable mad.AttributeID = 0x0018

var vlArbitrationTableFormat = add[VLArbitrationTable](Descriptor{ID: AttrVLArbitrationTable, Size: mad.DataSize, Access: AccessGetSet, Modifier: ModifierPartPort, Of: OfPort})

// ID is AttrVLArbitrationTable.
func (*VLArbitrationTable) ID() mad.AttributeID { return AttrVLArbitrationTable }

// String prints the fields; reserved bits are left out.
func (a VLArbitrationTable) String() string { return layout.Print(a) }

// UnmarshalBinary reads 64 bytes.
func (t *VLArbitrationTable) UnmarshalBinary(data []byte) error {
	return vlArbitrationTableFormat.Unmarshal(t, data)
}

// Encode writes the 64 bytes of data.
func (t *VLArbitrationTable) Encode(dst *[mad.DataSize]byte) error {
	return vlArbitrationTableFormat.Encode(t, dst[:])
}

// AppendBinary appends the 64 bytes of data.
func (t *VLArbitrationTable) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, t) }

// VLArbPart names a half of one of a port's two arbitration tables.
type VLArbPart uint16

// The four parts.
const (
	VLArbLowFirst   VLArbPart = 1 // low-priority entries 0 to 31
	VLArbLowSecond  VLArbPart = 2 // low-priority entries 32 to 63
	VLArbHighFirst  VLArbPart = 3 // high-priority entries 0 to 31
	VLArbHighSecond VLArbPart = 4 // high-priority entries 32 to 63
)

// IsValid reports whether p is one of the four parts.
func (p VLArbPart) IsValid() bool { return p >= VLArbLowFirst && p <= VLArbHighSecond }

// IsHigh reports whether p belongs to the high-priority table.
func (p VLArbPart) IsHigh() bool { return p == VLArbHighFirst || p == VLArbHighSecond }

// First is the index of the part's first entry in its table, 0 or 32.
func (p VLArbPart) First() int {
	if p == VLArbLowSecond || p == VLArbHighSecond {
		return VLArbitrationPerPart
	}
	return 0
}

// VLArbModifier names a part of a port's tables. CAs and routers look at the
// part only and take the tables of the port that received the packet.
func VLArbModifier(part VLArbPart, port ib.PortNum) uint32 {
	return uint32(part)<<16 | uint32(port)
}

// SplitVLArbModifier is the inverse of VLArbModifier; ok reports that no other
// bit is set. The part may be none of the four.
func SplitVLArbModifier(modifier uint32) (part VLArbPart, port ib.PortNum, ok bool) {
	part, port = VLArbPart(modifier>>16), ib.PortNum(modifier)
	return part, port, VLArbModifier(part, port) == modifier
}
