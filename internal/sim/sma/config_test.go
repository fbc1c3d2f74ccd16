package sma

import (
	"runtime"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

func TestConfigRefused(t *testing.T) {
	port := func(c Config, edit func(*PortConfig)) Config {
		edit(&c.Ports[0])
		return c
	}
	with := func(c Config, edit func(*Config)) Config {
		edit(&c)
		return c
	}
	tests := []struct {
		rule   string
		config Config
		want   string
	}{
		{"NI-11", with(caConfig(1), func(c *Config) { c.NodeType = 4 }), "node type 4"},
		{"NI-11/0", with(caConfig(1), func(c *Config) { c.NodeType = 0 }), "node type 0"},
		{"NI-13", with(caConfig(1), func(c *Config) { c.Ports = nil }), "0 ports"},
		{"NI-13/255", switchConfig(255), "255 ports"},
		{"NI-18", with(caConfig(2), func(c *Config) { c.Ports[1].GUID = c.Ports[0].GUID }), "that of port 1"},
		{"NI-22", with(caConfig(1), func(c *Config) { c.PartitionCap = 0 }), "PartitionCap 0"},
		{"PK-35", with(switchConfig(1), func(c *Config) { c.PartitionCap = 0 }), "PartitionCap 0"},
		{"NI-26", with(caConfig(1), func(c *Config) { c.VendorID = 1 << 24 }), "VendorID"},
		{"NI-02", with(caConfig(1), func(c *Config) { c.Description = strings.Repeat("x", 65) }), "65 bytes"},
		{"AT-06", with(caConfig(1), func(c *Config) { c.VendorAttributes = map[mad.AttributeID][64]byte{0xFEFF: {}} }), "0xfeff"},
		{"LF-03/both", with(switchConfig(1), func(c *Config) { c.Switch.RandomFDBCap = 1 }), "exactly one"},
		{"LF-03/none", with(switchConfig(1), func(c *Config) { c.Switch.LinearFDBCap = 0 }), "exactly one"},
		{"LF-04", with(switchConfig(1), func(c *Config) { c.Switch.LinearFDBCap = 0xC001 }), "LinearFDBCap"},
		{"RF-01", with(randomConfig(1), func(c *Config) { c.Switch.RandomFDBCap = 49153 }), "RandomFDBCap"},
		{"MF-03", with(switchConfig(1), func(c *Config) { c.Switch.MulticastFDBCap = 0x4000 }), "MulticastFDBCap"},
		{"SI-02/switch", with(switchConfig(1), func(c *Config) { c.Switch = nil }), "Config.Switch"},
		{"SI-02/CA", with(caConfig(1), func(c *Config) { c.Switch = switchConfig(1).Switch }), "Config.Switch"},
		{"PK-33", with(caConfig(1), func(c *Config) { c.DefaultPKey = 0x8001 }), "0x8001"},
		{"GUID", port(caConfig(1), func(p *PortConfig) { p.GUID = 0 }), "GUID 0"},
		{"GUID of port 0", with(switchConfig(1), func(c *Config) { c.Switch.Port0.GUID = 0 }), "port 0"},
		{"GUIDCap", port(caConfig(1), func(p *PortConfig) { p.GUIDCap = 0 }), "GUIDCap"},
		{"SubnetTimeOut", port(caConfig(1), func(p *PortConfig) { p.SubnetTimeOut = 32 }), "SubnetTimeOut"},
		{"RespTimeValue", port(caConfig(1), func(p *PortConfig) { p.RespTimeValue = 32 }), "RespTimeValue"},
		{"link of enhanced port 0", with(enhancedConfig(1), func(c *Config) { c.Switch.Port0.VLCap = 0 }), "port 0: VLCap"},
		{"PI-28/0", port(caConfig(1), func(p *PortConfig) { p.LinkWidthSupported = 0 }), "LinkWidthSupported"},
		{"PI-28/32", port(caConfig(1), func(p *PortConfig) { p.LinkWidthSupported = 32 }), "LinkWidthSupported"},
		{"PI-28/book 2", port(book(caConfig(1)), func(p *PortConfig) { p.LinkWidthSupported = 2 }), "as in the book"},
		{"PI-28/book 5", port(book(caConfig(1)), func(p *PortConfig) { p.LinkWidthSupported = 5 }), "as in the book"},
		{"PI-33/0", port(caConfig(1), func(p *PortConfig) { p.LinkSpeedSupported = 0 }), "LinkSpeedSupported"},
		{"PI-33/8", port(caConfig(1), func(p *PortConfig) { p.LinkSpeedSupported = 8 }), "LinkSpeedSupported"},
		{"PI-33/book", port(book(caConfig(1)), func(p *PortConfig) { p.LinkSpeedSupported = 3 }), "as in the book"},
		{"PI-33/book extended", port(book(caConfig(1)), func(p *PortConfig) { p.LinkSpeedExtSupported = 1 }), "as in the book"},
		{"LinkSpeedExtSupported", port(caConfig(1), func(p *PortConfig) { p.LinkSpeedExtSupported = 16 }), "LinkSpeedExtSupported"},
		{"PI-67/0", port(caConfig(1), func(p *PortConfig) { p.VLCap = 0 }), "VLCap 0"},
		{"PI-67/6", port(caConfig(1), func(p *PortConfig) { p.VLCap = 6 }), "VLCap 6"},
		{"PI-78/0", port(caConfig(1), func(p *PortConfig) { p.MTUCap = 0 }), "MTUCap 0"},
		{"PI-78/6", port(caConfig(1), func(p *PortConfig) { p.MTUCap = 6 }), "MTUCap 6"},
		{"PI-71/0", port(caConfig(1), func(p *PortConfig) { p.VLArbitrationHighCap = 0 }), "VLArbitrationHighCap 0"},
		{"PI-71/65", port(caConfig(1), func(p *PortConfig) { p.VLArbitrationHighCap = 65 }), "VLArbitrationHighCap 65"},
		{"PI-72", port(caConfig(1), func(p *PortConfig) { p.VLCap = 1 }), "VLArbitrationHighCap 8"},
		{"PI-74/0", port(caConfig(1), func(p *PortConfig) { p.VLArbitrationLowCap = 0 }), "VLArbitrationLowCap 0"},
		{"PI-74/65", port(caConfig(1), func(p *PortConfig) { p.VLArbitrationLowCap = 65 }), "VLArbitrationLowCap 65"},
		{"PI-75", port(caConfig(1), func(p *PortConfig) { p.VLCap, p.VLArbitrationHighCap = 1, 0 }), "VLArbitrationLowCap 8"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			a, err := New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want one about %s", err, test.want)
			}
			if a != nil {
				t.Error("an agent in spite of the error")
			}
		})
	}
}

func TestConfigTaken(t *testing.T) {
	for _, width := range []smp.LinkWidth{1, 3, 11} {
		c := book(caConfig(1))
		c.Ports[0].LinkWidthSupported = width
		if got := start(t, c).portInfo(1, 1); got.LinkWidthSupported != width || got.LinkSpeedSupported != 1 {
			t.Errorf("PI-28, PI-33: width %v, speed %v", got.LinkWidthSupported, got.LinkSpeedSupported)
		}
	}
	for code := range uint8(5) {
		c := caConfig(1)
		c.Ports[0].VLCap = code + 1
		if code == 0 {
			c.Ports[0].VLArbitrationHighCap, c.Ports[0].VLArbitrationLowCap = 0, 0
		}
		if got := start(t, c).portInfo(1, 1); got.VLCap != code+1 {
			t.Errorf("PI-67: VLCap %d", got.VLCap)
		} else if code == 0 && (got.VLArbitrationHighCap != 0 || got.VLArbitrationLowCap != 0) {
			t.Errorf("PI-72, PI-75: %d, %d", got.VLArbitrationHighCap, got.VLArbitrationLowCap)
		}
	}
	for mtu := ib.MTU256; mtu <= ib.MTU4096; mtu++ {
		c := caConfig(1)
		c.Ports[0].MTUCap = mtu
		if got := start(t, c).portInfo(1, 1).MTUCap; got != mtu {
			t.Errorf("PI-78: MTUCap %d", got)
		}
	}
	// A base port 0 needs no link.
	c := switchConfig(1)
	c.Switch.Port0 = PortConfig{GUID: 1, GUIDCap: 1}
	start(t, c)
	if p := start(t, caConfig(1)); p.Port(0) != nil || p.Port(2) != nil || p.SwitchInfo() != nil {
		t.Error("views of what a CA has not")
	}
}

func TestRestartOfAnotherConfig(t *testing.T) {
	d := start(t, caConfig(2))
	if a, err := d.Restart(caConfig(1)); err != nil || a.Port(2) != nil {
		t.Errorf("%v", err)
	}
	if _, err := d.Restart(Config{}); err == nil {
		t.Error("no error")
	}
}

// What a fabric reads for each packet does not allocate, nor do the requests
// that a manager sends most.
func TestAllocations(t *testing.T) {
	d := start(t, switchConfig(36))
	d.address(1, 0x10)
	routeTo(d, 100, map[ib.LID]ib.PortNum{5: 2})
	d.mustSet(1, smp.MFTModifier(0, 0), &smp.MulticastForwardingTable{Masks: [32]uint16{0xFFFE}})
	p := mad.SMP{BaseVersion: 1, Class: mad.ClassSubnDirected, ClassVersion: 1}
	var sink int
	for name, f := range map[string]func(){
		"PortInfo": func() { p.AttributeID, p.AttributeModifier = smp.AttrPortInfo, 3 },
		"NodeInfo": func() { p.AttributeID, p.AttributeModifier = smp.AttrNodeInfo, 0 },
		"PKeys":    func() { p.AttributeID, p.AttributeModifier = smp.AttrPKeyTable, 0 },
		"Linear":   func() { p.AttributeID, p.AttributeModifier = smp.AttrLinearForwardingTable, 0 },
	} {
		if n := testing.AllocsPerRun(10, func() {
			f()
			p.Method = mad.MethodGet
			if r := d.Handle(0, Ingress{Port: 1}, &p); r.Verdict != Answered || p.Status != 0 {
				t.Errorf("%s: verdict %d, status %v", name, r.Verdict, p.Status)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		exit, _ := d.UnicastExit(1, 5)
		exits := d.MulticastExits(1, 0xC000)
		for n := range exits.All() {
			sink += int(n)
		}
		sink += int(exit) + int(d.VL(1, 2, 3)) + len(d.PKeys(2)) + int(d.Port(2).LMC)
	}); n != 0 || sink == 0 {
		t.Errorf("data path: %v allocations", n)
	}
}

// The three-level fabric of 11,664 hosts on 1,620 switches of 36 ports: its
// agents, with every table that a manager writes, fit into 100 MB.
func TestMemory(t *testing.T) {
	const hosts, switches, limit = 11664, 1620, 100 << 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	agents := make([]*Agent, 0, hosts+switches)
	ca, sw := caConfig(1), switchConfig(36)
	for i := range hosts + switches {
		c := ca
		if i >= hosts {
			c = sw
		}
		d := start(t, c)
		d.mustSet(1, 0, &smp.PKeyTable{Keys: keys(0x8001).Keys})
		if i >= hosts {
			var block smp.LinearForwardingTable
			for b := range uint32(208) { // 13,284 LIDs
				d.mustSet(1, b, &block)
			}
		}
		agents = append(agents, d.Agent)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := after.HeapAlloc - before.HeapAlloc
	t.Logf("%d agents in %d MB", len(agents), used>>20)
	if used > limit {
		t.Errorf("%d MB, want at most %d", used>>20, limit>>20)
	}
	runtime.KeepAlive(agents)
}

func BenchmarkGetPortInfo(b *testing.B) {
	d := start(b, switchConfig(36))
	p := mad.SMP{BaseVersion: 1, Class: mad.ClassSubnDirected, ClassVersion: 1, AttributeID: smp.AttrPortInfo, AttributeModifier: 3}
	for b.Loop() {
		p.Method = mad.MethodGet
		if d.Handle(0, Ingress{Port: 1}, &p).Verdict != Answered {
			b.Fatal("not answered")
		}
	}
}
