package smp

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// SwitchInfoSize is the length of SwitchInfo in bytes.
const SwitchInfoSize = 20

// SwitchInfo has the capabilities and the settings of a switch as a whole.
// Fields whose name ends in Cap, LIDsPerPort, EnhancedPort0 and
// OptimizedSLToVLMappingProgramming are read only.
type SwitchInfo struct {
	LinearFDBCap                      uint16 // entries from LID 0 up, 0 when there is no such table
	RandomFDBCap                      uint16 // entries, 0 when there is no such table
	MulticastFDBCap                   uint16 // entries from LID 0xC000 up, 0 when there is no such table
	LinearFDBTop                      ib.LID // highest LID that the linear table routes
	DefaultPort                       ib.PortNum
	DefaultMulticastPrimaryPort       ib.PortNum
	DefaultMulticastNotPrimaryPort    ib.PortNum
	LifeTimeValue                     ib.TimeValue // 5 bits, above TimeValueFiniteMax infinite
	PortStateChange                   bool         // writing true clears it
	OptimizedSLToVLMappingProgramming uint8        // 2 bits; bit 0: wildcards of SLToVLModifier work
	LIDsPerPort                       uint16
	PartitionEnforcementCap           uint16 // entries of PKeyTable at each external port
	InboundEnforcementCap             bool
	OutboundEnforcementCap            bool
	FilterRawInboundCap               bool
	FilterRawOutboundCap              bool
	EnhancedPort0                     bool
	MulticastFDBTop                   ib.LID // highest multicast LID routed; valid when CapMulticastFDBTop is set

	spare spare
}

// AttrSwitchInfo is the number of SwitchInfo.
const AttrSwitchInfo mad.AttributeID = 0x0012

var _ = add(Descriptor{
	ID: AttrSwitchInfo, Name: "SwitchInfo", Size: SwitchInfoSize, Access: AccessGetSet, Modifier: ModifierNone, Of: OfSwitch,
	New: func() Attribute { return new(SwitchInfo) },
})

// ID is AttrSwitchInfo.
func (*SwitchInfo) ID() mad.AttributeID { return AttrSwitchInfo }

// String prints the fields; reserved bits are left out.
func (a SwitchInfo) String() string { return show.Fields(a) }

// TimeValueFiniteMax is the highest SwitchInfo.LifeTimeValue and
// PortInfo.HOQLife that is a time; higher values mean "no limit".
const TimeValueFiniteMax ib.TimeValue = 19

// UnmarshalBinary reads SwitchInfoSize bytes.
func (s *SwitchInfo) UnmarshalBinary(data []byte) error {
	if err := checkLength("SwitchInfo", data, SwitchInfoSize); err != nil {
		return err
	}
	*s = SwitchInfo{
		LinearFDBCap:                      binary.BigEndian.Uint16(data[0:]),
		RandomFDBCap:                      binary.BigEndian.Uint16(data[2:]),
		MulticastFDBCap:                   binary.BigEndian.Uint16(data[4:]),
		LinearFDBTop:                      ib.LID(binary.BigEndian.Uint16(data[6:])),
		DefaultPort:                       ib.PortNum(data[8]),
		DefaultMulticastPrimaryPort:       ib.PortNum(data[9]),
		DefaultMulticastNotPrimaryPort:    ib.PortNum(data[10]),
		LifeTimeValue:                     ib.TimeValue(data[11] >> 3),
		PortStateChange:                   isSet(data[11], 2),
		OptimizedSLToVLMappingProgramming: data[11] & 3,
		LIDsPerPort:                       binary.BigEndian.Uint16(data[12:]),
		PartitionEnforcementCap:           binary.BigEndian.Uint16(data[14:]),
		InboundEnforcementCap:             isSet(data[16], 7),
		OutboundEnforcementCap:            isSet(data[16], 6),
		FilterRawInboundCap:               isSet(data[16], 5),
		FilterRawOutboundCap:              isSet(data[16], 4),
		EnhancedPort0:                     isSet(data[16], 3),
		MulticastFDBTop:                   ib.LID(binary.BigEndian.Uint16(data[18:])),
	}
	copy(s.spare[SwitchInfoSize:], data[SwitchInfoSize:])
	s.spare[16], s.spare[17] = data[16]&0x07, data[17]
	return nil
}

// Encode writes the 64 bytes of data.
func (s *SwitchInfo) Encode(dst *[mad.DataSize]byte) error {
	var w widths
	w.check("LifeTimeValue", uint64(s.LifeTimeValue), 5)
	w.check("OptimizedSLToVLMappingProgramming", uint64(s.OptimizedSLToVLMappingProgramming), 2)
	if err := w.err("SwitchInfo"); err != nil {
		return err
	}
	*dst = s.spare
	binary.BigEndian.PutUint16(dst[0:], s.LinearFDBCap)
	binary.BigEndian.PutUint16(dst[2:], s.RandomFDBCap)
	binary.BigEndian.PutUint16(dst[4:], s.MulticastFDBCap)
	binary.BigEndian.PutUint16(dst[6:], uint16(s.LinearFDBTop))
	dst[8] = byte(s.DefaultPort)
	dst[9] = byte(s.DefaultMulticastPrimaryPort)
	dst[10] = byte(s.DefaultMulticastNotPrimaryPort)
	dst[11] = byte(s.LifeTimeValue)<<3 | flag(s.PortStateChange, 2) | s.OptimizedSLToVLMappingProgramming
	binary.BigEndian.PutUint16(dst[12:], s.LIDsPerPort)
	binary.BigEndian.PutUint16(dst[14:], s.PartitionEnforcementCap)
	dst[16] |= flag(s.InboundEnforcementCap, 7) | flag(s.OutboundEnforcementCap, 6) |
		flag(s.FilterRawInboundCap, 5) | flag(s.FilterRawOutboundCap, 4) | flag(s.EnhancedPort0, 3)
	binary.BigEndian.PutUint16(dst[18:], uint16(s.MulticastFDBTop))
	return nil
}

// AppendBinary appends the 64 bytes of data.
func (s *SwitchInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, s) }
