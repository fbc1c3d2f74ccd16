package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// SLToVLMappingTableSize is the length of SLToVLMappingTable in bytes.
const SLToVLMappingTableSize = 8

// SLCount is the number of service levels.
const SLCount = 16

// SLToVLMappingTable maps each service level to a virtual lane; virtual lane 15 means
// that packets of the level are dropped.
type SLToVLMappingTable struct {
	VLs [SLCount]ib.VL `ib:"0,64"` // 4 bits each, indexed by ib.SL

	// rest are the bytes behind the map when any of them is not zero. A large
	// switch has more than a thousand of these tables: 64 bytes more would count.
	rest string `ib:"spare"`
}

// AttrSLToVLMappingTable is the number of SLToVLMappingTable.
const AttrSLToVLMappingTable mad.AttributeID = 0x0017

var slToVLMappingTableFormat = add[SLToVLMappingTable](Descriptor{ID: AttrSLToVLMappingTable, Size: SLToVLMappingTableSize, Access: AccessGetSet, Modifier: ModifierInputOutput, Of: OfPort})

// ID is AttrSLToVLMappingTable.
func (*SLToVLMappingTable) ID() mad.AttributeID { return AttrSLToVLMappingTable }

// String prints the fields; reserved bits are left out.
func (a SLToVLMappingTable) String() string { return layout.Print(a) }

// UnmarshalBinary reads SLToVLMappingTableSize bytes.
func (t *SLToVLMappingTable) UnmarshalBinary(data []byte) error {
	return slToVLMappingTableFormat.Unmarshal(t, data)
}

// Encode writes the 64 bytes of data.
func (t *SLToVLMappingTable) Encode(dst *[mad.DataSize]byte) error {
	return slToVLMappingTableFormat.Encode(t, dst[:])
}

// AppendBinary appends the 64 bytes of data.
func (t *SLToVLMappingTable) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, t) }

// Wildcards of the SLToVLMappingTable modifier, for switches that announce
// SwitchInfo.OptimizedSLToVLMappingProgramming.
const (
	slToVLAllOutputs uint32 = 1 << 16
	slToVLAllInputs  uint32 = 1 << 17
)

// SLToVLTarget is what a SLToVLMappingTable modifier names on a switch: the
// pair of an input and an output port, or many pairs. CAs and routers ignore
// the modifier.
type SLToVLTarget struct {
	In, Out    ib.PortNum
	AllInputs  bool // In does not count
	AllOutputs bool // Out does not count
}

// Modifier is the attribute modifier that names t.
func (t SLToVLTarget) Modifier() uint32 {
	m := SLToVLModifier(t.In, t.Out)
	if t.AllInputs {
		m |= slToVLAllInputs
	}
	if t.AllOutputs {
		m |= slToVLAllOutputs
	}
	return m
}

// SLToVLModifier names one pair of an input and an output port of a switch.
func SLToVLModifier(in, out ib.PortNum) uint32 { return uint32(in)<<8 | uint32(out) }

// SplitSLToVLModifier is the inverse of SLToVLTarget.Modifier; ok reports that
// no other bit is set.
func SplitSLToVLModifier(modifier uint32) (target SLToVLTarget, ok bool) {
	target = SLToVLTarget{
		In:         ib.PortNum(modifier >> 8),
		Out:        ib.PortNum(modifier),
		AllInputs:  modifier&slToVLAllInputs != 0,
		AllOutputs: modifier&slToVLAllOutputs != 0,
	}
	return target, target.Modifier() == modifier
}
