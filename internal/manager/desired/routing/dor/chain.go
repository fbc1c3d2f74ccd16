package dor

// leastRing is the length of the shortest ring: of two switches a ring is a line.
const leastRing = 3

// chains puts the classes of one part of the graph in a row, for each dimension.
type chains struct {
	*cuts
	// root names the chain of a class; its channels begin at position begin of the chain
	// and end at position begin + step; by class, for both directions.
	root, begin, step []int32
	// classes are the classes of a chain, each in one direction; by root.
	classes map[int32][]int32
	// period is the length of the ring that a chain closes to; by root, 0 for a line.
	period map[int32]int32
	// channels are those of each class.
	channels map[int32][]int32
	// opposite is the channel of the same switch in the other direction of its
	// dimension, -1 where none is known.
	opposite []int32
}

// newChains joins classes that have so many switches in common at least.
func newChains(k *cuts, part []uint16, least int32) *chains {
	n := len(k.To)
	h := &chains{
		cuts: k, root: make([]int32, n), begin: make([]int32, n), step: make([]int32, n),
		classes: map[int32][]int32{}, period: map[int32]int32{}, channels: map[int32][]int32{},
		opposite: make([]int32, n),
	}
	for _, v := range part {
		for c := k.First[v]; c < k.First[v+1]; c++ {
			h.opposite[c] = -1
			class, back := k.class[c], k.reverse(k.class[c])
			if h.channels[class] == nil && class < back {
				h.root[class], h.begin[class], h.step[class] = class, 0, 1
				h.root[back], h.begin[back], h.step[back] = class, 1, -1
				h.classes[class] = []int32{class}
			}
			h.channels[class] = append(h.channels[class], c)
		}
	}
	for _, f := range k.follows(part) {
		if f.votes >= least {
			h.join(f)
		}
	}
	return h
}

// ends are the positions at which a channel begins and ends in its chain.
func (h *chains) ends(c int32) (root, from, to int32) {
	class := h.class[c]
	return h.root[class], h.begin[class], h.begin[class] + h.step[class]
}

// join makes two classes neighbours in a chain, unless what is known says no.
func (h *chains) join(f follow) {
	type junction struct{ in, out int32 }
	var at []junction
	for _, c := range h.channels[f.from] {
		v := h.To[c]
		for b := h.First[v]; b < h.First[v+1]; b++ {
			if h.class[b] == f.to && b != h.Back[c] {
				if h.opposite[h.Back[c]] >= 0 || h.opposite[b] >= 0 {
					return
				}
				at = append(at, junction{h.Back[c], b})
			}
		}
	}
	if len(at) == 0 || !h.merge(at[0].in, at[0].out) {
		return
	}
	for _, j := range at {
		h.opposite[j.in], h.opposite[j.out] = j.out, j.in
	}
}

// merge makes one chain of those of two channels that leave one switch in opposite
// directions. It reports false when the two contradict each other elsewhere.
func (h *chains) merge(in, out int32) bool {
	large, to, toEnd := h.ends(in)
	small, from, fromEnd := h.ends(out)
	if large == small {
		return h.close(large, to-from)
	}
	// In one chain one of the two leads up and the other down.
	sign := int32(1)
	if toEnd-to == fromEnd-from {
		sign = -1
	}
	if len(h.classes[large]) < len(h.classes[small]) {
		large, small, from, to = small, large, to, from
	}
	place := func(x int32) int32 { return to + sign*(x-from) }
	period := max(h.period[small], h.period[large])
	if a, b := h.period[small], h.period[large]; a != 0 && b != 0 && a != b {
		return false
	}
	for _, class := range h.classes[small] {
		for _, c := range h.channels[class] {
			_, begin, end := h.ends(c)
			step := sign * (end - begin)
			if !h.agrees(h.From[c], large, place(begin), step, &period) || !h.agrees(h.To[c], large, place(end), -step, &period) {
				return false
			}
		}
	}
	for _, class := range h.classes[small] {
		for _, x := range [2]int32{class, h.reverse(class)} {
			h.root[x], h.begin[x], h.step[x] = large, place(h.begin[x]), sign*h.step[x]
		}
	}
	h.classes[large] = append(h.classes[large], h.classes[small]...)
	delete(h.classes, small)
	delete(h.period, small)
	if period != 0 {
		h.period[large] = period
	}
	return true
}

// agrees reports whether a switch can be at a position of a chain and have a channel by
// that step there, as far as its channels in the chain say. Where they say a position
// further by a whole ring, that is its period.
func (h *chains) agrees(v uint16, root, at, step int32, period *int32) bool {
	for c := h.First[v]; c < h.First[v+1]; c++ {
		r, from, to := h.ends(c)
		if r != root {
			continue
		}
		if to-from == step {
			return false
		}
		if from == at {
			continue
		}
		d := max(from-at, at-from)
		if *period == 0 {
			*period = d
		}
		if d < leastRing || d%*period != 0 {
			return false
		}
	}
	return true
}

// close makes a ring of a chain whose positions differ by so much at one switch.
func (h *chains) close(root, d int32) bool {
	d = max(d, -d)
	if d == 0 {
		return true
	}
	if n := h.period[root]; n != 0 {
		return d%n == 0
	}
	if d < leastRing {
		return false
	}
	h.period[root] = d
	return true
}
