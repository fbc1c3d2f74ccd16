// This file holds the default capabilities of simulated devices: common
// table sizes, virtual lanes and MTUs, and the names, GUIDs and rates of the topology.

package fabric

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Entries of the default profile's tables.
const (
	defaultLinearFDBCap    = 49152
	defaultMulticastFDBCap = 4096
	defaultEnforcementCap  = 64
	defaultPartitionCap    = 128
	defaultGUIDCap         = 32
)

// DeviceProfile is the configuration of a node's agent: the default profile with what
// the topology says of the node.
func DeviceProfile(n *topology.Node) sma.Config {
	d := sma.Config{
		NodeType:        n.Type,
		NodeGUID:        n.GUID,
		SystemImageGUID: n.SystemImageGUID,
		Description:     n.Description,
		VendorID:        n.VendorID,
		DeviceID:        n.DeviceID,
		PartitionCap:    defaultPartitionCap,
		Ports:           make([]sma.PortConfig, n.NumPorts()),
	}
	if d.Description == "" {
		d.Description = n.ID
	}
	for i := range d.Ports {
		d.Ports[i] = portConfig(&n.Ports[i+1])
	}
	if n.Type == ib.NodeSwitch {
		d.Switch = &sma.SwitchConfig{
			Port0:                   portConfig(&n.Ports[0]),
			EnhancedPort0:           n.EnhancedPort0,
			LinearFDBCap:            defaultLinearFDBCap,
			MulticastFDBCap:         defaultMulticastFDBCap,
			PartitionEnforcementCap: defaultEnforcementCap,
			InboundEnforcementCap:   true,
			OutboundEnforcementCap:  true,
			FilterRawInboundCap:     true,
			FilterRawOutboundCap:    true,
			OptimizedSLToVL:         true,
		}
		d.Switch.Port0.CapabilityMask |= smp.CapMulticastFDBTop
	}
	return d
}

// portConfig is the default profile of a port: eight data virtual lanes, 4096 bytes,
// and the rates that the topology enables.
func portConfig(p *topology.Port) sma.PortConfig {
	c := sma.TypicalPort()
	c.GUID = p.GUID
	c.GUIDCap = defaultGUIDCap
	c.LinkWidthEnabled, c.LinkWidthSupported = smp.LinkWidth(p.Enabled.Width), supported(p.Enabled.Width)
	c.LinkSpeedEnabled, c.LinkSpeedSupported = smp.LinkSpeed(p.Enabled.Speed), smp.LinkSpeed(p.Enabled.Speed)|smp.LinkSpeedSDR
	c.LinkSpeedExtSupported = smp.LinkSpeedExt(p.Enabled.ExtSpeed)
	c.LinkSpeedExtSupported2 = smp.LinkSpeedExt2(p.Enabled.ExtSpeed2)
	return c
}

// supported is what a port can that enables these widths: every port has 1x, and those of
// more than four lanes have 4x too, since other sets are reserved (4x alone is).
func supported(enabled uint8) smp.LinkWidth {
	w := smp.LinkWidth(enabled) | smp.LinkWidth1X
	if w&(smp.LinkWidth8X|smp.LinkWidth12X) != 0 {
		w |= smp.LinkWidth4X
	}
	return w
}

// slowest is the data rate of the slowest link, in Mb/s.
const slowest = 2000

// PerThousand is the time that 1000 bytes take on a port's link.
func PerThousand(info *smp.PortInfo) time.Duration {
	return time.Duration(8_000_000 / max(info.Speed().Data()*info.LinkWidthActive.Lanes(), slowest))
}
