package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// PortInfoRecordSize is the length of PortInfoRecord in bytes.
const PortInfoRecordSize = 68

// PortInfoRecord is the PortInfo of one port.
type PortInfoRecord struct {
	EndportLID ib.LID       `ib:"0,16"`
	PortNum    ib.PortNum   `ib:"16,8"`
	Options    uint8        `ib:"24,8"` // bit 7 asks for the extended fields of PortInfo
	PortInfo   smp.PortInfo `ib:"32,512"`
}

// AttrPortInfoRecord is the number of PortInfoRecord.
const AttrPortInfoRecord mad.AttributeID = 0x0012

var portInfoRecordFormat = add[PortInfoRecord](Descriptor{ID: AttrPortInfoRecord, Size: PortInfoRecordSize})

// ID is AttrPortInfoRecord.
func (*PortInfoRecord) ID() mad.AttributeID { return AttrPortInfoRecord }

// String prints the fields; reserved bits are left out.
func (r PortInfoRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads PortInfoRecordSize bytes.
func (r *PortInfoRecord) UnmarshalBinary(data []byte) error {
	return portInfoRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *PortInfoRecord) AppendBinary(b []byte) ([]byte, error) {
	return portInfoRecordFormat.Append(b, r)
}

// The components of PortInfoRecord.
const (
	PortInfoRecordEndportLID ComponentMask = 1 << iota
	PortInfoRecordPortNum
	PortInfoRecordOptions
	PortInfoRecordMKey
	PortInfoRecordGIDPrefix
	PortInfoRecordLID
	PortInfoRecordMasterSMLID
	PortInfoRecordCapabilityMask
	PortInfoRecordDiagCode
	PortInfoRecordMKeyLeasePeriod
	PortInfoRecordLocalPortNum
	PortInfoRecordLinkWidthEnabled
	PortInfoRecordLinkWidthSupported
	PortInfoRecordLinkWidthActive
	PortInfoRecordLinkSpeedSupported
	PortInfoRecordPortState
	PortInfoRecordPortPhysicalState
	PortInfoRecordLinkDownDefaultState
	PortInfoRecordMKeyProtectBits
	_ // reserved
	PortInfoRecordLMC
	PortInfoRecordLinkSpeedActive
	PortInfoRecordLinkSpeedEnabled
	PortInfoRecordNeighborMTU
	PortInfoRecordMasterSMSL
	PortInfoRecordVLCap
	PortInfoRecordInitType
	PortInfoRecordVLHighLimit
	PortInfoRecordVLArbitrationHighCap
	PortInfoRecordVLArbitrationLowCap
	PortInfoRecordInitTypeReply
	PortInfoRecordMTUCap
	PortInfoRecordVLStallCount
	PortInfoRecordHOQLife
	PortInfoRecordOperationalVLs
	PortInfoRecordPartitionEnforcementInbound
	PortInfoRecordPartitionEnforcementOutbound
	PortInfoRecordFilterRawInbound
	PortInfoRecordFilterRawOutbound
	PortInfoRecordMKeyViolations
	PortInfoRecordPKeyViolations
	PortInfoRecordQKeyViolations
	PortInfoRecordGUIDCap
	PortInfoRecordClientReregister
	PortInfoRecordMulticastPKeyTrapSuppressionEnabled
	PortInfoRecordSubnetTimeOut
	_ // reserved
	PortInfoRecordRespTimeValue
	PortInfoRecordLocalPhyErrors
	PortInfoRecordOverrunErrors
	PortInfoRecordMaxCreditHint
	_ // reserved
	PortInfoRecordLinkRoundTripLatency
	PortInfoRecordCapabilityMask2
	PortInfoRecordLinkSpeedExtActive
	PortInfoRecordLinkSpeedExtSupported
	_ // reserved
	PortInfoRecordLinkSpeedExtEnabled
)

// PortInfoRecordMatchCapabilities in the modifier of a query matches the ports
// that have all the bits of the query's CapabilityMask, not those that equal
// it. CapPortInfoCapMaskMatch announces it.
const PortInfoRecordMatchCapabilities uint32 = 1 << 31
