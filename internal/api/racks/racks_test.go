package racks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/observed"
)

func read(t *testing.T, text string) *File {
	t.Helper()
	f, err := Read([]byte(text), "racks")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestOf: a GUID goes before a name, a name before regular expressions, and each says what those before it
// do not.
func TestOf(t *testing.T) {
	f := read(t, "\ufeff# pods of the north hall\n\n"+
		"gpu-0001  pod=A rack=17\r\n"+
		"  0x00000000000000C1 pod=core plane=2 rail=5\n"+
		"MF0;leaf-01:MQM8700/U1 rail=1\n"+
		`/^gpu-(?<rack>\d\d)(?P<rail>\d\d)/`+"\n"+
		`/^gpu-/ pod=B`+"\n"+
		`/a/b(?<plane>.*)$/`+"\n")
	for _, c := range []struct {
		guid              uint64
		description, want string
	}{
		{1, "gpu-0001 mlx5_0", "pod A, rack 17"},
		{1, "gpu-0001", "pod A, rack 17"},
		{1, "gpu-00011", "pod B, rack 00"},
		{1, "gpu-1203 HCA-1", "pod B, rack 12"},
		{1, "gpu-x", "pod B, "},
		{0xc1, "gpu-0001 mlx5_0", "pod A, rack 17"},
		{0xc1, "", "pod core, rail 5"},
		{1, "MF0;leaf-01:MQM8700/U1", ", rail 1"},
		{1, "a/bPlane 7\u202e\x00", "Plane 7, "},
		{1, "a/b \t", ", "},
		{1, "", ", "},
		{1, "GPU-0001", ", "},
	} {
		if c.guid == 0xc1 && c.description != "" {
			c.want = "pod core, rack 17"
		}
		p := f.of(c.guid, c.description)
		if got := p.titled(0, 1) + ", " + p.titled(2, 3); got != c.want {
			t.Errorf("%#x %q stands at %q, want %q", c.guid, c.description, got, c.want)
		}
	}
}

// TestFaults: a fault names file and line, and what was expected.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"gpu-1":                                 `racks:1: "gpu-1" says nothing: want a name or a node GUID, then pod=`,
		"\n\ngpu-1 A 17":                        `racks:3: "A": want pod=, plane=, rack= or rail=, and a name without blanks`,
		"gpu-1 pod=":                            `racks:1: "pod=": want pod=`,
		"gpu-1 Pod=A":                           `racks:1: "Pod=A": want pod=`,
		"gpu-1 pod=A pod=B":                     `racks:1: "pod=B": pod= is there twice: want it once`,
		"gpu-1 rack=1\ngpu-1 rack=2":            `racks:2: the device has a line above: want one for each`,
		"0x1 rack=1\n0x0001 rack=1":             `racks:2: the device has a line above`,
		"0xgpu pod=A":                           `racks:1: "0xgpu": want a node GUID`,
		"0x0 pod=A":                             `racks:1: "0x0": want a node GUID`,
		"0x10000000000000000 pod=A":             `racks:1: "0x10000000000000000": want a node GUID`,
		"/":                                     `racks:1: "/": want a regular expression between slashes`,
		"/(?<pod>x":                             `racks:1: "/(?<pod>x": want a regular expression between slashes`,
		"/(?<pod>x/":                            `want a regular expression of Go`,
		"/x/":                                   `racks:1: /x/ says nothing of what it matches: want a group named pod`,
		"/(?<row>x)/":                           `racks:1: /(?<row>x)/: a group named "row": want pod, plane, rack and rail, each once`,
		"/(?<pod>x)/ pod=A":                     `a group named "pod": want pod`,
		"/x/ hall=A":                            `racks:1: "hall=A": want pod=`,
		"x pod=\xff":                            `racks: no text: want UTF-8`,
		"x pod=" + strings.Repeat("a", LineMax): `racks:1: a line of 1006 bytes: want at most 1000`,
		strings.Repeat("/(?<pod>x)/\n", RulesMax) + "/x/": `racks:101: too many regular expressions: want at most 100`,
		strings.Repeat("x\n", 14):                         "racks: and 4 more lines with faults",
	} {
		f, err := Read([]byte(text), "racks")
		if err == nil || f != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(nil, "racks"); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"a pod=1", "0x1 rack=2 # x", "/(?<rail>.)/ pod=x", "/(?P<rack>a|b)*/", "\ufeff\r\n\t"} {
		f.Add(text, "a b")
	}
	f.Fuzz(func(t *testing.T, text, description string) {
		file, err := Read([]byte(text), "racks")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "racks:") || !strings.Contains(err.Error(), "want ") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		file.of(1, description)
	})
}

// tree is a fat tree of two pods of two leaves with two hosts each, and two spines, as the map knows it. The
// names are p0-l0-h0, p0-l0, p0-agg and spine-0.
func tree() (nodes []observed.LevelNode, links []observed.LevelLink) {
	add := func(name string, isSwitch bool, below ...int32) int32 {
		i := int32(len(nodes))
		nodes = append(nodes, observed.LevelNode{Switch: isSwitch, Key: uint64(i + 1), Name: name})
		for _, b := range below {
			links = append(links, observed.LevelLink{A: b, B: i})
		}
		return i
	}
	var aggs []int32
	for p := range 2 {
		var leaves []int32
		for l := range 2 {
			name := fmt.Sprintf("p%d-l%d", p, l)
			leaves = append(leaves, add(name, true, add(name+"-h0", false), add(name+"-h1", false), add(name+"-h2", false)))
		}
		aggs = append(aggs, add(fmt.Sprintf("p%d-agg", p), true, leaves...))
	}
	for s := range 2 {
		add(fmt.Sprintf("spine-%d", s), true, aggs...)
	}
	return nodes, links
}

// arranged are the boxes by a file, each with its devices and their racks.
func arranged(f *File) map[string]string {
	nodes, links := tree()
	layout := observed.LevelsOf(nodes, links)
	racks, of := f.Arrange(nodes, links, &layout)
	out := map[string]string{}
	counts := make([]int, len(layout.Groups))
	for i, n := range nodes {
		g := layout.Groups[layout.Group[i]].Name
		counts[layout.Group[i]]++
		if out[g] != "" {
			out[g] += " "
		}
		out[g] += n.Name
		if of != nil && of[i] != NoRack {
			out[g] += "(" + racks[of[i]] + ")"
		}
	}
	for g, n := range counts {
		if layout.Groups[g].Nodes != n {
			out["wrong"] = fmt.Sprint(layout.Groups, counts)
		}
	}
	return out
}

func TestArrange(t *testing.T) {
	pod := func(p int) string {
		return fmt.Sprintf("p%[1]d-l0-h0 p%[1]d-l0-h1 p%[1]d-l0-h2 p%[1]d-l0 p%[1]d-l1-h0 p%[1]d-l1-h1 p%[1]d-l1-h2 p%[1]d-l1 p%[1]d-agg", p)
	}
	byCables := arranged(nil)
	for name, c := range map[string]struct {
		file string
		want map[string]string
	}{
		"nothing named":        {"x pod=A\n/nobody/ pod=B", byCables},
		"one host of each pod": {"p0-l0-h0 pod=A\np0-l1-h1 pod=A\np1-l0-h0 pod=B\np1-l1-h0 pod=B", map[string]string{"pod A": pod(0), "pod B": pod(1), "core": "spine-0 spine-1"}},
		"leaves alone":         {"/^p0-l/ pod=A\n/^p1-l.$/ pod=B", map[string]string{"pod A": pod(0), "pod B": pod(1), "core": "spine-0 spine-1"}},
		"planes":               {"/^(?<pod>p.)/\n/^spine-(?<plane>.)/", map[string]string{"pod p0": pod(0), "pod p1": pod(1), "plane 0": "spine-0", "plane 1": "spine-1"}},
		"racks without pods": {"/-l(?<rack>.)-h/", map[string]string{
			"rack 0": "p0-l0-h0 p0-l0-h1 p0-l0-h2 p0-l0 p1-l0-h0 p1-l0-h1 p1-l0-h2 p1-l0",
			"rack 1": "p0-l1-h0 p0-l1-h1 p0-l1-h2 p0-l1 p1-l1-h0 p1-l1-h1 p1-l1-h2 p1-l1", "core": "p0-agg p1-agg spine-0 spine-1",
		}},
		"racks over rails": {"/^p.-l.-h(?<rack>.)/\n/^(?<pod>p.)-l(?<rail>.)$/", map[string]string{
			"pod p0": "p0-l0-h0(rack 0) p0-l0-h1(rack 1) p0-l0-h2(rack 2) p0-l0(rail 0) p0-l1-h0(rack 0) p0-l1-h1(rack 1) p0-l1-h2(rack 2) p0-l1(rail 1) p0-agg",
			"pod p1": "p1-l0-h0(rack 0) p1-l0-h1(rack 1) p1-l0-h2(rack 2) p1-l0(rail 0) p1-l1-h0(rack 0) p1-l1-h1(rack 1) p1-l1-h2(rack 2) p1-l1(rail 1) p1-agg",
			"core":   "spine-0 spine-1",
		}},
		"a leaf whose hosts disagree": {"p0-l0-h0 rack=1\np0-l0-h1 rack=2\np1-l0-h0 rack=3", map[string]string{
			"rack 1": "p0-l0-h0", "rack 2": "p0-l0-h1", "rack 3": "p1-l0-h0 p1-l0-h1 p1-l0-h2 p1-l0",
			"core": "p0-l0 p0-l1 p0-agg p1-l1 p1-agg spine-0 spine-1", NameElsewhere: "p0-l0-h2 p0-l1-h0 p0-l1-h1 p0-l1-h2 p1-l1-h0 p1-l1-h1 p1-l1-h2",
		}},
	} {
		got := arranged(read(t, c.file))
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s:\n%v, want\n%v", name, got, c.want)
		}
	}
}

// TestArrangeAnything: by any file every node of any graph is in one group that counts it, boxes of hosts
// come before those of higher switches, and no group is empty.
func TestArrangeAnything(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		var nodes []observed.LevelNode
		var links []observed.LevelLink
		var file strings.Builder
		for i := range 1 + r.IntN(40) {
			nodes = append(nodes, observed.LevelNode{Switch: r.IntN(3) == 0, Key: uint64(i + 1), Name: fmt.Sprintf("n%d-%d", i, r.IntN(5))})
			if r.IntN(3) == 0 {
				fmt.Fprintf(&file, "n%d-%d %s=%d\n", i, r.IntN(5), parts[r.IntN(4)], r.IntN(4))
			}
		}
		for range r.IntN(90) {
			links = append(links, observed.LevelLink{A: int32(r.IntN(len(nodes))), B: int32(r.IntN(len(nodes)))})
		}
		if r.IntN(2) == 0 {
			fmt.Fprintf(&file, "/-(?<%s>.)$/\n", parts[r.IntN(4)])
		}
		layout := observed.LevelsOf(nodes, links)
		racks, of := read(t, file.String()).Arrange(nodes, links, &layout)
		counts := make([]int, len(layout.Groups))
		for _, g := range layout.Group {
			counts[g]++
		}
		for g, n := range counts {
			if n == 0 || n != layout.Groups[g].Nodes {
				t.Fatalf("group %v has %d nodes, of %v by\n%s", layout.Groups[g], n, nodes, &file)
			}
		}
		if of != nil && (len(of) != len(nodes) || slices.Max(of) != int32(len(racks))-1) {
			t.Fatalf("racks %v of %v", of, racks)
		}
	}
}
