package dragonfly

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// layers finds the layer of every two switches one of whose paths has another form.
func (e *engine) layers() error {
	w := graph.NewWaits(e.Channels, e.class, e.laneTable(), e.room.VLs)
	e.regular(w)
	e.layer = make([][]uint8, len(e.Nodes))
	for v := range e.layer {
		e.layer[v] = make([]uint8, len(e.Nodes))
	}
	for d := range e.Nodes {
		for v := range d {
			there, back := &e.toward[d], &e.toward[v]
			if there.far[v] == unset || there.regular[v] && back.regular[d] {
				continue
			}
			e.others++
			paths := e.paths(e.paths(nil, nil, uint16(v), uint16(d)), nil, uint16(d), uint16(v))
			layer := 0
			for layer <= e.extra && !w.Take(uint8(layer), paths...) {
				layer++
			}
			if layer > e.extra {
				return fmt.Errorf("too much of the dragonfly is missing: packets between %s and %s can wait for each other in a circle in each of the %d virtual lanes",
					e.Nodes[v].Name(), e.Nodes[d].Name(), e.room.VLs)
			}
			e.layer[v][d], e.layer[d][v] = uint8(layer), uint8(layer)
			e.used = max(e.used, layer)
		}
	}
	return nil
}

// regular enters what packets wait for on the paths that need no check.
func (e *engine) regular(w *graph.Waits) {
	for s := range e.Nodes {
		v := uint16(s)
		for into := e.First[s]; into < e.First[s+1]; into++ {
			in := e.Back[into]
			for out := e.First[s]; out < e.First[s+1]; out++ {
				if in == e.Back[out] {
					continue
				}
				switch global := e.class[in] == classGlobal; {
				case !e.plus && global && e.class[out] == classLocal:
					w.Add(in, 0, out, 1)
				case !e.plus && !global && e.class[out] == classGlobal:
					w.Add(in, 0, out, 0)
				case e.plus:
					e.regularPlus(w, v, in, out)
				}
			}
		}
	}
}

// regularPlus does so for two channels that follow each other at v in a dragonfly+.
func (e *engine) regularPlus(w *graph.Waits, v uint16, in, out int32) {
	from, to := e.From[in], e.To[out]
	if e.class[in] == classLocal && e.spine[from] == e.spine[v] || e.class[out] == classLocal && e.spine[v] == e.spine[to] {
		return
	}
	local := e.class[out] == classLocal
	switch {
	case !e.spine[v]:
		// A leaf is passed from a spine to a spine only.
		switch v {
		case e.last[e.group[v]]:
			w.Add(in, 0, out, 1)
			w.Add(in, 1, out, 1)
		case e.first[e.group[v]]:
			w.Add(in, 0, out, 1)
		}
	case e.class[in] == classGlobal && local:
		w.Add(in, 0, out, 1)
	case e.class[in] == classLocal && local:
		w.Add(in, 0, out, 1)
	case e.class[in] == classLocal:
		w.Add(in, 0, out, 0)
		if from == e.first[e.group[v]] {
			w.Add(in, 1, out, 0)
		}
	}
}

// paths appends all paths that LIDs of d can take from v, each after the channels of
// begun, which it may use.
func (e *engine) paths(out [][]int32, begun []int32, v, d uint16) [][]int32 {
	var few [8]int32
	for v != d {
		exits := e.exits(few[:0], &e.toward[d], v, d)
		for _, c := range exits[1:] {
			out = e.paths(out, append(slices.Clone(begun), c), e.To[c], d)
		}
		begun = append(begun, exits[0])
		v = e.To[exits[0]]
	}
	return append(out, begun)
}
