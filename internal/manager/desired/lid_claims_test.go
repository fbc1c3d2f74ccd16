package desired

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// TestClaims lets a host say that it has other LIDs than it was assigned, and compares what it
// claims: those it was assigned first, and then those it says.
func TestClaims(t *testing.T) {
	type site struct {
		host, self *observed.Port
		want       *observed.DesiredPort
	}
	for _, x := range []struct {
		name   string
		change func(*site)
		mute   bool
		claims []ib.LID
	}{
		{"nothing", func(*site) {}, false, nil},
		{"another LID", func(s *site) { s.host.Info.LID = 9 }, false, []ib.LID{4, 9}},
		{"another LID, muted", func(s *site) { s.host.Info.LID = 9 }, true, nil},
		{"more LIDs", func(s *site) { s.host.Info.LMC = 2 }, false, []ib.LID{4, 5, 6, 7}},
		{"more LIDs than it was assigned, of which it says one in the middle", func(s *site) { s.host.Info.LID, s.host.Info.LMC = 6, 2 }, false, []ib.LID{4, 5, 6, 7}},
		{"fewer LIDs", func(s *site) { s.want.Info.LMC = 1 }, false, []ib.LID{4, 5}},
		{"a range that begins below", func(s *site) { s.want.Info.LID, s.want.Info.LMC, s.host.Info.LMC = 6, 1, 1 }, false, []ib.LID{6, 7, 4, 5}},
		{"LID 0 of a range", func(s *site) { s.host.Info.LID, s.host.Info.LMC = 1, 1 }, false, []ib.LID{4, 1}},
		{"none", func(s *site) { s.host.Info.LID = 0 }, false, nil},
		{"a multicast LID", func(s *site) { s.host.Info.LID = 0xC001 }, false, nil},
		{"a LID, where none was assigned", func(s *site) { s.want.Elements, s.host.Info.LID = observed.ElementLMC, 9 }, false, nil},
		{"another LID over a link that carries nothing", func(s *site) { s.host.Info.LID, s.host.Peer.Info.PortState = 9, smp.PortArmed }, false, nil},
		{"another LID over a link of which nothing was read", func(s *site) {
			s.host.Info.LID, s.host.Peer.Info.PortState, s.host.Peer.InfoRead = 9, smp.PortDown, false
		}, false, []ib.LID{4, 9}},
		{"another LID, whatever it says of its link", func(s *site) { s.host.Info.LID, s.host.Info.PortState = 9, smp.PortDown }, false, []ib.LID{4, 9}},
		{"another LID without a cable", func(s *site) { s.host.Info.LID, s.host.Peer = 9, nil }, false, []ib.LID{4, 9}},
		{"another LID of a switch", func(s *site) { s.self.Info.LID = 9; s.want.Elements = 0 }, false, []ib.LID{1, 9}},
	} {
		b := subnettest.New()
		leaf := b.Switch(4, "leaf")
		b.LID = 4
		s := &site{host: b.Host(leaf, "host"), self: &leaf.Ports[0]}
		d := observed.NewDesired(b.Fabric)
		for _, p := range b.Fabric.EndPorts() {
			want := d.Port(p)
			want.Elements, want.Info.LID = observed.ElementLID, p.Info.LID
		}
		s.want = d.Port(s.host)
		x.change(s)
		by := s.host
		if s.self.Info.LID == 9 {
			by = s.self
			by.Peer = nil
		}
		mute := func(p *observed.Port) bool { return p == s.host }
		if !x.mute {
			mute = nil
		}
		var want []LIDClaim
		for _, l := range x.claims {
			want = append(want, LIDClaim{l, by})
		}
		if got := LIDClaims(b.Fabric.EndPorts(), d, mute); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", x.name, got, want)
		}
	}
}

// TestThefts says who took what of whom, of the claims that are new.
func TestThefts(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	a, c := b.Host(leaf, "a"), b.Host(leaf, "c")
	asked := 0
	owners := func() map[ib.LID]*observed.Port { asked++; return map[ib.LID]*observed.Port{5: a, 6: c, 7: a} }
	all := []LIDClaim{{5, c}, {6, c}, {7, c}, {8, c}, {6, a}}
	for _, x := range []struct {
		before []LIDClaim
		want   []string
		asks   int
	}{
		{nil, []string{"c took LID 5 of a", "c took LID 7 of a", "a took LID 6 of c"}, 1},
		{[]LIDClaim{{5, c}, {7, a}}, []string{"c took LID 7 of a", "a took LID 6 of c"}, 1},
		{all, nil, 0},
	} {
		asked = 0
		if got := LIDThefts(all, x.before, owners); fmt.Sprint(got) != fmt.Sprint(x.want) || asked != x.asks {
			t.Errorf("before %v: %q, owners asked for %d times; want %q, %d", x.before, got, asked, x.want, x.asks)
		}
	}
}
