package event

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/fence"
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
	at := fence.Fence{Name: "leaf-1:2", Reason: "unknown device"}
	for want, e := range map[string]Event{
		"found 1 switches, 1 CAs, 0 routers, 1 links":                                       Found{b.Fabric.Count()},
		"refused, nothing was written: it does not fit":                                     Refused{Err: errors.New("it does not fit")},
		"3 ports accept HOQLife, VLStallCount and forget it (for example leaf-1:2)":         Forgotten{observed.ElementHOQLife | observed.ElementVLStallCount, 3, "leaf-1:2"},
		"leaf-1:2 is fenced: unknown device":                                                Fenced{at},
		"leaf-1:2 is no longer fenced: unknown device":                                      Unfenced{at},
		"leaf-1:1: PKeyTable (modifier 0x00010000) was changed by somebody else":            Drifted{plan.Op{Port: &sw.Ports[1], Attribute: smp.AttrPKeyTable, Modifier: 0x10000}},
		"looking again behind 2 links: a trap":                                              Resweeping{"a trap", 2},
		"sweeping again: a trap":                                                            Resweeping{"a trap", 0},
		"red-1: the link goes up and down too often":                                        Flooded{"red-1", true},
		"red-1 sends more traps than are processed":                                         Flooded{"red-1", false},
		"red-1 tried Set of PortInfo at leaf-1 without the key":                             Tried{"red-1", "leaf-1", "Set", "PortInfo"},
		"red-1 sent trap 256 in the name of LID 7: not believed":                            Disbelieved{"red-1", 256, 7},
		"standing by, nothing was written: it has a higher priority":                        Deferred{5, "it has a higher priority"},
		"ALARM: a subnet manager that does not count: red-1: nobody said so":                RogueManager{5, "red-1", "nobody said so"},
		"M_Keys: 3 ports have given up theirs, 1 have not":                                  Released{5, 4, 1},
		"--take-over. To take part in an election with it: --trusted-sm 0x0000000000000005": Unexpected{5, "red-1"},
		"done: violated": Completed{&Result{Proof: &isolation.Proof{Verdict: isolation.Violated}}},
	} {
		if got := e.String(); !strings.Contains(got, want) {
			t.Errorf("%T: %q, want %q", e, got, want)
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
