package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// PortInfoRecordSize is the length of PortInfoRecord in bytes.
const PortInfoRecordSize = 68

// PortInfoRecord is the PortInfo of one port.
type PortInfoRecord struct {
	EndportLID ib.LID
	PortNum    ib.PortNum
	Options    uint8 // bit 7 asks for the extended fields of PortInfo
	PortInfo   smp.PortInfo
}

// AttrPortInfoRecord is the number of PortInfoRecord.
const AttrPortInfoRecord mad.AttributeID = 0x0012

var _ = add(Descriptor{ID: AttrPortInfoRecord, Name: "PortInfoRecord", Size: PortInfoRecordSize, New: func() Record { return new(PortInfoRecord) }})

// ID is AttrPortInfoRecord.
func (*PortInfoRecord) ID() mad.AttributeID { return AttrPortInfoRecord }

// String prints the fields; reserved bits are left out.
func (r PortInfoRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads PortInfoRecordSize bytes.
func (r *PortInfoRecord) UnmarshalBinary(data []byte) error {
	return decode(r, PortInfoRecordSize, data)
}

// AppendBinary appends the record.
func (r *PortInfoRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, PortInfoRecordSize, b)
}

func (r *PortInfoRecord) layout(c *coder) {
	number(c, "EndportLID", &r.EndportLID, 16)
	number(c, "PortNum", &r.PortNum, 8)
	number(c, "Options", &r.Options, 8)
	c.attribute("PortInfo", &r.PortInfo, smp.PortInfoSize)
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
