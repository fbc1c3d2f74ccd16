package dor

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// The classes of channels: hosts and the switch itself, dimensions without a dateline,
// and each dimension with one.
const (
	classEnd = iota
	classPlain
	classDateline
)

// class is that of a channel of t.
func (t *torus) class(c int32) uint8 {
	if b := t.bit[t.dim[c]]; b >= 0 {
		return uint8(classDateline + b)
	}
	return classPlain
}

// laneTable is the virtual lanes by class and layer.
func (e *engine) laneTable() [][][]ib.VL {
	classes := classDateline + e.bits
	layers := 1<<e.bits + e.extra
	byExit := make([][]ib.VL, classes)
	for class := range byExit {
		row := make([]ib.VL, layers)
		for layer := range row {
			switch {
			case class == classEnd:
			case layer >= 1<<e.bits:
				row[layer] = ib.VL(e.lanes + layer - 1<<e.bits)
			case class >= classDateline:
				row[layer] = ib.VL(layer >> (class - classDateline) & 1)
			}
		}
		byExit[class] = row
	}
	return slices.Repeat([][][]ib.VL{byExit}, classes)
}

// detours finds the paths that have to leave the order, and their layers.
func (e *engine) detours() error {
	if !slices.ContainsFunc(e.all, func(t *torus) bool { return !t.whole }) {
		return nil
	}
	class := make([]uint8, len(e.To))
	for _, t := range e.all {
		for c := range t.dim {
			class[c] = t.class(c)
		}
	}
	e.waits = graph.NewWaits(e.Channels, class, e.laneTable(), e.room.VLs)
	e.aside = make([][]detour, len(e.Nodes))
	for _, t := range e.all {
		t.ordered(e.waits)
		if t.whole {
			continue
		}
		b := newBypass(t)
		for _, d := range t.part {
			b.find(d)
			for _, v := range b.missed {
				e.aside[v] = append(e.aside[v], detour{to: d, exit: b.exit[v]})
			}
		}
	}
	for v, all := range e.aside {
		for i := range all {
			if err := e.enter(uint16(v), &all[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ordered enters what packets wait for that follow the order, in all layers.
func (t *torus) ordered(w *graph.Waits) {
	for _, s := range t.part {
		for into := t.First[s]; into < t.First[s+1]; into++ {
			in := t.Back[into]
			for out := t.First[s]; out < t.First[s+1]; out++ {
				d, x := t.dim[in], t.dim[out]
				switch {
				case d == x && out != into:
					t.straight(w, in, out, d)
				case d < x:
					for lane := range t.lanes(d) {
						for next := range t.lanes(x) {
							w.Add(in, lane, out, next)
						}
					}
				}
			}
		}
	}
}

// lanes is the number of lanes that packets that follow the order take in a dimension.
func (t *torus) lanes(d int) ib.VL {
	if t.bit[d] >= 0 {
		return 2
	}
	return 1
}

// straight enters what packets wait for that go on in a dimension. Where a ring is closed,
// those in the second lane cross its dateline, those in the first do not, and no packet
// goes further than half round.
func (t *torus) straight(w *graph.Waits, in, out int32, d int) {
	switch {
	case t.open(t.To[in], d):
		for lane := range t.lanes(d) {
			w.Add(in, lane, out, lane)
		}
	case t.bit[d] >= 0:
		if t.crosses[in] == 0 && t.crosses[out] == 0 {
			w.Add(in, 0, out, 0)
		}
		if t.nearDateline(in, out, d) {
			w.Add(in, 1, out, 1)
		}
	}
}

// open reports whether the ring of a switch in a dimension has a gap.
func (t *torus) open(s uint16, d int) bool { return int(t.free[d][0][s]) < t.dims[d].size }

// nearDateline reports whether a packet that crosses the dateline of a closed ring can
// take two channels that follow each other: its way has half the length of the ring, so
// it is at most so far from there.
func (t *torus) nearDateline(in, out int32, d int) bool {
	size := t.dims[d].size
	up := t.hop[d][0][t.From[in]] == in
	// The number of channels from the dateline's to this one, up to half the ring on
	// either side.
	distance := func(c int32) int {
		at := int(t.pos[t.From[c]][d])
		if !up {
			at = size - 1 - at
		}
		x := (at + 1) % size
		if x > size/2 {
			x -= size
		}
		return x
	}
	a, b, most := distance(in), distance(out), size/2-1
	return a < b && a >= -most && b <= most
}

// bypass finds, for one destination, the paths that leave the order.
type bypass struct {
	*torus
	// missed are the switches whose way by the order is not open.
	missed []uint16
	// exit is the channel that a switch takes, hops the length of its path; settled says
	// that they are known. By switch.
	exit    []int32
	hops    []int32
	settled []bool
}

func newBypass(t *torus) *bypass {
	n := len(t.Nodes)
	return &bypass{torus: t, exit: make([]int32, n), hops: make([]int32, n), settled: make([]bool, n)}
}

// find finds the paths to d.
func (b *bypass) find(d uint16) {
	b.missed = b.missed[:0]
	for _, v := range b.part {
		w := b.walk(v, d)
		b.exit[v], b.hops[v], b.settled[v] = w.first, w.hops, w.open
		if !w.open {
			b.missed = append(b.missed, v)
		}
	}
	left := slices.Clone(b.missed)
	for len(left) > 0 {
		b.follow(left)
		left = slices.DeleteFunc(left, func(v uint16) bool { return b.settled[v] })
		if len(left) > 0 && !b.step(left, d, true) && !b.step(left, d, false) {
			return // what is left is not connected with d
		}
		left = slices.DeleteFunc(left, func(v uint16) bool { return b.settled[v] })
	}
}

// follow settles the switches that come by the order to one that is settled.
func (b *bypass) follow(left []uint16) {
	for again := true; again; {
		again = false
		for _, v := range left {
			if c := b.exit[v]; !b.settled[v] && c >= 0 && b.settled[b.To[c]] {
				b.settled[v], b.hops[v], again = true, b.hops[b.To[c]]+1, true
			}
		}
	}
}

// step settles the switches that stand next to one that is settled: those that cannot
// follow the order at all, or whichever there are. It reports whether there was one.
func (b *bypass) step(left []uint16, d uint16, stuck bool) bool {
	type choice struct {
		v    uint16
		exit int32
	}
	var found []choice
	for _, v := range left {
		if stuck && b.exit[v] >= 0 {
			continue
		}
		best := int32(-1)
		for c := b.First[v]; c < b.First[v+1]; c++ {
			if b.settled[b.To[c]] && (best < 0 || b.better(c, best, d)) {
				best = c
			}
		}
		if best >= 0 {
			found = append(found, choice{v, best})
		}
	}
	for _, f := range found {
		b.settled[f.v], b.exit[f.v] = true, f.exit
		b.hops[f.v] = b.hops[b.To[f.exit]] + 1
	}
	return len(found) > 0
}

// better reports whether a step aside by c is better than by best: the shorter one, and
// then by turns, so that they share the load.
func (b *bypass) better(c, best int32, d uint16) bool {
	if x, y := b.hops[b.To[c]], b.hops[b.To[best]]; x != y {
		return x < y
	}
	return b.dim[c] > b.dim[best] || b.dim[c] == b.dim[best] && b.place[d]%2 == 1
}

// enter gives two switches their layer, where the path from v leaves the order.
func (e *engine) enter(v uint16, a *detour) error {
	if _, layer, ordered := e.exit(a.to, v); !ordered && a.to < v {
		a.layer = layer // that was found for the way back
		return nil
	}
	there, bits := e.path(nil, v, a.to)
	home, bits2 := e.path(nil, a.to, v)
	layers := []uint8{bits, bits2, bits | bits2}
	for i := range e.extra {
		layers = append(layers, uint8(1<<e.bits+i))
	}
	for _, x := range layers {
		if e.waits.Take(x, there, home) {
			a.layer = x
			e.used = max(e.used, int(x)+1-1<<e.bits)
			return nil
		}
	}
	return fmt.Errorf("too much of the torus or mesh of %s is missing: packets between %s and %s have to leave the order of dimensions, and can then wait for each other in a circle in each of the %d virtual lanes",
		e.tori[v], e.Nodes[v].Name(), e.Nodes[a.to].Name(), e.room.VLs)
}

// path appends the channels from v to d to path, and returns the datelines that they cross.
func (e *engine) path(path []int32, v, d uint16) ([]int32, uint8) {
	bits := uint8(0)
	for v != d {
		c, _, _ := e.exit(v, d)
		path = append(path, c)
		bits |= e.tori[v].crosses[c]
		v = e.To[c]
	}
	return path, bits
}
