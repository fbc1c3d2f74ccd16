package event

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// A subnet is as wanted when every write held and every link is up: one thing that is
// not suffices.
func TestReached(t *testing.T) {
	for _, x := range []struct {
		r    Result
		want bool
	}{{Result{}, true}, {Result{Writes: 9, Faults: 3}, true}, {Result{Failures: 1}, false}, {Result{Inactive: 1}, false}} {
		if got := x.r.Reached(); got != x.want {
			t.Errorf("%+v: %v", x.r, got)
		}
	}
}

// What an operator reads names the thing and the place, and what it means.
func TestTexts(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(2, "leaf-1")
	b.Host(sw, "red-1")
	at := facts.Fence{Name: "leaf-1:2", Reason: "unknown device"}
	for _, x := range []struct {
		e    Event
		want []string // in this order
	}{
		{Found{b.Fabric.Count()}, []string{"1 switches", "1 CAs", "0 routers", "1 links"}},
		{Refused{Err: errors.New("it does not fit")}, []string{"nothing was written", "it does not fit"}},
		{Routed{[]string{"a fat tree", "a cable is missing"}}, []string{"a fat tree", "; ", "a cable is missing"}},
		{Forgotten{observed.ElementHOQLife | observed.ElementVLStallCount, 3, "leaf-1:2"}, []string{"3 ports", "HOQLife, VLStallCount", "leaf-1:2"}},
		{Fenced{at}, []string{"leaf-1:2 is fenced", "unknown device"}},
		{Unfenced{at}, []string{"leaf-1:2", "no longer fenced", "unknown device"}},
		{Drifted{plan.Op{Port: &sw.Ports[1], Attribute: smp.AttrPKeyTable, Modifier: 0x10000}}, []string{"leaf-1:1: PKeyTable (modifier 0x00010000)"}},
		{Resweeping{"a trap", 2}, []string{"2 links", "a trap"}},
		{Resweeping{"a trap", 0}, []string{"sweep", "a trap"}},
		{Flooded{"red-1", true}, []string{"red-1", "link"}},
		{Flooded{"red-1", false}, []string{"red-1", "traps"}},
		{Tried{"red-1", "leaf-1", "Set", "PortInfo"}, []string{"red-1", "Set of PortInfo", "leaf-1"}},
		{Disbelieved{"red-1", 256, 7}, []string{"red-1", "trap 256", "LID 7"}},
		{Deferred{5, "it has a higher priority"}, []string{"nothing was written", "it has a higher priority", "0x0000000000000005"}},
		{RogueManager{5, "red-1", "nobody said so"}, []string{"ALARM", "red-1", "nobody said so"}},
		{Released{5, 4, 1}, []string{"3 ports", "1 ", "0x0000000000000005"}},
		{Unexpected{5, "red-1"}, []string{"red-1", "--take-over", "--trusted-sm 0x0000000000000005"}},
		{Completed{&Result{Proof: &isolation.Proof{Verdict: isolation.Violated}}}, []string{"violated"}},
	} {
		rest, ok := x.e.String(), true
		for _, part := range x.want {
			if _, rest, ok = strings.Cut(rest, part); !ok {
				t.Errorf("%T: %q, want %q in it", x.e, x.e.String(), x.want)
				break
			}
		}
	}
}

// However many ports were left out, a line names some and counts the others.
func TestLearned(t *testing.T) {
	e := Learned{List: cables.Of(topology.Demo())}
	for i := range leftMax + 3 {
		e.Left = append(e.Left, fmt.Sprintf("port-%d", i))
	}
	if got := e.String(); strings.Count(got, "port-") != leftMax || !strings.HasSuffix(got, "; and 3 more") {
		t.Error(got)
	}
	e.Left = e.Left[:leftMax]
	if got := e.String(); strings.Count(got, "port-") != leftMax || strings.Contains(got, "more") {
		t.Error(got)
	}
}
