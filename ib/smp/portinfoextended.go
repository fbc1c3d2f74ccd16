package smp

import (
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// PortInfoExtendedSize is the length of PortInfoExtended in bytes.
const PortInfoExtendedSize = 22

// PortInfoExtended holds the forward error correction of a port. The modifier
// is the port number, as in PortInfo.
type PortInfoExtended struct {
	CapMask             uint32 `ib:"0,32"`  // bit 0: the fields below are valid
	FECModeActive       uint16 `ib:"32,16"` // 0 none, 1 FireCode, 2 RS, 3 low-latency RS
	FDRFECModeSupported uint16 `ib:"48,16"`
	FDRFECModeEnabled   uint16 `ib:"64,16"`
	EDRFECModeSupported uint16 `ib:"80,16"`
	EDRFECModeEnabled   uint16 `ib:"96,16"`
	HDRFECModeSupported uint16 `ib:"112,16"`
	HDRFECModeEnabled   uint16 `ib:"128,16"`
	NDRFECModeSupported uint16 `ib:"144,16"`
	NDRFECModeEnabled   uint16 `ib:"160,16"`

	spare spare `ib:"spare"`
}

// AttrPortInfoExtended is the number of PortInfoExtended.
const AttrPortInfoExtended mad.AttributeID = 0x0033

var portInfoExtendedFormat = add[PortInfoExtended](Descriptor{ID: AttrPortInfoExtended, Size: PortInfoExtendedSize, Access: AccessGetSet, Modifier: ModifierPort, Of: OfPort})

// ID is AttrPortInfoExtended.
func (*PortInfoExtended) ID() mad.AttributeID { return AttrPortInfoExtended }

// String prints the fields; reserved bits are left out.
func (a PortInfoExtended) String() string { return layout.Print(a) }

// UnmarshalBinary reads PortInfoExtendedSize bytes.
func (p *PortInfoExtended) UnmarshalBinary(data []byte) error {
	return portInfoExtendedFormat.Unmarshal(p, data)
}

// Encode writes the 64 bytes of data; it cannot fail.
func (p *PortInfoExtended) Encode(dst *[mad.DataSize]byte) error {
	return portInfoExtendedFormat.Encode(p, dst[:])
}

// AppendBinary appends the 64 bytes of data.
func (p *PortInfoExtended) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, p) }
