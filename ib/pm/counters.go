package pm

import (
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// AllPorts in PortSelect is all ports of the device together.
const AllPorts ib.PortNum = 0xFF

// PortCountersSize is the length of PortCounters in bytes.
const PortCountersSize = 44

// CounterSelect is PortCounters.CounterSelect.
type CounterSelect uint16

// The bits of CounterSelect.
const (
	SelectSymbolError CounterSelect = 1 << iota
	SelectLinkErrorRecovery
	SelectLinkDowned
	SelectPortRcvErrors
	SelectPortRcvRemotePhysicalErrors
	SelectPortRcvSwitchRelayErrors
	SelectPortXmitDiscards
	SelectPortXmitConstraintErrors
	SelectPortRcvConstraintErrors
	SelectLocalLinkIntegrityErrors
	SelectExcessiveBufferOverrunErrors
	SelectVL15Dropped
	SelectPortXmitData
	SelectPortRcvData
	SelectPortXmitPkts
	SelectPortRcvPkts

	// SelectAll are all counters but those of CounterSelect2.
	SelectAll CounterSelect = 0xFFFF
)

// CounterSelect2 is PortCounters.CounterSelect2.
type CounterSelect2 uint8

// Select2PortXmitWait is the bit of CounterSelect2.
const Select2PortXmitWait CounterSelect2 = 1 << 0

// PortCounters are the counters of a port in their narrow form.
type PortCounters struct {
	PortSelect                   ib.PortNum
	CounterSelect                CounterSelect
	SymbolErrorCounter           uint16
	LinkErrorRecoveryCounter     uint8
	LinkDownedCounter            uint8
	PortRcvErrors                uint16
	PortRcvRemotePhysicalErrors  uint16
	PortRcvSwitchRelayErrors     uint16
	PortXmitDiscards             uint16
	PortXmitConstraintErrors     uint8 // partition enforcement and raw filters, outbound
	PortRcvConstraintErrors      uint8 // partition enforcement and raw filters, inbound
	CounterSelect2               CounterSelect2
	LocalLinkIntegrityErrors     uint8 // 4 bits
	ExcessiveBufferOverrunErrors uint8 // 4 bits
	QP1Dropped                   uint16
	VL15Dropped                  uint16
	PortXmitData                 uint32 // units of 4 bytes
	PortRcvData                  uint32 // units of 4 bytes
	PortXmitPkts                 uint32
	PortRcvPkts                  uint32
	PortXmitWait                 uint32 // ticks

	reserved0 uint8
}

// AttrPortCounters is the number of PortCounters.
const AttrPortCounters mad.AttributeID = 0x0012

var _ = add(Descriptor{ID: AttrPortCounters, Name: "PortCounters", Size: PortCountersSize, New: func() Attribute { return new(PortCounters) }})

// ID is AttrPortCounters.
func (*PortCounters) ID() mad.AttributeID { return AttrPortCounters }

// String prints the fields; reserved bits are left out.
func (a PortCounters) String() string { return show.Fields(a) }

// UnmarshalBinary reads PortCountersSize bytes.
func (p *PortCounters) UnmarshalBinary(data []byte) error {
	if err := checkLength("PortCounters", data, PortCountersSize); err != nil {
		return err
	}
	*p = PortCounters{
		reserved0:                    data[0],
		PortSelect:                   ib.PortNum(data[1]),
		CounterSelect:                CounterSelect(binary.BigEndian.Uint16(data[2:])),
		SymbolErrorCounter:           binary.BigEndian.Uint16(data[4:]),
		LinkErrorRecoveryCounter:     data[6],
		LinkDownedCounter:            data[7],
		PortRcvErrors:                binary.BigEndian.Uint16(data[8:]),
		PortRcvRemotePhysicalErrors:  binary.BigEndian.Uint16(data[10:]),
		PortRcvSwitchRelayErrors:     binary.BigEndian.Uint16(data[12:]),
		PortXmitDiscards:             binary.BigEndian.Uint16(data[14:]),
		PortXmitConstraintErrors:     data[16],
		PortRcvConstraintErrors:      data[17],
		CounterSelect2:               CounterSelect2(data[18]),
		LocalLinkIntegrityErrors:     data[19] >> 4,
		ExcessiveBufferOverrunErrors: data[19] & 0x0F,
		QP1Dropped:                   binary.BigEndian.Uint16(data[20:]),
		VL15Dropped:                  binary.BigEndian.Uint16(data[22:]),
		PortXmitData:                 binary.BigEndian.Uint32(data[24:]),
		PortRcvData:                  binary.BigEndian.Uint32(data[28:]),
		PortXmitPkts:                 binary.BigEndian.Uint32(data[32:]),
		PortRcvPkts:                  binary.BigEndian.Uint32(data[36:]),
		PortXmitWait:                 binary.BigEndian.Uint32(data[40:]),
	}
	return nil
}

// AppendBinary appends PortCountersSize bytes. It fails for a value that does
// not fit its bits.
func (p *PortCounters) AppendBinary(b []byte) ([]byte, error) {
	for _, narrow := range []struct {
		field string
		value uint8
	}{
		{"LocalLinkIntegrityErrors", p.LocalLinkIntegrityErrors},
		{"ExcessiveBufferOverrunErrors", p.ExcessiveBufferOverrunErrors},
	} {
		if narrow.value > 0x0F {
			return b, fmt.Errorf("PortCounters.%s: value %#x does not fit 4 bits", narrow.field, narrow.value)
		}
	}
	b = append(b, p.reserved0, byte(p.PortSelect))
	b = binary.BigEndian.AppendUint16(b, uint16(p.CounterSelect))
	b = binary.BigEndian.AppendUint16(b, p.SymbolErrorCounter)
	b = append(b, p.LinkErrorRecoveryCounter, p.LinkDownedCounter)
	b = binary.BigEndian.AppendUint16(b, p.PortRcvErrors)
	b = binary.BigEndian.AppendUint16(b, p.PortRcvRemotePhysicalErrors)
	b = binary.BigEndian.AppendUint16(b, p.PortRcvSwitchRelayErrors)
	b = binary.BigEndian.AppendUint16(b, p.PortXmitDiscards)
	b = append(b, p.PortXmitConstraintErrors, p.PortRcvConstraintErrors, byte(p.CounterSelect2),
		p.LocalLinkIntegrityErrors<<4|p.ExcessiveBufferOverrunErrors)
	b = binary.BigEndian.AppendUint16(b, p.QP1Dropped)
	b = binary.BigEndian.AppendUint16(b, p.VL15Dropped)
	b = binary.BigEndian.AppendUint32(b, p.PortXmitData)
	b = binary.BigEndian.AppendUint32(b, p.PortRcvData)
	b = binary.BigEndian.AppendUint32(b, p.PortXmitPkts)
	b = binary.BigEndian.AppendUint32(b, p.PortRcvPkts)
	return binary.BigEndian.AppendUint32(b, p.PortXmitWait), nil
}

func checkLength(attribute string, data []byte, size int) error {
	if len(data) < size {
		return fmt.Errorf("%s: %d bytes, want %d", attribute, len(data), size)
	}
	return nil
}
