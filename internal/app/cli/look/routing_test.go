package look

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// ring is four switches in a circle with a host each, whose packets all go round it in one
// direction.
func ring() *observed.Fabric {
	b := subnettest.New()
	var all []*observed.Node
	for i := range 4 {
		all = append(all, b.Switch(3, fmt.Sprint("s", i)))
	}
	for i, n := range all {
		subnettest.SetPKeysThrough(b.Host(n, fmt.Sprint("h", i)), 0x8001)
	}
	for i := range all {
		subnettest.Cable(&all[i].Ports[2], &all[(i+1)%4].Ports[3])
	}
	b.Route()
	for i, n := range all {
		for _, p := range b.Fabric.EndPorts() {
			at := p
			if p.Node.Switch == nil {
				at = p.Peer
			}
			if at.Node != all[i] {
				n.Switch.LFT[p.Info.LID] = 2
			}
		}
	}
	b.ManagedFrom(b.Fabric.EndPorts()[0])
	return b.Fabric
}

func routingShow(t *testing.T, f *observed.Fabric, args ...string) (out string, err error) {
	t.Helper()
	c := RoutingCommand(func(*cobra.Command) {}, func(_ *cobra.Command, o sweep.Options) (*snapshot.Snapshot, error) {
		if !o.Forwarding || !o.QoS || !o.Multicast {
			t.Errorf("%+v: not all tables are read", o)
		}
		return &snapshot.Snapshot{Fabric: f, ReadAt: time.Unix(1e9, 0), Faults: []snapshot.Fault{{Where: "s0", Why: "late"}}}, nil
	}, "")
	var b bytes.Buffer
	c.SetArgs(args)
	c.SetOut(&b)
	c.SetErr(&b)
	c.SilenceUsage = true
	err = c.Execute()
	return b.String(), err
}

func TestCreditLoop(t *testing.T) {
	out, err := routingShow(t, ring())
	if err == nil || err.Error() != errRoutingWrong.Error() {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{
		"routing: not right\n  a credit loop of 4 links can stop all traffic over them\n  s0:2 VL 0 waits for s1:2 VL 0: packets from h0 to ",
		"pairs: 50 of 50 are reached\n", "3 at most", "packets of SL 0 take VL 0 between switches",
		"all-to-all  1       12     0     6 ", "shift       3       12 ", "tenant      1       12     0     6 ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestRight(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(3, "s\x1b[2J")
	b.Host(sw, "a")
	b.Host(sw, "b")
	b.Route()
	out, err := routingShow(t, b.Fabric, "--pattern", "shift")
	if err != nil || !strings.Contains(out, "routing: right") || strings.Contains(out, "tenant") {
		t.Errorf("%v: %s", err, out)
	}
	sw.Switch.LFT[2] = ib.PortNone
	if out, err = routingShow(t, b.Fabric); err == nil || !strings.Contains(out, "pairs are not reached, first") || strings.Contains(out, "\x1b") {
		t.Errorf("%v: %q", err, out)
	}
}

func TestMisuse(t *testing.T) {
	for _, args := range [][]string{{"--sl", "16"}, {"--pattern", "ring"}, {"--rounds", "0"}, {"--rounds", "100001"}} {
		if out, err := routingShow(t, ring(), args...); err == nil || strings.Contains(out, "routing:") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// Every name that the document has is described in docs/json.md.
func TestEveryNameIsDescribed(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## `ibwarden show routing`\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	out, _ := routingShow(t, ring(), "--json")
	var printed any
	if i := strings.LastIndex(out, "}\n"); !ok || i < 0 || json.Unmarshal([]byte(out[:i+1]), &printed) != nil {
		t.Fatalf("no document, or no section: %s", out)
	}
	names := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for name, x := range v {
				names++
				if name != "where" && name != "why" && !strings.Contains(section, name) { // those are of every command
					t.Errorf("%s is not described", name)
				}
				walk(x)
			}
		}
	}
	walk(printed)
	if names < 30 {
		t.Errorf("only %d names: %s", names, out)
	}
}
