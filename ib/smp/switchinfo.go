package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// SwitchInfoSize is the length of SwitchInfo in bytes.
const SwitchInfoSize = 20

// SwitchInfo has the capabilities and the settings of a switch as a whole.
// Fields whose name ends in Cap, LIDsPerPort, EnhancedPort0 and
// OptimizedSLToVLMappingProgramming are read only.
type SwitchInfo struct {
	LinearFDBCap                      uint16       `ib:"0,16"`  // entries from LID 0 up, 0 when there is no such table
	RandomFDBCap                      uint16       `ib:"16,16"` // entries, 0 when there is no such table
	MulticastFDBCap                   uint16       `ib:"32,16"` // entries from LID 0xC000 up, 0 when there is no such table
	LinearFDBTop                      ib.LID       `ib:"48,16"` // highest LID that the linear table routes
	DefaultPort                       ib.PortNum   `ib:"64,8"`
	DefaultMulticastPrimaryPort       ib.PortNum   `ib:"72,8"`
	DefaultMulticastNotPrimaryPort    ib.PortNum   `ib:"80,8"`
	LifeTimeValue                     ib.TimeValue `ib:"88,5"` // above TimeValueFiniteMax infinite
	PortStateChange                   bool         `ib:"93,1"` // writing true clears it
	OptimizedSLToVLMappingProgramming uint8        `ib:"94,2"` // bit 0: wildcards of SLToVLModifier work
	LIDsPerPort                       uint16       `ib:"96,16"`
	PartitionEnforcementCap           uint16       `ib:"112,16"` // entries of PKeyTable at each external port
	InboundEnforcementCap             bool         `ib:"128,1"`
	OutboundEnforcementCap            bool         `ib:"129,1"`
	FilterRawInboundCap               bool         `ib:"130,1"`
	FilterRawOutboundCap              bool         `ib:"131,1"`
	EnhancedPort0                     bool         `ib:"132,1"`
	MulticastFDBTop                   ib.LID       `ib:"144,16"` // highest multicast LID routed; valid when CapMulticastFDBTop is set

	spare spare `ib:"spare"`
}

// AttrSwitchInfo is the number of SwitchInfo.
const AttrSwitchInfo mad.AttributeID = 0x0012

var switchInfoFormat = add[SwitchInfo](Descriptor{ID: AttrSwitchInfo, Size: SwitchInfoSize, Access: AccessGetSet, Modifier: ModifierNone, Of: OfSwitch})

// ID is AttrSwitchInfo.
func (*SwitchInfo) ID() mad.AttributeID { return AttrSwitchInfo }

// String prints the fields; reserved bits are left out.
func (a SwitchInfo) String() string { return layout.Print(a) }

// TimeValueFiniteMax is the highest SwitchInfo.LifeTimeValue and
// PortInfo.HOQLife that is a time; higher values mean "no limit".
const TimeValueFiniteMax ib.TimeValue = 19

// UnmarshalBinary reads SwitchInfoSize bytes.
func (s *SwitchInfo) UnmarshalBinary(data []byte) error { return switchInfoFormat.Unmarshal(s, data) }

// Encode writes the 64 bytes of data.
func (s *SwitchInfo) Encode(dst *[mad.DataSize]byte) error { return switchInfoFormat.Encode(s, dst[:]) }

// AppendBinary appends the 64 bytes of data.
func (s *SwitchInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, s) }
