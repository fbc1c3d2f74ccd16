package isolation

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

func TestRoute(t *testing.T) {
	for _, tc := range []struct {
		name     string
		from, to string
		change   func(s *site)
		want     string // names of the hops
		fault    string
	}{
		{name: "same leaf", from: "h0", to: "h1", want: "h0 leaf0 h1"},
		{name: "other leaf", from: "h0", to: "h4", want: "h0 leaf0 spine leaf1 h4"},
		{name: "to a switch", from: "h0", to: "leaf1", want: "h0 leaf0 spine leaf1"},
		{name: "from a switch", from: "leaf1", to: "h0", want: "leaf1 spine leaf0 h0"},
		{name: "to its own switch", from: "h0", to: "leaf0", want: "h0 leaf0"},
		{name: "no LID", from: "h0", to: "h4", want: "", fault: "h4 has no unicast LID but 0",
			change: func(s *site) { s.hosts[4].Info.LID = 0 }},
		{name: "LID not read", from: "h0", to: "h4", want: "", fault: "PortInfo of h4 was not read",
			change: func(s *site) { s.hosts[4].InfoRead = false }},
		{name: "no entry", from: "h0", to: "h4", want: "h0 leaf0 spine", fault: "spine has none for LID",
			change: func(s *site) { s.spine.Switch.LFT[s.hosts[4].Info.LID] = ib.PortNone }},
		{name: "above the top", from: "h0", to: "h7", want: "h0 leaf0", fault: "leaf0 has none for LID",
			change: func(s *site) { s.leaves[0].Switch.Info.LinearFDBTop-- }},
		{name: "not read", from: "h0", to: "h4", want: "h0 leaf0 spine", fault: "the forwarding table of spine was not read",
			change: func(s *site) { s.spine.Switch.LFTRead[0] = false }},
		{name: "SwitchInfo not read", from: "h0", to: "leaf1", want: "h0 leaf0 spine", fault: "the forwarding table of spine was not read",
			change: func(s *site) { s.spine.Switch.Info, s.spine.Switch.InfoRead = smp.SwitchInfo{}, false }},
		{name: "back to the default port", from: "h4", to: "h5", want: "h4 leaf1 spine", fault: "spine has none for LID",
			change: func(s *site) { randomSpine(s); s.leaves[1].Switch.LFT[s.hosts[5].Info.LID] = 5 }},
		{name: "short table", from: "h0", to: "h4", want: "h0 leaf0 spine", fault: "the forwarding table of spine was not read",
			change: func(s *site) { s.spine.Switch.LFT = nil }},
		{name: "wrong host", from: "h0", to: "h4", want: "h0 leaf0 spine leaf1 h5", fault: "leads to h5",
			change: func(s *site) { s.leaves[1].Switch.LFT[s.hosts[4].Info.LID] = 2 }},
		{name: "wrong switch", from: "h0", to: "h4", want: "h0 leaf0 spine", fault: "leads to spine",
			change: func(s *site) { s.spine.Switch.LFT[s.hosts[4].Info.LID] = 0 }},
		{name: "no cable", from: "h0", to: "h4", want: "h0 leaf0", fault: "the link of leaf0:6 is in state",
			change: func(s *site) { s.leaves[0].Switch.LFT[s.hosts[4].Info.LID] = 6 }},
		{name: "nobody there", from: "h0", to: "h4", want: "h0 leaf0", fault: "nothing was found behind leaf0:6",
			change: func(s *site) { s.leaves[0].Switch.LFT[s.hosts[4].Info.LID] = 6; up(&s.leaves[0].Ports[6]) }},
		{name: "link in Init", from: "h0", to: "h4", want: "h0", fault: "the link of h0 is in state",
			change: func(s *site) { s.hosts[0].Info.PortState = smp.PortInit }},
		{name: "loop", from: "h0", to: "h4", want: "h0" + strings.Repeat(" leaf0 spine", 31) + " leaf0", fault: "more than 64 nodes",
			change: func(s *site) { s.spine.Switch.LFT[s.hosts[4].Info.LID] = 1 }},
		{name: "random table", from: "h0", to: "h4", want: "h0 leaf0 spine leaf1 h4", change: randomSpine},
		{name: "random table, default port", from: "h0", to: "h5", want: "h0 leaf0 spine leaf1 h5", change: randomSpine},
		{name: "random table, not read", from: "h0", to: "h5", want: "h0 leaf0 spine", fault: "the forwarding table of spine was not read",
			change: func(s *site) { randomSpine(s); s.spine.Switch.RFTRead[1] = false }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite()
			if tc.change != nil {
				tc.change(s)
			}
			named := map[string]ib.PortGUID{}
			for _, p := range s.f.EndPorts() {
				named[p.Node.Name()] = p.GUID
			}
			hops, err := Route(s.f, named[tc.from], named[tc.to])
			var names []string
			for _, h := range hops {
				names = append(names, h.Name)
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("hops %s, want %s", got, tc.want)
			}
			if (err == nil) != (tc.fault == "") || err != nil && (!strings.Contains(err.Error(), tc.fault) || !strings.HasPrefix(err.Error(), "no route")) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

// randomSpine gives the spine a random forwarding table of 32 entries that
// knows h4; all else goes to leaf1.
func randomSpine(s *site) {
	w := s.spine.Switch
	w.Info.LinearFDBCap, w.Info.RandomFDBCap, w.Info.DefaultPort = 0, 32, 2
	w.RFT = make([]smp.RandomEntry, 32)
	w.RFTRead = []bool{true, true}
	w.RFT[3] = smp.RandomEntry{LID: s.hosts[4].Info.LID, Valid: true, Port: 2}
}

func TestRouteOfNobody(t *testing.T) {
	s := newSite()
	if _, err := Route(s.f, s.hosts[0].GUID, 0x99); err == nil || !strings.Contains(err.Error(), "0x0000000000000099") {
		t.Errorf("error %v", err)
	}
	direct := newBuilder()
	a, b := direct.Host(nil, "a"), direct.Host(nil, "b")
	subnettest.Cable(a, b)
	if hops, err := Route(direct.Fabric, a.GUID, b.GUID); err != nil || len(hops) != 2 {
		t.Errorf("%v, %v", hops, err)
	}
}
