package fabric

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// TestDevice: a device has what the topology says of it, and the default tables; an agent
// can be made of it.
func TestDevice(t *testing.T) {
	kinds := map[ib.NodeType]int{}
	for _, n := range topology.Demo().Nodes {
		kinds[n.Type]++
		d := DeviceProfile(n)
		if d.NodeGUID != n.GUID || d.NodeType != n.Type || len(d.Ports) != n.NumPorts() || d.PartitionCap != 128 {
			t.Errorf("%s: %+v", n.ID, d)
		}
		if n.Description != "" && d.Description != n.Description {
			t.Errorf("%s is described as %q, want %q", n.ID, d.Description, n.Description)
		}
		if (d.Switch != nil) != (n.Type == ib.NodeSwitch) {
			t.Errorf("%s: switch settings %+v", n.ID, d.Switch)
		}
		for i, p := range d.Ports {
			if want := n.Ports[i+1]; p.GUID != want.GUID || uint8(p.LinkWidthEnabled) != want.Enabled.Width || p.LinkWidthSupported&p.LinkWidthEnabled != p.LinkWidthEnabled || p.GUIDCap != 32 {
				t.Errorf("%s:%d: %+v, want the GUID and the rates of %+v", n.ID, i+1, p, want)
			}
		}
		if d.Switch != nil && (d.Switch.LinearFDBCap != 49152 || d.Switch.PartitionEnforcementCap != 64 || !d.Switch.Port0.CapabilityMask.Has(smp.CapMulticastFDBTop)) {
			t.Errorf("%s: %+v", n.ID, d.Switch)
		}
		if _, err := sma.New(d); err != nil {
			t.Errorf("%s: %v", n.ID, err)
		}
	}
	if kinds[ib.NodeSwitch] == 0 || kinds[ib.NodeCA] == 0 {
		t.Fatalf("the topology has %v", kinds)
	}
	n := *topology.Demo().Nodes[0]
	n.ID, n.Description = "leaf-9", ""
	if d := DeviceProfile(&n); d.Description != "leaf-9" {
		t.Errorf("a device without a description is described as %q, want its name", d.Description)
	}
}

// TestSupportedWidths: whatever widths a file enables, those that the port supports are a set
// that exists: 1x, 1x and 4x, or with 12x too, and with the widths of today beside; and it
// has 2.5 Gb/s.
func TestSupportedWidths(t *testing.T) {
	for w := uint8(1); w < 32; w++ {
		n := topology.NewNode(ib.NodeCA, "n", 1, 1)
		n.Ports[1].GUID, n.Ports[1].Enabled = 2, topology.Rates{Width: w, Speed: topology.SpeedQDR}
		d := DeviceProfile(n)
		p := d.Ports[0]
		switch p.LinkWidthSupported &^ (smp.LinkWidth2X | smp.LinkWidth8X) {
		case 1, 3, 11:
		default:
			t.Errorf("widths %d: supported %d", w, p.LinkWidthSupported)
		}
		if uint8(p.LinkWidthEnabled) != w || uint8(p.LinkWidthSupported)&w != w || p.LinkSpeedSupported != smp.LinkSpeedSDR|smp.LinkSpeedQDR || p.LinkSpeedEnabled != smp.LinkSpeedQDR {
			t.Errorf("widths %d: %+v", w, p)
		}
		if a, err := sma.New(d); err != nil || uint8(a.Port(1).LinkWidthEnabled) != w {
			t.Errorf("widths %d: %v", w, err)
		}
	}
}

// TestPerThousand: the time of 1000 bytes by the rate of the link; an unknown rate is the
// slowest there is, 2 Gb/s.
func TestPerThousand(t *testing.T) {
	for _, c := range []struct {
		info smp.PortInfo
		want time.Duration
	}{
		{smp.PortInfo{LinkWidthActive: smp.LinkWidth1X, LinkSpeedActive: 1}, 4 * time.Microsecond},
		{smp.PortInfo{LinkWidthActive: smp.LinkWidth4X, LinkSpeedActive: 4}, 250 * time.Nanosecond},
		{smp.PortInfo{LinkWidthActive: smp.LinkWidth4X, LinkSpeedExtActive: smp.LinkSpeedEDR}, 80 * time.Nanosecond},
		{smp.PortInfo{LinkWidthActive: smp.LinkWidth12X, LinkSpeedExtActive: smp.LinkSpeedNDR}, 6 * time.Nanosecond},
		{smp.PortInfo{}, 4 * time.Microsecond},
	} {
		if got := PerThousand(&c.info); got != c.want {
			t.Errorf("width %v, speed %v, extended %v: %v, want %v", c.info.LinkWidthActive, c.info.LinkSpeedActive, c.info.LinkSpeedExtActive, got, c.want)
		}
	}
}
