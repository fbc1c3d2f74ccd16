package desired

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// chain is three switches in a row, each with a host: a holds red, b blue, c green and a limited
// key of red; switch y itself holds brown. A second cable joins x and y, and one x with itself.
func chain(t *testing.T, capacity uint16) (f *observed.Fabric, d *observed.Desired, x, y, z *observed.Node) {
	t.Helper()
	b := subnettest.New()
	b.SwitchInfo.PartitionEnforcementCap = capacity
	x, y, z = b.Switch(6, "x"), b.Switch(6, "y"), b.Switch(6, "z")
	subnettest.Join(x, y) // x:1 y:1
	subnettest.Join(x, y) // x:2 y:2
	subnettest.Join(y, z) // y:3 z:1
	subnettest.Join(x, x) // x:3 x:4
	a, h, c := b.Host(x, "a"), b.Host(y, "b"), b.Host(z, "c")
	d = observed.NewDesired(b.Fabric)
	d.Port(a).PKeys = []ib.PKey{0x8010, 0}
	d.Port(h).PKeys = []ib.PKey{0x8020}
	d.Port(c).PKeys = []ib.PKey{0x8030, 0x10}
	d.Port(&y.Ports[0]).PKeys = []ib.PKey{0x40}
	d.Port(a.Peer).PKeys = []ib.PKey{0x50} // a port before a host counts too
	return b.Fabric, d, x, y, z
}

// TestBetween wants each port between switches to check the partitions of everybody behind it.
func TestBetween(t *testing.T) {
	all := map[string][]ib.PKey{
		"x:1": {0x8010, 0x8020, 0x8030, 0x8040}, "x:2": {0x8010, 0x8020, 0x8030, 0x8040},
		"y:1": {0x8010, 0x8050}, "y:2": {0x8010, 0x8050}, "y:3": {0x8010, 0x8030},
		"z:1": {0x8010, 0x8020, 0x8040, 0x8050},
	}
	check := func(t *testing.T, f *observed.Fabric, d *observed.Desired, in, out bool, want map[string][]ib.PKey) {
		t.Helper()
		for _, n := range f.Switches() {
			for i := 1; i < len(n.Ports); i++ {
				p := &n.Ports[i]
				keys, got := want[p.String()], d.Port(p)
				if p.FacesEnd() {
					continue
				}
				if !slices.Equal(got.PKeys, keys) || got.Info.PartitionEnforcementInbound != (in && keys != nil) || got.Info.PartitionEnforcementOutbound != (out && keys != nil) ||
					got.Elements&observed.ElementEnforcement != 0 != (all[p.String()] != nil) {
					t.Errorf("%s: keys %v, in %v, out %v, %v; want %v", p, got.PKeys, got.Info.PartitionEnforcementInbound, got.Info.PartitionEnforcementOutbound, got.Elements.Names(), keys)
				}
			}
		}
	}
	for _, way := range []struct{ in, out bool }{{true, true}, {true, false}, {false, true}} {
		f, d, _, _, _ := chain(t, 4)
		if w := CheckBetweenSwitches(f, way.in, way.out, d); w != nil {
			t.Errorf("warnings %q", w)
		}
		check(t, f, d, way.in, way.out, all)
	}
	t.Run("no room", func(t *testing.T) {
		f, d, _, _, _ := chain(t, 2)
		w := CheckBetweenSwitches(f, true, true, d)
		if want := "part_enforce_switches: 3 ports between switches check nothing, for their P_Key tables have no room for the partitions of everybody behind them, up to 4 (for example x:1)"; len(w) != 1 || w[0] != want {
			t.Errorf("warnings %q", w)
		}
		check(t, f, d, true, true, map[string][]ib.PKey{"y:1": all["y:1"], "y:2": all["y:2"], "y:3": all["y:3"]})
	})
	t.Run("no table", func(t *testing.T) {
		f, d, _, _, _ := chain(t, 0)
		for _, n := range f.Nodes {
			for i := range n.Ports {
				d.Port(&n.Ports[i]).PKeys = nil
			}
		}
		if w := CheckBetweenSwitches(f, true, true, d); len(w) != 1 {
			t.Errorf("warnings %q", w)
		}
		check(t, f, d, true, true, nil)
	})
	t.Run("one direction", func(t *testing.T) {
		f, d, x, y, _ := chain(t, 4)
		x.Switch.Info.InboundEnforcementCap, y.Switch.Info.OutboundEnforcementCap = false, false
		CheckBetweenSwitches(f, true, true, d)
		for _, c := range []struct {
			p       *observed.Port
			in, out bool
		}{{&x.Ports[1], false, true}, {&y.Ports[1], true, false}} {
			if got := d.Port(c.p).Info; got.PartitionEnforcementInbound != c.in || got.PartitionEnforcementOutbound != c.out {
				t.Errorf("%s: in %v, out %v", c.p, got.PartitionEnforcementInbound, got.PartitionEnforcementOutbound)
			}
		}
	})
	t.Run("a switch that was not read", func(t *testing.T) {
		f, d, _, y, _ := chain(t, 4)
		y.Switch.InfoRead = false
		CheckBetweenSwitches(f, true, true, d)
		if got := d.Port(&y.Ports[1]); got.Elements != 0 || got.PKeys != nil {
			t.Errorf("%+v", got)
		}
		if got := d.Port(&f.Switches()[0].Ports[1]).PKeys; !slices.Equal(got, all["x:1"]) {
			t.Errorf("keys %v of the port before it", got)
		}
	})
}

func TestUnchecked(t *testing.T) {
	f, d, x, y, z := chain(t, 4)
	UncheckedBetweenSwitches(f, d)
	want := map[*observed.Port]bool{&x.Ports[1]: true, &x.Ports[2]: true, &x.Ports[3]: true, &x.Ports[4]: true, &y.Ports[1]: true, &y.Ports[2]: true, &y.Ports[3]: true, &z.Ports[1]: true}
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			got := d.Port(p)
			if (got.Elements == observed.ElementEnforcement) != want[p] || !want[p] && got.Elements != 0 || got.Info.PartitionEnforcementInbound || got.Info.PartitionEnforcementOutbound {
				t.Errorf("%s: %v", p, got.Elements.Names())
			}
		}
	}
}

func TestEndAndGuard(t *testing.T) {
	s := policy.DefaultSettings()
	s.SubnetTimeOut, s.MKeyProtectBits, s.MKeyLeasePeriod = 21, 1, 60
	var want observed.DesiredPort
	EnterManager(&want, &s, 0xfe80<<48, 7, 3)
	if want.Elements != observed.ElementGIDPrefix|observed.ElementMasterSMLID|observed.ElementMasterSMSL|observed.ElementSubnetTimeOut ||
		want.Info.GIDPrefix != 0xfe80<<48 || want.Info.MasterSMLID != 7 || want.Info.MasterSMSL != 3 || want.Info.SubnetTimeOut != 21 {
		t.Errorf("%+v", want)
	}
	p := &policy.Policy{Settings: &s}
	for _, c := range []struct {
		least, asked uint8
		lease        uint16
		bits         uint8
		warnings     []string
	}{
		{2, 1, 0, 2, []string{"m_key_protection_level 1 is less than the profile asks: ports get 2"}},
		{1, 1, 0, 1, nil},
		{1, 3, 0, 3, nil},
		{2, 0, 0, 2, nil},
		{0, 0, 60, 0, []string{"m_key_lease_period 60: a host that sends a port one packet with a wrong M_Key, and keeps the manager from it for 60 s, can read its key"}},
	} {
		s.MKeyProtectBits, s.MKeyLeasePeriod = c.asked, c.lease
		g := MKeyGuardOf(p, c.least)
		if g != (MKeyGuard{c.bits, c.lease}) || !slices.Equal(g.Warnings(&s), c.warnings) {
			t.Errorf("%d asked, at least %d: %+v, %q", c.asked, c.least, g, g.Warnings(&s))
		}
	}
	want = observed.DesiredPort{}
	MKeyGuard{2, 60}.Give(&want, 0xabc)
	if want.Elements != observed.ElementMKey|observed.ElementMKeyProtectBits|observed.ElementMKeyLeasePeriod || want.Info.MKey != 0xabc || want.Info.MKeyProtectBits != 2 || want.Info.MKeyLeasePeriod != 60 {
		t.Errorf("%+v", want)
	}
}

// TestLimits gives both ends of a link what a policy says, as far as they are there and can.
func TestLimits(t *testing.T) {
	limit := func(name string, port ib.PortNum) []policy.LinkLimit {
		return []policy.LinkLimit{{At: policy.Place{Name: name, Port: port}, Width: policy.Width(1)}}
	}
	for _, c := range []struct {
		name  string
		links []policy.LinkLimit
		set   func(f *observed.Fabric)
		text  []string
		ends  []string
	}{
		{"both ends", limit("y", 3), nil, nil, []string{"y:3", "z:1"}},
		{"no cable", limit("z", 6), nil, nil, []string{"z:6"}},
		{"no such switch", limit("w", 3), nil, []string{fmt.Sprintf("links: no port %s", limit("w", 3)[0].At)}, nil},
		{"an end that was not reached", limit("y", 3), func(f *observed.Fabric) { facts.PortAt(f, limit("z", 1)[0].At).Reached = false }, nil, []string{"y:3"}},
		{"an end that can only more", limit("y", 3), func(f *observed.Fabric) { facts.PortAt(f, limit("z", 1)[0].At).Info.LinkWidthSupported = 2 },
			[]string{fmt.Sprintf("links: z:1 cannot be limited to %s, %s: left as it is", policy.Width(1), policy.Speed(0))}, []string{"y:3"}},
	} {
		f, d, _, _, _ := chain(t, 4)
		for _, n := range f.Nodes {
			for i := range n.Ports {
				n.Ports[i].Info.LinkWidthSupported = 3
			}
		}
		if c.set != nil {
			c.set(f)
		}
		if got := LimitLinks(f, c.links, d); !slices.Equal(got, c.text) {
			t.Errorf("%s: %q, want %q", c.name, got, c.text)
		}
		var ends []string
		for _, n := range f.Nodes {
			for i := range n.Ports {
				if want := d.Port(&n.Ports[i]); want.Elements == observed.ElementLinkWidthEnabled && want.Info.LinkWidthEnabled == 1 {
					ends = append(ends, n.Ports[i].String())
				}
			}
		}
		if !slices.Equal(ends, c.ends) {
			t.Errorf("%s: limited %q, want %q", c.name, ends, c.ends)
		}
	}
}

// TestSame changes one thing at a time that a policy asks of links and devices.
func TestSame(t *testing.T) {
	base := func() *policy.Policy {
		s := policy.DefaultSettings()
		return &policy.Policy{
			Settings: &s, Drained: []policy.Drained{{At: policy.Place{Name: "x"}, Pos: policy.Pos{Line: 1}}},
			Links: []policy.LinkLimit{{At: policy.Place{Name: "x", Port: 1}, Width: 1, Speed: 2}},
		}
	}
	for _, c := range []struct {
		name   string
		change func(*policy.Policy)
		want   bool
	}{
		{"nothing", func(*policy.Policy) {}, true},
		{"the place in the file", func(p *policy.Policy) { p.Drained[0].Pos.Line, p.Links[0].Pos.Line = 7, 8 }, true},
		{"a setting", func(p *policy.Policy) { p.Settings.MKeyProtectBits = 3 }, false},
		{"a drained switch", func(p *policy.Policy) { p.Drained[0].At.Name = "y" }, false},
		{"no drained switch", func(p *policy.Policy) { p.Drained = nil }, false},
		{"a link", func(p *policy.Policy) { p.Links[0].At.Port = 2 }, false},
		{"a width", func(p *policy.Policy) { p.Links[0].Width = 2 }, false},
		{"a speed", func(p *policy.Policy) { p.Links[0].Speed = 1 }, false},
		{"no link", func(p *policy.Policy) { p.Links = nil }, false},
	} {
		p := base()
		if c.change(p); SamePortSettings(base(), p) != c.want || SamePortSettings(p, base()) != c.want {
			t.Errorf("%s: the same %v", c.name, !c.want)
		}
	}
}
