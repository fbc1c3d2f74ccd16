package smp

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// PortInfoSize is the length of PortInfo in bytes.
const PortInfoSize = 64

// PortInfo is the state and the settings of a port. Where a field is said to
// be read only, agents ignore what a Set holds for it; in fields that choose
// among settings 0 in a Set leaves the setting as it is.
type PortInfo struct {
	MKey               ib.MKey
	GIDPrefix          uint64 // subnet prefix
	LID                ib.LID // base LID, its low LMC bits zero
	MasterSMLID        ib.LID
	CapabilityMask     CapabilityMask // read only
	DiagCode           DiagCode       // read only
	MKeyLeasePeriod    uint16         // seconds, 0 for a lease without end
	LocalPortNum       ib.PortNum     // port that received the packet; read only
	LinkWidthEnabled   LinkWidth      // LinkWidthAll: all that is supported
	LinkWidthSupported LinkWidth      // read only
	LinkWidthActive    LinkWidth      // one bit; read only
	LinkSpeedSupported LinkSpeed      // 4 bits; read only
	PortState          PortState      // 4 bits
	PortPhysicalState  PhysState      // 4 bits
	// LinkDownDefaultState is PhysSleep or PhysPolling, 4 bits.
	LinkDownDefaultState         PhysState
	MKeyProtectBits              uint8        // 2 bits
	LMC                          ib.LMC       // 3 bits
	LinkSpeedActive              LinkSpeed    // 4 bits, one set or none; read only
	LinkSpeedEnabled             LinkSpeed    // 4 bits; LinkSpeedAll: all that is supported
	NeighborMTU                  ib.MTU       // 4 bits
	MasterSMSL                   ib.SL        // 4 bits
	VLCap                        uint8        // 4 bits, a code of DataVLs; read only
	InitType                     uint8        // 4 bits
	VLHighLimit                  uint8        // units of 4096 bytes, 255 for no limit, 0 for one packet
	VLArbitrationHighCap         uint8        // entries; read only
	VLArbitrationLowCap          uint8        // entries; read only
	InitTypeReply                uint8        // 4 bits; read only
	MTUCap                       ib.MTU       // 4 bits; read only
	VLStallCount                 uint8        // 3 bits, packets
	HOQLife                      ib.TimeValue // 5 bits, above TimeValueFiniteMax infinite
	OperationalVLs               uint8        // 4 bits, a code of DataVLs
	PartitionEnforcementInbound  bool
	PartitionEnforcementOutbound bool
	FilterRawInbound             bool
	FilterRawOutbound            bool
	// The violation counters stop at 0xFFFF; a Set may only write 0.
	MKeyViolations   uint16
	PKeyViolations   uint16
	QKeyViolations   uint16
	GUIDCap          uint8 // entries of GUIDInfo; read only
	ClientReregister bool
	// MulticastPKeyTrapSuppressionEnabled has 2 bits.
	MulticastPKeyTrapSuppressionEnabled uint8
	SubnetTimeOut                       ib.TimeValue    // 5 bits
	RespTimeValue                       ib.TimeValue    // 5 bits; read only
	LocalPhyErrors                      uint8           // 4 bits, threshold
	OverrunErrors                       uint8           // 4 bits, threshold
	MaxCreditHint                       uint16          // read only
	LinkSpeedExtActive2                 LinkSpeedExt2   // 2 bits; read only
	LinkSpeedExtSupported2              LinkSpeedExt2   // 2 bits; read only
	LinkSpeedExtEnabled2                LinkSpeedExt2   // 3 bits
	LinkRoundTripLatency                uint32          // 24 bits, units of 4 ns; read only
	CapabilityMask2                     CapabilityMask2 // valid when CapHasCapabilityMask2 is set; read only
	LinkSpeedExtActive                  LinkSpeedExt    // 4 bits, one set or none; read only
	LinkSpeedExtSupported               LinkSpeedExt    // 4 bits; read only
	LinkSpeedExtEnabled                 LinkSpeedExt    // 5 bits

	// The bits that no field covers; a fabric has many PortInfos, so only
	// their bytes are kept.
	spare34, spare52, spare56, spare63 byte
}

// AttrPortInfo is the number of PortInfo.
const AttrPortInfo mad.AttributeID = 0x0015

var _ = add(Descriptor{
	ID: AttrPortInfo, Name: "PortInfo", Size: PortInfoSize, Access: AccessGetSet, Modifier: ModifierPort, Of: OfPort,
	New: func() Attribute { return new(PortInfo) },
})

// ID is AttrPortInfo.
func (*PortInfo) ID() mad.AttributeID { return AttrPortInfo }

// String prints the fields; reserved bits are left out.
func (a PortInfo) String() string { return show.Fields(a) }

// UnmarshalBinary reads 64 bytes.
func (p *PortInfo) UnmarshalBinary(data []byte) error {
	if err := checkLength("PortInfo", data, PortInfoSize); err != nil {
		return err
	}
	*p = PortInfo{
		MKey:               ib.MKey(binary.BigEndian.Uint64(data[0:])),
		GIDPrefix:          binary.BigEndian.Uint64(data[8:]),
		LID:                ib.LID(binary.BigEndian.Uint16(data[16:])),
		MasterSMLID:        ib.LID(binary.BigEndian.Uint16(data[18:])),
		CapabilityMask:     CapabilityMask(binary.BigEndian.Uint32(data[20:])),
		DiagCode:           DiagCode(binary.BigEndian.Uint16(data[24:])),
		MKeyLeasePeriod:    binary.BigEndian.Uint16(data[26:]),
		LocalPortNum:       ib.PortNum(data[28]),
		LinkWidthEnabled:   LinkWidth(data[29]),
		LinkWidthSupported: LinkWidth(data[30]),
		LinkWidthActive:    LinkWidth(data[31]),
		MKeyViolations:     binary.BigEndian.Uint16(data[44:]),
		PKeyViolations:     binary.BigEndian.Uint16(data[46:]),
		QKeyViolations:     binary.BigEndian.Uint16(data[48:]),
		GUIDCap:            data[50],
		MaxCreditHint:      binary.BigEndian.Uint16(data[54:]),
		CapabilityMask2:    CapabilityMask2(binary.BigEndian.Uint16(data[60:])),
	}
	p.unmarshalLink(data)
	p.unmarshalLanes(data)
	return nil
}

// unmarshalLink reads the packed bytes 32 to 36, 56 to 59, 62 and 63.
func (p *PortInfo) unmarshalLink(data []byte) {
	p.LinkSpeedSupported, p.PortState = LinkSpeed(data[32]>>4), PortState(data[32]&0x0F)
	p.PortPhysicalState, p.LinkDownDefaultState = PhysState(data[33]>>4), PhysState(data[33]&0x0F)
	p.MKeyProtectBits, p.LMC = data[34]>>6, ib.LMC(data[34]&0x07)
	p.LinkSpeedActive, p.LinkSpeedEnabled = LinkSpeed(data[35]>>4), LinkSpeed(data[35]&0x0F)
	p.NeighborMTU, p.MasterSMSL = ib.MTU(data[36]>>4), ib.SL(data[36]&0x0F)
	p.LinkSpeedExtActive2 = LinkSpeedExt2(data[56] >> 5 & 0x03)
	p.LinkSpeedExtSupported2 = LinkSpeedExt2(data[56] >> 3 & 0x03)
	p.LinkSpeedExtEnabled2 = LinkSpeedExt2(data[56] & 0x07)
	p.LinkRoundTripLatency = uint24(data[57:])
	p.LinkSpeedExtActive, p.LinkSpeedExtSupported = LinkSpeedExt(data[62]>>4), LinkSpeedExt(data[62]&0x0F)
	p.LinkSpeedExtEnabled = LinkSpeedExt(data[63] & 0x1F)
	p.spare34 = data[34] & 0x38
	p.spare56 = data[56] & 0x80
	p.spare63 = data[63] & 0xE0
}

// unmarshalLanes reads the packed bytes 37 to 43 and 51 to 53.
func (p *PortInfo) unmarshalLanes(data []byte) {
	p.VLCap, p.InitType = data[37]>>4, data[37]&0x0F
	p.VLHighLimit = data[38]
	p.VLArbitrationHighCap, p.VLArbitrationLowCap = data[39], data[40]
	p.InitTypeReply, p.MTUCap = data[41]>>4, ib.MTU(data[41]&0x0F)
	p.VLStallCount, p.HOQLife = data[42]>>5, ib.TimeValue(data[42]&0x1F)
	p.OperationalVLs = data[43] >> 4
	p.PartitionEnforcementInbound = isSet(data[43], 3)
	p.PartitionEnforcementOutbound = isSet(data[43], 2)
	p.FilterRawInbound = isSet(data[43], 1)
	p.FilterRawOutbound = isSet(data[43], 0)
	p.ClientReregister = isSet(data[51], 7)
	p.MulticastPKeyTrapSuppressionEnabled = data[51] >> 5 & 0x03
	p.SubnetTimeOut = ib.TimeValue(data[51] & 0x1F)
	p.RespTimeValue = ib.TimeValue(data[52] & 0x1F)
	p.LocalPhyErrors, p.OverrunErrors = data[53]>>4, data[53]&0x0F
	p.spare52 = data[52] & 0xE0
}

// check finds a field whose value does not fit.
func (p *PortInfo) check() error {
	var w widths
	w.check("LinkSpeedSupported", uint64(p.LinkSpeedSupported), 4)
	w.check("PortState", uint64(p.PortState), 4)
	w.check("PortPhysicalState", uint64(p.PortPhysicalState), 4)
	w.check("LinkDownDefaultState", uint64(p.LinkDownDefaultState), 4)
	w.check("MKeyProtectBits", uint64(p.MKeyProtectBits), 2)
	w.check("LMC", uint64(p.LMC), 3)
	w.check("LinkSpeedActive", uint64(p.LinkSpeedActive), 4)
	w.check("LinkSpeedEnabled", uint64(p.LinkSpeedEnabled), 4)
	w.check("NeighborMTU", uint64(p.NeighborMTU), 4)
	w.check("MasterSMSL", uint64(p.MasterSMSL), 4)
	w.check("VLCap", uint64(p.VLCap), 4)
	w.check("InitType", uint64(p.InitType), 4)
	w.check("InitTypeReply", uint64(p.InitTypeReply), 4)
	w.check("MTUCap", uint64(p.MTUCap), 4)
	w.check("VLStallCount", uint64(p.VLStallCount), 3)
	w.check("HOQLife", uint64(p.HOQLife), 5)
	w.check("OperationalVLs", uint64(p.OperationalVLs), 4)
	w.check("MulticastPKeyTrapSuppressionEnabled", uint64(p.MulticastPKeyTrapSuppressionEnabled), 2)
	w.check("SubnetTimeOut", uint64(p.SubnetTimeOut), 5)
	w.check("RespTimeValue", uint64(p.RespTimeValue), 5)
	w.check("LocalPhyErrors", uint64(p.LocalPhyErrors), 4)
	w.check("OverrunErrors", uint64(p.OverrunErrors), 4)
	w.check("LinkSpeedExtActive2", uint64(p.LinkSpeedExtActive2), 2)
	w.check("LinkSpeedExtSupported2", uint64(p.LinkSpeedExtSupported2), 2)
	w.check("LinkSpeedExtEnabled2", uint64(p.LinkSpeedExtEnabled2), 3)
	w.check("LinkRoundTripLatency", uint64(p.LinkRoundTripLatency), 24)
	w.check("LinkSpeedExtActive", uint64(p.LinkSpeedExtActive), 4)
	w.check("LinkSpeedExtSupported", uint64(p.LinkSpeedExtSupported), 4)
	w.check("LinkSpeedExtEnabled", uint64(p.LinkSpeedExtEnabled), 5)
	return w.err("PortInfo")
}

// Encode writes the 64 bytes of data.
func (p *PortInfo) Encode(dst *[mad.DataSize]byte) error {
	if err := p.check(); err != nil {
		return err
	}
	*dst = [mad.DataSize]byte{34: p.spare34, 52: p.spare52, 56: p.spare56, 63: p.spare63}
	binary.BigEndian.PutUint64(dst[0:], uint64(p.MKey))
	binary.BigEndian.PutUint64(dst[8:], p.GIDPrefix)
	binary.BigEndian.PutUint16(dst[16:], uint16(p.LID))
	binary.BigEndian.PutUint16(dst[18:], uint16(p.MasterSMLID))
	binary.BigEndian.PutUint32(dst[20:], uint32(p.CapabilityMask))
	binary.BigEndian.PutUint16(dst[24:], uint16(p.DiagCode))
	binary.BigEndian.PutUint16(dst[26:], p.MKeyLeasePeriod)
	dst[28] = byte(p.LocalPortNum)
	dst[29] = byte(p.LinkWidthEnabled)
	dst[30] = byte(p.LinkWidthSupported)
	dst[31] = byte(p.LinkWidthActive)
	binary.BigEndian.PutUint16(dst[44:], p.MKeyViolations)
	binary.BigEndian.PutUint16(dst[46:], p.PKeyViolations)
	binary.BigEndian.PutUint16(dst[48:], p.QKeyViolations)
	dst[50] = p.GUIDCap
	binary.BigEndian.PutUint16(dst[54:], p.MaxCreditHint)
	binary.BigEndian.PutUint16(dst[60:], uint16(p.CapabilityMask2))
	p.encodePacked(dst)
	return nil
}

// encodePacked writes the bytes that hold more than one field.
func (p *PortInfo) encodePacked(dst *[mad.DataSize]byte) {
	dst[32] = byte(p.LinkSpeedSupported)<<4 | byte(p.PortState)
	dst[33] = byte(p.PortPhysicalState)<<4 | byte(p.LinkDownDefaultState)
	dst[34] |= p.MKeyProtectBits<<6 | byte(p.LMC)
	dst[35] = byte(p.LinkSpeedActive)<<4 | byte(p.LinkSpeedEnabled)
	dst[36] = byte(p.NeighborMTU)<<4 | byte(p.MasterSMSL)
	dst[37] = p.VLCap<<4 | p.InitType
	dst[38] = p.VLHighLimit
	dst[39], dst[40] = p.VLArbitrationHighCap, p.VLArbitrationLowCap
	dst[41] = p.InitTypeReply<<4 | byte(p.MTUCap)
	dst[42] = p.VLStallCount<<5 | byte(p.HOQLife)
	dst[43] = p.OperationalVLs<<4 |
		flag(p.PartitionEnforcementInbound, 3) | flag(p.PartitionEnforcementOutbound, 2) |
		flag(p.FilterRawInbound, 1) | flag(p.FilterRawOutbound, 0)
	dst[51] = flag(p.ClientReregister, 7) | p.MulticastPKeyTrapSuppressionEnabled<<5 | byte(p.SubnetTimeOut)
	dst[52] |= byte(p.RespTimeValue)
	dst[53] = p.LocalPhyErrors<<4 | p.OverrunErrors
	dst[56] |= byte(p.LinkSpeedExtActive2)<<5 | byte(p.LinkSpeedExtSupported2)<<3 | byte(p.LinkSpeedExtEnabled2)
	putUint24(dst[57:], p.LinkRoundTripLatency)
	dst[62] = byte(p.LinkSpeedExtActive)<<4 | byte(p.LinkSpeedExtSupported)
	dst[63] |= byte(p.LinkSpeedExtEnabled)
}

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
