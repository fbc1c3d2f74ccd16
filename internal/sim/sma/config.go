package sma

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Limits of a device.
const (
	MaxPorts           = 254    // physical ports
	MaxLinearFDBCap    = 0xC000 // LIDs 0 to 0xBFFF
	MaxRandomFDBCap    = smp.RandomBlocks * smp.RandomEntriesPerBlock
	MaxMulticastFDBCap = 0x3FFF // LIDs 0xC000 to 0xFFFE
)

// BadInput is what a device does with a block past the end of a table and with
// a value that has no meaning. Neither changes anything, in any case.
type BadInput uint8

const (
	// BadInputRefused answers status 0x001C, and a refused Set changes nothing: of its other
	// elements neither.
	BadInputRefused BadInput = iota
	// BadInputIgnored answers status 0, with zeros for a block that does not
	// exist, as the first book says.
	BadInputIgnored
	// BadInputPartly answers status 0x001C, and the other elements of the Set take effect, as
	// with the agent of Linux's qib driver.
	BadInputPartly
)

// Config describes a device at power-up.
type Config struct {
	NodeType        ib.NodeType
	NodeGUID        ib.NodeGUID
	SystemImageGUID uint64
	Description     string
	VendorID        uint32 // 0 for the upper 24 bits of NodeGUID
	DeviceID        uint16
	Revision        uint32
	PartitionCap    uint16 // P_Key entries of end ports, at least 1
	// Ports are the physical ports, port 1 first.
	Ports []PortConfig
	// Switch is set for a switch and for nothing else.
	Switch *SwitchConfig
	// DefaultPKey is what every P_Key table holds at index 0 at power-up: full
	// or limited membership of the default partition. 0 stands for full.
	DefaultPKey ib.PKey
	// VendorAttributes are read-only attributes of the vendor's own, by id
	// from smp.AttrVendorMin up.
	VendorAttributes map[mad.AttributeID][mad.DataSize]byte

	Options
}

// Options are the points in which devices differ.
type Options struct {
	BadInput BadInput
	// BookValues restricts New to link widths of 1x, 4x and 12x and to
	// 2.5 Gb/s, all that the first book knows.
	BookValues bool
	// OneMembership refuses a P_Key table with full and limited membership of
	// one partition.
	OneMembership bool
	// RouterEnforcement gives the ports of a router partition enforcement and
	// raw filters. There is no announcement for it.
	RouterEnforcement bool
	// PKeyTraps sends trap 257 for each bad P_Key at an end port.
	PKeyTraps bool
	// NoBadPKeyCounter and NoBadQKeyCounter say that the device does not count for
	// its consumers what it drops for a key: verbs show 0. PortInfo counts.
	NoBadPKeyCounter, NoBadQKeyCounter bool
	// HidesExtendedSpeeds keeps the fields of extended speeds from a Get of PortInfo whose
	// modifier does not say that the sender knows them: they read 0, and LinkSpeedActive
	// is the fastest of LinkSpeedEnabled. Until a Get with the bit was answered, a port that runs
	// at such a speed passes packets of up to LockedBytes only, as linux-rdma/opensm 38 has it of
	// Quantum-2. Without it the bit makes no difference to a Get. A Set without the
	// bit leaves LinkSpeedExtEnabled as it is at any device.
	HidesExtendedSpeeds bool
	// RefusesExtendedSpeeds refuses a PortInfo whose modifier has that bit, as a device may
	// that was made before there were extended speeds.
	RefusesExtendedSpeeds bool
	// LEDStuck keeps the light off whatever is written.
	LEDStuck bool
	// AnswersKeepSL sends the answer to a request on the service level of the
	// request also to the master, as devices do today; else it is MasterSMSL.
	AnswersKeepSL bool
	// PromisesTransit says of a switch that it sends every packet within 2.5 ms as
	// long as credits last. Then it drops packets older than SwitchInfo's
	// LifeTimeValue only with DropsAged; any other switch always does.
	PromisesTransit, DropsAged bool
	// TrapSends is how often a trap is sent before it is given up; 0 for until
	// it is repressed.
	TrapSends int
}

// PortConfig is what a port is capable of.
type PortConfig struct {
	// Of an end port: a CA or router port, or port 0 of a switch.
	GUID            ib.PortGUID
	CapabilityMask  smp.CapabilityMask
	CapabilityMask2 smp.CapabilityMask2
	DiagCode        smp.DiagCode
	// VendorDiag holds the blocks of diagnostic data by index; other indexes
	// read as zeros, without a next block.
	VendorDiag    map[uint16]smp.VendorDiag
	GUIDCap       uint8        // at least 1
	SubnetTimeOut ib.TimeValue // at power-up
	RespTimeValue ib.TimeValue

	// Of a port with a link: any but a base port 0, where MTUCap and VLCap
	// may be given too.
	LinkWidthSupported     smp.LinkWidth
	LinkSpeedSupported     smp.LinkSpeed
	LinkSpeedExtSupported  smp.LinkSpeedExt
	LinkSpeedExtSupported2 smp.LinkSpeedExt2
	// LinkWidthEnabled and LinkSpeedEnabled are what of that is enabled at power-up, 0 for
	// all of it.
	LinkWidthEnabled     smp.LinkWidth
	LinkSpeedEnabled     smp.LinkSpeed
	VLCap                uint8 // a code of smp.DataVLs
	MTUCap               ib.MTU
	VLArbitrationHighCap uint8 // 1 to 64 with more than one data VL, else 0
	VLArbitrationLowCap  uint8
}

// TypicalPort is a port of today's kind: 4x EDR, 8 data virtual lanes, 4096 bytes.
// The GUID of an end port is left to be set.
func TypicalPort() PortConfig {
	return PortConfig{
		CapabilityMask: smp.CapTrapSupported | smp.CapAutomaticMigration | smp.CapSLMapping |
			smp.CapSystemImageGUID | smp.CapExtendedSpeeds | smp.CapCommunicationManagement |
			smp.CapCapabilityMaskNotice | smp.CapClientReregistration | smp.CapOtherLocalChangesNotice,
		GUIDCap:               8,
		SubnetTimeOut:         18,
		RespTimeValue:         16,
		LinkWidthSupported:    smp.LinkWidth1X | smp.LinkWidth4X,
		LinkSpeedSupported:    smp.LinkSpeedSDR | smp.LinkSpeedDDR | smp.LinkSpeedQDR,
		LinkSpeedExtSupported: smp.LinkSpeedFDR | smp.LinkSpeedEDR,
		VLCap:                 4,
		MTUCap:                ib.MTU4096,
		VLArbitrationHighCap:  8,
		VLArbitrationLowCap:   8,
	}
}

// SwitchConfig is what a switch has beyond other devices.
type SwitchConfig struct {
	// Port0 is the management port.
	Port0         PortConfig
	EnhancedPort0 bool
	// Exactly one of LinearFDBCap and RandomFDBCap is not zero.
	LinearFDBCap    uint16
	RandomFDBCap    uint16
	MulticastFDBCap uint16
	LIDsPerPort     uint16

	PartitionEnforcementCap uint16 // P_Key entries of external ports
	InboundEnforcementCap   bool
	OutboundEnforcementCap  bool
	FilterRawInboundCap     bool
	FilterRawOutboundCap    bool
	// OptimizedSLToVL lets a SLToVLMappingTable modifier name many ports.
	OptimizedSLToVL bool
}

// New makes the agent of a device that was just switched on, its links down.
// It fails on a Config that no device can have.
func New(c Config) (*Agent, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("device %v: %w", c.NodeGUID, err)
	}
	a := &Agent{
		options:     c.Options,
		defaultKeys: []ib.PKey{c.DefaultPKey},
		vendor:      c.VendorAttributes,
		node: smp.NodeInfo{
			BaseVersion:     mad.BaseVersion,
			ClassVersion:    mad.ClassVersion,
			NodeType:        c.NodeType,
			NumPorts:        uint8(len(c.Ports)),
			SystemImageGUID: c.SystemImageGUID,
			NodeGUID:        c.NodeGUID,
			PartitionCap:    c.PartitionCap,
			DeviceID:        c.DeviceID,
			Revision:        c.Revision,
			VendorID:        c.VendorID,
		},
	}
	if c.VendorID == 0 {
		a.node.VendorID = uint32(c.NodeGUID >> 40)
	}
	if c.DefaultPKey == 0 {
		a.defaultKeys[0] = ib.PKeyDefaultFull
	}
	if err := a.description.SetString(c.Description); err != nil {
		return nil, fmt.Errorf("device %v: %w", c.NodeGUID, err)
	}
	a.ports = make([]port, 1, 1+len(c.Ports))
	kind := external
	if s := c.Switch; s != nil {
		a.fabric = newForwarding(s)
		a.ports[0].init(s.Port0, basePort0)
		if s.EnhancedPort0 {
			a.ports[0].init(s.Port0, enhancedPort0)
		}
	} else if kind = caPort; c.NodeType == ib.NodeRouter {
		kind = routerPort
	}
	for _, p := range c.Ports {
		a.ports = append(a.ports, port{})
		a.ports[len(a.ports)-1].init(p, kind)
	}
	return a, nil
}

// Restart makes the agent of the device after it was off and on again: as New
// makes it, but for the P_Key tables and M_Keys that CapabilityMask says are
// kept. c must be what the agent was made of.
func (a *Agent) Restart(c Config) (*Agent, error) {
	b, err := New(c)
	if err != nil || len(b.ports) != len(a.ports) {
		return b, err
	}
	for n := range b.ports {
		end := b.endPort(ib.PortNum(n))
		if end == nil {
			continue
		}
		was, is := &a.ports[n], &b.ports[n]
		if end.info.CapabilityMask.Has(smp.CapPKeyNVRAM) {
			is.keys = was.keys
		}
		if end.info.CapabilityMask.Has(smp.CapMKeyNVRAM) {
			is.info.MKey, is.info.MKeyProtectBits = was.info.MKey, was.info.MKeyProtectBits
			is.info.MKeyLeasePeriod = was.info.MKeyLeasePeriod
		}
	}
	return b, nil
}

func (c *Config) check() error {
	switch {
	case c.NodeType != ib.NodeCA && c.NodeType != ib.NodeSwitch && c.NodeType != ib.NodeRouter:
		return fmt.Errorf("node type %d: want CA, switch or router", c.NodeType)
	case (c.NodeType == ib.NodeSwitch) != (c.Switch != nil):
		return fmt.Errorf("a %v: Config.Switch is for switches, and every switch has it", c.NodeType)
	case len(c.Ports) < 1 || len(c.Ports) > MaxPorts:
		return fmt.Errorf("%d ports: want 1 to %d", len(c.Ports), MaxPorts)
	case c.PartitionCap < 1:
		return fmt.Errorf("PartitionCap 0: want at least 1")
	case c.VendorID > 0xFF_FFFF:
		return fmt.Errorf("VendorID %#x: want 24 bits", c.VendorID)
	case c.DefaultPKey != 0 && c.DefaultPKey.Base() != ib.PKeyBaseDefault:
		return fmt.Errorf("default P_Key %v: want %v or %v", c.DefaultPKey, ib.PKeyDefaultFull, ib.PKeyDefaultLimited)
	}
	for id := range c.VendorAttributes {
		if id < smp.AttrVendorMin {
			return fmt.Errorf("vendor attribute 0x%04x: want 0x%04x or more", id, smp.AttrVendorMin)
		}
	}
	if c.Switch != nil {
		if err := c.Switch.check(c.BookValues); err != nil {
			return err
		}
	}
	return c.checkPorts()
}

func (c *Config) checkPorts() error {
	owner := map[ib.PortGUID]int{}
	for i, p := range c.Ports {
		number := i + 1
		if err := p.checkLink(c.BookValues); err != nil {
			return fmt.Errorf("port %d: %w", number, err)
		}
		if c.Switch != nil {
			continue
		}
		if err := p.checkEnd(); err != nil {
			return fmt.Errorf("port %d: %w", number, err)
		}
		if other := owner[p.GUID]; other != 0 {
			return fmt.Errorf("port %d: GUID %v is that of port %d", number, p.GUID, other)
		}
		owner[p.GUID] = number
	}
	return nil
}

func (s *SwitchConfig) check(book bool) error {
	switch {
	case (s.LinearFDBCap == 0) == (s.RandomFDBCap == 0):
		return fmt.Errorf("LinearFDBCap %d and RandomFDBCap %d: want exactly one of them not zero", s.LinearFDBCap, s.RandomFDBCap)
	case s.LinearFDBCap > MaxLinearFDBCap:
		return fmt.Errorf("LinearFDBCap %d: want at most %d", s.LinearFDBCap, MaxLinearFDBCap)
	case s.RandomFDBCap > MaxRandomFDBCap:
		return fmt.Errorf("RandomFDBCap %d: want at most %d", s.RandomFDBCap, MaxRandomFDBCap)
	case s.MulticastFDBCap > MaxMulticastFDBCap:
		return fmt.Errorf("MulticastFDBCap %d: want at most %d", s.MulticastFDBCap, MaxMulticastFDBCap)
	}
	if err := s.Port0.checkEnd(); err != nil {
		return fmt.Errorf("port 0: %w", err)
	}
	if s.EnhancedPort0 {
		if err := s.Port0.checkLink(book); err != nil {
			return fmt.Errorf("port 0: %w", err)
		}
	}
	return nil
}

// checkEnd looks at what an end port has.
func (p *PortConfig) checkEnd() error {
	switch {
	case p.GUID == 0:
		return fmt.Errorf("GUID 0: every end port has a GUID")
	case p.GUIDCap < 1:
		return fmt.Errorf("GUIDCap 0: want at least 1")
	case p.SubnetTimeOut > maxTimeValue:
		return fmt.Errorf("SubnetTimeOut %d: want at most %d", p.SubnetTimeOut, maxTimeValue)
	case p.RespTimeValue > maxTimeValue:
		return fmt.Errorf("RespTimeValue %d: want at most %d", p.RespTimeValue, maxTimeValue)
	}
	return nil
}

const maxTimeValue ib.TimeValue = 31

// checkLink looks at what a port with a link has.
func (p *PortConfig) checkLink(book bool) error {
	const (
		widths     = smp.LinkWidth1X | smp.LinkWidth2X | smp.LinkWidth4X | smp.LinkWidth8X | smp.LinkWidth12X
		bookWidths = smp.LinkWidth1X | smp.LinkWidth4X | smp.LinkWidth12X
		speeds     = smp.LinkSpeedSDR | smp.LinkSpeedDDR | smp.LinkSpeedQDR
		extended   = smp.LinkSpeedFDR | smp.LinkSpeedEDR | smp.LinkSpeedHDR | smp.LinkSpeedNDR
	)
	w, s, x := p.LinkWidthSupported, p.LinkSpeedSupported, p.LinkSpeedExtSupported
	switch {
	case w == 0 || w&^widths != 0:
		return fmt.Errorf("LinkWidthSupported %v: want some of %v", w, widths)
	case s == 0 || s&^speeds != 0:
		return fmt.Errorf("LinkSpeedSupported %v: want some of %v", s, speeds)
	case x&^extended != 0:
		return fmt.Errorf("LinkSpeedExtSupported %v: want some of %v, or none", x, extended)
	case p.LinkWidthEnabled&^w != 0:
		return fmt.Errorf("LinkWidthEnabled %v: want some of %v", p.LinkWidthEnabled, w)
	case p.LinkSpeedEnabled&^s != 0:
		return fmt.Errorf("LinkSpeedEnabled %v: want some of %v", p.LinkSpeedEnabled, s)
	case p.LinkSpeedExtSupported2&^smp.LinkSpeedXDR != 0:
		return fmt.Errorf("LinkSpeedExtSupported2 %v: want %v, or none", p.LinkSpeedExtSupported2, smp.LinkSpeedXDR)
	case book && w != smp.LinkWidth1X && w != smp.LinkWidth1X|smp.LinkWidth4X && w != bookWidths:
		return fmt.Errorf("LinkWidthSupported %d: want 1, 3 or 11, as in the book", w)
	case book && (s != smp.LinkSpeedSDR || x != 0 || p.LinkSpeedExtSupported2 != 0):
		return fmt.Errorf("LinkSpeedSupported %d with LinkSpeedExtSupported %d: want 1 with 0, as in the book", s, x)
	case smp.DataVLs(p.VLCap) == 0:
		return fmt.Errorf("VLCap %d: want 1 to 5", p.VLCap)
	case !p.MTUCap.IsValid():
		return fmt.Errorf("MTUCap %d: want 1 to 5", p.MTUCap)
	}
	if err := p.checkArbitration("VLArbitrationHighCap", p.VLArbitrationHighCap); err != nil {
		return err
	}
	return p.checkArbitration("VLArbitrationLowCap", p.VLArbitrationLowCap)
}

func (p *PortConfig) checkArbitration(name string, entries uint8) error {
	lanes := smp.DataVLs(p.VLCap)
	switch {
	case lanes == 1 && entries != 0:
		return fmt.Errorf("%s %d: want 0 with one data VL", name, entries)
	case lanes > 1 && (entries < 1 || entries > smp.VLArbitrationMax):
		return fmt.Errorf("%s %d: want 1 to %d with %d data VLs", name, entries, smp.VLArbitrationMax, lanes)
	}
	return nil
}
