package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// A tenant is told of its own ports, and the provider whom each alarm concerns, whatever devices call
// themselves.
func TestAlarmsAsWhom(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	red, blue, zinc := b.Host(leaf, "red"), b.Host(leaf, "blue"), b.Host(leaf, "zinc")
	for _, p := range b.Fabric.EndPorts() {
		p.Info.PortState = smp.PortActive
	}
	zinc.Info.PortState = smp.PortDown
	s := storetest.NewState(t, red.GUID, blue.GUID, zinc.GUID)
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 90}, {GUID: 91}}})
	gone, listed := "0x000000000000005a", "0x000000000000005b"
	r, z := red.GUID.String(), zinc.GUID.String()
	proof := func(c string) *Proof {
		switch c {
		case resource.Provider:
			return &Proof{Verdict: "violated", Violations: []Violation{{From: r, To: blue.GUID.String(), PKey: "0x8010"}}, Reasons: []string{"leaf was not read"}}
		case "red":
			return &Proof{Verdict: "violated", Violations: []Violation{{From: r, PKey: "0x8010"}}}
		}
		return &Proof{Verdict: "unknown"}
	}
	differences := []Difference{{Node: "0x1", Name: "leaf", Kind: "missing", Text: "no cable", Ports: []string{listed}}}
	findings := []audit.Finding{
		{Check: "open", Severity: audit.High, Where: "evil (port GUID " + z + ") (port GUID " + r + ")", Read: "x", Advice: "close it"},
		{Check: "small", Severity: audit.Medium, Where: "leaf"},
	}
	for c, want := range map[string][]string{
		resource.Provider: {
			"violation critical [red blue] [" + r + " " + blue.GUID.String() + "]", "cable high [blue] [" + listed + "]", "verdict high [] []",
			"audit high [red] [" + r + "]", "port medium [blue] [" + gone + "]", "port medium [zinc] [" + z + "]",
		},
		"red":  {"violation critical [red] [" + r + "]"},
		"blue": {"verdict high [blue] []", "port medium [blue] [" + gone + "]", "port medium [blue] [" + listed + "]"},
		"zinc": {"verdict high [zinc] []", "port medium [zinc] [" + z + "]"},
		"none": {"verdict high [none] []"},
	} {
		by, d, f := storetest.By(c), differences, findings
		if c != resource.Provider {
			d, f = nil, nil
		}
		var got []string
		for _, x := range AlarmsOf(s.State, by, time.Now(), b.Fabric, proof(c), d, f) {
			got = append(got, fmt.Sprint(x.Kind, " ", x.Severity, " ", x.Tenants, " ", x.Ports))
			if x.Where == "" || x.Text == "" || c != resource.Provider && strings.Contains(x.Where+x.Text, "leaf") {
				t.Errorf("%s is told %+v", c, x)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is told\n%s\nwant\n%s", c, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
