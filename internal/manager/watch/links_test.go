package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// pair is two switches with cables between their ports 1, and hosts h1 and h2 at
// ports 2 of each; the cables that are named are out.
func pair(out ...string) *observed.Fabric {
	missing := func(what string) bool { return strings.Contains(strings.Join(out, " "), what) }
	b := subnettest.New()
	x, y := b.Switch(3, "x"), b.Switch(3, "y")
	h1, h2 := b.Host(nil, "h1"), b.Host(nil, "h2")
	if !missing("trunk") {
		subnettest.Cable(&y.Ports[1], &x.Ports[1])
	}
	if !missing("h1") {
		subnettest.Cable(h1, &x.Ports[2])
	}
	if !missing("h2") {
		subnettest.Cable(&y.Ports[2], h2)
	}
	return b.Fabric
}

func names(list []Link) (out []string) {
	for _, l := range list {
		out = append(out, l.String())
	}
	return out
}

func TestCompare(t *testing.T) {
	moved := pair("h1")
	x := moved.Nodes[0]
	subnettest.Cable(&moved.Nodes[2].Ports[1], &x.Ports[3])
	swapped := pair("h1", "h2")
	subnettest.Cable(&swapped.Nodes[3].Ports[1], &swapped.Nodes[0].Ports[2])
	gone := pair()
	fewer := observed.NewFabric()
	for _, n := range gone.Nodes[:3] { // without h2
		fewer.AddNode(n.Info).Description = n.Description
	}
	for name, c := range map[string]struct {
		old, now       *observed.Fabric
		down, up       []string
		gone, newcomer []string
	}{
		"nothing":         {old: pair(), now: pair()},
		"a cable is out":  {old: pair(), now: pair("h1"), down: []string{"x:2 - h1"}},
		"a cable is back": {old: pair("trunk"), now: pair(), up: []string{"x:1 - y:1"}},
		"a host moved":    {old: pair(), now: moved, down: []string{"x:2 - h1"}, up: []string{"x:3 - h1"}},
		"another host":    {old: pair("h2"), now: swapped, down: []string{"x:2 - h1"}, up: []string{"x:2 - h2"}},
		"a host is gone":  {old: pair(), now: fewer, down: []string{"x:1 - y:1", "x:2 - h1", "y:2 - h2"}, gone: []string{"h2"}},
		"a host is new":   {old: fewer, now: pair(), up: []string{"x:1 - y:1", "x:2 - h1", "y:2 - h2"}, newcomer: []string{"h2"}},
	} {
		down, up := CompareLinks(c.old, c.now)
		var left, came []string
		for _, d := range down.Gone {
			left = append(left, d.Name)
		}
		for _, d := range up.New {
			came = append(came, d.Name)
		}
		got := [][]string{names(down.Links), names(up.Links), left, came}
		if d := cmp.Diff([][]string{c.down, c.up, c.gone, c.newcomer}, got); d != "" {
			t.Errorf("%s: down, up, gone, new (-want +got)\n%s", name, d)
		}
	}
}

// A link has one name, whichever end it is looked at from: its switch port first, or
// that of the switch with the lower GUID.
func TestLinkOf(t *testing.T) {
	f := pair()
	for _, l := range f.Links() {
		a, b := LinkOf(l.A), LinkOf(l.B)
		if a != b {
			t.Errorf("%s and %s", a, b)
		}
		if f.Node(a.A.Node).Switch == nil || f.Node(a.B.Node).Switch != nil && a.B.Node < a.A.Node {
			t.Errorf("%s begins at the wrong end", a)
		}
	}
}

// What was looked at again is told once for a link, and only of one that leads where it
// led.
func TestAgain(t *testing.T) {
	old, now := pair(), pair("h2")
	var e LinksAgain
	x, y := old.Nodes[0], old.Nodes[1]
	e.Add(now, &x.Ports[1], "a trap")
	e.Add(now, &y.Ports[1], "another trap")
	e.Add(now, &y.Ports[2], "it is out")
	e.Add(now, &y.Ports[3], "it never had one")
	e.Add(now, &x.Ports[2], "a poll")
	if d := cmp.Diff([]string{"x:1 - y:1", "x:2 - h1"}, names(e.Links)); d != "" || e.Reason != "a trap" {
		t.Errorf("reason %q (-want +got)\n%s", e.Reason, d)
	}
	if got := e.String(); got != "2 links looked at again: x:1 - y:1, x:2 - h1; a trap" {
		t.Error(got)
	}
}

// A sentence names some and counts the others.
func TestText(t *testing.T) {
	var many LinksDown
	for i := range linksNamed + 2 {
		many.Links = append(many.Links, Link{LinkEnd{Name: fmt.Sprint("s:", i)}, LinkEnd{Name: fmt.Sprint("h", i)}})
	}
	for want, e := range map[string]fmt.Stringer{
		"link down: x - y; gone: h1 (0x0000000000000007)":                 LinksDown{[]Link{{LinkEnd{Name: "x"}, LinkEnd{Name: "y"}}}, []Device{{"h1", 7}}},
		"6 links down: s:0 - h0, s:1 - h1, s:2 - h2, s:3 - h3 and 2 more": many,
		"new: h1 (0x0000000000000007)":                                    LinksUp{New: []Device{{"h1", 7}}},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
