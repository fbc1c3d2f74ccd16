package desired

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// SW-31: raw packets are filtered where somebody is or may be: before a host, and
// before somebody unknown whose link is up; not between switches, and not where
// nobody is. A policy that lets them pass turns filters off, and a fence keeps its own.
func TestSW31WherePortsFilter(t *testing.T) {
	const host, other, unknown, none, count = 1, 2, 3, 4, 5
	f := observed.NewFabric()
	s := f.AddNode(smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: count - 1, NodeGUID: 1})
	s.Switch.Info.FilterRawInboundCap, s.Switch.Info.FilterRawOutboundCap = true, true
	for i, kind := range map[int]ib.NodeType{host: ib.NodeCA, other: ib.NodeSwitch} {
		n := f.AddNode(smp.NodeInfo{NodeType: kind, NumPorts: 1, NodeGUID: ib.NodeGUID(10 + i)})
		observed.Connect(&s.Ports[i], &n.Ports[1])
	}
	for i := range s.Ports {
		s.Ports[i].InfoRead = true
		s.Ports[i].Info.PortState, s.Ports[i].Info.PortPhysicalState = smp.PortInit, smp.PhysLinkUp
	}
	s.Ports[none].Info.PortState, s.Ports[none].Info.PortPhysicalState = smp.PortDown, smp.PhysPolling
	const both = observed.ElementFilterRawInbound | observed.ElementFilterRawOutbound
	for _, c := range []struct {
		name       string
		allow      bool
		fence      int
		asked, set [count]bool // whether the filters are to be written, and to what
	}{
		{"denied", false, 0, [count]bool{host: true, unknown: true}, [count]bool{host: true, unknown: true}},
		{"denied, fenced", false, other, [count]bool{host: true, other: true, unknown: true}, [count]bool{host: true, other: true, unknown: true}},
		{"allowed", true, 0, [count]bool{host: true, other: true, unknown: true, none: true}, [count]bool{}},
		{"allowed, fenced", true, host, [count]bool{host: true, other: true, unknown: true, none: true}, [count]bool{host: true}},
	} {
		d := observed.NewDesired(f)
		FilterRaw(f, c.allow, func(p *observed.Port) bool { return p == &s.Ports[c.fence] && c.fence != 0 }, d)
		for i := range s.Ports {
			want := d.Port(&s.Ports[i])
			if asked := want.Elements&both == both; asked != c.asked[i] || !asked && want.Elements&both != 0 {
				t.Errorf("%s: port %d: %v", c.name, i, want.Elements.Names())
			}
			if want.Info.FilterRawInbound != c.set[i] || want.Info.FilterRawOutbound != c.set[i] {
				t.Errorf("%s: port %d: filters %v, %v; want %v", c.name, i, want.Info.FilterRawInbound, want.Info.FilterRawOutbound, c.set[i])
			}
		}
	}
}
