package smp

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// PortInfoExtendedSize is the length of PortInfoExtended in bytes.
const PortInfoExtendedSize = 22

// PortInfoExtended holds the forward error correction of a port. The modifier
// is the port number, as in PortInfo.
type PortInfoExtended struct {
	CapMask             uint32 // bit 0: the fields below are valid
	FECModeActive       uint16 // 0 none, 1 FireCode, 2 RS, 3 low-latency RS
	FDRFECModeSupported uint16
	FDRFECModeEnabled   uint16
	EDRFECModeSupported uint16
	EDRFECModeEnabled   uint16
	HDRFECModeSupported uint16
	HDRFECModeEnabled   uint16
	NDRFECModeSupported uint16
	NDRFECModeEnabled   uint16

	spare spare
}

// AttrPortInfoExtended is the number of PortInfoExtended.
const AttrPortInfoExtended mad.AttributeID = 0x0033

var _ = add(Descriptor{
	ID: AttrPortInfoExtended, Name: "PortInfoExtended", Size: PortInfoExtendedSize, Access: AccessGetSet, Modifier: ModifierPort, Of: OfPort,
	New: func() Attribute { return new(PortInfoExtended) },
})

// ID is AttrPortInfoExtended.
func (*PortInfoExtended) ID() mad.AttributeID { return AttrPortInfoExtended }

// String prints the fields; reserved bits are left out.
func (a PortInfoExtended) String() string { return show.Fields(a) }

// UnmarshalBinary reads PortInfoExtendedSize bytes.
func (p *PortInfoExtended) UnmarshalBinary(data []byte) error {
	if err := checkLength("PortInfoExtended", data, PortInfoExtendedSize); err != nil {
		return err
	}
	*p = PortInfoExtended{
		CapMask:             binary.BigEndian.Uint32(data[0:]),
		FECModeActive:       binary.BigEndian.Uint16(data[4:]),
		FDRFECModeSupported: binary.BigEndian.Uint16(data[6:]),
		FDRFECModeEnabled:   binary.BigEndian.Uint16(data[8:]),
		EDRFECModeSupported: binary.BigEndian.Uint16(data[10:]),
		EDRFECModeEnabled:   binary.BigEndian.Uint16(data[12:]),
		HDRFECModeSupported: binary.BigEndian.Uint16(data[14:]),
		HDRFECModeEnabled:   binary.BigEndian.Uint16(data[16:]),
		NDRFECModeSupported: binary.BigEndian.Uint16(data[18:]),
		NDRFECModeEnabled:   binary.BigEndian.Uint16(data[20:]),
	}
	copy(p.spare[PortInfoExtendedSize:], data[PortInfoExtendedSize:])
	return nil
}

// Encode writes the 64 bytes of data; it cannot fail.
func (p *PortInfoExtended) Encode(dst *[mad.DataSize]byte) error {
	*dst = p.spare
	binary.BigEndian.PutUint32(dst[0:], p.CapMask)
	binary.BigEndian.PutUint16(dst[4:], p.FECModeActive)
	binary.BigEndian.PutUint16(dst[6:], p.FDRFECModeSupported)
	binary.BigEndian.PutUint16(dst[8:], p.FDRFECModeEnabled)
	binary.BigEndian.PutUint16(dst[10:], p.EDRFECModeSupported)
	binary.BigEndian.PutUint16(dst[12:], p.EDRFECModeEnabled)
	binary.BigEndian.PutUint16(dst[14:], p.HDRFECModeSupported)
	binary.BigEndian.PutUint16(dst[16:], p.HDRFECModeEnabled)
	binary.BigEndian.PutUint16(dst[18:], p.NDRFECModeSupported)
	binary.BigEndian.PutUint16(dst[20:], p.NDRFECModeEnabled)
	return nil
}

// AppendBinary appends the 64 bytes of data.
func (p *PortInfoExtended) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, p) }
