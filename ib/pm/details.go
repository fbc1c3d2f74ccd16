package pm

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Lengths of the details in bytes.
const (
	PortRcvErrorDetailsSize    = 16
	PortXmitDiscardDetailsSize = 12

	offDetails = 4 // of the counters
)

// PortRcvErrorDetails breaks down PortCounters.PortRcvErrors. Bit n
// of CounterSelect is the n-th counter.
type PortRcvErrorDetails struct {
	PortSelect                ib.PortNum
	CounterSelect             uint16
	PortLocalPhysicalErrors   uint16
	PortMalformedPacketErrors uint16
	PortBufferOverrunErrors   uint16
	PortDLIDMappingErrors     uint16
	PortVLMappingErrors       uint16
	PortLoopingErrors         uint16

	reserved0 uint8
}

func (p *PortRcvErrorDetails) counters() []*uint16 {
	return []*uint16{
		&p.PortLocalPhysicalErrors, &p.PortMalformedPacketErrors, &p.PortBufferOverrunErrors,
		&p.PortDLIDMappingErrors, &p.PortVLMappingErrors, &p.PortLoopingErrors,
	}
}

// AttrPortRcvErrorDetails is the number of PortRcvErrorDetails.
const AttrPortRcvErrorDetails mad.AttributeID = 0x0015

var _ = add(Descriptor{ID: AttrPortRcvErrorDetails, Name: "PortRcvErrorDetails", Size: PortRcvErrorDetailsSize, New: func() Attribute { return new(PortRcvErrorDetails) }})

// ID is AttrPortRcvErrorDetails.
func (*PortRcvErrorDetails) ID() mad.AttributeID { return AttrPortRcvErrorDetails }

// String prints the fields; reserved bits are left out.
func (a PortRcvErrorDetails) String() string { return show.Fields(a) }

// UnmarshalBinary reads PortRcvErrorDetailsSize bytes.
func (p *PortRcvErrorDetails) UnmarshalBinary(data []byte) error {
	if err := checkLength("PortRcvErrorDetails", data, PortRcvErrorDetailsSize); err != nil {
		return err
	}
	p.reserved0, p.PortSelect, p.CounterSelect = readDetails(data, p.counters())
	return nil
}

// AppendBinary appends PortRcvErrorDetailsSize bytes; it cannot fail.
func (p *PortRcvErrorDetails) AppendBinary(b []byte) ([]byte, error) {
	return appendDetails(b, p.reserved0, p.PortSelect, p.CounterSelect, p.counters()), nil
}

// PortXmitDiscardDetails breaks down PortCounters.PortXmitDiscards.
// Bit n of CounterSelect is the n-th counter.
type PortXmitDiscardDetails struct {
	PortSelect                  ib.PortNum
	CounterSelect               uint16
	PortInactiveDiscards        uint16
	PortNeighborMTUDiscards     uint16
	PortSwLifetimeLimitDiscards uint16
	// PortSwHOQLifetimeLimitDiscards are packets that waited too long at the
	// head of the queue.
	PortSwHOQLifetimeLimitDiscards uint16

	reserved0 uint8
}

func (p *PortXmitDiscardDetails) counters() []*uint16 {
	return []*uint16{
		&p.PortInactiveDiscards, &p.PortNeighborMTUDiscards,
		&p.PortSwLifetimeLimitDiscards, &p.PortSwHOQLifetimeLimitDiscards,
	}
}

// AttrPortXmitDiscardDetails is the number of PortXmitDiscardDetails.
const AttrPortXmitDiscardDetails mad.AttributeID = 0x0016

var _ = add(Descriptor{ID: AttrPortXmitDiscardDetails, Name: "PortXmitDiscardDetails", Size: PortXmitDiscardDetailsSize, New: func() Attribute { return new(PortXmitDiscardDetails) }})

// ID is AttrPortXmitDiscardDetails.
func (*PortXmitDiscardDetails) ID() mad.AttributeID { return AttrPortXmitDiscardDetails }

// String prints the fields; reserved bits are left out.
func (a PortXmitDiscardDetails) String() string { return show.Fields(a) }

// UnmarshalBinary reads PortXmitDiscardDetailsSize bytes.
func (p *PortXmitDiscardDetails) UnmarshalBinary(data []byte) error {
	if err := checkLength("PortXmitDiscardDetails", data, PortXmitDiscardDetailsSize); err != nil {
		return err
	}
	p.reserved0, p.PortSelect, p.CounterSelect = readDetails(data, p.counters())
	return nil
}

// AppendBinary appends PortXmitDiscardDetailsSize bytes; it cannot fail.
func (p *PortXmitDiscardDetails) AppendBinary(b []byte) ([]byte, error) {
	return appendDetails(b, p.reserved0, p.PortSelect, p.CounterSelect, p.counters()), nil
}

// readDetails reads the head of either attribute, and its counters.
func readDetails(data []byte, counters []*uint16) (reserved uint8, port ib.PortNum, selected uint16) {
	for i, counter := range counters {
		*counter = binary.BigEndian.Uint16(data[offDetails+2*i:])
	}
	return data[0], ib.PortNum(data[1]), binary.BigEndian.Uint16(data[2:])
}

func appendDetails(b []byte, reserved uint8, port ib.PortNum, selected uint16, counters []*uint16) []byte {
	b = append(b, reserved, byte(port))
	b = binary.BigEndian.AppendUint16(b, selected)
	for _, counter := range counters {
		b = binary.BigEndian.AppendUint16(b, *counter)
	}
	return b
}
