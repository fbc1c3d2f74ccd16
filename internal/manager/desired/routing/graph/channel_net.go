// Channels are the channels between the switches of a graph, with parallel cables taken
// as one; Waits checks that packets on them never wait for each other in a circle.
//
// Engines for regular graphs share it. Most of their paths follow a rule by which no
// circle can arise. Those that cannot, because something on the way is broken, get a
// layer one by one, the first in which they close no circle.

package graph

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// Channels is the channels of a graph. Those of switch s are First[s] to First[s+1]-1, by the
// place of the neighbour; no two of them lead to the same neighbour.
type Channels struct {
	*Graph
	First []int32
	// From and To are the switches at the ends of a channel, Back is the channel of the
	// same cables in the other direction.
	From, To []uint16
	Back     []int32
	// Ports are the exit ports of a channel, in rising order.
	Ports [][]ib.PortNum
}

// NewChannels returns the channels of g.
func NewChannels(g *Graph) *Channels {
	n := &Channels{Graph: g, First: make([]int32, 1, len(g.Nodes)+1)}
	var links []int32
	for s := range g.Nodes {
		links = links[:0]
		for l := g.First[s]; l < g.First[s+1]; l++ {
			links = append(links, l)
		}
		slices.SortFunc(links, func(a, b int32) int {
			return cmp.Or(cmp.Compare(g.To[a], g.To[b]), cmp.Compare(g.Port[a], g.Port[b]))
		})
		for i, l := range links {
			if i == 0 || g.To[links[i-1]] != g.To[l] {
				n.From, n.To = append(n.From, uint16(s)), append(n.To, g.To[l])
				n.Ports = append(n.Ports, nil)
			}
			last := &n.Ports[len(n.Ports)-1]
			*last = append(*last, g.Port[l])
		}
		n.First = append(n.First, int32(len(n.To)))
	}
	n.Back = make([]int32, len(n.To))
	for c, t := range n.To {
		n.Back[c] = n.Between(t, n.From[c])
	}
	return n
}

// Between is the channel from one switch to another, -1 where there is none.
func (n *Channels) Between(from, to uint16) int32 {
	first, end := n.First[from], n.First[from+1]
	i, found := slices.BinarySearch(n.To[first:end], to)
	if !found {
		return -1
	}
	return first + int32(i)
}

// Parts returns the switches of each part of the graph that has no link to the others,
// each in rising order.
func (n *Channels) Parts() [][]uint16 {
	var out [][]uint16
	seen := make([]bool, len(n.Nodes))
	dist := make([]uint16, len(n.Nodes))
	for s := range n.Nodes {
		if seen[s] {
			continue
		}
		part := n.Distances(dist, nil, uint16(s))
		slices.Sort(part)
		for _, t := range part {
			seen[t] = true
		}
		out = append(out, part)
	}
	return out
}

// Port is the exit port of a channel for a LID: LIDs that follow each other take the
// cables in turn.
func (n *Channels) Port(c int32, lid ib.LID) ib.PortNum {
	ports := n.Ports[c]
	if len(ports) == 1 {
		return ports[0]
	}
	return ports[int(lid)%len(ports)]
}
