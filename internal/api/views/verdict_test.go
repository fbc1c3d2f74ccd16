package views

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// verdictWorld is a fabric with tenants red, blue and green, two hosts each, and yellow without any.
// Each of the three has a partition of its own; common, of blue, has a host of each: blue's is
// a full member, the others are limited. guest, of red, has a host of blue's alone. The manager
// is in default, all hosts as limited members.
type verdictWorld struct {
	*testing.T
	b       *subnettest.Builder
	leaf    *observed.Node
	ports   map[string]*observed.Port
	state   *resource.State
	allowed []observed.Partition
	keys    map[string][]ib.PKey // by port, what the policy gives
}

const (
	verdictCrimson, guest, verdictAzure, verdictOf, verdictEmerald = ib.PKeyBase(0x10), ib.PKeyBase(0x11), ib.PKeyBase(0x20), ib.PKeyBase(0x21), ib.PKeyBase(0x30)
)

var tenants = []string{"red", "blue", "green", "yellow"}

func newVerdictWorld(t *testing.T) *verdictWorld {
	w := &verdictWorld{T: t, b: subnettest.New(), ports: map[string]*observed.Port{}, state: resource.New(nil), keys: map[string][]ib.PKey{}}
	w.leaf = w.b.Switch(40, "leaf")
	for _, name := range tenants {
		w.enter(&resource.Tenant{Name: name})
	}
	for _, name := range []string{"red-1", "red-2", "blue-1", "blue-2", "green-1", "green-2", "manager"} {
		w.host(name)
	}
	w.allowed = []observed.Partition{{Name: "default", Base: ib.PKeyBaseDefault}}
	for name := range w.ports {
		w.give(ib.PKeyBaseDefault, name, name == "manager")
	}
	w.partition("red", "crimson", verdictCrimson, "red-1", "red-2")
	w.partition("red", "guest", guest, "blue-2")
	w.partition("blue", "azure", verdictAzure, "blue-1", "blue-2")
	w.partition("blue", "common", verdictOf, "blue-1", "-red-1", "-green-1")
	w.partition("green", "emerald", verdictEmerald, "green-1", "green-2")
	w.b.Route()
	w.b.ManagedFrom(w.ports["manager"])
	return w
}

func (w *verdictWorld) enter(o resource.Object) {
	w.Helper()
	if err := w.state.Restore(o, 1); err != nil {
		w.Fatal(err)
	}
	w.state.SetLast(1)
}

// host adds a host; its name begins with that of its tenant.
func (w *verdictWorld) host(name string) {
	p := w.b.Host(w.leaf, name)
	w.ports[name] = p
	if owner, _, of := strings.Cut(name, "-"); of {
		w.enter(&resource.Port{GUID: p.GUID, Owner: owner})
	}
}

// partition makes a partition with these members; those with a minus before the name are limited.
func (w *verdictWorld) partition(owner, name string, k ib.PKeyBase, members ...string) {
	w.enter(&resource.Partition{PKey: k, Name: name, Owner: owner})
	w.allowed = append(w.allowed, observed.Partition{Name: name, Base: k})
	for _, m := range members {
		m, limited := strings.CutPrefix(m, "-")
		portOwner, _, _ := strings.Cut(m, "-")
		x := &resource.Member{PKey: k, Port: w.ports[m].GUID, Membership: policy.Full, ByPartition: true, ByPort: true, Owner: owner, PortOwner: portOwner}
		if limited {
			x.Membership = policy.Limited
		}
		w.enter(x)
		w.give(k, m, !limited)
	}
}

// give lets the policy give a port a key, and the tables have it.
func (w *verdictWorld) give(k ib.PKeyBase, port string, full bool) {
	i := slices.IndexFunc(w.allowed, func(a observed.Partition) bool { return a.Base == k })
	list, key := &w.allowed[i].Limited, k.Limited()
	if full {
		list, key = &w.allowed[i].Full, k.Full()
	}
	*list = append(*list, w.ports[port].GUID)
	w.keys[port] = append(w.keys[port], key)
	subnettest.SetPKeysThrough(w.ports[port], w.keys[port]...)
}

// steal gives a port a key that the policy does not give.
func (w *verdictWorld) steal(port string, k ib.PKey) {
	subnettest.SetPKeysThrough(w.ports[port], append(slices.Clone(w.keys[port]), k)...)
}

func (w *verdictWorld) proof() *isolation.Proof { return isolation.Prove(w.b.Fabric, w.allowed) }

func verdictAs(tenant string) resource.Caller { return resource.Caller{Name: "tok-1", Tenant: tenant} }

var at = time.Unix(1e9, 0).UTC()

// seen is all that a caller is told of a proof.
func (w *verdictWorld) seen(tenant string, p *isolation.Proof) (Proof, []Pair, string) {
	w.Helper()
	out, pairs := ProofOf(w.state, verdictAs(tenant), p, w.allowed, at), PairsOf(w.state, verdictAs(tenant), p, w.allowed)
	text, err := json.Marshal([]any{out, pairs, VerdictFor(w.state, verdictAs(tenant), p)})
	if err != nil {
		w.Fatal(err)
	}
	if out.Verdict != VerdictFor(w.state, verdictAs(tenant), p).String() || out.Holds != VerdictFor(w.state, verdictAs(tenant), p).Holds() || !out.ReadAt.Equal(at) {
		w.Errorf("%s: %+v", tenant, out)
	}
	if out.Counts.Pairs != len(pairs) {
		w.Errorf("%s: %d pairs are counted, and %d listed", tenant, out.Counts.Pairs, len(pairs))
	}
	if tenant != resource.Provider {
		w.hides(tenant, text)
	}
	return out, pairs, string(text)
}

// hides fails if a tenant is told the name or the GUID of a port or a switch of others, or a
// partition that it does not see.
func (w *verdictWorld) hides(tenant string, text []byte) {
	w.Helper()
	for name, p := range w.ports {
		if owner, _, _ := strings.Cut(name, "-"); owner != tenant && (strings.Contains(string(text), p.GUID.String()) || strings.Contains(string(text), name)) {
			w.Errorf("%s is told of %s: %s", tenant, name, text)
		}
	}
	for _, a := range w.allowed {
		if a.Base != ib.PKeyBaseDefault && !w.state.Sees(verdictAs(tenant), a.Base) && strings.Contains(string(text), `"`+a.Name+`"`) {
			w.Errorf("%s is told of partition %s: %s", tenant, a.Name, text)
		}
	}
	if strings.Contains(string(text), "leaf") {
		w.Errorf("%s is told of a switch: %s", tenant, text)
	}
}

// want checks the verdict and the violations of a tenant, and the verdicts on its pairs but for
// those that are isolated.
func (w *verdictWorld) want(tenant string, p *isolation.Proof, verdict string, violations []Violation, pairs ...string) Proof {
	w.Helper()
	out, list, _ := w.seen(tenant, p)
	if out.Verdict != verdict || !slices.Equal(out.Violations, violations) || out.Counts.Violations != len(violations) {
		w.Errorf("%s: %s with %+v, want %s with %+v", tenant, out.Verdict, out.Violations, verdict, violations)
	}
	var bad []string
	for _, x := range list {
		if x.Verdict != "isolated" {
			bad = append(bad, x.A+" "+x.B+" "+x.Verdict)
		}
	}
	slices.Sort(bad)
	slices.Sort(pairs)
	if !slices.Equal(bad, pairs) {
		w.Errorf("%s: pairs %q, want %q", tenant, bad, pairs)
	}
	return out
}

func (w *verdictWorld) guid(port string) string { return w.ports[port].GUID.String() }

// TestKeptApart: while nothing is wrong each caller is told so, of what is his and counted by it.
func TestKeptApart(t *testing.T) {
	w := newVerdictWorld(t)
	p := w.proof()
	for tenant, counts := range map[string]ProofCounts{
		"red": {EndPorts: 2, Partitions: 2, Pairs: 6}, "blue": {EndPorts: 2, Partitions: 2, Pairs: 6},
		"green": {EndPorts: 2, Partitions: 1, Pairs: 3}, "yellow": {},
	} {
		out := w.want(tenant, p, "isolated", nil)
		if !out.Holds || out.Counts != counts || len(out.Reasons) > 0 || len(out.SharedPorts) > 0 {
			t.Errorf("%s: %+v, want %+v", tenant, out, counts)
		}
	}
	_, pairs, _ := w.seen("red", p)
	if want := []Pair{
		{"crimson", "guest", "0x0010", "0x0011", "isolated", false, ""}, {"crimson", "common", "0x0010", "0x0021", "isolated", true, ""}, {"crimson", "others", "0x0010", "", "isolated", false, ""},
		{"guest", "common", "0x0011", "0x0021", "isolated", false, ""}, {"guest", "others", "0x0011", "", "isolated", false, ""}, {"common", "others", "0x0021", "", "isolated", false, ""},
	}; !slices.Equal(pairs, want) {
		t.Errorf("%+v", pairs)
	}
	out, pairs, _ := w.seen(resource.Provider, p)
	if out.Verdict != "isolated" || out.Counts != (ProofCounts{EndPorts: 8, Partitions: 6, Pairs: 15, SharedPorts: p.Counts.SharedPorts}) || len(pairs) != 15 || len(out.Caveats) != len(p.Caveats) || len(p.Caveats) == 0 {
		t.Errorf("%+v %+v", out, pairs)
	}
	var shared []string
	for _, x := range out.SharedPorts {
		if x.Manager != (x.Name == "manager") || len(x.PKeys) != len(x.Partitions) || x.GUID != w.guid(x.Name) {
			t.Errorf("%+v", x)
		}
		shared = append(shared, x.Name)
	}
	slices.Sort(shared)
	if want := []string{"blue-1", "green-1", "manager", "red-1"}; !slices.Equal(shared, want) {
		t.Errorf("shared are %q, want %q", shared, want)
	}
	if v := VerdictFor(w.state, verdictAs("red"), &isolation.Proof{}); v != isolation.Unknown {
		t.Errorf("a proof of nothing is %v to a tenant", v)
	}
	if v := VerdictFor(w.state, verdictAs(resource.Provider), &isolation.Proof{}); v != isolation.Unknown {
		t.Errorf("a proof of nothing is %v to the provider", v)
	}
}

// TestViolationOfTwo: a violation between two tenants concerns these two, and each is told of its
// own port alone; the third is not told that there is any.
func TestViolationOfTwo(t *testing.T) {
	w := newVerdictWorld(t)
	_, _, before := w.seen("green", w.proof())
	w.steal("red-2", verdictAzure.Full())
	p := w.proof()
	w.want("red", p, "violated", []Violation{{From: w.guid("red-2"), PKey: "0x8020"}}, "crimson others violated", "crimson guest violated", "crimson common violated")
	// Both ports of blue's are reached, each over the same key.
	w.want("blue", p, "violated", []Violation{{To: w.guid("blue-1"), PKey: "0x8020"}, {To: w.guid("blue-2"), PKey: "0x8020"}}, "azure others violated", "common others violated", "guest others violated")
	w.want("yellow", p, "isolated", nil)
	if _, _, after := w.seen("green", p); after != before {
		t.Errorf("green is told %s\nand before %s", after, before)
	}
	out, _, _ := w.seen(resource.Provider, p)
	if out.Verdict != "violated" || out.Holds || out.Counts.Violations != 2 || len(out.Violations) != 2 || out.Violations[0].From != w.guid("red-2") || out.Violations[0].To == "" || len(out.Reasons) == 0 {
		t.Errorf("%+v", out)
	}
}

// TestViolationOfOthers: a violation between others is told to none but them, whatever else is
// verdictOf to them and a tenant.
func TestViolationOfOthers(t *testing.T) {
	w := newVerdictWorld(t)
	_, _, red := w.seen("red", w.proof())
	_, _, yellow := w.seen("yellow", w.proof())
	w.steal("green-1", verdictAzure.Full()) // in common with red-1, as is blue-1
	p := w.proof()
	if _, _, after := w.seen("red", p); after != red {
		t.Errorf("red is told %s\nand before %s", after, red)
	}
	if _, _, after := w.seen("yellow", p); after != yellow {
		t.Errorf("yellow is told %s\nand before %s", after, yellow)
	}
	w.want("green", p, "violated", []Violation{{From: w.guid("green-1"), PKey: "0x8020"}}, "emerald others violated", "common others violated")
}

// TestViolationOverAnOwnPartition: strangers that talk over a partition concern its owner, though
// none of the ports is its own.
func TestViolationOverAnOwnPartition(t *testing.T) {
	w := newVerdictWorld(t)
	w.steal("green-2", guest.Full())
	p := w.proof()
	w.want("red", p, "violated", []Violation{{PKey: "0x8011"}}, "guest others violated")
	w.want("green", p, "violated", []Violation{{From: w.guid("green-2"), PKey: "0x8011"}}, "emerald others violated")
	w.want("blue", p, "violated", []Violation{{To: w.guid("blue-2"), PKey: "0x8011"}}, "azure others violated", "guest others violated")
}

// TestOwnPortsAgainstEachOther: a violation within a tenant names both its ports.
func TestOwnPortsAgainstEachOther(t *testing.T) {
	w := newVerdictWorld(t)
	w.host("red-3")
	w.partition("red", "ruby", 0x12, "red-3")
	w.b.Route()
	w.steal("red-1", ib.PKeyBase(0x12).Full())
	w.want("red", w.proof(), "violated", []Violation{{From: w.guid("red-1"), To: w.guid("red-3"), PKey: "0x8012"}}, "crimson ruby violated", "ruby common violated", "ruby others violated") // default is among others
	w.want("blue", w.proof(), "isolated", nil)
}

// TestStoppedToday: a tenant is told that packets are stopped, if all are, and not where.
func TestStoppedToday(t *testing.T) {
	w := newVerdictWorld(t)
	subnettest.SetPKeys(w.ports["red-2"], append(slices.Clone(w.keys["red-2"]), verdictAzure.Full())...) // its switch port holds it
	p := w.proof()
	w.want("red", p, "violated", []Violation{{From: w.guid("red-2"), PKey: "0x8020", Note: stoppedToday}}, "crimson others violated", "crimson guest violated", "crimson common violated")
	if out, _, _ := w.seen(resource.Provider, p); !strings.Contains(out.Violations[0].Note, "leaf") {
		t.Errorf("%+v", out.Violations)
	}
}

// TestManyViolationsOfOthers: however many violations of others a proof lists, a tenant's own
// port is told of.
func TestManyViolationsOfOthers(t *testing.T) {
	w := newVerdictWorld(t)
	for i := range 20 {
		w.host(fmt.Sprintf("blue-%d", 10+i))
		w.give(ib.PKeyBaseDefault, fmt.Sprintf("blue-%d", 10+i), false)
		w.steal(fmt.Sprintf("blue-%d", 10+i), ib.PKeyBase(0x50).Full())
	}
	w.host("red-9")
	w.give(ib.PKeyBaseDefault, "red-9", false)
	w.steal("red-9", ib.PKeyBase(0x60).Full())
	w.host("green-9")
	w.give(ib.PKeyBaseDefault, "green-9", false)
	w.steal("green-9", ib.PKeyBase(0x60).Full())
	p := w.proof()
	p.Violations = slices.DeleteFunc(p.Violations, func(v isolation.Violation) bool { return v.PKey.Base() == 0x60 })
	w.want("red", p, "violated", []Violation{{From: w.guid("red-9")}})
	w.steal("green-2", guest.Full())
	p = w.proof()
	p.Violations = nil
	w.want("red", p, "violated", []Violation{{PKey: "0x8011"}, {From: w.guid("red-9")}}, "guest others violated")
}

// TestListsAreBounded: the counts are of all, the lists of the first.
func TestListsAreBounded(t *testing.T) {
	w := newVerdictWorld(t)
	p := w.proof()
	p.Violations, p.SharedPorts = nil, nil
	for i := range 3 * violationsMost {
		p.Violations = append(p.Violations, isolation.Violation{From: w.ports["blue-1"].GUID, To: w.ports["green-1"].GUID, PKey: ib.PKey(0x8100 + i)})
		p.SharedPorts = append(p.SharedPorts, isolation.SharedPort{})
	}
	p.Counts.Violations, p.Counts.SharedPorts, p.Counts.Exposed, p.Counts.Unknown = 1000, 1001, 1002, 1003
	out, _, _ := w.seen(resource.Provider, p)
	if n := out.Counts; len(out.Violations) != violationsMost || len(out.SharedPorts) != sharedPortsMost || n.Violations != 1000 || n.SharedPorts != 1001 || n.Exposed != 1002 || n.Unknown != 1003 {
		t.Errorf("%d and %d of %+v", len(out.Violations), len(out.SharedPorts), n)
	}
	out = ProofOf(w.state, verdictAs("blue"), p, w.allowed, at)
	if n := out.Counts; len(out.Violations) != violationsMost || n.Violations != len(p.Violations) || n.SharedPorts+n.Exposed+n.Unknown+len(out.SharedPorts) != 0 {
		t.Errorf("%d violations of %+v", len(out.Violations), n)
	}
}

// TestWhatTheFabricLacks weighs on every tenant, with a violation of others or without, and no
// more than it does on the provider.
func TestWhatTheFabricLacks(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *verdictWorld)
		then func(p *isolation.Proof)
		want string
	}{
		"unread":     {do: func(w *verdictWorld) { clear(w.ports["green-2"].PKeysRead) }, want: "unknown"},
		"unenforced": {do: func(w *verdictWorld) { w.ports["green-2"].Peer.Info.PartitionEnforcementInbound = false }, want: "isolated-by-end-ports"},
		"unguarded": {then: func(p *isolation.Proof) {
			p.Rest([]isolation.Finding{{Reason: "M_Key is 0"}})
		}, want: "isolated-unguarded"},
		"too old": {then: func(p *isolation.Proof) { p.Outdate(time.Hour, time.Minute) }, want: "unknown"},
		"nothing": {want: "isolated"},
	} {
		for _, violated := range []bool{false, true} {
			w := newVerdictWorld(t)
			if c.do != nil {
				c.do(w)
			}
			if violated {
				w.steal("blue-2", verdictEmerald.Full())
			}
			p := w.proof()
			if c.then != nil {
				c.then(p)
			}
			for _, tenant := range []string{"red", "yellow"} {
				if v := VerdictFor(w.state, verdictAs(tenant), p); v.String() != c.want {
					t.Errorf("%s, violated %v: %v to %s, want %s", name, violated, v, tenant, c.want)
				}
			}
			if v := VerdictFor(w.state, verdictAs(resource.Provider), p).String(); v != c.want && !violated || violated && v != "violated" {
				t.Errorf("%s, violated %v: %s to the provider", name, violated, v)
			}
			for _, tenant := range []string{"blue", "green"} {
				if v := VerdictFor(w.state, verdictAs(tenant), p); violated != (v == isolation.Violated) {
					t.Errorf("%s, violated %v: %v to %s", name, violated, v, tenant)
				}
			}
		}
	}
}

// TestCaveats: a tenant is told where a forged full key reaches its ports, and nothing that
// depends on who else is there.
func TestCaveats(t *testing.T) {
	w := newVerdictWorld(t)
	forged := func(of string, ports int) string {
		return fmt.Sprintf("a host that forges a full key of %s reaches %d of your ports, limited members of it: only their own tables keep limited members of one partition apart, since a switch cannot tell a forged membership", of, ports)
	}
	check := func(tenant string, want ...string) {
		t.Helper()
		if out, _, _ := w.seen(tenant, w.proof()); !slices.Equal(out.Caveats, want) && len(out.Caveats)+len(want) > 0 {
			t.Errorf("%s: %q, want %q", tenant, out.Caveats, want)
		}
	}
	check("red", forged("default (0x7fff)", 2), forged("common (0x0021)", 1))
	check("blue", forged("default (0x7fff)", 2))
	check("yellow")
	// Alone in its own partition nobody can forge; with another somebody can.
	w.partition("red", "alone", 0x13, "-red-1")
	check("red", forged("default (0x7fff)", 2), forged("common (0x0021)", 1))
	w.partition("red", "two", 0x14, "-red-2", "-blue-1")
	check("red", forged("default (0x7fff)", 2), forged("common (0x0021)", 1), forged("two (0x0014)", 1))
	check("blue", forged("default (0x7fff)", 2), forged("two (0x0014)", 1))
	// What the provider's file has is not told by name, and a full member is no limited one.
	w.allowed = append(w.allowed, observed.Partition{Name: "secret", Base: 0x70}, observed.Partition{Name: "hidden", Base: 0x71})
	w.give(0x70, "green-1", false)
	w.give(0x71, "green-1", false)
	w.give(0x71, "green-2", false)
	w.give(0x71, "green-2", true)
	check("green", forged("default (0x7fff)", 2), forged("common (0x0021)", 1), forged("a partition that is not told", 1))
	// A manager that nobody named is told of where it is behind a port of the tenant's own.
	p := w.proof()
	for _, name := range []string{"red-1", "red-2", "blue-1"} {
		p.Managers = append(p.Managers, w.ports[name].GUID)
	}
	for tenant, want := range map[string]int{"red": 2, "blue": 1, "yellow": 0} {
		out, _, _ := w.seen(tenant, p)
		i := slices.IndexFunc(out.Caveats, func(c string) bool { return strings.HasPrefix(c, isolation.CaveatManagers) })
		if (i >= 0) != (want > 0) || i >= 0 && out.Caveats[i] != fmt.Sprintf("%s: %d of your ports", isolation.CaveatManagers, want) {
			t.Errorf("managers that nobody named: %s is told %q, want %d", tenant, out.Caveats, want)
		}
	}
	out := ProofOf(w.state, verdictAs("yellow"), isolation.Prove(w.b.Fabric, w.allowed, isolation.RawAllowed), w.allowed, at)
	if !slices.Equal(out.Caveats, []string{isolation.CaveatRaw}) {
		t.Errorf("raw packets: %q", out.Caveats)
	}
}

// TestOthersMakeNoDifference: what others have, make, and do to each other changes nothing of
// what a tenant is told, up to 80 partitions of theirs.
func TestOthersMakeNoDifference(t *testing.T) {
	const seed = 27
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 30 {
		w := newVerdictWorld(t)
		_, _, red := w.seen("red", w.proof())
		_, _, yellow := w.seen("yellow", w.proof())
		for i := range r.IntN(80) {
			members := []string{"-blue-1", "green-1", "green-2"}[r.IntN(3):]
			w.partition([]string{"blue", "green"}[r.IntN(2)], fmt.Sprintf("more%d", i), ib.PKeyBase(0x100+i), members...)
		}
		for range r.IntN(3) {
			w.steal([]string{"blue-1", "green-1", "green-2"}[r.IntN(3)], []ib.PKeyBase{verdictAzure, verdictEmerald, 0x100, 0x666}[r.IntN(4)].Full())
		}
		p := w.proof()
		if _, _, after := w.seen("red", p); after != red {
			t.Fatalf("round %d: red is told %s\nand before %s", round, after, red)
		}
		if _, _, after := w.seen("yellow", p); after != yellow {
			t.Fatalf("round %d: yellow is told %s\nand before %s", round, after, yellow)
		}
	}
}

// TestManyPairs: beyond the number of partitions up to which a proof lists all pairs, a tenant
// is listed what is not isolated, by its own number of partitions; what a proof does not list is
// unknown where it may be worse.
func TestManyPairs(t *testing.T) {
	w := newVerdictWorld(t)
	for i := range isolation.MaxPartitionsListed {
		w.partition("red", fmt.Sprintf("p%d", i), ib.PKeyBase(0x100+i), "red-2")
	}
	p := w.proof()
	c := verdictAs("red")
	if out, n := PairsOf(w.state, c, p, w.allowed), ProofOf(w.state, c, p, w.allowed, at).Counts.Pairs; len(out) != 0 || n != 67*68/2 {
		t.Errorf("%d pairs of %d", len(out), n)
	}
	w.steal("red-2", verdictAzure.Full())
	p = w.proof()
	for _, x := range PairsOf(w.state, c, p, w.allowed) {
		if x.Verdict != "violated" {
			t.Errorf("%+v", x)
		}
	}
	w.want("green", p, "isolated", nil)
	p.Pairs = make([]isolation.PairVerdict, isolation.MaxPairs)
	if out := PairsOf(w.state, verdictAs("green"), p, w.allowed); len(out) != 3 || out[0].Verdict != "unknown" {
		t.Errorf("more than can be listed: %+v", out)
	}
	// A partition that the proof was not made with is not judged.
	w.enter(&resource.Partition{PKey: 0x31, Name: "new", Owner: "green"})
	if out := PairsOf(w.state, verdictAs("green"), w.proof(), w.allowed); len(out) != 3 {
		t.Errorf("%+v", out)
	}
}

// TestBetweenOwners: a port between two owners is nobody's, also not of a caller without a tenant.
func TestBetweenOwners(t *testing.T) {
	w := newVerdictWorld(t)
	w.enter(&resource.Port{GUID: w.ports["red-2"].GUID, Released: 1})
	w.steal("red-2", verdictAzure.Full())
	for _, tenant := range []string{"", "red", "yellow"} {
		out := ProofOf(w.state, verdictAs(tenant), w.proof(), w.allowed, at)
		if out.Verdict != "isolated" || len(out.Violations) > 0 || len(out.Caveats) > 0 && tenant != "red" || out.Counts.EndPorts > 1 {
			t.Errorf("%q: %+v", tenant, out)
		}
	}
}

// TestAnInvitationOpensNothing: who is only asked for a port is told nothing of the partition, also
// of what is wrong with it.
func TestAnInvitationOpensNothing(t *testing.T) {
	w := newVerdictWorld(t)
	_, _, before := w.seen("red", w.proof())
	w.partition("blue", "party", 0x22, "blue-1")
	w.enter(&resource.Member{PKey: 0x22, Port: w.ports["red-2"].GUID, Membership: policy.Limited, ByPartition: true, Owner: "blue", PortOwner: "red"})
	w.steal("green-2", ib.PKeyBase(0x22).Full())
	if _, _, after := w.seen("red", w.proof()); after != before {
		t.Errorf("red is told %s\nand before %s", after, before)
	}
}
