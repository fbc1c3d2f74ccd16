package desired

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// star is one switch that can check keys, with hosts 1 to n behind its ports 1 to
// n, and two ports more without a cable. The manager is at host 1. Host i has the
// NodeGUID 0x100+i.
func star(hosts int) *observed.Fabric {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo.PartitionEnforcementCap = 8, 8
	b.SwitchInfo.LinearFDBCap, b.SwitchInfo.FilterRawInboundCap = 1024, true
	b.PortInfo = smp.PortInfo{MTUCap: 4, VLCap: 1, GUIDCap: 4}
	b.GUID = 1
	sw := b.Switch(hosts+2, "")
	f := b.Fabric
	for i := 1; i <= hosts; i++ {
		b.GUID = ib.NodeGUID(0x100 + i)
		p := b.Host(sw, fmt.Sprint("host-", i))
		subnettest.SetLink(p, smp.PortInit, smp.PhysLinkUp)
		subnettest.Enforce(p.Peer, false, false)
	}
	for _, p := range f.EndPorts() {
		p.Info.LID = 0
	}
	f.Self = host(f, 1)
	f.TakeChanges()
	return f
}

func guid(i int) ib.PortGUID { return ib.PortGUID(0x101 + i) }

func host(f *observed.Fabric, i int) *observed.Port {
	return &f.Node(ib.NodeGUID(0x100 + i)).Ports[1]
}

func guardOf(f *observed.Fabric, i int) *observed.Port { return &f.Node(1).Ports[i] }

// tenants is a policy with partitions 0x10, 0x20 and so on, each with these hosts
// as full members; a negative one is a limited member.
func tenants(partitions ...[]int) *policy.Policy {
	p := &policy.Policy{Default: policy.Limited}
	for i, hosts := range partitions {
		x := policy.Partition{Name: fmt.Sprint("tenant-", i+1), PKey: ib.PKeyBase(0x10 * (i + 1))}
		for _, h := range hosts {
			m := policy.Full
			if h < 0 {
				h, m = -h, policy.Limited
			}
			x.Members = append(x.Members, policy.Member{Selector: port(h), Membership: m})
		}
		p.Partitions = append(p.Partitions, x)
	}
	return p
}

func port(h int) policy.Selector {
	return policy.Selector{Kind: policy.SelectPort, GUID: uint64(guid(h))}
}

// resolved resolves p on the fabric of in.
func resolved(t *testing.T, in Input, p *policy.Policy) Resolved {
	t.Helper()
	var names facts.PolicyNames
	x, err := Resolve(p, names.Resolver(in.Identities()), &names, in.Known.PKeys, in.Site)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// compute fails the test where p is refused.
func compute(t *testing.T, in Input, p *policy.Policy) *Result {
	t.Helper()
	r, err := tryCompute(t, in, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryCompute(t *testing.T, in Input, p *policy.Policy) (*Result, error) {
	t.Helper()
	if in.Routing == "" {
		in.Routing = routing.UpDown
	}
	in.Resolved = resolved(t, in, p)
	return Compute(in)
}

// keys are the valid ones of a wanted table, in order of their numbers.
func keys(table []ib.PKey) []ib.PKey {
	out := []ib.PKey{}
	for _, k := range table {
		if k.IsValid() {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func TestCompute(t *testing.T) {
	f := star(4)
	r := compute(t, Input{Fabric: f}, tenants([]int{2, 3}, []int{3, -4}))
	for _, x := range []struct {
		host       int
		end, guard []ib.PKey
	}{
		{1, []ib.PKey{0xFFFF}, []ib.PKey{0xFFFF}}, // the manager's own
		{2, []ib.PKey{0x7FFF, 0x8010}, []ib.PKey{0x8010, 0xFFFF}},
		{3, []ib.PKey{0x7FFF, 0x8010, 0x8020}, []ib.PKey{0x8010, 0x8020, 0xFFFF}},
		{4, []ib.PKey{0x0020, 0x7FFF}, []ib.PKey{0x8020, 0xFFFF}},
	} {
		p, q := host(f, x.host), guardOf(f, x.host)
		if d := cmp.Diff(x.end, keys(r.Tables.Port(p).PKeys)); d != "" {
			t.Errorf("%s (-want +got)\n%s", p, d)
		}
		want := r.Tables.Port(q)
		if d := cmp.Diff(x.guard, fulls(want.PKeys)); d != "" {
			t.Errorf("%s (-want +got)\n%s", q, d)
		}
		if !want.Info.PartitionEnforcementInbound || !want.Info.PartitionEnforcementOutbound || want.Elements&observed.ElementEnforcement != observed.ElementEnforcement {
			t.Errorf("%s is to check keys in both directions", q)
		}
		if !r.Tables.Port(p).Activate || !want.Activate {
			t.Errorf("the link of %s is to be Active", p)
		}
	}
	if spare := guardOf(f, 5); r.Tables.Port(spare).PKeys != nil || r.Tables.Port(spare).Activate {
		t.Errorf("%s has no cable, and something is wanted of it", spare)
	}
	lids := map[ib.LID]bool{}
	manager := r.Tables.Port(f.Self).Info.LID
	for _, p := range f.EndPorts() {
		want := r.Tables.Port(p)
		if lids[want.Info.LID] || !want.Info.LID.IsUnicast() || r.Assigned.LIDs[p.GUID] != want.Info.LID {
			t.Errorf("%s is to have LID %d, remembered is %d", p, want.Info.LID, r.Assigned.LIDs[p.GUID])
		}
		lids[want.Info.LID] = true
		if want.Info.MasterSMLID != manager || want.Info.GIDPrefix != ib.DefaultGIDPrefix {
			t.Errorf("%s is to have MasterSMLID %d and prefix %x", p, want.Info.MasterSMLID, want.Info.GIDPrefix)
		}
		if p.Node.Switch == nil && r.Tables.Nodes[0].LFT[want.Info.LID] != p.Peer.Num {
			t.Errorf("LID %d of %s leads to port %d", want.Info.LID, p, r.Tables.Nodes[0].LFT[want.Info.LID])
		}
	}
	if len(r.Warnings) > 0 || !r.Ordinary() || r.Compiled != 5 || r.Open != 0 || len(r.Fences) != 0 {
		t.Errorf("warnings %q, ordinary %v, %d ports compiled, %d open, fences %v", r.Warnings, r.Ordinary(), r.Compiled, r.Open, r.Fences)
	}
}

// fulls are the bases of a table as full keys: what a guard holds for a limited
// member lets the partition pass.
func fulls(table []ib.PKey) []ib.PKey {
	out := []ib.PKey{}
	for _, k := range keys(table) {
		out = append(out, k.Base().Full())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Compute is a function: its input stays as it is, and the same input comes to the
// same result.
func TestComputeIsPure(t *testing.T) {
	f := star(4)
	known := Assigned{
		LIDs: map[ib.PortGUID]ib.LID{guid(2): 7, guid(9): 9}, PKeys: map[string]ib.PKeyBase{"tenant-1": 0x10},
		Fences:  facts.FenceSet{{Node: 1, Port: 3}: "a test says so"},
		Forgets: map[observed.Place]observed.Element{{Node: 0x102, Port: 1}: observed.ElementHOQLife},
		Managed: true,
	}
	before := Assigned{LIDs: maps.Clone(known.LIDs), PKeys: maps.Clone(known.PKeys), Fences: maps.Clone(known.Fences), Forgets: maps.Clone(known.Forgets), Managed: true}
	in := Input{Fabric: f, Known: known, Profile: protect.Strict}
	p := tenants([]int{2, 3}, []int{-4})
	a, b := compute(t, in, p), compute(t, in, p)
	if d := differ(a.Tables, b.Tables); d != "" {
		t.Errorf("two calls (-first +second)\n%s", d)
	}
	if d := cmp.Diff(a.Warnings, b.Warnings); d != "" {
		t.Errorf("warnings of two calls (-first +second)\n%s", d)
	}
	if d := cmp.Diff(before, known); d != "" {
		t.Errorf("the input has changed (-before +after)\n%s", d)
	}
	if changes, all := f.TakeChanges(); len(changes) > 0 || all {
		t.Errorf("the fabric has changed: %v", changes)
	}
	if a.Assigned.LIDs[guid(2)] != 7 || a.Assigned.LIDs[guid(9)] != 9 {
		t.Errorf("LIDs %v: want 7 of host 2 again, and 9 of who is absent", a.Assigned.LIDs)
	}
	if d := cmp.Diff(before.Fences, a.Assigned.Fences); d != "" || !a.Assigned.Managed || len(a.Assigned.Forgets) != 1 {
		t.Errorf("what an earlier run learned is not all there: %+v", a.Assigned)
	}
}

// differ compares what two results want.
func differ(a, b *observed.Desired) string {
	type wanted struct {
		Ports []observed.DesiredPort
		Nodes []observed.DesiredNode
	}
	flat := func(d *observed.Desired) (out wanted) {
		for i := range d.Nodes {
			n := d.Nodes[i]
			out.Ports = append(out.Ports, n.Ports...)
			n.Ports = nil
			out.Nodes = append(out.Nodes, n)
		}
		return out
	}
	return cmp.Diff(flat(a), flat(b), cmpopts.EquateComparable(smp.PortInfo{}))
}

// A host whose table has no room makes a new policy fall. It does not make one fall
// that stands: without a profile it gets the default partition only, with one its
// switch port is fenced, and no more when it fits again.
func TestTooSmallTable(t *testing.T) {
	p := tenants([]int{2, 3}, []int{3}, []int{3})
	small := func() *observed.Fabric {
		f := star(4)
		f.Node(0x103).Info.PartitionCap = 2
		return f
	}
	var refused *partition.Error
	if _, err := tryCompute(t, Input{Fabric: small()}, p); !errors.As(err, &refused) || len(refused.Overflows) != 1 || refused.Overflows[0].PortGUID != guid(3) {
		t.Errorf("a new policy: %v", err)
	}

	f := small()
	r := compute(t, Input{Fabric: f, Stands: true}, p)
	if got := keys(r.Tables.Port(host(f, 3)).PKeys); !slices.Equal(got, []ib.PKey{0x7FFF}) {
		t.Errorf("host 3 is to hold %v", got)
	}
	if !r.Assigned.Fenced[guid(3)] || len(r.Warnings) != 1 || r.Ordinary() || len(r.Fences) > 0 {
		t.Errorf("fenced %v, warnings %q, fences %v", r.Assigned.Fenced, r.Warnings, r.Fences)
	}
	if _, err := tryCompute(t, Input{Fabric: f, Known: r.Assigned}, p); err != nil {
		t.Errorf("another policy, when host 3 is cut short already: %v", err)
	}

	r = compute(t, Input{Fabric: f, Profile: protect.Strict}, p) // it has less room than most
	at := observed.Place{Node: 1, Port: 3}
	if len(r.Fences) != 1 || r.Fences[0].At != at || r.Fences[0].Lifted || !strings.HasPrefix(r.Assigned.Fences[at], facts.RoomReason) {
		t.Fatalf("fences %+v", r.Fences)
	}
	if got := r.Tables.Port(guardOf(f, 3)).PKeys; got == nil || len(got) != 0 {
		t.Errorf("the fenced port is to hold %v", got)
	}
	again := compute(t, Input{Fabric: f, Profile: protect.Strict, Known: r.Assigned}, p)
	if len(again.Fences) != 0 {
		t.Errorf("fenced once more: %v", again.Fences)
	}
	f.Node(0x103).Info.PartitionCap = 8
	fits := compute(t, Input{Fabric: f, Profile: protect.Strict, Known: r.Assigned}, p)
	if len(fits.Fences) != 1 || !fits.Fences[0].Lifted || len(fits.Assigned.Fences) != 0 || len(fits.Assigned.Fenced) != 0 {
		t.Errorf("it fits: fences %+v, %v", fits.Fences, fits.Assigned.Fences)
	}
	if got := keys(r.Tables.Port(host(f, 2)).PKeys); !slices.Equal(got, []ib.PKey{0x7FFF, 0x8010}) {
		t.Errorf("host 2 is to hold %v all the while", got)
	}
}

// Behind a fence nobody is a member of anything, and the port lets nothing pass.
func TestFencedPort(t *testing.T) {
	for _, checks := range []bool{true, false} {
		f := star(4)
		f.Node(1).Switch.Info.OutboundEnforcementCap = checks
		in := Input{Fabric: f, Known: Assigned{Fences: facts.FenceSet{{Node: 1, Port: 3}: "a test says so"}}}
		for _, x := range in.Identities() {
			if x.PortGUID == guid(3) {
				t.Error("a policy is resolved among who is behind a fence")
			}
		}
		r := compute(t, in, func() *policy.Policy {
			p := tenants([]int{2, 3})
			p.AbsentWarns = true
			return p
		}())
		p, q := host(f, 3), guardOf(f, 3)
		if got := keys(r.Tables.Port(p).PKeys); !slices.Equal(got, []ib.PKey{0x7FFF}) {
			t.Errorf("host 3 is to hold %v", got)
		}
		want := r.Tables.Port(q)
		if want.PKeys == nil || len(want.PKeys) != 0 || !want.Info.PartitionEnforcementInbound || want.Info.PartitionEnforcementOutbound != checks {
			t.Errorf("%s is to hold %v and check keys in %v, out %v", q, want.PKeys, want.Info.PartitionEnforcementInbound, want.Info.PartitionEnforcementOutbound)
		}
		if want.Activate || r.Tables.Port(p).Activate || !r.Tables.Port(host(f, 2)).Activate {
			t.Error("all links but that of host 3 are to be Active")
		}
		warned := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "its switch cannot check keys") })
		if warned == checks {
			t.Errorf("the switch checks both directions %v: warnings %q", checks, r.Warnings)
		}
	}
}

// What a port out of sight held is withheld from others, unless the switch port
// before it takes it away.
func TestUnseenPort(t *testing.T) {
	f := star(3)
	q := guardOf(f, 4)
	q.Info.PortState, q.Info.PortPhysicalState, q.Silent = smp.PortActive, smp.PhysLinkUp, true
	gone := facts.UnseenPort{
		Identity: policy.EndPort{PortGUID: guid(4), NodeGUID: 0x104, PortNum: 1, NodeType: ib.NodeCA},
		Cap:      8, Keys: []ib.PKey{0x7FFF, 0x8010}, At: q.Place(), Behind: q.Place(),
		Aliases: []observed.Alias{{Index: 1, GUID: 0x02000000000000A1}},
	}
	in := Input{Fabric: f, Unseen: []facts.UnseenPort{gone}}
	if r := compute(t, in, tenants([]int{2, 4})); len(r.Withheld) != 0 || !r.Ordinary() {
		t.Errorf("it may hold what it holds: %v withheld", r.Withheld)
	}
	moved := tenants([]int{2, 3})
	if r := compute(t, in, moved); !slices.Equal(r.Withheld, []ib.PKeyBase{0x10}) || r.Ordinary() {
		t.Errorf("nothing takes 0x10 from it: %v withheld", r.Withheld)
	}
	q.Info.PartitionEnforcementInbound, q.Info.PartitionEnforcementOutbound = true, true
	if r := compute(t, in, moved); len(r.Withheld) != 0 {
		t.Errorf("its switch port takes 0x10 from it: %v withheld", r.Withheld)
	}

}

// Ports get the alias GUIDs of the policy: those that their tables have room for,
// and that nobody out of sight may still have.
func TestAliases(t *testing.T) {
	f := star(3)
	q := guardOf(f, 4)
	q.Info.PortState, q.Info.PortPhysicalState, q.Silent = smp.PortActive, smp.PhysLinkUp, true
	gone := facts.UnseenPort{
		Identity: policy.EndPort{PortGUID: guid(4), NodeGUID: 0x104, PortNum: 1, NodeType: ib.NodeCA},
		Cap:      8, At: q.Place(), Behind: q.Place(), Aliases: []observed.Alias{{Index: 1, GUID: 0x02000000000000A4}},
	}
	p := tenants([]int{2, 3})
	if r := compute(t, Input{Fabric: f}, p); r.Tables.Port(host(f, 2)).GUIDs != nil || r.Assigned.Aliases {
		t.Error("tables of GUIDs are wanted, and no policy ever spoke of aliases")
	}
	p.Aliases = []policy.PortAliases{{Port: guid(2), GUIDs: []ib.PortGUID{0x02000000000000A1, 0, 0x02000000000000A2, 0x02000000000000A3}}, {Port: guid(3), GUIDs: []ib.PortGUID{0x02000000000000A4}}}
	r := compute(t, Input{Fabric: f, Unseen: []facts.UnseenPort{gone}}, p)
	for h, want := range map[int][]ib.PortGUID{1: {guid(1)}, 2: {guid(2), 0x02000000000000A1, 0, 0x02000000000000A2}, 3: {guid(3), 0}} {
		if d := cmp.Diff(want, r.Tables.Port(host(f, h)).GUIDs); d != "" {
			t.Errorf("host %d (-want +got)\n%s", h, d)
		}
	}
	if len(r.Warnings) != 2 || !r.Assigned.Aliases {
		t.Errorf("warnings %q: want one of each that is not given", r.Warnings)
	}
	p.Aliases = nil
	r = compute(t, Input{Fabric: f, Known: r.Assigned}, p)
	if d := cmp.Diff([]ib.PortGUID{guid(2)}, r.Tables.Port(host(f, 2)).GUIDs); d != "" {
		t.Errorf("those of an earlier policy go (-want +got)\n%s", d)
	}
}

// Whoever would get more than he held gets no more; the manager's own port does in the
// default partition, without which nobody could ask it.
func TestBounds(t *testing.T) {
	f := star(3)
	copy(host(f, 2).PKeys, []ib.PKey{0x7FFF, 0x0010})
	b := BoundOf(f.EndPorts(), "a test says so", false)
	r := compute(t, Input{Fabric: f, Bounds: []*Bound{nil, b}}, tenants([]int{2, 3}, []int{1}))
	for h, want := range map[int][]ib.PKey{1: {0xFFFF}, 2: {0x7FFF}, 3: {0x7FFF}} {
		if got := keys(r.Tables.Port(host(f, h)).PKeys); !slices.Equal(got, want) {
			t.Errorf("host %d is to hold %v, want %v", h, got, want)
		}
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "a test says so") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// Routes of an earlier result are taken as long as fabric and addresses are the
// same.
func TestRoutesAreKept(t *testing.T) {
	f := star(3)
	first := compute(t, Input{Fabric: f}, tenants([]int{2}))
	in := Input{Fabric: f, Routes: first.Routes, Known: first.Assigned}
	same := compute(t, in, tenants([]int{2, 3}))
	if same.Routes != first.Routes {
		t.Error("routes are worked out again for another policy")
	}
	in.Known.LIDs = map[ib.PortGUID]ib.LID{guid(2): 40}
	other := compute(t, in, tenants([]int{2, 3}))
	if other.Routes == first.Routes || other.Tables.Nodes[0].LFT[40] != 2 {
		t.Error("the old routes are taken for other addresses")
	}
	g := star(3)
	in = Input{Fabric: g, Routes: first.Routes, Known: first.Assigned}
	if r := compute(t, in, tenants([]int{2})); r.Routes == first.Routes {
		t.Error("the routes of another fabric are taken")
	}
}

// Multicast tables are left alone where nobody told of groups, and lead to members
// that the policy allows.
func TestLead(t *testing.T) {
	f := star(3)
	f.Node(1).Switch.Info.MulticastFDBCap = 1024
	r := compute(t, Input{Fabric: f}, tenants([]int{2, 3}))
	if r.Tables.Nodes[0].Multicast != nil {
		t.Fatalf("without groups: %v", r.Tables.Nodes[0].Multicast)
	}
	member := func(h int) group.Member {
		return group.Member{Port: guid(h), State: sa.JoinFull}
	}
	g := &group.Group{MGID: ib.GID{0xFF, 0x12}, MLID: 0xC000, Partition: 0x10, Members: []group.Member{member(1), member(2), member(3)}}
	if err := r.Lead([]*group.Group{g}); err != nil {
		t.Fatal(err)
	}
	if m := r.Tables.Nodes[0].Multicast; m == nil || m.Blocks[0].Masks[0] != 1<<2|1<<3 {
		t.Errorf("the switch is to do %v, want hosts 2 and 3 led to, and not host 1, which is in no partition", m)
	}
}

func TestPredict(t *testing.T) {
	f := star(3)
	f.Self = nil
	if _, err := Predict(Input{Fabric: f}, tenants()); err == nil {
		t.Error("a fabric without a port to work from")
	}
	f = star(3)
	in := Input{Fabric: f, Routing: routing.UpDown, Known: Assigned{
		Forgets: map[observed.Place]observed.Element{{Node: 0x102, Port: 1}: observed.ElementHOQLife},
		Fences:  facts.FenceSet{{Node: 1, Port: 2}: facts.CableReason, {Node: 1, Port: 3}: "a test says so"},
	}}
	r, err := Predict(in, tenants([]int{2}))
	if err != nil {
		t.Fatal(err)
	}
	if host(f, 2).Forgets != observed.ElementHOQLife {
		t.Error("what host 2 does not keep is not recalled")
	}
	if d := cmp.Diff(facts.FenceSet{{Node: 1, Port: 3}: "a test says so"}, r.Assigned.Fences); d != "" {
		t.Errorf("fences where there is no list of cables (-want +got)\n%s", d)
	}
	unnumbered := tenants([]int{2})
	unnumbered.Partitions[0].PKey = 0
	in.Known.PKeys = map[string]ib.PKeyBase{"tenant-1": 0x123}
	if r, err = Predict(in, unnumbered); err != nil || r.Assigned.PKeys["tenant-1"] != 0x123 || !slices.Contains(r.Tables.Port(host(f, 2)).PKeys, 0x8123) {
		t.Errorf("%v: the partition had the number 0x123 before", err)
	}
	var absent *policy.AbsentError
	if _, err := Predict(in, tenants([]int{9})); !errors.As(err, &absent) {
		t.Errorf("a policy that names nobody: %v", err)
	}
	if _, err := Predict(Input{Fabric: f, Routing: routing.UpDown, Known: Assigned{Names: map[string]bool{port(9).String(): true}}}, tenants([]int{9})); err != nil {
		t.Errorf("a name that was met before: %v", err)
	}
}

// Where a policy follows another, an update comes to what Compute comes to.
func TestUpdateIsCompute(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		f := star(6)
		parts := func() *policy.Policy {
			p := make([][]int, 3)
			for h := 2; h <= 6; h++ {
				if n := r.IntN(4); n > 0 {
					p[n-1] = append(p[n-1], h*(1-2*r.IntN(2)))
				}
			}
			return tenants(p...)
		}
		in := Input{Fabric: f, Routing: routing.UpDown, Profile: protect.Profile(r.IntN(2) * int(protect.Strict))}
		now := compute(t, in, parts())
		for range 5 {
			next := parts()
			var stale map[*observed.Port]bool
			if r.IntN(2) == 0 { // somebody writes a foreign key
				p := host(f, 2+r.IntN(5))
				p.PKeys[r.IntN(8)] = ib.PKey(0x8000 | r.IntN(0x40))
				stale = map[*observed.Port]bool{p: true}
			}
			in.Known = now.Assigned
			whole := compute(t, in, next)
			a, ok := now.Update(Next{Resolved: resolved(t, in, next), Stale: stale})
			if !ok {
				t.Fatalf("seed %d: not updated", seed)
			}
			if a.Result.Compiled >= whole.Compiled && len(a.Changed) < 5 {
				t.Errorf("seed %d: %d of %d ports compiled for %d that changed", seed, a.Result.Compiled, whole.Compiled, len(a.Changed))
			}
			now = a.Enter()
			if d := differ(whole.Tables, now.Tables); d != "" {
				t.Fatalf("seed %d (-whole +updated)\n%s", seed, d)
			}
			if d := cmp.Diff(whole.Warnings, now.Warnings); d != "" {
				t.Errorf("seed %d: warnings (-whole +updated)\n%s", seed, d)
			}
			if d := cmp.Diff(whole.Assigned, now.Assigned); d != "" {
				t.Errorf("seed %d: assigned (-whole +updated)\n%s", seed, d)
			}
		}
	}
}

// Nothing is updated where more has changed than who is in which partition, and
// nothing has changed before Enter.
func TestUpdateOrNot(t *testing.T) {
	base := func() *policy.Policy { return tenants([]int{2, 3}, []int{4}) }
	for _, x := range []struct {
		name   string
		change func(*policy.Policy)
		ok     bool
	}{
		{"nothing", func(*policy.Policy) {}, true},
		{"a member", func(p *policy.Policy) { p.Partitions[1].Members = p.Partitions[1].Members[:0] }, true},
		{"both keys", func(p *policy.Policy) { p.AllowBoth = true }, false},
		{"raw packets", func(p *policy.Policy) { p.AllowRaw = true }, false},
		{"settings", func(p *policy.Policy) { p.Settings = &policy.Settings{SubnetTimeOut: 20} }, false},
		{"a service level", func(p *policy.Policy) { p.Partitions[0].SL = 3 }, false},
	} {
		f := star(4)
		in := Input{Fabric: f}
		now := compute(t, in, base())
		before := compute(t, in, base())
		p := base()
		x.change(p)
		a, ok := now.Update(Next{Resolved: resolved(t, in, p)})
		if ok != x.ok {
			t.Errorf("%s: updated %v, want %v", x.name, ok, x.ok)
		}
		if d := differ(before.Tables, now.Tables); d != "" {
			t.Errorf("%s: changed before Enter\n%s", x.name, d)
		}
		if ok && x.name == "nothing" && (len(a.Changed) > 0 || len(a.Ports) > 0) {
			t.Errorf("nothing has changed, and %v are looked at", a.Ports)
		}
	}
}
