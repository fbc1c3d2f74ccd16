package pm

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Lengths of the details in bytes.
const (
	PortRcvErrorDetailsSize    = 16
	PortXmitDiscardDetailsSize = 12
)

// PortRcvErrorDetails breaks down PortCounters.PortRcvErrors. Bit n
// of CounterSelect is the n-th counter.
type PortRcvErrorDetails struct {
	PortSelect                ib.PortNum `ib:"8,8"`
	CounterSelect             uint16     `ib:"16,16"`
	PortLocalPhysicalErrors   uint16     `ib:"32,16"`
	PortMalformedPacketErrors uint16     `ib:"48,16"`
	PortBufferOverrunErrors   uint16     `ib:"64,16"`
	PortDLIDMappingErrors     uint16     `ib:"80,16"`
	PortVLMappingErrors       uint16     `ib:"96,16"`
	PortLoopingErrors         uint16     `ib:"112,16"`

	reserved0 uint8 `ib:"0,8"`
}

// AttrPortRcvErrorDetails is the number of PortRcvErrorDetails.
const AttrPortRcvErrorDetails mad.AttributeID = 0x0015

var portRcvErrorDetailsFormat = add[PortRcvErrorDetails](Descriptor{ID: AttrPortRcvErrorDetails, Size: PortRcvErrorDetailsSize})

// ID is AttrPortRcvErrorDetails.
func (*PortRcvErrorDetails) ID() mad.AttributeID { return AttrPortRcvErrorDetails }

// String prints the fields; reserved bits are left out.
func (a PortRcvErrorDetails) String() string { return layout.Print(a) }

// UnmarshalBinary reads PortRcvErrorDetailsSize bytes.
func (p *PortRcvErrorDetails) UnmarshalBinary(data []byte) error {
	return portRcvErrorDetailsFormat.Unmarshal(p, data)
}

// AppendBinary appends PortRcvErrorDetailsSize bytes; it cannot fail.
func (p *PortRcvErrorDetails) AppendBinary(b []byte) ([]byte, error) {
	return portRcvErrorDetailsFormat.Append(b, p)
}

// PortXmitDiscardDetails breaks down PortCounters.PortXmitDiscards.
// Bit n of CounterSelect is the n-th counter.
type PortXmitDiscardDetails struct {
	PortSelect                  ib.PortNum `ib:"8,8"`
	CounterSelect               uint16     `ib:"16,16"`
	PortInactiveDiscards        uint16     `ib:"32,16"`
	PortNeighborMTUDiscards     uint16     `ib:"48,16"`
	PortSwLifetimeLimitDiscards uint16     `ib:"64,16"`
	// PortSwHOQLifetimeLimitDiscards are packets that waited too long at the
	// head of the queue.
	PortSwHOQLifetimeLimitDiscards uint16 `ib:"80,16"`

	reserved0 uint8 `ib:"0,8"`
}

// AttrPortXmitDiscardDetails is the number of PortXmitDiscardDetails.
const AttrPortXmitDiscardDetails mad.AttributeID = 0x0016

var portXmitDiscardDetailsFormat = add[PortXmitDiscardDetails](Descriptor{ID: AttrPortXmitDiscardDetails, Size: PortXmitDiscardDetailsSize})

// ID is AttrPortXmitDiscardDetails.
func (*PortXmitDiscardDetails) ID() mad.AttributeID { return AttrPortXmitDiscardDetails }

// String prints the fields; reserved bits are left out.
func (a PortXmitDiscardDetails) String() string { return layout.Print(a) }

// UnmarshalBinary reads PortXmitDiscardDetailsSize bytes.
func (p *PortXmitDiscardDetails) UnmarshalBinary(data []byte) error {
	return portXmitDiscardDetailsFormat.Unmarshal(p, data)
}

// AppendBinary appends PortXmitDiscardDetailsSize bytes; it cannot fail.
func (p *PortXmitDiscardDetails) AppendBinary(b []byte) ([]byte, error) {
	return portXmitDiscardDetailsFormat.Append(b, p)
}
