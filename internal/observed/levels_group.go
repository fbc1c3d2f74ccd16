package observed

import (
	"cmp"
	"math"
	"slices"
)

const (
	// flatShare: a fabric of which more than one in flatShare of the cables between switches
	// stay at one level is no tree.
	flatShare = 10
	// chunkLeast is how many switches a part of a flat fabric has at the least, if there are
	// as many.
	chunkLeast = 4
	// strayShare: a cable that closes fewer than one in strayShare of the rings of four
	// switches that other cables of its ends close does not belong to the pod.
	strayShare = 4
	// denseShare is the same for a flat fabric.
	denseShare = 2
)

// groups finds which switches belong together. In a tree these are what stays connected when
// the highest levels are taken away. In a dragonfly they are the switches with many cables
// among each other. A fabric without such parts is cut into pieces of neighbours.
func (g *graph) groups() {
	for s := range g.group {
		g.group[s] = -1
	}
	top := slices.Max(append([]int32{0}, g.level...))
	switch {
	case len(g.next) == 0:
	case top > levelLeaf && g.isTree():
		g.subtrees(top)
	case top > levelLeaf && g.joined(func(a, b int32) bool { return g.level[a] != g.level[b] }).even():
	case g.joined(g.dense(func(int32, int32) bool { return true }, denseShare)).even():
	default:
		g.chunks()
	}
}

// isTree reports whether nearly all cables lead from one level to another.
func (g *graph) isTree() bool {
	all, flat := 0, 0
	for a, next := range g.next {
		for _, b := range next {
			if all++; g.level[a] == g.level[b] {
				flat++
			}
		}
	}
	return flat*flatShare <= all
}

// subtrees makes groups of what stays connected below a level, the highest at which that is
// no single piece, and one of what is above.
func (g *graph) subtrees(top int32) {
	for cut := top; cut > levelLeaf; cut-- {
		below := func(a, b int32) bool { return g.level[a] != g.level[b] && max(g.level[a], g.level[b]) < cut }
		found := g.joined(g.dense(below, strayShare), func(s int32) bool { return g.level[s] < cut })
		if !found.several() && cut > levelLeaf+1 {
			continue
		}
		if g.above, g.top = true, NameCore; cut == levelLeaf+1 {
			g.top = NameSpines
		}
		for s := range g.group {
			if g.level[s] >= cut {
				g.group[s] = g.count
			}
		}
		g.count++
		return
	}
}

// parts says what joined made of how many switches: how many groups, and how large the largest
// is.
type parts struct{ switches, groups, largest int }

// several reports whether no group has more than three quarters of the switches.
func (p parts) several() bool { return p.groups > 1 && 4*p.largest <= 3*p.switches }

// even reports whether these are parts of much the same size, of some switches each.
func (p parts) even() bool {
	return p.groups > 1 && 2*p.groups <= p.switches && 2*p.largest <= p.switches && p.largest*p.groups <= 3*p.switches
}

// joined makes a group of what the cables that count join, of the switches that count: of
// all, if that is not said.
func (g *graph) joined(counts func(a, b int32) bool, which ...func(s int32) bool) (p parts) {
	in := func(s int32) bool { return len(which) == 0 || which[0](s) }
	for s := range g.group {
		g.group[s] = -1
	}
	g.count = 0
	var queue []int32
	for s := range g.group {
		if g.group[s] >= 0 || !in(int32(s)) {
			continue
		}
		queue = append(queue[:0], int32(s))
		g.group[s] = g.count
		for i := 0; i < len(queue); i++ {
			for _, t := range g.next[queue[i]] {
				if g.group[t] < 0 && in(t) && counts(queue[i], t) {
					g.group[t], queue = g.count, append(queue, t)
				}
			}
		}
		g.count++
		p.switches, p.groups, p.largest = p.switches+len(queue), p.groups+1, max(p.largest, len(queue))
	}
	return p
}

// dense leaves out the cables that close far fewer rings of three or four than others of
// both their ends do.
func (g *graph) dense(counts func(a, b int32) bool, share int32) func(a, b int32) bool {
	n := len(g.next)
	near := make([][]int32, n)
	for a := range near {
		for _, b := range g.next[a] {
			if counts(int32(a), b) {
				near[a] = append(near[a], b)
			}
		}
	}
	rings, most := make([][]int32, n), make([]int32, n)
	ways := make([]int32, n) // from a over one other switch
	for a := range near {
		for _, x := range near[a] {
			for _, y := range near[x] {
				ways[y]++
			}
		}
		ways[a] = 0
		rings[a] = make([]int32, len(near[a]))
		for i, b := range near[a] {
			closed := ways[b] // triangles
			for _, y := range near[b] {
				if ways[y] > 0 {
					closed += ways[y] - 1 // not over b
				}
			}
			rings[a][i], most[a] = closed, max(most[a], closed)
		}
		for _, x := range near[a] {
			for _, y := range near[x] {
				ways[y] = 0
			}
		}
	}
	return func(a, b int32) bool {
		i, there := slices.BinarySearch(near[a], b)
		return there && rings[a][i]*share >= min(most[a], most[b])
	}
}

// chunks cuts the switches into pieces of neighbours, of about the square root of their
// number each.
func (g *graph) chunks() {
	for s := range g.group {
		g.group[s] = -1
	}
	g.count = 0
	size := max(chunkLeast, int(math.Ceil(math.Sqrt(float64(len(g.next))))))
	sizes := []int{}
	var queue []int32
	for s := range g.group {
		if g.group[s] >= 0 {
			continue
		}
		queue = append(queue[:0], int32(s))
		g.group[s] = g.count
		for i := 0; i < len(queue) && len(queue) < size; i++ {
			for _, t := range g.next[queue[i]] {
				if g.group[t] < 0 && len(queue) < size {
					g.group[t], queue = g.count, append(queue, t)
				}
			}
		}
		if into := g.beside(queue, sizes, size); into >= 0 {
			for _, t := range queue {
				g.group[t] = into
			}
			sizes[into] += len(queue)
			continue
		}
		sizes = append(sizes, len(queue))
		g.count++
	}
}

// beside is the smallest group next to a piece that has room for it, so that no switch is left
// alone between pieces; -1 for none, and for a piece of some size.
func (g *graph) beside(piece []int32, sizes []int, size int) int32 {
	best := int32(-1)
	if 2*len(piece) >= size {
		return best
	}
	for _, s := range piece {
		for _, t := range g.next[s] {
			x := g.group[t]
			if x < 0 || x == g.count || 2*(sizes[x]+len(piece)) > 3*size {
				continue
			}
			if best < 0 || cmp.Or(cmp.Compare(sizes[x], sizes[best]), cmp.Compare(x, best)) < 0 {
				best = x
			}
		}
	}
	return best
}
