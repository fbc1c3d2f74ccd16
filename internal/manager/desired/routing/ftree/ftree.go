// Package ftree is a routing engine for fat trees, whole or broken, that needs one virtual
// lane.
//
// A switch has a level: the hops to the nearest switch with many CAs. Ways go up and then
// down, and where several are equally short, the exit follows from the destination's number
// by divisions: no counter is kept, so that a change of the fabric moves no route that it
// does not concern. CAs are numbered leaf by leaf and pod by pod. A leaf with w parents
// takes the one of number modulo w, these take the quotient modulo theirs, and so on: in a
// whole tree with as much capacity up as down, each link carries one flow of any cyclic shift
// of the CAs.
//
// What is gone still counts. Siblings have the cable to a parent at the same port as a rule,
// and so the ports tell which parents, leaves and pods there were: their places stay free,
// and an exit is counted where siblings have a cable that a switch has lost. Only what would
// have left by a missing exit is spread over the others. Where ports tell nothing, the
// switches that are there are taken for all, and more routes move when one dies.
//
// What may follow what is one order of all switches, in which no way goes up after it went
// down, so that no packets wait for each other in a circle. In that order one leaf, the hub,
// stands above its ancestors, and these above all else: in a whole tree this forbids no
// shortest way between CAs, and whatever is connected, spines with each other included, is
// connected by the hub at least.
package ftree

import (
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// FatTree routes a fat tree. It fails where the graph is none: where too many cables do not
// join adjacent levels, or too many leaves have no common ancestor.
func FatTree(in *graph.Input) (*graph.Routes, error) {
	t := newTree(in.Graph)
	t.findLevels()
	if err := t.checkCables(); err != nil {
		return nil, err
	}
	t.number()
	r := newReach(t, t.order())
	if err := t.checkWays(r); err != nil {
		return nil, err
	}
	out := &graph.Routes{Linear: in.Unrouted(), Notes: t.notes(r), Order: r.place}
	// The rows share nothing.
	f := newFiller(t, r)
	in.Workers.Split(len(t.Nodes), func(first, last int) {
		f := f.another()
		for s := first; s < last; s++ {
			f.fill(uint16(s), out.Linear[t.Nodes[s].Index])
		}
	})
	return out, nil
}

// tree is a graph with what is known of its shape.
type tree struct {
	*graph.Graph
	// The neighbours of switch s are pairs first[s] to first[s+1]-1, by place in Nodes.
	// The cables of pair p are exits cable[p] to cable[p+1]-1, by port.
	first []int32
	to    []uint16
	cable []int32
	exit  []uint8

	level []uint16
	// remote is the sum of the distances to all CAs, where levels alone do not say which
	// of two neighbours is higher.
	remote []uint64
	slots  []slots
	// rank is the order of the switches by level, and within one by what is above them.
	rank []int32
	// place is where a leaf is numbered, and the first leaf below other switches.
	place []uint32
	// entries are the LIDs to route to, those of switch s from entryFirst[s].
	entries    []entry
	entryFirst []int32
}

func newTree(g *graph.Graph) *tree {
	n := len(g.Nodes)
	t := &tree{Graph: g, first: make([]int32, 1, n+1), level: make([]uint16, n), remote: make([]uint64, n)}
	var links []int32
	for s := range n {
		links = links[:0]
		for l := g.First[s]; l < g.First[s+1]; l++ {
			links = append(links, l)
		}
		sortBy(links, func(l int32) int { return int(g.To[l])<<8 | int(g.Port[l]) })
		for i, l := range links {
			if i == 0 || g.To[l] != g.To[links[i-1]] {
				t.to = append(t.to, g.To[l])
				t.cable = append(t.cable, int32(len(t.exit)))
			}
			t.exit = append(t.exit, uint8(g.Port[l]))
		}
		t.first = append(t.first, int32(len(t.to)))
	}
	t.cable = append(t.cable, int32(len(t.exit)))
	return t
}

// neighbours are the switches next to s, each once.
func (t *tree) neighbours(s uint16) []uint16 { return t.to[t.first[s]:t.first[s+1]] }

// exits are the ports of a pair.
func (t *tree) exits(pair int32) []uint8 { return t.exit[t.cable[pair]:t.cable[pair+1]] }

// cables is the number of cables of a pair.
func (t *tree) cables(pair int32) int { return int(t.cable[pair+1] - t.cable[pair]) }
