package observed_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// graphOf is the graph of a topology.
func graphOf(n *topology.Netlist) (nodes []observed.LevelNode, links []observed.LevelLink) {
	place := map[*topology.Node]int32{}
	for i, x := range n.Nodes {
		place[x] = int32(i)
		nodes = append(nodes, observed.LevelNode{Switch: x.Type == ib.NodeSwitch, Key: uint64(x.GUID), Name: x.ID})
	}
	for _, x := range n.Nodes {
		for p := range x.Ports {
			if peer := x.Ports[p].Peer; peer != nil && place[x] < place[peer] {
				links = append(links, observed.LevelLink{A: place[x], B: place[peer]})
			}
		}
	}
	return nodes, links
}

func generated(t testing.TB, spec string) (nodes []observed.LevelNode, links []observed.LevelLink) {
	t.Helper()
	if spec == "demo" {
		return graphOf(topology.Demo())
	}
	n, err := topology.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	return graphOf(n)
}

// shown is a layout by the names of its switches: group, name and level.
func shown(nodes []observed.LevelNode, l observed.LevelLayout) string {
	var b strings.Builder
	for g, x := range l.Groups {
		var list []string
		for i, n := range nodes {
			if l.Group[i] == int32(g) && n.Switch {
				list = append(list, fmt.Sprintf("%s/%d", n.Name, l.Level[i]))
			}
		}
		slices.Sort(list)
		fmt.Fprintf(&b, "%s (%d): %s\n", x.Name, x.Nodes, strings.Join(list, " "))
	}
	return b.String()
}

// TestLayouts: what a person would draw.
func TestLayouts(t *testing.T) {
	for spec, want := range map[string]string{
		"demo": `leaf-1 (5): leaf-1/1
leaf-2 (5): leaf-2/1
leaf-3 (5): leaf-3/1
leaf-4 (5): leaf-4/1
spines (2): spine-1/2 spine-2/2
`,
		"fattree,radix=4,levels=3": `group 1 (8): A0_0/2 A0_1/2 E0_0/1 E0_1/1
group 2 (8): A1_0/2 A1_1/2 E1_0/1 E1_1/1
group 3 (8): A2_0/2 A2_1/2 E2_0/1 E2_1/1
group 4 (8): A3_0/2 A3_1/2 E3_0/1 E3_1/1
core (4): C0/3 C1/3 C2/3 C3/3
`,
		// One pod is no pod: what is above the leaves is one group.
		"fattree,radix=4,levels=3,pods=1": `E0_0 (3): E0_0/1
E0_1 (3): E0_1/1
spines (6): A0_0/2 A0_1/2 C0/3 C1/3 C2/3 C3/3
`,
		"dragonfly,groups=3": `G0 (8): G0_L0/1 G0_L1/1 G0_S0/2 G0_S1/2
G1 (8): G1_L0/1 G1_L1/1 G1_S0/2 G1_S1/2
G2 (8): G2_L0/1 G2_L1/1 G2_S0/2 G2_S1/2
`,
		"torus,x=3,y=3": `group 1 (10): T0_0/1 T0_1/1 T0_2/1 T1_0/1 T2_0/1
group 2 (8): T1_1/1 T1_2/1 T2_1/1 T2_2/1
`,
	} {
		nodes, links := generated(t, spec)
		if got := shown(nodes, observed.LevelsOf(nodes, links)); got != want {
			t.Errorf("%s:\n%swant\n%s", spec, got, want)
		}
	}
}

// edit is a graph that a test changes by the names of its nodes.
type edit struct {
	nodes []observed.LevelNode
	links []observed.LevelLink
}

func (e *edit) node(name string) int32 {
	return int32(slices.IndexFunc(e.nodes, func(n observed.LevelNode) bool { return n.Name == name }))
}

// off takes the cables of nodes away whose name begins so.
func (e *edit) off(prefix string) {
	e.links = slices.DeleteFunc(e.links, func(l observed.LevelLink) bool {
		return strings.HasPrefix(e.nodes[l.A].Name, prefix) || strings.HasPrefix(e.nodes[l.B].Name, prefix)
	})
}

func (e *edit) host(at string) {
	e.links = append(e.links, observed.LevelLink{A: int32(len(e.nodes)), B: e.node(at)})
	e.nodes = append(e.nodes, observed.LevelNode{Key: 1<<40 + uint64(len(e.nodes)), Name: "extra"})
}

func (e *edit) cable(a, b string) {
	e.links = append(e.links, observed.LevelLink{A: e.node(a), B: e.node(b)})
}

// TestLevelsOfTreesThatAreNotWhole: what is off, lent or cabled to the wrong place does not
// turn a tree upside down.
func TestLevelsOfTreesThatAreNotWhole(t *testing.T) {
	const two, three = "fattree,radix=8", "fattree,radix=8,levels=3"
	for name, x := range map[string]struct {
		spec   string
		change func(e *edit)
		pods   int // with the group above
	}{
		"a leaf without hosts":               {two, func(e *edit) { e.off("H3_") }, 9},
		"half the leaves without hosts":      {two, func(e *edit) { e.off("H3_"); e.off("H4_"); e.off("H5_"); e.off("H6_") }, 9},
		"a manager at a spine":               {two, func(e *edit) { e.host("SP1") }, 9},
		"an adapter in every switch":         {two, func(e *edit) { e.all("L", "SP") }, 9},
		"an adapter in every switch of pods": {three, func(e *edit) { e.all("E", "A", "C") }, 9},
		"a leaf of a pod without hosts":      {three, func(e *edit) { e.off("H0_1_") }, 9},
		"a pod without hosts":                {three, func(e *edit) { e.off("H0_") }, 9},
		"all pods but one without hosts": {three, func(e *edit) {
			for pod := range 7 {
				e.off(fmt.Sprintf("H%d_", pod))
			}
		}, 9},
		"a cable between two pods":      {three, func(e *edit) { e.cable("E0_0", "A1_1") }, 9},
		"a cable between two leaves":    {two, func(e *edit) { e.cable("L0", "L1") }, 9},
		"a cable from a leaf to a core": {three, func(e *edit) { e.cable("E0_0", "C1") }, 9},
		"a switch that hangs at a core one": {three, func(e *edit) {
			e.nodes = append(e.nodes, observed.LevelNode{Switch: true, Key: 1, Name: "stray"})
			e.cable("stray", "C3")
		}, 9},
	} {
		nodes, links := generated(t, x.spec)
		e := &edit{nodes, links}
		x.change(e)
		l := observed.LevelsOf(e.nodes, e.links)
		bad := []string{}
		for i, n := range e.nodes {
			want, known := map[byte]int32{'L': 1, 'E': 1, 'S': 2, 'A': 2, 'C': 3}[n.Name[0]]
			if n.Switch && known && l.Level[i] != want {
				bad = append(bad, fmt.Sprintf("%s is at level %d, want %d", n.Name, l.Level[i], want))
			}
		}
		if len(bad) > 0 || len(withSwitch(e.nodes, l)) != x.pods {
			t.Errorf("%s: %d groups, want %d; %v\n%s", name, len(withSwitch(e.nodes, l)), x.pods, bad, shown(e.nodes, l))
		}
	}
}

func (e *edit) all(prefixes ...string) {
	for _, n := range slices.Clone(e.nodes) {
		if n.Switch && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(n.Name, p) }) {
			e.host(n.Name)
		}
	}
}

// withSwitch are the groups that have a switch.
func withSwitch(nodes []observed.LevelNode, l observed.LevelLayout) map[int32]bool {
	out := map[int32]bool{}
	for i, n := range nodes {
		if n.Switch {
			out[l.Group[i]] = true
		}
	}
	return out
}

// check: every node has one level and one group, whatever the graph is.
func check(t *testing.T, what string, nodes []observed.LevelNode, links []observed.LevelLink) observed.LevelLayout {
	t.Helper()
	l := observed.LevelsOf(nodes, links)
	if len(l.Level) != len(nodes) || len(l.Group) != len(nodes) {
		t.Fatalf("%s: %d levels and %d groups of %d nodes", what, len(l.Level), len(l.Group), len(nodes))
	}
	size := make([]int, len(l.Groups))
	seen := map[string]bool{}
	for i, n := range nodes {
		if n.Switch != (l.Level[i] > 0) || l.Group[i] < 0 || int(l.Group[i]) >= len(l.Groups) {
			t.Fatalf("%s: node %d, switch %v: level %d, group %d of %d", what, i, n.Switch, l.Level[i], l.Group[i], len(l.Groups))
		}
		size[l.Group[i]]++
	}
	for g, x := range l.Groups {
		if x.Nodes != size[g] || x.Nodes == 0 || x.Name == "" {
			t.Fatalf("%s: group %d is %+v, has %d nodes", what, g, x, size[g])
		}
		if seen[x.Name] {
			t.Fatalf("%s: two groups are called %q", what, x.Name)
		}
		seen[x.Name] = true
	}
	return l
}

// TestAnyGraph: generated fabrics, whole and with cables taken away and laid at random, and
// the same graph in another order.
func TestAnyGraph(t *testing.T) {
	seed := need.Seed(t, 19)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, spec := range []string{
		"demo", "fattree,radix=6", "fattree,radix=6,levels=3", "fattree,radix=4,levels=3,pods=2,hosts=3", "torus,x=4,y=4,z=2", "torus,x=1,y=1", "torus,x=7,y=1",
		"dragonfly,groups=9", "dragonfly,groups=2,leafs=1,spines=1,hosts=1", "random,switches=40,hosts=90,seed=7,routers=3,ca-ports=2", "random,switches=1,hosts=1",
	} {
		nodes, links := generated(t, spec)
		check(t, spec, nodes, links)
		for round := range 60 {
			e := &edit{slices.Clone(nodes), slices.Clone(links)}
			share := r.Float64()
			e.links = slices.DeleteFunc(e.links, func(observed.LevelLink) bool { return r.Float64() < share*share })
			for range r.IntN(8) {
				e.links = append(e.links, observed.LevelLink{A: int32(r.IntN(len(nodes) + 2)), B: int32(r.IntN(len(nodes)+2) - 1)})
			}
			for i := range e.nodes {
				switch r.IntN(40) {
				case 0:
					e.nodes[i].Switch = !e.nodes[i].Switch
				case 1:
					e.nodes[i].Name = []string{"", "1", "é\xc3", "core", "group 1", "spines", "without a switch"}[r.IntN(7)]
				}
			}
			what := fmt.Sprintf("%s, seed %d, round %d", spec, seed, round)
			l := check(t, what, e.nodes, e.links)
			order := r.Perm(len(e.nodes)) // node i is to be at order[i]
			moved := make([]observed.LevelNode, len(e.nodes))
			for i, to := range order {
				moved[to] = e.nodes[i]
			}
			laid := make([]observed.LevelLink, len(e.links))
			for i, x := range e.links {
				laid[i] = observed.LevelLink{A: x.B, B: x.A}
				for _, end := range []*int32{&laid[i].A, &laid[i].B} {
					if *end >= 0 && int(*end) < len(order) {
						*end = int32(order[*end])
					}
				}
			}
			r.Shuffle(len(laid), func(a, b int) { laid[a], laid[b] = laid[b], laid[a] })
			m := observed.LevelsOf(moved, laid)
			if !slices.Equal(l.Groups, m.Groups) {
				t.Fatalf("%s: in another order the groups are others", what)
			}
			for i, to := range order {
				if l.Level[i] != m.Level[to] || l.Group[i] != m.Group[to] {
					t.Fatalf("%s: in another order node %d stands elsewhere", what, i)
				}
			}
		}
	}
	check(t, "nothing", nil, nil)
}

// TestPiecesOfATorusAreBounded: about the square root of the switches each, and no switch
// alone.
func TestPiecesOfATorusAreBounded(t *testing.T) {
	for _, spec := range []string{"torus,x=10,y=10,z=10", "torus,x=5,y=6,z=7", "torus,x=16,y=16", "random,switches=100,hosts=200,ports=12,seed=3"} {
		nodes, links := generated(t, spec)
		l := observed.LevelsOf(nodes, links)
		switches := make([]int, len(l.Groups))
		all := 0
		for i, n := range nodes {
			if n.Switch {
				switches[l.Group[i]]++
				all++
			}
		}
		root := math.Sqrt(float64(all))
		if most := slices.Max(switches); float64(most) > 1.5*(root+1) || len(switches) > 3*int(root)+3 {
			t.Errorf("%s: %d switches in %d groups, %d in the largest: want about %.0f in each", spec, all, len(switches), most, root)
		}
	}
}

// TestNames: of what switches have in common, up to the end of a word or a number.
func TestNames(t *testing.T) {
	for _, x := range []struct{ names, want []string }{
		{[]string{"ib-p1-l1", "ib-p1-l2", "ib-p10-l1", "ib-p10-l2", "ib-p2-l1", "ib-p2-l2"}, []string{"ib-p1-l", "ib-p2-l", "ib-p10-l"}},
		{[]string{"sw10", "sw11", "sw12", "sw13", "sw20", "sw21"}, []string{"group 1", "group 2", "group 3"}},
		{[]string{"rack A/1", "rack A/2", "rack B/1", "rack B/2", "x", "y"}, []string{"group 3", "rack A", "rack B"}},
		{[]string{"é1", "è1", "a", "a", "", ""}, []string{"a", "group 1", "group 3"}},
		{[]string{"core", "core", "spines", "spines", "group 9a", "group 9b"}, []string{"group 1", "group 2", "group 3"}},
	} {
		// Three dragonfly groups of two switches: a leaf and a spine each.
		e := &edit{}
		for i, name := range x.names {
			e.nodes = append(e.nodes, observed.LevelNode{Switch: true, Key: uint64(i + 1), Name: name})
		}
		for g := range 3 {
			leaf, spine := int32(2*g), int32(2*g+1)
			e.links = append(e.links, observed.LevelLink{A: leaf, B: spine}, observed.LevelLink{A: spine, B: (spine + 2) % 6}, observed.LevelLink{A: leaf, B: int32(len(e.nodes))})
			e.nodes = append(e.nodes, observed.LevelNode{Key: uint64(100 + g), Name: "host"})
		}
		var got []string
		for _, g := range observed.LevelsOf(e.nodes, e.links).Groups {
			got = append(got, g.Name)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%q: groups %q, want %q", x.names, got, x.want)
		}
	}
}

// BenchmarkOf: fabrics of 11,664 and 40,000 hosts.
func BenchmarkOf(b *testing.B) {
	for _, spec := range []string{"fattree,radix=36,levels=3", "fattree,radix=56,levels=3,hosts=40000", "dragonfly,groups=50,leafs=20,spines=20,hosts=40", "torus,x=20,y=20,z=20,hosts=5"} {
		nodes, links := generated(b, spec)
		b.Run(spec, func(b *testing.B) {
			for b.Loop() {
				observed.LevelsOf(nodes, links)
			}
		})
	}
}
