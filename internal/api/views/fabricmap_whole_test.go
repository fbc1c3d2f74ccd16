package views

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/api/racks"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// town is a fabric of two leaves and a spine, with hosts of red, blue and nobody's, and its facts.
type town struct {
	*subnettest.Builder
	leaf, other, spine *observed.Node
	red, blue, zinc    *observed.Port
	both, router       *observed.Node
	state              *storetest.State
	facts              *MapFacts
}

func newTown(t *testing.T) *town {
	b := subnettest.New()
	x := &town{Builder: b}
	x.leaf, x.other, x.spine = b.Switch(8, "leaf"), b.Switch(8, "other"), b.Switch(8, "spine")
	subnettest.Join(x.leaf, x.spine)
	subnettest.Join(x.other, x.spine)
	x.red, x.blue, x.zinc = b.Host(x.leaf, "red"), b.Host(x.leaf, "blue"), b.Host(x.other, "zinc")
	x.both = b.Node(ib.NodeCA, 2, "both")
	subnettest.Cable(&x.both.Ports[1], subnettest.Free(x.leaf))
	subnettest.Cable(&x.both.Ports[2], subnettest.Free(x.other))
	x.router = b.Node(ib.NodeRouter, 1, "router")
	subnettest.Cable(&x.router.Ports[1], subnettest.Free(x.other))
	b.Route()
	x.state = storetest.NewState(t, x.red.GUID, x.blue.GUID, x.zinc.GUID)
	x.state.Do(resource.Provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: x.both.Ports[1].GUID}}})
	x.facts = &MapFacts{Snapshot: &snapshot.Snapshot{ReadAt: time.Unix(1e9, 0).UTC(), Fabric: b.Fabric}, Cabling: &Cabling{}}
	return x
}

func (x *town) gather() {
	x.facts.Gather(x.state.State, storetest.By(resource.Provider))
}

// whole is the map for the provider, read back from what is sent.
func (x *town) whole(t *testing.T) Map {
	t.Helper()
	x.gather()
	a, err := new(MapMaker).Whole(x.facts)
	if err != nil {
		t.Fatal(err)
	}
	var m Map
	if err := json.Unmarshal(a.Body, &m); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(a.Zipped))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(z); err != nil || !bytes.Equal(body, a.Body) {
		t.Errorf("what is sent by gzip is not what is sent: %v", err)
	}
	return m
}

// rows are the nodes of a map in words, by name.
func rows(m Map) map[string]string {
	pick := func(words []string, i int) string {
		if i < 0 {
			return map[int]string{ownerNobody: "nobody", ownerSeveral: "several"}[i]
		}
		return words[i]
	}
	out := map[string]string{}
	n := m.Nodes
	for i := range n.GUID {
		out[n.Name[i]] = fmt.Sprintf("type %d lid %d level %d of %s, %s, party %s, %s, %s", n.Type[i], n.LID[i], n.Level[i], m.Groups[n.Group[i]].Name,
			pick(m.Owners, n.Owner[i]), pick(m.Parties, n.Party[i]), m.States[n.State[i]], m.Verdicts[n.Verdict[i]])
	}
	return out
}

// cables are those of a map in words.
func cables(m Map) (out []string) {
	for i := range m.Links.A {
		out = append(out, fmt.Sprintf("%s:%d-%s:%d %s", m.Nodes.Name[m.Links.A[i]], m.Links.APort[i], m.Nodes.Name[m.Links.B[i]], m.Links.BPort[i], m.LinkStates[m.Links.State[i]]))
	}
	slices.Sort(out)
	return out
}

// TestWholeMap: each device with its place, its owner and how it is, and each cable, with a list
// of cables and without.
func TestWholeMap(t *testing.T) {
	x := newTown(t)
	x.facts.Old = "lost"
	x.facts.Parties = func() ([]string, map[ib.PortGUID]int) {
		return []string{"p0", "p1"}, map[ib.PortGUID]int{x.red.GUID: 0, x.both.Ports[1].GUID: 0, x.both.Ports[2].GUID: 1, x.zinc.GUID: 1}
	}
	x.red.Info.PortState, x.red.Peer.Info.PortState = smp.PortInit, smp.PortInit
	m := x.whole(t)
	if m.Revision != x.state.Last() || m.Old != "lost" || !m.ReadAt.Equal(x.facts.Snapshot.ReadAt) || m.Listed {
		t.Errorf("%+v", m)
	}
	if got := strings.Join(m.Owners, " ") + ", " + strings.Join(m.Parties, " "); got != "blue provider red zinc, p0 p1" {
		t.Errorf("owners and parties: %s", got)
	}
	lid := func(p *observed.Port) int { return int(p.Info.LID) }
	want := map[string]string{
		"leaf":   fmt.Sprintf("type 1 lid %d level 1 of leaf, nobody, party nobody, active, unknown", lid(&x.leaf.Ports[0])),
		"other":  fmt.Sprintf("type 1 lid %d level 1 of other, nobody, party nobody, active, unknown", lid(&x.other.Ports[0])),
		"red":    fmt.Sprintf("type 0 lid %d level 0 of leaf, red, party p0, inactive, unknown", lid(x.red)),
		"blue":   fmt.Sprintf("type 0 lid %d level 0 of leaf, blue, party nobody, active, unknown", lid(x.blue)),
		"zinc":   fmt.Sprintf("type 0 lid %d level 0 of other, zinc, party p1, active, unknown", lid(x.zinc)),
		"both":   fmt.Sprintf("type 0 lid %d level 0 of leaf, several, party several, active, unknown", lid(&x.both.Ports[1])),
		"router": fmt.Sprintf("type 2 lid %d level 0 of other, provider, party nobody, active, unknown", lid(&x.router.Ports[1])),
	}
	got := rows(m)
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %s, want %s", name, got[name], w)
		}
	}
	if len(got) != 8 || !strings.HasPrefix(got["spine"], "type 1 ") {
		t.Errorf("%d nodes: %q", len(got), got)
	}
	found := []string{
		"leaf:1-spine:1 active", "leaf:2-red:1 inactive", "leaf:3-blue:1 active", "leaf:4-both:1 active",
		"other:1-spine:2 active", "other:2-zinc:1 active", "other:3-both:2 active", "other:4-router:1 active",
	}
	if got := cables(m); !slices.Equal(got, found) {
		t.Errorf("cables %q, want %q", got, found)
	}

	// With a list: a cable and a device that are missing, and all that is found and not listed.
	at := func(n *observed.Node, p ib.PortNum) observed.Place { return observed.Place{Node: n.GUID(), Port: p} }
	gone, quiet := ib.NodeGUID(0x9000), ib.NodeGUID(0x9001)
	x.facts.Cabling.List = &MapList{
		Devices: []MapDevice{{x.leaf.GUID(), ib.NodeSwitch, "another name"}, {gone, ib.NodeSwitch, "gone"}, {quiet, ib.NodeCA, ""}},
		Cables:  []Cable{{at(x.spine, 1), at(x.leaf, 1)}, {at(x.leaf, 2), at(x.red.Node, 1)}, {observed.Place{Node: gone, Port: 3}, at(x.leaf, 8)}},
	}
	m = x.whole(t)
	listed := []string{
		"leaf:1-spine:1 active", "leaf:2-red:1 inactive", "leaf:3-blue:1 unlisted", "leaf:4-both:1 unlisted", "leaf:8-gone:3 missing",
		"other:1-spine:2 unlisted", "other:2-zinc:1 unlisted", "other:3-both:2 unlisted", "other:4-router:1 unlisted",
	}
	if got := cables(m); !slices.Equal(got, listed) || !m.Listed {
		t.Errorf("cables %q, want %q", got, listed)
	}
	if !slices.IsSorted(m.Nodes.GUID) {
		t.Errorf("nodes %q are not by GUID", m.Nodes.GUID)
	}
	for i := 1; i < len(m.Links.A); i++ {
		if m.Links.A[i] < m.Links.A[i-1] {
			t.Errorf("cables are not by their lower ends: %v", m.Links.A)
		}
	}
	got = rows(m)
	for name, w := range map[string]string{"gone": "type 1 lid 0 ", quiet.String(): "type 0 lid 0 level 0 "} {
		if !strings.HasPrefix(got[name], w) || !strings.HasSuffix(got[name], "nobody, party nobody, missing, unknown") {
			t.Errorf("%s: %s, want %s", name, got[name], w)
		}
	}
}

// TestStates: each state of a node comes before those that are less.
func TestStates(t *testing.T) {
	down := func(x *town) {
		subnettest.SetLink(x.red, smp.PortDown, smp.PhysPolling)
	}
	fence := func(x *town) {
		x.facts.Cabling.Fences = []Fence{{x.red.Peer.Place(), "the wrong device"}, {x.leaf.Ports[1].Peer.Place(), "another"}, {x.both.Ports[1].Peer.Place(), "one of two"}}
	}
	drain := func(x *town) {
		x.state.Do(resource.Provider, resource.DrainSwitch{Drain: resource.Drain{Switch: x.leaf.GUID()}})
	}
	for name, c := range map[string]struct {
		change func(x *town)
		of     func(x *town) *observed.Node
		want   string
	}{
		"a host whose link is Active":              {func(*town) {}, func(x *town) *observed.Node { return x.red.Node }, "active"},
		"a host whose link is down":                {down, func(x *town) *observed.Node { return x.red.Node }, "down"},
		"a host whose link is up":                  {func(x *town) { x.red.Info.PortState = smp.PortArmed }, func(x *town) *observed.Node { return x.red.Node }, "inactive"},
		"a device of which one link is up":         {func(x *town) { x.both.Ports[1].Info.PortState = smp.PortInit }, func(x *town) *observed.Node { return x.both }, "active"},
		"a fenced host":                            {fence, func(x *town) *observed.Node { return x.red.Node }, "fenced"},
		"a fenced host, down":                      {func(x *town) { down(x); fence(x) }, func(x *town) *observed.Node { return x.red.Node }, "fenced"},
		"a device of which one cable is fenced":    {fence, func(x *town) *observed.Node { return x.both }, "active"},
		"a device without a cable":                 {func(x *town) { x.red.Peer = nil; fenceNone(x) }, func(x *town) *observed.Node { return x.red.Node }, "active"},
		"a drained switch":                         {drain, func(x *town) *observed.Node { return x.leaf }, "drained"},
		"another switch":                           {drain, func(x *town) *observed.Node { return x.other }, "active"},
		"a host whose keys were not read":          {func(x *town) { x.red.PKeysRead[0] = false; fenceAll(x) }, func(x *town) *observed.Node { return x.red.Node }, "unread"},
		"a host that was not read":                 {func(x *town) { x.red.InfoRead = false }, func(x *town) *observed.Node { return x.red.Node }, "unread"},
		"a switch that was not read":               {func(x *town) { x.leaf.Switch.InfoRead = false; drain(x) }, func(x *town) *observed.Node { return x.leaf }, "unread"},
		"a switch whose table was not read":        {func(x *town) { x.leaf.Switch.LFTRead[0] = false }, func(x *town) *observed.Node { return x.leaf }, "unread"},
		"a switch port that was not read":          {func(x *town) { x.leaf.Ports[8].InfoRead = false; x.leaf.Ports[8].Reached = true }, func(x *town) *observed.Node { return x.leaf }, "unread"},
		"the keys of a port to a host, not read":   {func(x *town) { x.red.Peer.PKeysRead[0] = false }, func(x *town) *observed.Node { return x.leaf }, "unread"},
		"the keys of a port to a switch, not read": {func(x *town) { x.leaf.Ports[1].PKeysRead[0] = false }, func(x *town) *observed.Node { return x.leaf }, "active"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTown(t)
			c.change(x)
			x.gather()
			state, verdict := x.facts.Of(c.of(x), func(*observed.Port) bool { return true })
			if state != c.want || verdict != "unknown" {
				t.Errorf("%s, %s; want %s", state, verdict, c.want)
			}
		})
	}
}

func fenceNone(x *town) { x.facts.Cabling = nil }
func fenceAll(x *town)  { x.facts.Cabling.Fences = []Fence{{x.red.Peer.Place(), "why"}} }

// TestVerdicts: the verdict on a node is the worst of those of its end ports that count, and unknown
// without a proof.
func TestVerdicts(t *testing.T) {
	x := newTown(t)
	all := func(*observed.Port) bool { return true }
	if _, v := x.facts.Of(x.red.Node, func(*observed.Port) bool { return false }); v != "kept-apart" && v != "unknown" {
		t.Errorf("of nothing: %s", v)
	}
	x.facts.Proof = isolation.Prove(x.Fabric, nil)
	seen := map[string]bool{}
	for _, n := range []*observed.Node{x.red.Node, x.both, x.leaf} {
		worst := isolation.Verdict(0)
		for p := range ends(n) {
			worst = max(worst, x.facts.Proof.VerdictOn(p.GUID))
		}
		want := map[isolation.Verdict]string{isolation.Isolated: "kept-apart", isolation.Unguarded: "kept-apart", isolation.ByEndPorts: "unenforced", isolation.Unknown: "unknown", isolation.Violated: "violated"}[worst]
		if _, v := x.facts.Of(n, all); v != want {
			t.Errorf("%s: %s, want %s", n.Name(), v, want)
		}
		seen[want] = true
	}
	if seen["unknown"] {
		t.Errorf("with a proof of a fabric that was read whole: %v", seen)
	}
}

// TestFencesAndDrains: which place is fenced and why, and which switches are drained, by GUID or by
// name.
func TestFencesAndDrains(t *testing.T) {
	x := newTown(t)
	x.facts.Cabling.Fences = []Fence{{x.red.Peer.Place(), "first"}, {x.blue.Peer.Place(), "second"}}
	for p, want := range map[*observed.Port]string{x.red.Peer: "first", x.blue.Peer: "second", x.zinc.Peer: ""} {
		if got := x.facts.Fence(p.Place()); got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
	x.facts.Cabling = nil
	if got := x.facts.Fence(x.red.Peer.Place()); got != "" || x.facts.list() != nil {
		t.Errorf("without a manager: %q", got)
	}
	s := resource.New(&policy.Policy{Default: policy.Limited, Drained: []policy.Drained{{At: policy.Place{Name: "spine"}}, {At: policy.Place{Switch: x.other.GUID()}}, {At: policy.Place{Name: "nobody"}}}})
	x.facts.GatherDrained(s)
	for n, want := range map[*observed.Node]bool{x.spine: true, x.other: true, x.leaf: false} {
		if x.facts.Drained(n.GUID()) != want {
			t.Errorf("%s is drained: %v", n.Name(), !want)
		}
	}
	if x.facts.Drained(0) {
		t.Error("a switch without a GUID is drained")
	}
}

// TestMapIsKept: the map of the provider is made again when something of it has changed, and else not.
func TestMapIsKept(t *testing.T) {
	x := newTown(t)
	var m MapMaker
	x.gather()
	make := func() *MapAnswer {
		t.Helper()
		a, err := m.Whole(x.facts)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := make()
	if make() != first {
		t.Error("the same map is made twice")
	}
	for name, change := range map[string]func(){
		"old":      func() { x.facts.Old = "lost" },
		"revision": func() { x.facts.revision++ },
		"proof":    func() { x.facts.Proof = isolation.Prove(x.Fabric, nil) },
		"list":     func() { x.facts.Cabling.List = &MapList{Devices: []MapDevice{{0x9000, ib.NodeCA, "gone"}}} },
		"snapshot": func() { x.facts.Snapshot = &snapshot.Snapshot{Fabric: x.Fabric} },
	} {
		before := make()
		change()
		after := make()
		if after == before {
			t.Errorf("%s: the map is the one before", name)
		}
		if same := after.ETag == before.ETag; same != (name == "old" || name == "revision" || name == "snapshot") {
			t.Errorf("%s: the ETag is the same: %v", name, same)
		}
	}
	x.facts.Gather(x.state.State, storetest.By("red"))
	own, err := m.Own(x.facts, "red")
	if err != nil || strings.Contains(string(own.Body), "blue") || !strings.Contains(string(own.Body), `"red"`) {
		t.Errorf("the map of red: %v, %s", err, own.Body)
	}
	x.gather()
	if make().ETag == own.ETag {
		t.Error("a tenant has the ETag of the provider")
	}
}

// TestPlaceAndDifferences: where a device stands, and what is not as it is listed, of the fabric that
// was asked for.
func TestPlaceAndDifferences(t *testing.T) {
	x := newTown(t)
	var m MapMaker
	for n, want := range map[*observed.Node]string{x.leaf: "1 leaf", x.red.Node: "0 leaf", x.zinc.Node: "0 other"} {
		level, group := m.Place(x.facts, n.GUID())
		if got := fmt.Sprint(level, " ", group); got != want {
			t.Errorf("%s is at %s, want %s", n.Name(), got, want)
		}
	}
	if level, group := m.Place(x.facts, 0x9999); level != 0 || group != "" {
		t.Errorf("nobody is at %d %s", level, group)
	}
	if level, _ := m.Place(x.facts, x.spine.GUID()); level < 2 {
		t.Errorf("the spine is at level %d", level)
	}
	none := func(name string) {
		t.Helper()
		if all, cables := m.Differences(x.facts); all == nil || len(all) != 0 || cables != nil {
			t.Errorf("%s: %v, %v", name, all, cables)
		}
	}
	none("without a list")
	x.facts.Cabling.List = &MapList{Cables: make([]Cable, 3)}
	none("without a comparison")
	calls := 0
	x.facts.Cabling.Differences = func(*observed.Fabric) []Difference { calls++; return []Difference{{Port: calls}} }
	check := func(want int) {
		t.Helper()
		all, cables := m.Differences(x.facts)
		if cables == nil || *cables != 3 || !reflect.DeepEqual(all, []Difference{{Port: want}}) {
			t.Errorf("%v, %v; want comparison %d", all, cables, want)
		}
	}
	check(1)
	check(1)
	x.facts.Snapshot = &snapshot.Snapshot{Fabric: x.Fabric}
	check(2)
	x.facts.Cabling.List = &MapList{Cables: make([]Cable, 3)}
	check(3)
	x.facts.Cabling = nil
	none("without a manager")
}

// northHall is a file of racks for the devices of a town.
func northHall(t *testing.T) *racks.File {
	t.Helper()
	f, err := racks.Read([]byte("leaf pod=A\nother pod=B\n/^(red|blue)$/ rack=17"), "racks")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRacks: a file says in which group and rack a device is; without one the cables do.
func TestRacks(t *testing.T) {
	x := newTown(t)
	var m MapMaker
	x.gather()
	before, err := m.Whole(x.facts)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(before.Body), "rack") {
		t.Errorf("racks without a file: %s", before.Body)
	}
	x.facts.Racks = northHall(t)
	named, err := m.Whole(x.facts)
	if err != nil || named.ETag == before.ETag {
		t.Errorf("the map is as without a file: %v", err)
	}
	var got Map
	if err := json.Unmarshal(named.Body, &got); err != nil {
		t.Fatal(err)
	}
	place := map[string]string{}
	for i, name := range got.Nodes.Name {
		place[name] = got.Groups[got.Nodes.Group[i]].Name
		if r := got.Nodes.Rack[i]; r >= 0 {
			place[name] += ", " + got.Racks[r]
		}
	}
	for name, want := range map[string]string{"leaf": "pod A, rack 17", "red": "pod A, rack 17", "blue": "pod A, rack 17", "zinc": "pod B", "other": "pod B", "spine": "core"} {
		if place[name] != want {
			t.Errorf("%s is in %q, want %q", name, place[name], want)
		}
	}
	if _, group := m.Place(x.facts, x.red.Node.GUID()); group != "pod A, rack 17" {
		t.Errorf("red is in %q", group)
	}
	x.facts.Racks = nil
	if again, err := m.Whole(x.facts); err != nil || again.ETag != before.ETag {
		t.Errorf("without the file the map is another than before: %v", err)
	}
}

// TestNegotiation: who takes gzip, and who has an answer already.
func TestNegotiation(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "br, gzip": true, "br,gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzip;Q=0.000": false, "gzip;q=1": true, "gzip;q=0.001": true, "br": false, "xgzip": false, "identity;q=1, *;q=0": false,
	} {
		if TakesGzip(accept) != want {
			t.Errorf("Accept-Encoding: %q takes gzip: %v", accept, !want)
		}
	}
	a := MapAnswer{ETag: `W/"abc"`}
	for header, want := range map[string]bool{"": false, `W/"abc"`: true, `"abc"`: true, `"x", W/"abc"`: true, "*": true, " * ": true, `"ab"`: false, "abc": false} {
		if a.Has(header) != want {
			t.Errorf("If-None-Match: %q has it: %v", header, !want)
		}
	}
}
