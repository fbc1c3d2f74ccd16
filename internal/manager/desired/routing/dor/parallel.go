package dor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// cuts sorts the channels of a graph into classes of parallel ones. Opposite sides of a
// square, four switches in a circle without a diagonal, are parallel. In a torus or mesh
// the channels of a class all lead from one plane of switches to the next, so that they
// cut a dimension between two positions.
type cuts struct {
	*graph.Channels
	parent []int32
	// crossing says of two classes, without regard to direction, that they are sides of
	// one square: they belong to different dimensions.
	crossing map[[2]int32]bool
	// class is the class of a channel, named by one of its channels.
	class []int32
	// size is the number of channels of a class.
	size []int32
}

// corner is two channels that leave one switch and are sides of one square.
type corner struct{ a, b int32 }

// newCuts fails where no torus or mesh, broken or whole, can look so.
func newCuts(n *graph.Channels) (*cuts, error) {
	k := &cuts{Channels: n, parent: make([]int32, len(n.To)), crossing: map[[2]int32]bool{}}
	for c := range k.parent {
		k.parent[c] = int32(c)
	}
	corners, err := k.squares()
	if err != nil {
		return nil, err
	}
	k.class, k.size = make([]int32, len(n.To)), make([]int32, len(n.To))
	for c := range k.class {
		k.class[c] = k.find(int32(c))
		k.size[k.class[c]]++
	}
	for _, c := range corners {
		k.crossing[k.pair(k.class[c.a], k.class[c.b])] = true
	}
	return k, k.check()
}

// squares unites what is parallel, and returns the corners of all squares.
func (k *cuts) squares() (corners []corner, err error) {
	first, second := make([]corner, len(k.Nodes)), make([]corner, len(k.Nodes))
	count := make([]uint8, len(k.Nodes))
	adjacent := make([]bool, len(k.Nodes))
	var reached []uint16
	for v := range k.Nodes {
		for _, u := range k.neighbours(uint16(v)) {
			adjacent[u] = true
		}
		for c := k.First[v]; c < k.First[v+1]; c++ {
			u := k.To[c]
			for e := k.First[u]; e < k.First[u+1]; e++ {
				z := k.To[e]
				if int(z) == v {
					continue
				}
				switch count[z]++; count[z] {
				case 1:
					reached = append(reached, z)
					first[z] = corner{c, e}
				case 2:
					second[z] = corner{c, e}
				}
				if limit := uint8(2); count[z] > limit || adjacent[z] && count[z] > 1 {
					return nil, fmt.Errorf("%s and %s have %d or more neighbours in common: in a torus or mesh no two switches have more than 2, nor those that are neighbours more than 1",
						k.Nodes[v].Name(), k.Nodes[z].Name(), count[z])
				}
			}
		}
		for _, z := range reached {
			if count[z] == 2 {
				a, b := first[z], second[z]
				k.unite(a.a, b.b)
				k.unite(b.a, a.b)
				if a.a < b.a {
					corners = append(corners, corner{a.a, b.a})
				} else {
					corners = append(corners, corner{b.a, a.a})
				}
			}
			count[z] = 0
		}
		reached = reached[:0]
		for _, u := range k.neighbours(uint16(v)) {
			adjacent[u] = false
		}
	}
	return corners, nil
}

func (k *cuts) neighbours(s uint16) []uint16 { return k.To[k.First[s]:k.First[s+1]] }

func (k *cuts) find(c int32) int32 {
	for k.parent[c] != c {
		k.parent[c] = k.parent[k.parent[c]]
		c = k.parent[c]
	}
	return c
}

// unite enters that a and b are parallel, and so are their opposites.
func (k *cuts) unite(a, b int32) {
	for _, p := range [2][2]int32{{a, b}, {k.Back[a], k.Back[b]}} {
		x, y := k.find(p[0]), k.find(p[1])
		if x != y {
			k.parent[max(x, y)] = min(x, y)
		}
	}
}

// reverse is the class of the opposite channels.
func (k *cuts) reverse(class int32) int32 { return k.class[k.Back[class]] }

// pair is the key of two classes in crossing.
func (k *cuts) pair(a, b int32) [2]int32 {
	a, b = min(a, k.reverse(a)), min(b, k.reverse(b))
	return [2]int32{min(a, b), max(a, b)}
}

// check fails where two channels of one switch are parallel.
func (k *cuts) check() error {
	for v := range k.Nodes {
		first, end := k.First[v], k.First[v+1]
		for a := first; a < end; a++ {
			if k.class[a] == k.class[k.Back[a]] {
				return fmt.Errorf("the link from %s to %s is parallel to itself the other way round: a torus has no such twist",
					k.Nodes[v].Name(), k.Nodes[k.To[a]].Name())
			}
			for b := first; b < a; b++ {
				if k.class[a] == k.class[b] || k.class[a] == k.class[k.Back[b]] {
					return fmt.Errorf("the links of %s to %s and to %s are parallel: a switch of a torus or mesh has one neighbour in each direction of a dimension",
						k.Nodes[v].Name(), k.Nodes[k.To[b]].Name(), k.Nodes[k.To[a]].Name())
				}
			}
		}
	}
	return nil
}

// follow is a class that may follow another one in the same dimension.
type follow struct {
	from, to int32
	// votes is the number of switches where one ends and the other begins.
	votes int32
}

// follows lists the classes that may follow each other, the likeliest first: in a
// dimension they have a whole plane of switches in common, while two dimensions have few.
func (k *cuts) follows(part []uint16) []follow {
	votes := map[[2]int32]int32{}
	for _, v := range part {
		for a := k.First[v]; a < k.First[v+1]; a++ {
			for b := k.First[v]; b < k.First[v+1]; b++ {
				if from, to := k.class[k.Back[a]], k.class[b]; a != b && !k.crossing[k.pair(from, to)] {
					votes[[2]int32{from, to}]++
				}
			}
		}
	}
	out := make([]follow, 0, len(votes))
	for p, n := range votes {
		// One direction says all.
		if twin := [2]int32{k.reverse(p[1]), k.reverse(p[0])}; p[0] < twin[0] || p[0] == twin[0] && p[1] <= twin[1] {
			out = append(out, follow{p[0], p[1], n})
		}
	}
	slices.SortFunc(out, func(a, b follow) int {
		// By votes squared, divided by the switches that only one of them has, and both.
		x := int64(a.votes) * int64(a.votes) * int64(k.size[b.from]+k.size[b.to]-b.votes)
		y := int64(b.votes) * int64(b.votes) * int64(k.size[a.from]+k.size[a.to]-a.votes)
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	return out
}
