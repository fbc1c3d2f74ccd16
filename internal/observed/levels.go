// levels*.go: finds out how a fabric is built, from its cables alone: at which level each
// device stands, and which devices belong together, so that it can be drawn as layers.

package observed

import (
	"cmp"
	"slices"
)

// LevelNode is a device of a graph.
type LevelNode struct {
	// Switch reports whether it is a switch; everything else is at level 0.
	Switch bool
	// Key orders nodes: a GUID. No two nodes have the same.
	Key uint64
	// Name is what people call it. It names groups and decides nothing else.
	Name string
}

// LevelLink is a cable between two nodes, by their index. Several between the same two count once.
type LevelLink struct{ A, B int32 }

// LevelLayout is where each node of a graph stands.
type LevelLayout struct {
	// Level of each node: 0 what is no switch, 1 a leaf, 2 and more what is above leaves.
	Level []int32
	// Group of each node, an index of Groups.
	Group []int32
	// Groups have one switch at least each, but for the one of nodes without a switch. The
	// ones with leaves come first, then the one of the switches above all of them.
	Groups []LevelGroup
}

// LevelGroup is what belongs together: a pod, a subtree, a leaf with its hosts, the spines.
type LevelGroup struct {
	Name  string
	Nodes int
}

// LevelsOf is where the nodes of a graph stand. A link to a node that is not there, or from a node
// to itself, counts for nothing. The answer depends on keys and links, not on the order in
// which they are given.
func LevelsOf(nodes []LevelNode, links []LevelLink) LevelLayout {
	g := newGraph(nodes, links)
	g.levels()
	g.groups()
	return g.layout()
}

// graph is the switches of a graph in the order of their keys, with their cables.
type graph struct {
	nodes []LevelNode
	// switches are nodes, by key; of has the place of a node among them, or -1.
	switches, of []int32
	// next are the switches that a switch is cabled to, by place, each once, ascending.
	next [][]int32
	// at are the switches that a node which is none is cabled to, by place.
	at [][]int32
	// hosts counts what is no switch at each switch.
	hosts []int32
	level []int32
	// group of each switch; names are made at the end.
	group []int32
	count int32
	// above reports whether the last group is of the switches above all others; its name is top.
	above bool
	top   string
}

func newGraph(nodes []LevelNode, links []LevelLink) *graph {
	g := &graph{nodes: nodes, of: make([]int32, len(nodes)), at: make([][]int32, len(nodes))}
	for i := range nodes {
		if g.of[i] = -1; nodes[i].Switch {
			g.switches = append(g.switches, int32(i))
		}
	}
	slices.SortFunc(g.switches, func(a, b int32) int { return cmp.Compare(nodes[a].Key, nodes[b].Key) })
	for place, i := range g.switches {
		g.of[i] = int32(place)
	}
	n := len(g.switches)
	g.next, g.hosts, g.level, g.group = make([][]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	for _, l := range links {
		if l.A == l.B || min(l.A, l.B) < 0 || int(max(l.A, l.B)) >= len(nodes) {
			continue
		}
		a, b := g.of[l.A], g.of[l.B]
		switch {
		case a >= 0 && b >= 0:
			g.next[a], g.next[b] = append(g.next[a], b), append(g.next[b], a)
		case a >= 0:
			g.at[l.B] = append(g.at[l.B], a)
		case b >= 0:
			g.at[l.A] = append(g.at[l.A], b)
		}
	}
	for i := range g.next {
		g.next[i] = distinct(g.next[i])
	}
	for i, at := range g.at {
		g.at[i] = distinct(at)
		for _, s := range g.at[i] {
			g.hosts[s]++
		}
	}
	return g
}

// distinct sorts a list and leaves out what is in it twice.
func distinct(list []int32) []int32 {
	slices.Sort(list)
	return slices.Compact(list)
}

// layout is the result: groups in the order of their names, the one above all others behind
// them, then that of nodes without a switch.
func (g *graph) layout() LevelLayout {
	names := g.names()
	named := len(names)
	if g.above {
		named--
	}
	order := make([]int32, len(names))
	for x := range order {
		order[x] = int32(x)
	}
	slices.SortStableFunc(order[:named], func(a, b int32) int { return CompareNames(names[a], names[b]) })
	place := make([]int32, len(names))
	for i, x := range order {
		place[x] = int32(i)
	}
	for s, x := range g.group {
		g.group[s] = place[x]
	}
	out := LevelLayout{Level: make([]int32, len(g.nodes)), Group: make([]int32, len(g.nodes)), Groups: make([]LevelGroup, len(names), len(names)+1)}
	for x, i := range place {
		out.Groups[i].Name = names[x]
	}
	loose := int32(len(names))
	for i := range g.nodes {
		switch s := g.of[i]; {
		case s >= 0:
			out.Level[i], out.Group[i] = g.level[s], g.group[s]
		case len(g.at[i]) > 0:
			out.Group[i] = g.home(g.at[i])
		default:
			if out.Group[i] = loose; len(out.Groups) == int(loose) {
				out.Groups = append(out.Groups, LevelGroup{Name: NameLoose})
			}
		}
		out.Groups[out.Group[i]].Nodes++
	}
	return out
}

// home is the group in which a host has most of its cables; of several, the first.
func (g *graph) home(at []int32) int32 {
	best, most := g.group[at[0]], 0
	for _, s := range at {
		n := 0
		for _, t := range at {
			if g.group[t] == g.group[s] {
				n++
			}
		}
		if n > most || n == most && g.group[s] < best {
			best, most = g.group[s], n
		}
	}
	return best
}
