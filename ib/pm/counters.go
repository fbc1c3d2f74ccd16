package pm

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
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
	PortSelect                   ib.PortNum     `ib:"8,8"`
	CounterSelect                CounterSelect  `ib:"16,16"`
	SymbolErrorCounter           uint16         `ib:"32,16"`
	LinkErrorRecoveryCounter     uint8          `ib:"48,8"`
	LinkDownedCounter            uint8          `ib:"56,8"`
	PortRcvErrors                uint16         `ib:"64,16"`
	PortRcvRemotePhysicalErrors  uint16         `ib:"80,16"`
	PortRcvSwitchRelayErrors     uint16         `ib:"96,16"`
	PortXmitDiscards             uint16         `ib:"112,16"`
	PortXmitConstraintErrors     uint8          `ib:"128,8"` // partition enforcement and raw filters, outbound
	PortRcvConstraintErrors      uint8          `ib:"136,8"` // partition enforcement and raw filters, inbound
	CounterSelect2               CounterSelect2 `ib:"144,8"`
	LocalLinkIntegrityErrors     uint8          `ib:"152,4"`
	ExcessiveBufferOverrunErrors uint8          `ib:"156,4"`
	QP1Dropped                   uint16         `ib:"160,16"`
	VL15Dropped                  uint16         `ib:"176,16"`
	PortXmitData                 uint32         `ib:"192,32"` // units of 4 bytes
	PortRcvData                  uint32         `ib:"224,32"` // units of 4 bytes
	PortXmitPkts                 uint32         `ib:"256,32"`
	PortRcvPkts                  uint32         `ib:"288,32"`
	PortXmitWait                 uint32         `ib:"320,32"` // ticks

	reserved0 uint8 `ib:"0,8"`
}

// AttrPortCounters is the number of PortCounters.
const AttrPortCounters mad.AttributeID = 0x0012

var portCountersFormat = add[PortCounters](Descriptor{ID: AttrPortCounters, Size: PortCountersSize})

// ID is AttrPortCounters.
func (*PortCounters) ID() mad.AttributeID { return AttrPortCounters }

// String prints the fields; reserved bits are left out.
func (a PortCounters) String() string { return layout.Print(a) }

// UnmarshalBinary reads PortCountersSize bytes.
func (p *PortCounters) UnmarshalBinary(data []byte) error {
	return portCountersFormat.Unmarshal(p, data)
}

// AppendBinary appends PortCountersSize bytes. It fails for a value that does
// not fit its bits.
func (p *PortCounters) AppendBinary(b []byte) ([]byte, error) { return portCountersFormat.Append(b, p) }
