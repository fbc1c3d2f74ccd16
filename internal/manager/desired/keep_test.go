package desired

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// TestKeepRoutes: forwarding tables that nobody has read stay as they are where no LID changes and no
// table ends elsewhere; else it is said which port or switch would need other routes.
func TestKeepRoutes(t *testing.T) {
	const no = "the routes would have to change, and are to stay as they are: "
	for _, x := range []struct {
		name   string
		change func(f *observed.Fabric, r *Result, p *policy.Policy)
		want   string
	}{
		{"nothing", func(*observed.Fabric, *Result, *policy.Policy) {}, ""},
		{"a LID", func(f *observed.Fabric, r *Result, _ *policy.Policy) { r.Tables.Port(host(f, 3)).Info.LID = 77 },
			"host-3 has LID 4 with LMC 0 and is to have LID 77 with LMC 0"},
		{"a LID that nobody wants", func(f *observed.Fabric, r *Result, _ *policy.Policy) {
			r.Tables.Port(host(f, 3)).Elements &^= observed.ElementLID
			r.Tables.Port(host(f, 3)).Info.LID = 77
		}, ""},
		{"an LMC", func(f *observed.Fabric, r *Result, _ *policy.Policy) { r.Tables.Port(host(f, 3)).Info.LMC = 1 },
			"host-3 has LID 4 with LMC 0 and is to have LID 4 with LMC 1"},
		{"an LMC that nobody wants", func(f *observed.Fabric, r *Result, _ *policy.Policy) {
			r.Tables.Port(host(f, 3)).Elements &^= observed.ElementLMC
			r.Tables.Port(host(f, 3)).Info.LMC = 1
		}, ""},
		{"the end of a table", func(f *observed.Fabric, _ *Result, _ *policy.Policy) { f.Nodes[0].Switch.Info.LinearFDBTop++ },
			"the forwarding table of 0x0000000000000001:0 ends at LID 6 and is to end at LID 5"},
		{"a table that nobody wants", func(f *observed.Fabric, r *Result, _ *policy.Policy) {
			r.Tables.Nodes[0].LFT = nil
			f.Nodes[0].Switch.Info.LinearFDBTop++
		}, ""},
		{"a default port", func(f *observed.Fabric, r *Result, _ *policy.Policy) {
			r.Tables.Nodes[0].LFT, r.Tables.Nodes[0].RFT, r.Tables.Nodes[0].DefaultPort, f.Nodes[0].Switch.Info.DefaultPort = nil, []smp.RandomEntry{{}}, 3, 2
		}, "DefaultPort of 0x0000000000000001:0 is 2 and is to be 3"},
		{"the same default port", func(f *observed.Fabric, r *Result, _ *policy.Policy) {
			r.Tables.Nodes[0].LFT, r.Tables.Nodes[0].RFT, r.Tables.Nodes[0].DefaultPort, f.Nodes[0].Switch.Info.DefaultPort = nil, []smp.RandomEntry{{}}, 3, 3
		}, ""},
		{"a LID of the master", func(_ *observed.Fabric, r *Result, _ *policy.Policy) { r.Settings.MasterSMLID = 9 },
			"they lead LID 9 (master_sm_lid) to the manager, wherever that is"},
		{"drained switches", func(f *observed.Fabric, r *Result, _ *policy.Policy) { r.Routes.request.Drained = f.Nodes[:1] }, "the policy drains switches"},
	} {
		f := star(4)
		p := tenants([]int{2, 3})
		r := compute(t, Input{Fabric: f}, p)
		for q, at := range r.LIDs() {
			q.Info.LID, q.Info.LMC = at.LID, at.LMC
		}
		f.Nodes[0].Switch.Info.LinearFDBTop = ib.LID(len(r.Tables.Nodes[0].LFT) - 1)
		x.change(f, r, p)
		told := len(r.Warnings)
		err := r.KeepRoutes()
		want := ""
		if x.want != "" {
			want = no + x.want
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || err != nil && !errors.Is(err, ErrRoutes) {
			t.Errorf("%s: %q, want %q", x.name, got, want)
		}
		if err == nil && (r.Tables.Nodes[0].LFT != nil || r.Tables.Nodes[0].RFT != nil || len(r.Warnings) != told+1 ||
			r.Warnings[told] != "forwarding tables were not read and stay as they are: whether they lead everywhere is not known") {
			t.Errorf("%s: tables are wanted still, or nothing is said: %q", x.name, r.Warnings)
		}
	}
}

// TestWhoHasWhichLID: the ports by the LIDs that they were assigned, of ranges too, and where a switch sends each.
func TestWhoHasWhichLID(t *testing.T) {
	f := star(3)
	r := compute(t, Input{Fabric: f, LMC: 1}, tenants([]int{2, 3}))
	by, lids := r.PortsByLID(), r.LIDs()
	if len(lids) != 4 || len(by) != 7 { // the switch has one
		t.Errorf("%d ports with %d LIDs", len(lids), len(by))
	}
	for p, at := range lids {
		for i := range at.LMC.Count() {
			if by[at.LID+ib.LID(i)] != p {
				t.Errorf("LID %d is not of %s", at.LID+ib.LID(i), p)
			}
			want := ib.PortNum(0)
			if p.Peer != nil {
				want = p.Peer.Num
			}
			if got := r.Exit(1, at.LID+ib.LID(i)); got != want {
				t.Errorf("LID %d leaves by port %d, want %d", at.LID+ib.LID(i), got, want)
			}
		}
	}
	r.Tables.Port(host(f, 2)).Elements &^= observed.ElementLID
	if n := len(r.LIDs()); n != 3 {
		t.Errorf("%d ports have LIDs where one of four has none", n)
	}
	top := ib.LID(len(r.Tables.Nodes[0].LFT))
	for _, got := range []ib.PortNum{r.Exit(1, top), r.Exit(0x999, 2), r.Exit(0x102, 2)} {
		if got != ib.PortNone {
			t.Errorf("port %d past the table, of nobody, or of a host", got)
		}
	}
	// Of a later snapshot what a port shows is entered, where it is the same port.
	later := star(3)
	p := host(later, 3)
	p.Info.LID = 9
	var data [64]byte
	if err := p.Info.Encode(&data); err != nil {
		t.Fatal(err)
	}
	r.Enter(p, smp.AttrPortInfo, 0, data[:])
	if got := host(f, 3).Info.LID; got != 9 {
		t.Errorf("LID %d is entered", got)
	}
	p = host(later, 2)
	p.GUID++
	r.Enter(p, smp.AttrPortInfo, 0, data[:])
	if got := host(f, 2).Info.LID; got == 9 {
		t.Error("what another port showed is entered")
	}
}

// TestAliasesOfPorts: what a port gets of the aliases that a policy gives it, and what stands of that.
func TestAliasesOfPorts(t *testing.T) {
	const local = 0x02 << 56
	f := star(4)
	for i, cap := range map[int]uint8{2: 4, 3: 2, 4: 4} {
		host(f, i).Info.GUIDCap = cap
	}
	p := tenants([]int{2, 3})
	for i, guids := range map[int][]ib.PortGUID{2: {local + 0xA1, local + 0xA2, local + 0xA3}, 3: {local + 0xB1, local + 0xB2}, 4: {local + 0xC1}} {
		p.Aliases = append(p.Aliases, policy.PortAliases{Port: guid(i), GUIDs: guids})
	}
	slices.SortFunc(p.Aliases, func(a, b policy.PortAliases) int { return int(a.Port) - int(b.Port) })
	host(f, 4).InfoRead = true
	r := compute(t, Input{Fabric: f}, p)
	for i, want := range map[int][]ib.PortGUID{1: {guid(1)}, 2: {guid(2), local + 0xA1, local + 0xA2, local + 0xA3}, 3: {guid(3), local + 0xB1}, 4: {guid(4), local + 0xC1}} {
		if got := r.Tables.Port(host(f, i)).GUIDs; !slices.Equal(got, want) {
			t.Errorf("host %d: %v, want %v", i, got, want)
		}
	}
	if want := "alias GUID 0x02000000000000b2 is not given to host-3: GUIDCap is 2, its index would be 2"; !slices.Contains(r.Warnings, want) || !r.Assigned.Aliases {
		t.Errorf("warnings %q", r.Warnings)
	}
	if got := r.standingAliases(); len(got) != 0 {
		t.Errorf("stand before they are written: %v", got)
	}
	host(f, 2).GUIDInfo = map[uint32]smp.GUIDInfo{0: {GUIDs: [8]uint64{uint64(guid(2)), 0, local + 0xA2, 0xBAD}}}
	host(f, 4).GUIDInfo = map[uint32]smp.GUIDInfo{0: {GUIDs: [8]uint64{uint64(guid(4)), local + 0xC1, 0, local + 0xC2}}}
	want := map[ib.PortGUID][]ib.PortGUID{guid(2): {0, local + 0xA2}, guid(4): {local + 0xC1}}
	if got := r.standingAliases(); !maps.EqualFunc(got, want, slices.Equal[[]ib.PortGUID]) {
		t.Errorf("stand %v, want %v", got, want)
	}
	if r.sameAliases(p, &policy.Resolution{}) || !r.sameAliases(p, r.Resolution) || r.sameAliases(p, &policy.Resolution{Aliases: slices.Concat(r.Resolution.Aliases[:2], []policy.PortAliases{{Port: guid(4)}})}) {
		t.Error("other aliases are the same")
	}
	r.Assigned.Aliases = false
	if got := r.standingAliases(); len(got) != 0 || r.sameAliases(p, r.Resolution) {
		t.Errorf("of ports whose tables are left alone: %v", got)
	}
	if got := compute(t, Input{Fabric: star(4)}, tenants([]int{2})).Tables.Port(host(f, 2)).GUIDs; got != nil {
		t.Errorf("without aliases the table is %v", got)
	}
}

// TestGuardsWantWhatSwitchesCan: a switch port is wanted to check a direction where its switch can and the
// policy asks for it.
func TestGuardsWantWhatSwitchesCan(t *testing.T) {
	for bits := range 16 {
		canIn, canOut, in, out := bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0
		if !in && !out {
			continue // refused: no policy asks for no check at all
		}
		f := star(3)
		info := &f.Nodes[0].Switch.Info
		info.InboundEnforcementCap, info.OutboundEnforcementCap = canIn, canOut
		p := tenants([]int{2, 3})
		s := policy.DefaultSettings()
		s.EnforceInbound, s.EnforceOutbound = in, out
		p.Settings = &s
		want := compute(t, Input{Fabric: f}, p).Tables.Port(guardOf(f, 2))
		if got := want.Info; got.PartitionEnforcementInbound != (canIn && in) || got.PartitionEnforcementOutbound != (canOut && out) || want.Elements&observed.ElementEnforcement != observed.ElementEnforcement {
			t.Errorf("can %v %v, asked %v %v: wants %v %v, %v", canIn, canOut, in, out, got.PartitionEnforcementInbound, got.PartitionEnforcementOutbound, want.Elements.Names())
		}
	}
}

// TestKeysBeforeUnseenPorts: what the switch port before a port that is out of sight held is withheld where
// that switch port is out of sight too, for the partitions that the port is not to have.
func TestKeysBeforeUnseenPorts(t *testing.T) {
	for _, x := range []struct {
		name  string
		keys  []ib.PKey
		guard []ib.PKey
		seen  bool // the switch port
		want  []ib.PKeyBase
	}{
		{"a key that it may have", nil, []ib.PKey{0x8010}, false, nil},
		{"a key that it may not have", nil, []ib.PKey{0x8020}, false, []ib.PKeyBase{0x20}},
		{"an entry without a key", nil, []ib.PKey{0, 0x8000}, false, nil},
		{"a switch port that is seen", nil, []ib.PKey{0x8020}, true, nil},
		{"its own key", []ib.PKey{0x8010}, nil, false, nil},
		{"its own key of another", []ib.PKey{0x8020, 0}, nil, false, []ib.PKeyBase{0x20}},
	} {
		f := star(3)
		q := guardOf(f, 4)
		q.Info.PortState, q.Info.PortPhysicalState, q.Silent = smp.PortActive, smp.PhysLinkUp, true
		u := facts.UnseenPort{Identity: policy.EndPort{PortGUID: guid(4), NodeGUID: 0x104, PortNum: 1, NodeType: ib.NodeCA}, Cap: 8, Keys: x.keys, Guard: x.guard,
			At: observed.Place{Node: 0xBAD, Port: 1}, Behind: q.Place()}
		if x.seen {
			u.At = q.Place()
		}
		if got := compute(t, Input{Fabric: f, Unseen: []facts.UnseenPort{u}}, tenants([]int{2, 4}, []int{2, 3})).Withheld; !slices.Equal(got, x.want) {
			t.Errorf("%s: %v withheld, want %v", x.name, got, x.want)
		}
	}
}
