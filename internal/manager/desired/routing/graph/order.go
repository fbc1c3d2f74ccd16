package graph

import (
	"cmp"
	"container/heap"
	"slices"
)

// remoteShare: what is nearer to all CAs by one part in so many of what the first switch has
// is higher; by less, where a few cables are missing, it need not be.
const remoteShare = 4

// Order returns the switches from the highest to the lowest. Each but
// the first of its island has a neighbour that stands before it; subject to
// that, a switch stands the higher the farther the nearest CA is, then the
// fewer hops it has to all CAs together, roughly, then the nearer it is to the first.
// So it begins at the top of a tree, and in the middle of anything else.
func Order(g *Graph) []uint16 {
	depth, remote := g.Depths(), remoteness(g)
	higher := func(a, b uint16) int {
		return cmp.Or(cmp.Compare(depth[b], depth[a]), cmp.Compare(remote[a], remote[b]))
	}
	roots := make([]uint16, len(g.Nodes))
	for s := range roots {
		roots[s] = uint16(s)
	}
	slices.SortStableFunc(roots, higher)

	order := make([]uint16, 0, len(g.Nodes))
	place := make([]uint16, len(g.Nodes)) // where a switch would like to stand
	queued := make([]bool, len(g.Nodes))
	dist := make([]uint16, len(g.Nodes))
	var island []uint16
	for _, root := range roots {
		if queued[root] {
			continue
		}
		island = g.Distances(dist, island, root)
		about := func(s uint16) uint64 { return remote[s] * remoteShare / max(1, remote[root]) }
		slices.SortFunc(island, func(a, b uint16) int {
			return cmp.Or(cmp.Compare(depth[b], depth[a]), cmp.Compare(about(a), about(b)),
				cmp.Compare(dist[a], dist[b]), cmp.Compare(remote[a], remote[b]), cmp.Compare(a, b))
		})
		for i, s := range island {
			place[s] = uint16(i)
		}
		queued[root] = true
		edge := &frontier{0}
		for len(*edge) > 0 {
			s := island[heap.Pop(edge).(uint16)]
			order = append(order, s)
			for _, t := range g.Neighbours(s) {
				if !queued[t] {
					queued[t] = true
					heap.Push(edge, place[t])
				}
			}
		}
	}
	return order
}

// remoteness is, for each switch, the sum of its distances from all CAs that
// it can reach.
func remoteness(g *Graph) []uint64 {
	out := make([]uint64, len(g.Nodes))
	dist := make([]uint16, len(g.Nodes))
	var queue []uint16
	for _, s := range g.Leaves() {
		queue = g.Distances(dist, queue, s)
		for _, t := range queue {
			out[t] += uint64(g.Hosts[s]) * uint64(dist[t])
		}
	}
	return out
}

// frontier is a heap of places.
type frontier []uint16

func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(i, j int) bool { return f[i] < f[j] }
func (f frontier) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(uint16)) }
func (f *frontier) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}
