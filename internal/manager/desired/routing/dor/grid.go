package dor

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// grid is one part of a graph as a torus or mesh: each switch has a position in every
// dimension. Where a switch is missing, a place is free.
type grid struct {
	*graph.Channels
	part []uint16
	dims []dimension
	// at is the switch of a place, -1 where it is free. A place is the sum of the
	// positions times the strides.
	at []int32
	// place is the place of a switch, pos its position in each dimension, by the place
	// of the switch in the graph.
	place []int32
	pos   [][]int32
}

// dimension is one of a grid.
type dimension struct {
	size   int
	stride int
	// ring says that the last position is next to the first.
	ring bool
}

// free marks a place without a switch.
const free = int32(-1)

// sparsest is how many places a grid has for each switch at most: beyond that it is no
// torus or mesh with something missing, but something else.
const sparsest = 4

// Around what is missing, links can look like those of another dimension. So where the
// positions that follow from all switches contradict each other, those are tried in which
// one of two, or of three, does not count.
const mostDoubt = 3

// newGrid finds the positions of the switches of one part.
func newGrid(k *cuts, part []uint16) (*grid, error) {
	var first error
	for least := range int32(mostDoubt) {
		g, err := tryGrid(k, part, least+1)
		if err == nil {
			return g, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func tryGrid(k *cuts, part []uint16, least int32) (*grid, error) {
	g := &grid{Channels: k.Channels, part: part, place: make([]int32, len(k.Nodes)), pos: make([][]int32, len(k.Nodes))}
	h := newChains(k, part, least)
	roots := h.dimensions(part)
	places := 1
	for _, r := range roots {
		size, _ := h.extent(r)
		g.dims = append(g.dims, dimension{size: size, stride: places, ring: h.period[r] != 0})
		if places *= size; places > sparsest*len(part) {
			return nil, fmt.Errorf("the links of %s and of %d switches connected with it make %d dimensions of together %d places or more: too few of a torus or mesh are there",
				k.Nodes[part[0]].Name(), len(part)-1, len(g.dims), places)
		}
	}
	if len(roots) == 0 && len(part) > 1 {
		return nil, fmt.Errorf("the links of %s and of %d switches connected with it make no dimension: in a torus or mesh most of them lie in rows",
			k.Nodes[part[0]].Name(), len(part)-1)
	}
	for _, s := range part {
		g.place[s] = free
	}
	g.at = slices.Repeat([]int32{free}, places)
	if err := g.settle(h, roots); err != nil {
		return nil, err
	}
	return g, g.check()
}

// dimensions are the chains that are dimensions of the part, in the order in which
// packets follow them: by exit port where most switches have the same, and else by GUID.
// What has few channels only is part of a dimension from which breakage cut it off.
func (h *chains) dimensions(part []uint16) []int32 {
	type candidate struct {
		root  int32
		port  ib.PortNum
		first int32
	}
	var all []candidate
	for root, classes := range h.classes {
		total, first := 0, int32(math.MaxInt32)
		for _, class := range classes {
			total += len(h.channels[class])
			for _, x := range [2]int32{class, h.reverse(class)} {
				first = min(first, slices.Min(h.channels[x]))
			}
		}
		// A whole dimension has at least one channel for every two switches.
		if total*4 >= len(part) {
			up, down := h.usual(root)
			if up > down || up == down && h.step[h.class[first]] < 0 {
				h.turn(root)
			}
			all = append(all, candidate{root, min(up, down), first})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.first, b.first))
	})
	out := make([]int32, 0, len(all))
	for _, c := range all {
		out = append(out, c.root)
	}
	return out
}

// usual is the exit port by which most switches have their channels up and down a chain,
// ib.PortNone where no port has half of them.
func (h *chains) usual(root int32) (up, down ib.PortNum) {
	var counts [2][256]int
	var total [2]int
	for _, class := range h.classes[root] {
		for _, x := range [2]int32{class, h.reverse(class)} {
			way := 0
			if h.step[x] < 0 {
				way = 1
			}
			for _, c := range h.channels[x] {
				counts[way][h.Ports[c][0]]++
				total[way]++
			}
		}
	}
	out := [2]ib.PortNum{ib.PortNone, ib.PortNone}
	for way := range out {
		for p, n := range counts[way] {
			if 2*n > total[way] {
				out[way] = ib.PortNum(p)
			}
		}
	}
	return out[0], out[1]
}

// turn makes up of a chain its down.
func (h *chains) turn(root int32) {
	for _, class := range h.classes[root] {
		for _, x := range [2]int32{class, h.reverse(class)} {
			h.begin[x], h.step[x] = -h.begin[x], -h.step[x]
		}
	}
}

// extent is the number of positions of a chain, and the lowest as it counts them.
func (h *chains) extent(root int32) (size int, low int32) {
	low, high := int32(math.MaxInt32), int32(math.MinInt32)
	for _, class := range h.classes[root] {
		a, b := h.begin[class], h.begin[class]+h.step[class]
		low, high = min(low, a, b), max(high, a, b)
	}
	if n := h.period[root]; n != 0 {
		return int(n), low
	}
	return int(high-low) + 1, low
}

// settle gives every switch its place: first by its own channels, then by those of
// its neighbours, and last in a free place next to its neighbours.
func (g *grid) settle(h *chains, roots []int32) error {
	known := make([]bool, len(g.part)*len(g.dims))
	row := make([]int, len(g.Nodes))
	for i, s := range g.part {
		row[s] = i * len(g.dims)
		g.pos[s] = make([]int32, len(g.dims))
	}
	dim := make(map[int32]int, len(roots))
	lows := make([]int32, len(roots))
	for d, r := range roots {
		dim[r] = d
		_, lows[d] = h.extent(r)
	}
	for _, s := range g.part {
		for c := g.First[s]; c < g.First[s+1]; c++ {
			root, from, _ := h.ends(c)
			d, ok := dim[root]
			if !ok {
				continue
			}
			size := g.dims[d].size
			g.pos[s][d] = int32((int(from-lows[d])%size + size) % size)
			known[row[s]+d] = true
		}
	}
	for d := range g.dims {
		g.spread(h, dim, d, func(s uint16) *bool { return &known[row[s]+d] })
	}
	g.rotate(func(s uint16, d int) bool { return known[row[s]+d] })
	var left []uint16
	for _, s := range g.part {
		if slices.Contains(known[row[s]:row[s]+len(g.dims)], false) {
			left = append(left, s)
			continue
		}
		if err := g.put(s); err != nil {
			return err
		}
	}
	return g.fill(left)
}

// spread enters the position in dimension d of switches that have no channel there: it
// is that of a neighbour in another dimension.
func (g *grid) spread(h *chains, dim map[int32]int, d int, known func(uint16) *bool) {
	var queue []uint16
	for _, s := range g.part {
		if *known(s) {
			queue = append(queue, s)
		}
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		for c := g.First[s]; c < g.First[s+1]; c++ {
			root, _, _ := h.ends(c)
			other, ok := dim[root]
			if t := g.To[c]; ok && other != d && !*known(t) {
				*known(t) = true
				g.pos[t][d] = g.pos[s][d]
				queue = append(queue, t)
			}
		}
	}
}

// rotate makes position 0 of every ring that of the first switch whose position is known.
func (g *grid) rotate(known func(s uint16, d int) bool) {
	for d, dim := range g.dims {
		i := slices.IndexFunc(g.part, func(s uint16) bool { return known(s, d) })
		if !dim.ring || i < 0 {
			continue
		}
		origin := int(g.pos[g.part[i]][d])
		for _, s := range g.part {
			g.pos[s][d] = int32((int(g.pos[s][d]) - origin + dim.size) % dim.size)
		}
	}
}

// put enters a switch at its position.
func (g *grid) put(s uint16) error {
	place := 0
	for d, dim := range g.dims {
		place += int(g.pos[s][d]) * dim.stride
	}
	if other := g.at[place]; other != free {
		return fmt.Errorf("%s and %s have the same position %v in a torus or mesh of %s",
			g.Nodes[other].Name(), g.Nodes[s].Name(), g.pos[s], g.String())
	}
	g.at[place], g.place[s] = int32(s), int32(place)
	return nil
}

// maxGuesses is how many places are tried for switches with more than one before the
// engine gives up.
const maxGuesses = 10_000

// fill puts the switches that are left in free places next to their neighbours, those with
// most of them in place first. Where a choice leaves none to another switch, the next one
// is tried.
func (g *grid) fill(left []uint16) error {
	guesses := 0
	var failed uint16
	var try func(left []uint16) bool
	try = func(left []uint16) bool {
		if len(left) == 0 {
			return true
		}
		best, most := 0, -1
		for i, s := range left {
			n := 0
			for _, t := range g.To[g.First[s]:g.First[s+1]] {
				if g.place[t] != free {
					n++
				}
			}
			if n > most {
				best, most = i, n
			}
		}
		s := left[best]
		rest := slices.Delete(slices.Clone(left), best, best+1)
		for _, place := range g.gaps(s) {
			if guesses++; guesses > maxGuesses {
				break
			}
			g.at[place], g.place[s] = int32(s), place
			if try(rest) {
				return true
			}
			g.at[place], g.place[s] = free, free
		}
		failed = s
		return false
	}
	if !try(left) {
		return fmt.Errorf("%s fits in no free place of a torus or mesh of %s", g.Nodes[failed].Name(), g.String())
	}
	for _, s := range left {
		for d, dim := range g.dims {
			g.pos[s][d] = int32(int(g.place[s]) / dim.stride % dim.size)
		}
	}
	return nil
}

// gaps are the free places next to all neighbours of a switch that have places.
func (g *grid) gaps(s uint16) (out []int32) {
	for _, t := range g.To[g.First[s]:g.First[s+1]] {
		if g.place[t] == free {
			continue
		}
		for d := range g.dims {
			for _, way := range ways {
				p := g.next(g.place[t], d, way)
				if p != free && g.at[p] == free && g.fits(s, p) && !slices.Contains(out, p) {
					out = append(out, p)
				}
			}
		}
		break
	}
	slices.Sort(out)
	return out
}

// fits reports whether a place is next to all neighbours of a switch that have places.
func (g *grid) fits(s uint16, place int32) bool {
	for _, t := range g.To[g.First[s]:g.First[s+1]] {
		if g.place[t] != free {
			if d, _ := g.apart(place, g.place[t]); d < 0 {
				return false
			}
		}
	}
	return true
}

// ways are the two directions of a dimension.
var ways = [2]int{1, -1}

// next is the place one step further in a dimension, free where the grid ends.
func (g *grid) next(place int32, d, way int) int32 {
	dim := g.dims[d]
	at := int(place) / dim.stride % dim.size
	to := at + way
	if to < 0 || to == dim.size {
		if !dim.ring {
			return free
		}
		to = (to + dim.size) % dim.size
	}
	return place + int32((to-at)*dim.stride)
}

// apart is the dimension in which two places are neighbours, and the way from a to b;
// the dimension is -1 where they are not.
func (g *grid) apart(a, b int32) (d, way int) {
	for d := range g.dims {
		for _, way := range ways {
			if g.next(a, d, way) == b {
				return d, way
			}
		}
	}
	return -1, 0
}

// check fails on a link between places that are not next to each other.
func (g *grid) check() error {
	for _, s := range g.part {
		for _, t := range g.To[g.First[s]:g.First[s+1]] {
			if d, _ := g.apart(g.place[s], g.place[t]); d < 0 {
				return fmt.Errorf("%s at %v has a link to %s at %v: in a torus or mesh of %s a link goes to the next position of one dimension",
					g.Nodes[s].Name(), g.pos[s], g.Nodes[t].Name(), g.pos[t], g.String())
			}
		}
	}
	return nil
}

// String is the sizes of the dimensions, such as 8x8x4.
func (g *grid) String() string {
	if len(g.dims) == 0 {
		return "1"
	}
	out := ""
	for i, d := range g.dims {
		if i > 0 {
			out += "x"
		}
		out += fmt.Sprint(d.size)
	}
	return out
}
