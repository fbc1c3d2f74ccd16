package pm

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
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
	PortSelect                   ib.PortNum     `ib:"8,8"`
	CounterSelect                ExtendedSelect `ib:"16,16"`
	CounterSelect2               uint32         `ib:"32,32"`
	PortXmitData                 uint64         `ib:"64,64"`  // units of 4 bytes
	PortRcvData                  uint64         `ib:"128,64"` // units of 4 bytes
	PortXmitPkts                 uint64         `ib:"192,64"`
	PortRcvPkts                  uint64         `ib:"256,64"`
	PortUnicastXmitPkts          uint64         `ib:"320,64"`
	PortUnicastRcvPkts           uint64         `ib:"384,64"`
	PortMulticastXmitPkts        uint64         `ib:"448,64"`
	PortMulticastRcvPkts         uint64         `ib:"512,64"`
	SymbolErrorCounter           uint64         `ib:"576,64"`
	LinkErrorRecoveryCounter     uint64         `ib:"640,64"`
	LinkDownedCounter            uint64         `ib:"704,64"`
	PortRcvErrors                uint64         `ib:"768,64"`
	PortRcvRemotePhysicalErrors  uint64         `ib:"832,64"`
	PortRcvSwitchRelayErrors     uint64         `ib:"896,64"`
	PortXmitDiscards             uint64         `ib:"960,64"`
	PortXmitConstraintErrors     uint64         `ib:"1024,64"`
	PortRcvConstraintErrors      uint64         `ib:"1088,64"`
	LocalLinkIntegrityErrors     uint64         `ib:"1152,64"`
	ExcessiveBufferOverrunErrors uint64         `ib:"1216,64"`
	VL15Dropped                  uint64         `ib:"1280,64"`
	PortXmitWait                 uint64         `ib:"1344,64"`
	QP1Dropped                   uint64         `ib:"1408,64"`

	reserved0 uint8 `ib:"0,8"`
}

// AttrPortCountersExtended is the number of PortCountersExtended.
const AttrPortCountersExtended mad.AttributeID = 0x001D

var portCountersExtendedFormat = add[PortCountersExtended](Descriptor{ID: AttrPortCountersExtended, Size: PortCountersExtendedSize})

// ID is AttrPortCountersExtended.
func (*PortCountersExtended) ID() mad.AttributeID { return AttrPortCountersExtended }

// String prints the fields; reserved bits are left out.
func (a PortCountersExtended) String() string { return layout.Print(a) }

// UnmarshalBinary reads PortCountersExtendedSize bytes.
func (p *PortCountersExtended) UnmarshalBinary(data []byte) error {
	return portCountersExtendedFormat.Unmarshal(p, data)
}

// AppendBinary appends PortCountersExtendedSize bytes; it cannot fail.
func (p *PortCountersExtended) AppendBinary(b []byte) ([]byte, error) {
	return portCountersExtendedFormat.Append(b, p)
}
