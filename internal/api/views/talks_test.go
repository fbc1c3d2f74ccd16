package views

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// matrixWorld is a fabric with tenants red, blue and green and a manager: two hosts each, a partition
// each, and all hosts limited members of default. red-1 is a member of blue's partition too.
type matrixWorld struct {
	*testing.T
	b       *subnettest.Builder
	ports   map[string]*observed.Port
	state   *resource.State
	allowed []observed.Partition
}

const (
	talksCrimson, talksAzure, talksEmerald = ib.PKeyBase(0x10), ib.PKeyBase(0x20), ib.PKeyBase(0x30)
)

func newMatrixWorld(t *testing.T) *matrixWorld {
	w := &matrixWorld{T: t, b: subnettest.New(), ports: map[string]*observed.Port{}, state: resource.New(nil)}
	leaf := w.b.Switch(12, "leaf")
	for _, name := range []string{"red-1", "red-2", "blue-1", "blue-2", "green-1", "green-2", "host9"} {
		w.ports[name] = w.b.Host(leaf, name)
		if owner, _, of := strings.Cut(name, "-"); of {
			w.enter(&resource.Tenant{Name: owner}, &resource.Port{GUID: w.ports[name].GUID, Owner: owner})
		}
	}
	w.enter(&resource.Tenant{Name: "yellow"})
	all := observed.Partition{Name: "default", Base: ib.PKeyBaseDefault, Full: subnettest.GUIDs(w.ports["host9"])}
	for name, p := range w.ports {
		if name != "host9" {
			all.Limited = append(all.Limited, p.GUID)
		}
	}
	w.allowed = append(w.allowed, all)
	w.partition("red", "crimson", talksCrimson, "red-1", "red-2")
	w.partition("blue", "azure", talksAzure, "blue-1", "red-1")
	w.partition("green", "emerald", talksEmerald, "green-1", "green-2")
	w.b.Route()
	w.b.ManagedFrom(w.ports["host9"])
	for name := range w.ports {
		w.hold(name)
	}
	return w
}

func (w *matrixWorld) enter(list ...resource.Object) {
	w.Helper()
	for _, o := range list {
		if err := w.state.Restore(o, 1); err != nil {
			w.Fatal(err)
		}
	}
	w.state.SetLast(1)
}

func (w *matrixWorld) partition(owner, name string, k ib.PKeyBase, members ...string) {
	w.enter(&resource.Partition{PKey: k, Name: name, Owner: owner})
	a := observed.Partition{Name: name, Base: k}
	for _, m := range members {
		portOwner, _, _ := strings.Cut(m, "-")
		w.enter(&resource.Member{PKey: k, Port: w.ports[m].GUID, Membership: policy.Full, ByPartition: true, ByPort: true, Owner: owner, PortOwner: portOwner})
		a.Full = append(a.Full, w.ports[m].GUID)
	}
	w.allowed = append(w.allowed, a)
}

// hold gives a port the keys of the policy, and some more.
func (w *matrixWorld) hold(port string, more ...ib.PKey) {
	p := w.ports[port]
	subnettest.SetPKeysThrough(p, append(subnettest.PKeys(w.allowed, p.GUID), more...)...)
}

func talksAs(tenant string) resource.Caller { return resource.Caller{Name: "tok-1", Tenant: tenant} }

// matrix is what a caller is told; of a tenant it looks that nothing of others is in it.
func (w *matrixWorld) matrix(tenant string) (Matrix, string) {
	w.Helper()
	f := &MatrixFacts{Snapshot: &snapshot.Snapshot{Fabric: w.b.Fabric}, Proof: isolation.Prove(w.b.Fabric, w.allowed), Allowed: w.allowed}
	var c MatrixCache
	view := SeeMatrix(w.state, talksAs(tenant), f)
	m := c.Matrix(view)
	all := []any{m}
	for _, a := range m.Parties {
		for _, b := range m.Parties {
			if ports, missing := c.Ports(view, a.Name, b.Name, MatrixWindow{Limit: 100}); missing == "" {
				if tenant != resource.Provider && (a.hidden() || b.hidden() || a.Name != tenant && b.Name != tenant) {
					w.Errorf("%s is told of ports of %s and %s", tenant, a.Name, b.Name)
				}
				all = append(all, ports)
			}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		w.Fatal(err)
	}
	for name, p := range w.ports {
		owner, _, _ := strings.Cut(name, "-")
		sees := tenant == resource.Provider || owner == tenant || tenant == "blue" && name == "red-1" // in azure
		if !sees && (strings.Contains(string(text), p.GUID.String()) || strings.Contains(string(text), `"`+name)) {
			w.Errorf("%s is told of %s: %s", tenant, name, text)
		}
	}
	return m, string(text)
}

// said is what a matrix says of two parties.
func said(m Matrix, a, b string) string {
	for _, c := range m.Cells {
		if m.Parties[c.A].Name == a && m.Parties[c.B].Name == b {
			return fmt.Sprintf("%s %s %d: %s", c.Talk, c.Verdict, c.Violations, c.Reason)
		}
	}
	return "nothing"
}

func (w *matrixWorld) want(m Matrix, a, b, want string) {
	w.Helper()
	if got := said(m, a, b); got != want {
		w.Errorf("%s and %s: %q, want %q", a, b, got, want)
	}
}

const (
	manager = "the subnet manager"
	rest    = "all others"
)

// TestEachReachesOnlyTheManager: what a tenant's ports share with the subnet manager alone is not
// said to be shared with others.
func TestEachReachesOnlyTheManager(t *testing.T) {
	w := newMatrixWorld(t)
	m, _ := w.matrix("green")
	if len(m.Parties) != 3 || m.Parties[1].Name != manager || m.Parties[1].Kind != kindManager || m.Parties[1].Ports != 0 || m.Parties[1].Example != "" || m.Verdict != "isolated" {
		t.Errorf("%+v", m)
	}
	w.want(m, "green", "green", "all kept-apart 0: they can talk over emerald")
	w.want(m, "green", manager, "all kept-apart 0: 2 of 2 ports can talk with the subnet manager, over default")
	w.want(m, "green", rest, "none kept-apart 0: none can talk with ports of others")
	// Of whose keys the manager's port does not know, that is said of it too.
	w.hold("host9")
	clear(w.ports["host9"].PKeysRead)
	m, _ = w.matrix("green")
	w.want(m, "green", manager, "unknown unknown 0: of 2 of 2 ports it was not read whether they can talk with the subnet manager; something that this rests on was not read")
	w.hold("host9", talksAzure.Full())
	w.hold("green-1", talksAzure.Full())
	m, _ = w.matrix("green")
	w.want(m, "green", rest, "some violated 1: 1 of 2 ports can talk with ports of others, over a partition that is not told; that of 1 the policy does not allow")
	// To a tenant in whose partition it is, or whose it is, the manager is a port like others.
	w.enter(&resource.Port{GUID: w.ports["host9"].GUID, Owner: "yellow"})
	if m = w.matrixOwned("yellow"); len(m.Parties) != 2 || m.Parties[0].Ports != 1 {
		t.Errorf("%+v", m.Parties)
	}
	w.want(m, "yellow", rest, "all kept-apart 0: 1 of 1 ports can talk with ports of others, over default")
}

// matrixOwned is matrix without the look for names of others.
func (w *matrixWorld) matrixOwned(tenant string) Matrix {
	f := &MatrixFacts{Snapshot: &snapshot.Snapshot{Fabric: w.b.Fabric}, Proof: isolation.Prove(w.b.Fabric, w.allowed), Allowed: w.allowed}
	var c MatrixCache
	return c.Matrix(SeeMatrix(w.state, talksAs(tenant), f))
}

// TestWhatEachIsToldOfAViolation: of one between two tenants both are told, each with its own
// port alone; of one between others nothing.
func TestWhatEachIsToldOfAViolation(t *testing.T) {
	w := newMatrixWorld(t)
	before := map[string]string{}
	for _, tenant := range []string{"red", "blue", "green", "yellow"} {
		_, before[tenant] = w.matrix(tenant)
	}
	w.hold("blue-2", talksEmerald.Full())
	for _, tenant := range []string{"red", "yellow"} {
		if _, after := w.matrix(tenant); after != before[tenant] {
			t.Errorf("%s is told %s\nand before %s", tenant, after, before[tenant])
		}
	}
	m, _ := w.matrix("blue")
	w.want(m, "blue", rest, "some violated 1: 1 of 2 ports can talk with ports of others, over a partition that is not told; that of 1 the policy does not allow")
	if m.Verdict != "violated" {
		t.Errorf("blue: %s", m.Verdict)
	}
	m, _ = w.matrix("green")
	w.want(m, "green", rest, "all violated 2: 2 of 2 ports can talk with ports of others, over emerald; that of 2 the policy does not allow")
	for _, c := range m.Cells {
		if x := c.Witness; x != nil && c.B > 0 && (x.To != "" || !slices.Contains([]string{w.ports["green-1"].GUID.String(), w.ports["green-2"].GUID.String()}, x.From)) {
			t.Errorf("%+v", x)
		}
	}
	m, _ = w.matrix(resource.Provider)
	w.want(m, "blue", "green", "some violated 2: 2 of 4 pairs can talk, over emerald; the others are both limited members of default and share nothing else; blue-2 and green-1 can talk over emerald (0x8030), which the policy does not allow, and so can another pair that may not")
	if m.Verdict != "violated" || len(m.Parties) != 5 { // three tenants, the manager, the switch
		t.Errorf("%+v", m)
	}
}

// TestPortsOfOthersInAPartition: a tenant sees a port of another in its partition, and not whose it
// is, nor its other keys.
func TestPortsOfOthersInAPartition(t *testing.T) {
	w := newMatrixWorld(t)
	m, text := w.matrix("blue")
	if len(m.Parties) != 4 || m.Parties[1].Kind != kindPorts || m.Parties[1].Owner != "" || m.Parties[1].Ports != 1 || m.Parties[1].Example != w.ports["red-1"].GUID.String() {
		t.Errorf("%+v", m.Parties)
	}
	for _, x := range []string{"crimson", "0x8010", "0x0010", `"red"`} {
		if strings.Contains(text, x) {
			t.Errorf("blue is told of %s: %s", x, text)
		}
	}
	w.want(m, "blue", m.Parties[1].Name, "some kept-apart 0: 1 of 2 pairs can talk, over azure; the others are both limited members of default and share nothing else")
	// Red sees azure, in which its port is, and none of its members.
	m, text = w.matrix("red")
	if len(m.Parties) != 3 || strings.Contains(text, "blue") {
		t.Errorf("%+v", m.Parties)
	}
	w.want(m, "red", rest, "some kept-apart 0: 1 of 2 ports can talk with ports of others, over azure")
}
