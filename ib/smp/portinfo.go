package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// PortInfoSize is the length of PortInfo in bytes.
const PortInfoSize = 64

// PortInfo is the state and the settings of a port. Where a field is said to
// be read only, agents ignore what a Set holds for it; in fields that choose
// among settings 0 in a Set leaves the setting as it is.
type PortInfo struct {
	MKey                         ib.MKey        `ib:"0,64"`
	GIDPrefix                    uint64         `ib:"64,64"`  // subnet prefix
	LID                          ib.LID         `ib:"128,16"` // base LID, its low LMC bits zero
	MasterSMLID                  ib.LID         `ib:"144,16"`
	CapabilityMask               CapabilityMask `ib:"160,32"` // read only
	DiagCode                     DiagCode       `ib:"192,16"` // read only
	MKeyLeasePeriod              uint16         `ib:"208,16"` // seconds, 0 for a lease without end
	LocalPortNum                 ib.PortNum     `ib:"224,8"`  // port that received the packet; read only
	LinkWidthEnabled             LinkWidth      `ib:"232,8"`  // LinkWidthAll: all that is supported
	LinkWidthSupported           LinkWidth      `ib:"240,8"`  // read only
	LinkWidthActive              LinkWidth      `ib:"248,8"`  // one bit; read only
	LinkSpeedSupported           LinkSpeed      `ib:"256,4"`  // read only
	PortState                    PortState      `ib:"260,4"`
	PortPhysicalState            PhysState      `ib:"264,4"`
	LinkDownDefaultState         PhysState      `ib:"268,4"` // PhysSleep or PhysPolling
	MKeyProtectBits              uint8          `ib:"272,2"`
	LMC                          ib.LMC         `ib:"277,3"`
	LinkSpeedActive              LinkSpeed      `ib:"280,4"` // one set or none; read only
	LinkSpeedEnabled             LinkSpeed      `ib:"284,4"` // LinkSpeedAll: all that is supported
	NeighborMTU                  ib.MTU         `ib:"288,4"`
	MasterSMSL                   ib.SL          `ib:"292,4"`
	VLCap                        uint8          `ib:"296,4"` // a code of DataVLs; read only
	InitType                     uint8          `ib:"300,4"`
	VLHighLimit                  uint8          `ib:"304,8"` // units of 4096 bytes, 255 for no limit, 0 for one packet
	VLArbitrationHighCap         uint8          `ib:"312,8"` // entries; read only
	VLArbitrationLowCap          uint8          `ib:"320,8"` // entries; read only
	InitTypeReply                uint8          `ib:"328,4"` // read only
	MTUCap                       ib.MTU         `ib:"332,4"` // read only
	VLStallCount                 uint8          `ib:"336,3"` // packets
	HOQLife                      ib.TimeValue   `ib:"339,5"` // above TimeValueFiniteMax infinite
	OperationalVLs               uint8          `ib:"344,4"` // a code of DataVLs
	PartitionEnforcementInbound  bool           `ib:"348,1"`
	PartitionEnforcementOutbound bool           `ib:"349,1"`
	FilterRawInbound             bool           `ib:"350,1"`
	FilterRawOutbound            bool           `ib:"351,1"`
	// The violation counters stop at 0xFFFF; a Set may only write 0.
	MKeyViolations                      uint16          `ib:"352,16"`
	PKeyViolations                      uint16          `ib:"368,16"`
	QKeyViolations                      uint16          `ib:"384,16"`
	GUIDCap                             uint8           `ib:"400,8"` // entries of GUIDInfo; read only
	ClientReregister                    bool            `ib:"408,1"`
	MulticastPKeyTrapSuppressionEnabled uint8           `ib:"409,2"`
	SubnetTimeOut                       ib.TimeValue    `ib:"411,5"`
	RespTimeValue                       ib.TimeValue    `ib:"419,5"`  // read only
	LocalPhyErrors                      uint8           `ib:"424,4"`  // threshold
	OverrunErrors                       uint8           `ib:"428,4"`  // threshold
	MaxCreditHint                       uint16          `ib:"432,16"` // read only
	LinkSpeedExtActive2                 LinkSpeedExt2   `ib:"449,2"`  // read only
	LinkSpeedExtSupported2              LinkSpeedExt2   `ib:"451,2"`  // read only
	LinkSpeedExtEnabled2                LinkSpeedExt2   `ib:"453,3"`
	LinkRoundTripLatency                uint32          `ib:"456,24"` // units of 4 ns; read only
	CapabilityMask2                     CapabilityMask2 `ib:"480,16"` // valid when CapHasCapabilityMask2 is set; read only
	LinkSpeedExtActive                  LinkSpeedExt    `ib:"496,4"`  // one set or none; read only
	LinkSpeedExtSupported               LinkSpeedExt    `ib:"500,4"`  // read only
	LinkSpeedExtEnabled                 LinkSpeedExt    `ib:"507,5"`

	// A fabric has many PortInfos, so only the bytes with reserved bits are kept.
	reserved274 uint8 `ib:"274,3"`
	reserved416 uint8 `ib:"416,3"`
	reserved448 uint8 `ib:"448,1"`
	reserved504 uint8 `ib:"504,3"`
}

// AttrPortInfo is the number of PortInfo.
const AttrPortInfo mad.AttributeID = 0x0015

var portInfoFormat = add[PortInfo](Descriptor{ID: AttrPortInfo, Size: PortInfoSize, Access: AccessGetSet, Modifier: ModifierPort, Of: OfPort})

// ID is AttrPortInfo.
func (*PortInfo) ID() mad.AttributeID { return AttrPortInfo }

// String prints the fields; reserved bits are left out.
func (a PortInfo) String() string { return layout.Print(a) }

// UnmarshalBinary reads 64 bytes.
func (p *PortInfo) UnmarshalBinary(data []byte) error { return portInfoFormat.Unmarshal(p, data) }

// Encode writes the 64 bytes of data.
func (p *PortInfo) Encode(dst *[mad.DataSize]byte) error { return portInfoFormat.Encode(p, dst[:]) }

// AppendBinary appends the 64 bytes of data.
func (p *PortInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, p) }

// portInfoExtendedSpeeds is the bit of the modifier by which a subnet manager
// says that it knows the LinkSpeedExt fields.
const portInfoExtendedSpeeds uint32 = 1 << 31

// PortInfoModifier names a port of the node, 0 for the port that receives the
// packet or, on a switch, for port 0. extendedSpeeds is set by a subnet
// manager that knows the LinkSpeedExt fields.
func PortInfoModifier(port ib.PortNum, extendedSpeeds bool) uint32 {
	if extendedSpeeds {
		return portInfoExtendedSpeeds | uint32(port)
	}
	return uint32(port)
}

// SplitPortInfoModifier is the inverse of PortInfoModifier; ok reports that no
// other bit is set.
func SplitPortInfoModifier(modifier uint32) (port ib.PortNum, extendedSpeeds, ok bool) {
	port, extendedSpeeds = ib.PortNum(modifier), modifier&portInfoExtendedSpeeds != 0
	return port, extendedSpeeds, PortInfoModifier(port, extendedSpeeds) == modifier
}
