package pm

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// PortCountersExtendedSize is the length of PortCountersExtended in bytes.
// An agent of the older form, which ends after PortMulticastRcvPkts, leaves the
// rest zero.
const PortCountersExtendedSize = 184

// ExtendedSelect is PortCountersExtended.CounterSelect.
type ExtendedSelect uint16

// The bits of ExtendedSelect.
const (
	ExtendedPortXmitData ExtendedSelect = 1 << iota
	ExtendedPortRcvData
	ExtendedPortXmitPkts
	ExtendedPortRcvPkts
	ExtendedPortUnicastXmitPkts
	ExtendedPortUnicastRcvPkts
	ExtendedPortMulticastXmitPkts
	ExtendedPortMulticastRcvPkts
)

// PortCountersExtended are the counters of a port in their wide form.
type PortCountersExtended struct {
	PortSelect                   ib.PortNum
	CounterSelect                ExtendedSelect
	CounterSelect2               uint32
	PortXmitData                 uint64 // units of 4 bytes
	PortRcvData                  uint64 // units of 4 bytes
	PortXmitPkts                 uint64
	PortRcvPkts                  uint64
	PortUnicastXmitPkts          uint64
	PortUnicastRcvPkts           uint64
	PortMulticastXmitPkts        uint64
	PortMulticastRcvPkts         uint64
	SymbolErrorCounter           uint64
	LinkErrorRecoveryCounter     uint64
	LinkDownedCounter            uint64
	PortRcvErrors                uint64
	PortRcvRemotePhysicalErrors  uint64
	PortRcvSwitchRelayErrors     uint64
	PortXmitDiscards             uint64
	PortXmitConstraintErrors     uint64
	PortRcvConstraintErrors      uint64
	LocalLinkIntegrityErrors     uint64
	ExcessiveBufferOverrunErrors uint64
	VL15Dropped                  uint64
	PortXmitWait                 uint64
	QP1Dropped                   uint64

	reserved0 uint8
}

// offExtendedCounters is where the counters begin, in bytes.
const offExtendedCounters = 8

// counters lists the counters in their order on the wire.
func (p *PortCountersExtended) counters() [22]*uint64 {
	return [...]*uint64{
		&p.PortXmitData, &p.PortRcvData, &p.PortXmitPkts, &p.PortRcvPkts,
		&p.PortUnicastXmitPkts, &p.PortUnicastRcvPkts,
		&p.PortMulticastXmitPkts, &p.PortMulticastRcvPkts,
		&p.SymbolErrorCounter, &p.LinkErrorRecoveryCounter, &p.LinkDownedCounter,
		&p.PortRcvErrors, &p.PortRcvRemotePhysicalErrors, &p.PortRcvSwitchRelayErrors,
		&p.PortXmitDiscards, &p.PortXmitConstraintErrors, &p.PortRcvConstraintErrors,
		&p.LocalLinkIntegrityErrors, &p.ExcessiveBufferOverrunErrors,
		&p.VL15Dropped, &p.PortXmitWait, &p.QP1Dropped,
	}
}

// AttrPortCountersExtended is the number of PortCountersExtended.
const AttrPortCountersExtended mad.AttributeID = 0x001D

var _ = add(Descriptor{ID: AttrPortCountersExtended, Name: "PortCountersExtended", Size: PortCountersExtendedSize, New: func() Attribute { return new(PortCountersExtended) }})

// ID is AttrPortCountersExtended.
func (*PortCountersExtended) ID() mad.AttributeID { return AttrPortCountersExtended }

// String prints the fields; reserved bits are left out.
func (a PortCountersExtended) String() string { return show.Fields(a) }

// UnmarshalBinary reads PortCountersExtendedSize bytes.
func (p *PortCountersExtended) UnmarshalBinary(data []byte) error {
	if err := checkLength("PortCountersExtended", data, PortCountersExtendedSize); err != nil {
		return err
	}
	p.reserved0 = data[0]
	p.PortSelect = ib.PortNum(data[1])
	p.CounterSelect = ExtendedSelect(binary.BigEndian.Uint16(data[2:]))
	p.CounterSelect2 = binary.BigEndian.Uint32(data[4:])
	for i, counter := range p.counters() {
		*counter = binary.BigEndian.Uint64(data[offExtendedCounters+8*i:])
	}
	return nil
}

// AppendBinary appends PortCountersExtendedSize bytes; it cannot fail.
func (p *PortCountersExtended) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, p.reserved0, byte(p.PortSelect))
	b = binary.BigEndian.AppendUint16(b, uint16(p.CounterSelect))
	b = binary.BigEndian.AppendUint32(b, p.CounterSelect2)
	for _, counter := range p.counters() {
		b = binary.BigEndian.AppendUint64(b, *counter)
	}
	return b, nil
}
