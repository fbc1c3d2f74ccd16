package dragonfly

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// groups are those of the switches of a graph.
type groups struct {
	*graph.Channels
	// plus says that groups are leaves and spines.
	plus bool
	// spine tells of a switch that it is one; only with plus.
	spine []bool
	// group is that of a switch, members are the switches of a group.
	group   []int32
	members [][]uint16
	// first and last are the first leaf and the last other one of a group, noLeaf where
	// there is none; only with plus.
	first, last []uint16
}

// noLeaf is no switch.
const noLeaf = ^uint16(0)

// hostShare is the least share of a leaf's hosts, as a divisor, beside the switch with
// most: a spine may have a few.
const hostShare = 4

func newGroups(n *graph.Channels) (*groups, error) {
	g := &groups{Channels: n, spine: make([]bool, len(n.Nodes)), group: make([]int32, len(n.Nodes))}
	most := uint32(0)
	if len(n.Hosts) > 0 {
		most = slices.Max(n.Hosts)
	}
	if most == 0 {
		return nil, fmt.Errorf("no switch has hosts: without them the groups of a dragonfly are not known")
	}
	for s, hosts := range n.Hosts {
		g.spine[s] = hosts*hostShare < most
	}
	between, mixed := 0, 0
	for c := range n.To {
		switch a, b := g.spine[n.From[c]], g.spine[n.To[c]]; {
		case a != b:
			mixed++
		case !a:
			between++
		}
	}
	if g.plus = mixed > 2*between; g.plus {
		g.leafAndSpine()
	} else {
		clear(g.spine)
		g.full()
	}
	g.number()
	return g, g.check()
}

// unite makes one group of the ends of some channels.
func (g *groups) unite(inside func(c int32) bool) {
	for s := range g.group {
		g.group[s] = -1
	}
	var stack []uint16
	for s := range g.group {
		if g.group[s] >= 0 {
			continue
		}
		g.group[s] = int32(s)
		stack = append(stack, uint16(s))
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for c := g.First[v]; c < g.First[v+1]; c++ {
				if u := g.To[c]; g.group[u] < 0 && inside(c) {
					g.group[u] = int32(s)
					stack = append(stack, u)
				}
			}
		}
	}
}

// leafAndSpine finds the groups of a dragonfly+: a link between a leaf and a spine is
// inside of one.
func (g *groups) leafAndSpine() {
	g.unite(func(c int32) bool { return g.spine[g.From[c]] != g.spine[g.To[c]] })
	// A leaf without hosts has links to the spines of one group, and to nothing else.
	size := map[int32]int{}
	for _, x := range g.group {
		size[x]++
	}
	for s := range g.Nodes {
		to := g.To[g.First[s]:g.First[s+1]]
		if !g.spine[s] || size[int32(s)] != 1 || g.group[s] != int32(s) || len(to) == 0 {
			continue
		}
		first := g.group[to[0]]
		if size[first] > 1 && !slices.ContainsFunc(to, func(t uint16) bool { return g.group[t] != first }) {
			g.spine[s], g.group[s] = false, first
			size[first]++
		}
	}
}

// maxMoves is how often switches may change their group before all are taken as they are.
const maxMoves = 8

// full finds the groups whose switches all have links to each other: neighbours inside
// of one have many neighbours in common.
func (g *groups) full() {
	common := make([]int, len(g.To))
	most := make([]int, len(g.Nodes))
	marked := make([]bool, len(g.Nodes))
	for v := range g.Nodes {
		to := g.To[g.First[v]:g.First[v+1]]
		for _, u := range to {
			marked[u] = true
		}
		for i, u := range to {
			n := 0
			for _, x := range g.To[g.First[u]:g.First[u+1]] {
				if marked[x] {
					n++
				}
			}
			common[int(g.First[v])+i] = n
			most[v] = max(most[v], n)
		}
		for _, u := range to {
			marked[u] = false
		}
	}
	g.unite(func(c int32) bool { return 2*common[c] > max(most[g.From[c]], most[g.To[c]]) })
	// A switch that lost links belongs where most of its neighbours are.
	for range maxMoves {
		moved := false
		for v := range g.Nodes {
			links := map[int32]int{}
			for _, u := range g.To[g.First[v]:g.First[v+1]] {
				links[g.group[u]]++
			}
			best := g.group[v]
			for _, u := range g.To[g.First[v]:g.First[v+1]] {
				if x := g.group[u]; links[x] > links[best] {
					best = x
				}
			}
			if best != g.group[v] && links[best] > 1 {
				g.group[v], moved = best, true
			}
		}
		if !moved {
			return
		}
	}
}

// number gives the groups their numbers, in the order of their first switches, and finds
// their first and last leaves.
func (g *groups) number() {
	number := map[int32]int32{}
	for s, x := range g.group {
		n, seen := number[x]
		if !seen {
			n = int32(len(g.members))
			number[x] = n
			g.members = append(g.members, nil)
		}
		g.group[s] = n
		g.members[n] = append(g.members[n], uint16(s))
	}
	for _, members := range g.members {
		first, last := noLeaf, noLeaf
		for _, s := range members {
			switch {
			case g.spine[s]:
			case first == noLeaf:
				first = s
			default:
				last = s
			}
		}
		g.first, g.last = append(g.first, first), append(g.last, last)
	}
}

// check fails on what is no dragonfly, whole or with something missing, in the largest
// part of the graph.
func (g *groups) check() error {
	var part []uint16
	for _, p := range g.Parts() {
		if len(p) > len(part) {
			part = p
		}
	}
	kind, pairs := "dragonfly", "two switches of a group"
	if g.plus {
		kind, pairs = "dragonfly+", "a leaf and a spine of a group"
	}
	hosted := map[int32]bool{}
	for _, s := range part {
		if g.Hosts[s] > 0 {
			hosted[g.group[s]] = true
		}
	}
	if len(hosted) < 2 {
		return fmt.Errorf("%s and what is connected with it make one group: a %s has two or more", g.Nodes[part[0]].Name(), kind)
	}
	seen := map[int32]bool{}
	total, least, worst := 0, len(hosted), uint16(0)
	for _, s := range part {
		inside, could := 0, 0
		for _, m := range g.members[g.group[s]] {
			if m != s && (!g.plus || g.spine[m] != g.spine[s]) {
				could++
			}
		}
		for _, u := range g.To[g.First[s]:g.First[s+1]] {
			if g.group[u] == g.group[s] {
				inside++
			}
		}
		if 2*inside < could {
			return fmt.Errorf("%s has links to %d of %d switches of its group: in a %s there is one between %s",
				g.Nodes[s].Name(), inside, could, kind, pairs)
		}
		if x := g.group[s]; hosted[x] && !seen[x] {
			seen[x] = true
			n := g.adjacent(x, hosted)
			if total += n; n < least {
				least, worst = n, s
			}
		}
	}
	if pairs := len(hosted) * (len(hosted) - 1); 2*total < pairs {
		return fmt.Errorf("%d of %d pairs of groups have links, the group of %s, of %d switches, to %d others: in a %s there is one between any two groups",
			total/2, pairs/2, g.Nodes[worst].Name(), len(g.members[g.group[worst]]), least, kind)
	}
	return nil
}

// adjacent is the number of groups with hosts to which a group has links.
func (g *groups) adjacent(x int32, hosted map[int32]bool) int {
	found := map[int32]bool{}
	for _, s := range g.members[x] {
		for _, u := range g.To[g.First[s]:g.First[s+1]] {
			if y := g.group[u]; y != x && hosted[y] {
				found[y] = true
			}
		}
	}
	return len(found)
}
