package ibsimtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// discovered is what ibnetdiscover says of a fabric: its nodes by GUID, with
// type and number of ports, and its cables.
type discovered struct {
	nodes map[string]string
	links []string
}

var (
	discoveredNode = regexp.MustCompile(`^(Switch|Ca|Rt)\s+(\d+) "[SHR]-([0-9a-f]{16})"\s+# "(.*?)"`)
	discoveredPort = regexp.MustCompile(`^\[(\d+)\](?:\([0-9a-f]+\))?\s+"[SHR]-([0-9a-f]{16})"\[(\d+)\]`)
)

func readDiscovered(text string) discovered {
	d := discovered{nodes: map[string]string{}}
	words := map[string]string{"Switch": "switch", "Ca": "CA", "Rt": "router"}
	at := ""
	for _, line := range strings.Split(text, "\n") {
		if m := discoveredNode.FindStringSubmatch(line); m != nil {
			at = "0x" + m[3]
			d.nodes[at] = fmt.Sprintf("%s of %s ports %q", words[m[1]], m[2], m[4])
		}
		if m := discoveredPort.FindStringSubmatch(line); m != nil {
			d.links = append(d.links, linkText(at, m[1], "0x"+m[2], m[3]))
		}
	}
	slices.Sort(d.links)
	d.links = slices.Compact(d.links)
	return d
}

// linkText is the same from both ends.
func linkText(guidA, portA, guidB, portB string) string {
	ends := []string{guidA + "[" + portA + "]", guidB + "[" + portB + "]"}
	slices.Sort(ends)
	return strings.Join(ends, " - ")
}

type (
	nodeRow struct {
		GUID, Type, Description string
		Ports                   int
	}
	linkRow struct {
		GUIDA string `json:"guid_a"`
		PortA int    `json:"port_a"`
		GUIDB string `json:"guid_b"`
		PortB int    `json:"port_b"`
		Width string
		Speed string
	}
)

// shown is the same as discovered, from `ibwarden show`.
func (r *rig) shown(fabric ...string) discovered {
	r.Helper()
	d := discovered{nodes: map[string]string{}}
	for _, n := range show[nodeRow](r, "nodes", fabric...) {
		d.nodes[n.GUID] = fmt.Sprintf("%s of %d ports %q", n.Type, n.Ports, n.Description)
	}
	for _, l := range show[linkRow](r, "links", fabric...) {
		d.links = append(d.links, linkText(l.GUIDA, fmt.Sprint(l.PortA), l.GUIDB, fmt.Sprint(l.PortB)))
	}
	slices.Sort(d.links)
	return d
}

// What ibnetdiscover finds behind ibwarden is what `ibwarden show` shows, and
// its output as a topology file is the same fabric again.
func TestLinksAgreeWithIbnetdiscover(t *testing.T) {
	for _, spec := range []string{
		"fattree,radix=6,levels=2", "torus,x=2,y=2,z=2",
		"random,seed=11,switches=6,hosts=9,ca-ports=3,routers=3,extra=12",
		backToBack, oddities,
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			r := newRig(t, topologyOf(t, spec), "")
			r.bringUp(r.file("partitions.conf", "A=0x10 : ALL_CAS=full ;\n"))
			text, err := r.umad(r.tools.Ibnetdiscover)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if t.Failed() {
					t.Logf("%s\nibnetdiscover:\n%s", spec, text)
				}
			}()
			want, got := readDiscovered(text), r.shown()
			if len(want.nodes) != len(r.model.nodes) || len(want.links) != r.model.links {
				t.Fatalf("ibnetdiscover finds %d nodes and %d links, want %d and %d",
					len(want.nodes), len(want.links), len(r.model.nodes), r.model.links)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("show has\n%v\nibnetdiscover\n%v", got, want)
			}
			r.file("discovered.topo", text)
			const again = "sim:discovered.topo"
			if got := r.shown(again); !reflect.DeepEqual(got, want) {
				t.Errorf("show of ibnetdiscover's output has\n%v\nwant\n%v", got, want)
			}
			if a, b := show[linkRow](r, "links"), show[linkRow](r, "links", again); !reflect.DeepEqual(a, b) {
				t.Errorf("links of ibnetdiscover's output:\n%v\nwant\n%v", b, a)
			}
			endGUIDs := func(rows []lidRow) (all []string) {
				for _, row := range rows {
					all = append(all, row.GUID)
				}
				slices.Sort(all)
				return all
			}
			if a, b := endGUIDs(show[lidRow](r, "lids")), endGUIDs(show[lidRow](r, "lids", again)); !slices.Equal(a, b) {
				t.Errorf("end ports of ibnetdiscover's output: %v, want %v", b, a)
			}
		})
	}
}

var views = []string{"nodes", "ports", "links", "lids", "routes", "pkeys", "partitions"}

// `ibwarden show` leaves a fabric alone, one that nobody manages and one that
// is up.
func TestShowOnlyReads(t *testing.T) {
	const spec = "random,seed=5,switches=3,hosts=6,ca-ports=2,routers=1"
	r := newRig(t, topologyOf(t, spec), "")
	showAll := func() {
		for _, view := range views {
			for _, form := range [][]string{nil, {"--json"}} {
				o := r.warden(append([]string{"show", view, "--fabric", "ibsim:" + r.sim.Name}, form...)...)
				if o.status != 0 || o.stdout == "" {
					t.Errorf("show %s %v: exit status %d\n%s", view, form, o.status, o.stderr)
				}
				if form != nil && !json.Valid([]byte(o.stdout)) {
					t.Errorf("show %s --json: no JSON:\n%s", view, o.stdout)
				}
			}
		}
	}
	showAll()
	for e, s := range r.read(false).ports {
		logical := "Initialize"
		if e.isSwitch() {
			logical = "Active" // ibsim's are from the start
		}
		if s.lid != 0 || s.masterLID != 0 || s.logical != logical {
			t.Errorf("port %v of a fabric that nobody manages, after show: %+v", e, s)
		}
	}
	for e, keys := range r.read(false).keys {
		if !slices.Equal(keys, []uint16{0xffff}) {
			t.Errorf("port %v of a fabric that nobody manages has %s after show", e, keysText(keys))
		}
	}
	if !slices.Contains(r.switchChanges(), true) {
		t.Error("after show no switch tells of changed ports: show has cleared PortStateChange")
	}

	r.bringUp(r.file("partitions.conf", "A=0x10 : ALL_CAS=full, ALL_ROUTERS ;\n"))
	before, changes := r.read(true), r.switchChanges()
	showAll()
	if after := r.read(true); !reflect.DeepEqual(before, after) {
		t.Errorf("before show:\n%+v\nafter:\n%+v", before, after)
	}
	if after := r.switchChanges(); !slices.Equal(changes, after) {
		t.Errorf("PortStateChange before show %v, after %v", changes, after)
	}
}

var stateChange = regexp.MustCompile(`(?m)^StateChange:\.+(\d)$`)

// switchChanges reads PortStateChange of every switch.
func (r *rig) switchChanges() (all []bool) {
	r.Helper()
	for _, e := range r.model.ends {
		if !e.isSwitch() {
			continue
		}
		text, err := r.umad(r.tools.SMPQuery, "-D", "switchinfo", e.path)
		if err != nil {
			r.Fatal(err)
		}
		field := stateChange.FindStringSubmatch(text)
		if field == nil {
			r.Fatalf("smpquery switchinfo: no StateChange\n%s", text)
		}
		all = append(all, field[1] == "1")
	}
	return all
}
