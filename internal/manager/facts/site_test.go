package facts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// listed declares switch 0x1000 with hosts 0x2000, 0x3000 (which has a second port without a cable) at
// its ports 1 and 2, and switch 0x4000, which nothing is cabled to.
const listed = `
switchguid=0x1000(1001)
Switch	4 "S-0000000000001000"		# "leaf" base port 0 lid 1 lmc 0
[1]	"H-0000000000002000"[1](2001) 		# "one" lid 2 4xHDR
[2]	"H-0000000000003000"[1](3001) 		# "two" lid 3 4xHDR

switchguid=0x4000(4001)
Switch	2 "S-0000000000004000"		# "idle" base port 0 lid 4 lmc 0

caguid=0x2000
Ca	1 "H-0000000000002000"		# "one"
[1](2001) 	"S-0000000000001000"[1]		# lid 2 lmc 0 "leaf" lid 1 4xHDR

caguid=0x3000
Ca	2 "H-0000000000003000"		# "two"
[1](3001) 	"S-0000000000001000"[2]		# lid 3 lmc 0 "leaf" lid 1 4xHDR
`

// TestSite compares all that a policy can mean, with a list of cables and without one: names are the
// list's where there is one, and what it declares and was not found is there as well.
func TestSite(t *testing.T) {
	list, err := cables.Read([]byte(strings.TrimLeft(listed, "\n")), "cables.txt")
	if err != nil {
		t.Fatal(err)
	}
	b := subnettest.New()
	leaf := b.Switch(4, "says leaf")
	b.GUID = 0x2000
	one := b.Host(leaf, "says one")
	b.GUID = 0x5000
	b.Host(leaf, "nobody")
	port := func(guid ib.PortGUID, node ib.NodeGUID, name, at string, num ib.PortNum) policy.EndPort {
		return policy.EndPort{PortGUID: guid, NodeGUID: node, PortNum: 1, Description: name, NodeType: ib.NodeCA, Switch: 0x1000, SwitchName: at, SwitchPort: num}
	}
	self := func(name string) policy.EndPort {
		return policy.EndPort{PortGUID: 0x1001, NodeGUID: 0x1000, Description: name, NodeType: ib.NodeSwitch}
	}
	found := &policy.Site{
		Ports:    []policy.EndPort{self("says leaf"), port(0x2001, 0x2000, "says one", "says leaf", 1), port(0x5001, 0x5000, "nobody", "says leaf", 2)},
		Switches: []policy.SiteSwitch{{GUID: 0x1000, Name: "says leaf", Ports: 4}},
	}
	if d := cmp.Diff(found, Site(b.Fabric, b.Fabric.EndPorts(), nil)); d != "" {
		t.Errorf("without a list, -want +got\n%s", d)
	}
	second := port(list.PortGUID(observed.Place{Node: 0x3000, Port: 2}), 0x3000, "two", "", 0)
	second.PortNum, second.Switch = 2, 0
	both := &policy.Site{
		Ports:    []policy.EndPort{self("leaf"), port(0x2001, 0x2000, "one", "leaf", 1), port(0x5001, 0x5000, "", "leaf", 2), port(0x3001, 0x3000, "two", "", 2), second},
		Switches: []policy.SiteSwitch{{GUID: 0x1000, Name: "leaf", Ports: 4}, {GUID: 0x4000, Name: "idle", Ports: 2}},
	}
	if d := cmp.Diff(both, Site(b.Fabric, b.Fabric.EndPorts(), list)); d != "" {
		t.Errorf("with a list, -want +got\n%s", d)
	}
	renamed := map[ib.NodeGUID]string{0x1000: "says leaf", 0x2000: "says one"}
	if d := cmp.Diff(renamed, Renamed(b.Fabric, list)); d != "" {
		t.Errorf("renamed, -want +got\n%s", d)
	}
	one.Node.Description, leaf.Description = "", "leaf"
	if got := Renamed(b.Fabric, list); len(got) != 0 {
		t.Errorf("renamed: %v", got)
	}
}

func TestSwitchAt(t *testing.T) {
	b := subnettest.New()
	x, y := b.Switch(2, "leaf"), b.Switch(2, "leaf")
	only, short := b.Switch(2, "only"), b.Switch(2, "short HCA-1")
	for _, c := range []struct {
		at   policy.Place
		want *observed.Node
	}{
		{policy.Place{Name: "only"}, only},
		{policy.Place{Name: "short"}, short},
		{policy.Place{Name: "short HCA-1"}, short},
		{policy.Place{Name: "leaf"}, nil},
		{policy.Place{Switch: x.GUID()}, x},
		{policy.Place{Switch: y.GUID(), Name: "only"}, y},
		{policy.Place{Name: "none"}, nil},
		{policy.Place{Switch: 7}, nil},
	} {
		if got := SwitchAt(b.Fabric, c.at); got != c.want {
			t.Errorf("%+v: %p, want %p", c.at, got, c.want)
		}
	}
}

// TestLasting is what another run need not write again.
func TestLasting(t *testing.T) {
	const some = observed.ElementHOQLife
	for _, c := range []struct {
		name   string
		change func(s *observed.Switch)
		host   bool
		want   observed.Element
	}{
		{"a switch that enforces", func(*observed.Switch) {}, false, some},
		{"a host", func(*observed.Switch) {}, true, some},
		{"no room for keys", func(s *observed.Switch) { s.Info.PartitionEnforcementCap = 0 }, false, some | observed.ElementRawFilters},
		{"not on the way in", func(s *observed.Switch) { s.Info.InboundEnforcementCap = false }, false, some | observed.ElementRawFilters},
		{"not on the way out", func(s *observed.Switch) { s.Info.OutboundEnforcementCap = false }, false, some | observed.ElementRawFilters},
		{"not read", func(s *observed.Switch) { s.Info.OutboundEnforcementCap, s.InfoRead = false, false }, false, some},
	} {
		b := subnettest.New()
		leaf := b.Switch(2, "leaf")
		host := b.Host(leaf, "host")
		c.change(leaf.Switch)
		p := host.Peer
		if c.host {
			p = host
		}
		p.Forgets = some | observed.ElementRawFilters | observed.ElementEnforcement
		if got := Lasting(p); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got.Names(), c.want.Names())
		}
	}
}

func TestTablesOnly(t *testing.T) {
	tables := map[mad.AttributeID]bool{
		smp.AttrPKeyTable: true, smp.AttrLinearForwardingTable: true, smp.AttrRandomForwardingTable: true,
		smp.AttrMulticastForwardingTable: true, smp.AttrSLToVLMappingTable: true, smp.AttrVLArbitrationTable: true, smp.AttrGUIDInfo: true,
	}
	for a := mad.AttributeID(0); a < 0x100; a++ {
		if TablesOnly(a) != tables[a] {
			t.Errorf("%s: %v", smp.AttributeName(a), !tables[a])
		}
	}
}

func TestSharesGUIDAndWhere(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	first, twin, last := b.Host(leaf, "first"), b.Host(leaf, "twin"), b.Host(nil, "last")
	twin.GUID = first.GUID
	ends := b.Fabric.EndPorts()
	for p, want := range map[*observed.Port]bool{first: true, twin: true, last: false, &leaf.Ports[0]: false, {GUID: 0x9999}: false} {
		if SharesGUID(ends, p) != want {
			t.Errorf("%v: %v", p.GUID, !want)
		}
	}
	if got, want := Where(first), "first (port 0x0000000000001011, behind leaf:1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Where(last), "last (port 0x0000000000001031)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestProofFacts(t *testing.T) {
	for _, c := range []struct {
		profile protect.Profile
		allow   bool
		want    isolation.Raw
	}{
		{protect.None, false, isolation.RawIgnored}, {protect.None, true, isolation.RawIgnored},
		{protect.Tenant, false, isolation.RawDenied}, {protect.Tenant, true, isolation.RawAllowed},
		{protect.Strict, false, isolation.RawDenied},
	} {
		if got := Raw(c.profile, &policy.Policy{AllowRaw: c.allow}); got != c.want {
			t.Errorf("%v, allowed %v: %v, want %v", c.profile, c.allow, got, c.want)
		}
	}
	g := &group.Group{MLID: 0xC001, Partition: 0x10, Members: []group.Member{{Port: 1, State: 1}, {Port: 2, State: 4}, {Port: 3, State: 2}}}
	want := []isolation.Group{{MLID: 0xC001, Base: 0x10, Receivers: []ib.PortGUID{1, 3}}}
	if d := cmp.Diff(want, Judged([]*group.Group{g})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
