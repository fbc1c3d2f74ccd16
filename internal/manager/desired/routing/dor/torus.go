package dor

// torus is a grid with what packets follow in it.
type torus struct {
	*grid
	// hop is the channel of a switch by dimension and way, -1 where there is none; free
	// is the number of hops that a packet can take that way, one after the other: the
	// length of the ring where it is closed. Both by the place of the switch in the
	// graph.
	hop  [][2][]int32
	free [][2][]int32
	// bit is the bit of a layer for each dimension, -1 where it needs none.
	bit []int
	// crosses is the bits of the layers of packets that take a channel, by channel;
	// dim is its dimension.
	crosses map[int32]uint8
	dim     map[int32]int
	// whole says that nothing is missing.
	whole bool
}

func newTorus(g *grid) *torus {
	t := &torus{
		grid: g, hop: make([][2][]int32, len(g.dims)), free: make([][2][]int32, len(g.dims)),
		bit: make([]int, len(g.dims)), crosses: map[int32]uint8{}, dim: map[int32]int{},
		whole: len(g.part) == len(g.at),
	}
	bits := 0
	for d := range g.dims {
		t.bit[d] = -1
		for w := range ways {
			t.hop[d][w], t.free[d][w] = make([]int32, len(g.Nodes)), make([]int32, len(g.Nodes))
		}
		closed := t.measure(d)
		if closed && g.dims[d].size >= leastDateline {
			t.bit[d] = bits
			bits++
		}
	}
	for _, s := range g.part {
		for d, dim := range g.dims {
			for w := range ways {
				c := t.hop[d][w][s]
				if c < 0 {
					continue
				}
				t.dim[c] = d
				if at := int(g.pos[s][d]); t.bit[d] >= 0 && (w == 0 && at == dim.size-1 || w == 1 && at == 0) {
					t.crosses[c] = 1 << t.bit[d]
				}
			}
		}
	}
	return t
}

// measure enters hop and free of a dimension, and reports whether one of its rings is
// closed.
func (t *torus) measure(d int) (closed bool) {
	size := t.dims[d].size
	for _, s := range t.part {
		for w, way := range ways {
			t.hop[d][w][s] = -1
			to := t.next(t.grid.place[s], d, way)
			if to == free {
				continue
			}
			if u := t.at[to]; u != free {
				t.hop[d][w][s] = t.Between(s, uint16(u))
			}
			if t.hop[d][w][s] < 0 {
				t.whole = false
			}
		}
	}
	for w := range ways {
		hop, far := t.hop[d][w], t.free[d][w]
		for _, s := range t.part {
			far[s] = -1
		}
		for _, s := range t.part {
			// To the end, or once round; and back, with what is known from there.
			n, v := 0, s
			for ; n < size && hop[v] >= 0 && far[v] < 0; n++ {
				v = t.To[hop[v]]
			}
			if n == size {
				closed = true
				for range size {
					far[v] = int32(size)
					v = t.To[hop[v]]
				}
				continue
			}
			if far[v] < 0 {
				far[v] = 0
			}
			end := int(far[v])
			for v = s; n > 0; n-- {
				far[v] = int32(n + end)
				v = t.To[hop[v]]
			}
		}
	}
	return closed
}

// datelines is the number of dimensions that need a second virtual lane.
func (t *torus) datelines() (n int) {
	for _, b := range t.bit {
		if b >= 0 {
			n++
		}
	}
	return n
}

// turn says how a packet at v for d gets to its position in dimension k: the index of the
// way, the number of hops, whether they are all there, and whether the ring is closed. Of
// two ways that are as long, packets from d take the same, back.
func (t *torus) turn(v, d uint16, k int) (way, hops int, open, closed bool) {
	dim := t.dims[k]
	a, b := int(t.pos[v][k]), int(t.pos[d][k])
	up := b - a
	if !dim.ring {
		if up < 0 {
			return 1, -up, int(t.free[k][1][v]) >= -up, false
		}
		return 0, up, int(t.free[k][0][v]) >= up, false
	}
	if up < 0 {
		up += dim.size
	}
	down := dim.size - up
	closed = int(t.free[k][0][v]) == dim.size
	canUp, canDown := int(t.free[k][0][v]) >= up, int(t.free[k][1][v]) >= down
	if canUp == canDown {
		if up < down || up == down && t.prefersUp(v, d, k) {
			return 0, up, canUp, closed
		}
		return 1, down, canUp, closed
	}
	if canUp {
		return 0, up, true, closed
	}
	return 1, down, true, closed
}

// prefersUp tells packets that go half round the ring of a dimension which way to take.
// Both halves are to carry as much, and only positions count that packets have on the way
// back too when they turn here.
func (t *torus) prefersUp(v, d uint16, k int) bool {
	a, b := t.pos[v][k], t.pos[d][k]
	sum := min(a, b)
	for j := k + 1; j < len(t.dims); j++ {
		sum += t.pos[v][j] + t.pos[d][j]
	}
	return (sum%2 == 0) == (a < b)
}

// walked is what the order makes of a path.
type walked struct {
	// first is the first channel, -1 where it is missing.
	first int32
	// bits are the datelines that the path crosses, closed those of closed rings that it
	// comes through.
	bits, closed uint8
	hops         int32
	// open is false where something is missing on the way.
	open bool
}

// walk follows the order from v to d.
func (t *torus) walk(v, d uint16) walked {
	w := walked{first: -1, open: true}
	for k := range t.dims {
		a, b := int(t.pos[v][k]), int(t.pos[d][k])
		if a == b {
			continue
		}
		way, n, open, closed := t.turn(v, d, k)
		if w.hops == 0 {
			w.first = t.hop[k][way][v]
		}
		if !open {
			return walked{first: w.first}
		}
		w.hops += int32(n)
		if bit := t.bit[k]; bit >= 0 {
			if (way == 0) == (b < a) {
				w.bits |= 1 << bit
			}
			if closed {
				w.closed |= 1 << bit
			}
		}
		v = uint16(t.at[int(t.grid.place[v])+(b-a)*t.dims[k].stride])
	}
	return w
}

// layer is that of two switches whose paths both follow the order. In a closed ring it has
// to say whether a path crosses the dateline; two closed rings agree. In one that is open
// no circle can arise, so that it may say what the other needs.
func layer(there, back walked) uint8 { return there.bits&there.closed | back.bits&back.closed }
