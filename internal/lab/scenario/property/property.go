package property

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Property is something that a device line can say: a number of so many bits (1
// for on or off), and what it changes.
type Property struct {
	Bits  int
	Apply func(c *sma.Config, n uint64) bool // false: not for such a device
}

// ofSwitch makes a property of switches.
func ofSwitch(bits int, apply func(s *sma.SwitchConfig, n uint64)) Property {
	return Property{bits, func(c *sma.Config, n uint64) bool {
		if c.Switch == nil {
			return false
		}
		apply(c.Switch, n)
		return true
	}}
}

// ofPorts makes a property of all ports of a device, port 0 of a switch included.
func ofPorts(bits int, apply func(p *sma.PortConfig, n uint64)) Property {
	return Property{bits, func(c *sma.Config, n uint64) bool {
		for i := range c.Ports {
			apply(&c.Ports[i], n)
		}
		if c.Switch != nil {
			apply(&c.Switch.Port0, n)
		}
		return true
	}}
}

func ofDevice(bits int, apply func(c *sma.Config, n uint64)) Property {
	return Property{bits, func(c *sma.Config, n uint64) bool { apply(c, n); return true }}
}

// All returns the properties by name.
func All() map[string]Property {
	all := map[string]Property{
		"partition-cap":           ofDevice(16, func(c *sma.Config, n uint64) { c.PartitionCap = uint16(n) }),
		"default-pkey":            ofDevice(16, func(c *sma.Config, n uint64) { c.DefaultPKey = ib.PKey(n) }),
		"device-id":               ofDevice(16, func(c *sma.Config, n uint64) { c.DeviceID = uint16(n) }),
		"vendor-id":               ofDevice(24, func(c *sma.Config, n uint64) { c.VendorID = uint32(n) }),
		"revision":                ofDevice(32, func(c *sma.Config, n uint64) { c.Revision = uint32(n) }),
		"system-image-guid":       ofDevice(64, func(c *sma.Config, n uint64) { c.SystemImageGUID = n }),
		"one-membership":          ofDevice(1, func(c *sma.Config, n uint64) { c.OneMembership = n == 1 }),
		"pkey-traps":              ofDevice(1, func(c *sma.Config, n uint64) { c.PKeyTraps = n == 1 }),
		"bad-pkey-counter":        ofDevice(1, func(c *sma.Config, n uint64) { c.NoBadPKeyCounter = n == 0 }),
		"bad-qkey-counter":        ofDevice(1, func(c *sma.Config, n uint64) { c.NoBadQKeyCounter = n == 0 }),
		"hides-extended-speeds":   ofDevice(1, func(c *sma.Config, n uint64) { c.HidesExtendedSpeeds = n == 1 }),
		"refuses-extended-speeds": ofDevice(1, func(c *sma.Config, n uint64) { c.RefusesExtendedSpeeds = n == 1 }),
		"led-stuck":               ofDevice(1, func(c *sma.Config, n uint64) { c.LEDStuck = n == 1 }),
		"keeps-sl":                ofDevice(1, func(c *sma.Config, n uint64) { c.AnswersKeepSL = n == 1 }),
		"router-enforces":         ofDevice(1, func(c *sma.Config, n uint64) { c.RouterEnforcement = n == 1 }),
		"trap-sends":              ofDevice(8, func(c *sma.Config, n uint64) { c.TrapSends = int(n) }),
		"book-values":             ofDevice(1, bookValues),
		"bad-input-ignored":       ofDevice(1, badInput(sma.BadInputIgnored)),
		"bad-input-partly":        ofDevice(1, badInput(sma.BadInputPartly)),

		"diag-code":      ofPorts(16, func(p *sma.PortConfig, n uint64) { p.DiagCode = smp.DiagCode(n) }),
		"guid-cap":       ofPorts(8, func(p *sma.PortConfig, n uint64) { p.GUIDCap = uint8(n) }),
		"subnet-timeout": ofPorts(5, func(p *sma.PortConfig, n uint64) { p.SubnetTimeOut = ib.TimeValue(n) }),
		"response-time":  ofPorts(5, func(p *sma.PortConfig, n uint64) { p.RespTimeValue = ib.TimeValue(n) }),
		"link-width": ofPorts(5, func(p *sma.PortConfig, n uint64) {
			p.LinkWidthSupported, p.LinkWidthEnabled = smp.LinkWidth(n), 0
		}),
		"link-speed": ofPorts(3, func(p *sma.PortConfig, n uint64) {
			p.LinkSpeedSupported, p.LinkSpeedEnabled = smp.LinkSpeed(n), 0
		}),
		"link-speed-ext":      ofPorts(4, func(p *sma.PortConfig, n uint64) { p.LinkSpeedExtSupported = smp.LinkSpeedExt(n) }),
		"link-speed-ext2":     ofPorts(2, func(p *sma.PortConfig, n uint64) { p.LinkSpeedExtSupported2 = smp.LinkSpeedExt2(n) }),
		"vl-arbitration-high": ofPorts(7, func(p *sma.PortConfig, n uint64) { p.VLArbitrationHighCap = uint8(n) }),
		"vl-arbitration-low":  ofPorts(7, func(p *sma.PortConfig, n uint64) { p.VLArbitrationLowCap = uint8(n) }),
		"vl-cap": ofPorts(4, func(p *sma.PortConfig, n uint64) {
			if p.VLCap = uint8(n); n == 1 {
				p.VLArbitrationHighCap, p.VLArbitrationLowCap = 0, 0
			}
		}),
		"mtu-cap": ofPorts(4, func(p *sma.PortConfig, n uint64) { p.MTUCap = ib.MTU(n) }),

		"enforcement-cap":      ofSwitch(16, func(s *sma.SwitchConfig, n uint64) { s.PartitionEnforcementCap = uint16(n) }),
		"inbound-enforcement":  ofSwitch(1, func(s *sma.SwitchConfig, n uint64) { s.InboundEnforcementCap = n == 1 }),
		"outbound-enforcement": ofSwitch(1, func(s *sma.SwitchConfig, n uint64) { s.OutboundEnforcementCap = n == 1 }),
		"filter-raw-inbound":   ofSwitch(1, func(s *sma.SwitchConfig, n uint64) { s.FilterRawInboundCap = n == 1 }),
		"filter-raw-outbound":  ofSwitch(1, func(s *sma.SwitchConfig, n uint64) { s.FilterRawOutboundCap = n == 1 }),
		"enhanced-port0":       ofSwitch(1, func(s *sma.SwitchConfig, n uint64) { s.EnhancedPort0 = n == 1 }),
		"optimized-sl-to-vl":   ofSwitch(1, func(s *sma.SwitchConfig, n uint64) { s.OptimizedSLToVL = n == 1 }),
		"multicast-cap":        ofSwitch(16, func(s *sma.SwitchConfig, n uint64) { s.MulticastFDBCap = uint16(n) }),
		"linear-cap": ofSwitch(16, func(s *sma.SwitchConfig, n uint64) {
			if s.LinearFDBCap = uint16(n); n != 0 {
				s.RandomFDBCap = 0 // a switch has one table or the other
			}
		}),
		"random-cap": ofSwitch(16, func(s *sma.SwitchConfig, n uint64) {
			if s.RandomFDBCap = uint16(n); n != 0 {
				s.LinearFDBCap = 0
			}
		}),
		"lids-per-port":    ofSwitch(16, func(s *sma.SwitchConfig, n uint64) { s.LIDsPerPort = uint16(n) }),
		"promises-transit": {1, func(c *sma.Config, n uint64) bool { c.PromisesTransit = n == 1; return c.Switch != nil }},
		"drops-aged":       {1, func(c *sma.Config, n uint64) bool { c.DropsAged = n == 1; return c.Switch != nil }},
	}
	addCapabilities(all)
	return all
}

// badInput makes a device treat bad input in a way that is not the usual one.
func badInput(way sma.BadInput) func(*sma.Config, uint64) {
	return func(c *sma.Config, n uint64) {
		if c.BadInput = sma.BadInputRefused; n == 1 {
			c.BadInput = way
		}
	}
}

// bookValues gives every port what the first book knows: 1x, 4x or 12x at 2.5
// Gb/s.
func bookValues(c *sma.Config, n uint64) {
	if c.BookValues = n == 1; !c.BookValues {
		return
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		p.LinkWidthSupported, p.LinkSpeedSupported, p.LinkSpeedExtSupported = 11, smp.LinkSpeedSDR, 0
		p.LinkWidthEnabled, p.LinkSpeedEnabled = 0, 0
	}
}
