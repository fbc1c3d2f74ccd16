package desired

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// ring is five switches in a circle with a host each; the manager is at the first.
func ring() *observed.Fabric {
	b := subnettest.New()
	b.PortInfo = smp.PortInfo{MTUCap: 4, VLCap: 1}
	var all []*observed.Node
	for i := range 5 {
		all = append(all, b.Switch(4, fmt.Sprint("s", i)))
	}
	for i, n := range all {
		h := b.Host(n, fmt.Sprint("h", i))
		if i == 0 {
			b.Fabric.Self = h
		}
	}
	for i, n := range all {
		subnettest.Join(n, all[(i+1)%5])
	}
	return b.Fabric
}

// What minhop does in a ring is told, in the words of a person who walks along the cables.
func TestDeadlockOfMinHopIsTold(t *testing.T) {
	r := compute(t, Input{Fabric: ring(), Routing: routing.MinHop}, &policy.Policy{})
	told := strings.Join(r.Warnings, "\n")
	for _, want := range []string{"a credit loop of 5 links can stop all traffic over them", " VL 0 waits for s1:", "packets from h"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q does not say %q", told, want)
		}
	}
	if r := compute(t, Input{Fabric: ring()}, &policy.Policy{}); r.Warnings != nil {
		t.Errorf("updn: %v", r.Warnings)
	}
}

// A routing that the judge finds wrong is not written: the last one stays, and where there is
// none, nothing is written at all.
func TestRefusedRouting(t *testing.T) {
	f := ring()
	good := compute(t, Input{Fabric: f}, &policy.Policy{})
	lidOf := func(name string) ib.LID {
		for p, at := range good.LIDs() {
			if p.Node.Name() == name {
				return at.LID
			}
		}
		t.Fatal(name)
		return 0
	}
	node := func(name string) *observed.Node {
		return f.Nodes[slices.IndexFunc(f.Nodes, func(n *observed.Node) bool { return n.Name() == name })]
	}
	to := func(at, next string) ib.PortNum {
		n := node(at)
		return n.Ports[1+slices.IndexFunc(n.Ports[1:], func(p observed.Port) bool { return p.Peer != nil && p.Peer.Node.Name() == next })].Num
	}
	for name, c := range map[string]struct {
		engine routing.Engine // that computes what updn is said to have computed
		spoil  func(*Routes)
		want   string
	}{
		"a hole": {routing.UpDown, func(x *Routes) {
			x.tables.Nodes[node("s1").Index].LFT[lidOf("h2")] = ib.PortNone
		}, "to LID %h2 of h2: at s1 the table has no exit"},
		"a circle": {routing.UpDown, func(x *Routes) {
			x.tables.Nodes[node("s1").Index].LFT[lidOf("h3")] = to("s1", "s0")
			x.tables.Nodes[node("s0").Index].LFT[lidOf("h3")] = to("s0", "s1")
		}, "packets go round in 1 circles, first s0:2 -> s1:2 -> s0:2 for LID %h3 of h3"},
		"another's port": {routing.UpDown, func(x *Routes) {
			x.tables.Nodes[node("s1").Index].LFT[lidOf("h3")] = to("s1", "h1")
		}, "to LID %h3 of h3: at s1 port 1 leads to h1"},
		"a credit loop": {routing.MinHop, func(*Routes) {}, "a credit loop of 5 links can stop all traffic over them; s0:2 VL 0 waits for s1:3 VL 0: packets from h0 to h2 (LID %h2)"},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := compute(t, Input{Fabric: f, Routing: c.engine}, &policy.Policy{}).Routes
			fresh.judged, fresh.request.Engine = "", routing.UpDown
			c.spoil(fresh)
			r := *good
			used := r.in.Policy.Levels()
			want := c.want
			for _, h := range []string{"h2", "h3"} {
				want = strings.ReplaceAll(want, "%"+h, fmt.Sprint(lidOf(h)))
			}
			if _, err := r.accept(fresh, nil, used); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
				t.Errorf("without an earlier one: %v, want %q", err, want)
			}
			kept, err := r.accept(fresh, good.Routes, used)
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.Join(kept.verdict, "\n"); !strings.Contains(told, "the new routing is refused, and the last one stays") || !strings.Contains(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
			for _, n := range f.Switches() {
				if got, last := kept.tables.Nodes[n.Index].LFT, good.Routes.tables.Nodes[n.Index].LFT; !slices.Equal(got, last) {
					t.Errorf("%s: %v, the last one was %v", n.Name(), got, last)
				}
			}
			// The next pass takes what was kept, without judging again, and tells it again.
			again := compute(t, Input{Fabric: f, Routes: kept, Known: good.Assigned}, &policy.Policy{})
			if again.Routes != kept || !slices.Equal(again.Warnings, kept.verdict) {
				t.Errorf("then: %v", again.Warnings)
			}
			if got := again.Tables.Nodes[node("s1").Index].LFT; !slices.Equal(got, good.Tables.Nodes[node("s1").Index].LFT) {
				t.Errorf("then s1 gets %v", got)
			}
		})
	}
}

// The tables that stay are those of the same switches in a later snapshot.
func TestLastRoutingOnALaterSnapshot(t *testing.T) {
	f, later := ring(), ring()
	good := compute(t, Input{Fabric: f}, &policy.Policy{})
	slices.Reverse(later.Nodes)
	for i, n := range later.Nodes {
		n.Index = i
	}
	kept := good.Routes.on(later)
	for _, n := range later.Switches() {
		old := f.Node(n.GUID())
		if !slices.Equal(kept.tables.Nodes[n.Index].LFT, good.Routes.tables.Nodes[old.Index].LFT) || kept.routed.Graph.Index[n.Index] != good.Routes.routed.Graph.Index[old.Index] {
			t.Errorf("%s: another's table", n.Name())
		}
	}
}
