package ftree

import (
	"cmp"
	"slices"
)

// Leaves are numbered leaf by leaf in a pod, and pod by pod. A leaf stands in its pod, and a
// pod among the others, where the cables from above to it stand among the ports, so that one
// that is gone leaves its place free.

// pods is the parts that a tree falls into without its higher switches. They are named by
// their least switch.
type pods struct {
	t       *tree
	parts   *union
	members [][]uint16
	size    []uint32 // the number of places for leaves
}

// placeSwitches fills place: that of a leaf is its own, that of others the first below them.
func (t *tree) placeSwitches() {
	n := len(t.Nodes)
	t.place = make([]uint32, n)
	p := &pods{t: t, members: make([][]uint16, n), size: make([]uint32, n), parts: newUnion(n)}
	top := uint16(0)
	for s := range n {
		p.members[s] = []uint16{uint16(s)}
		top = max(top, t.level[s])
		if t.isLeaf(uint16(s)) {
			p.size[s] = 1
		}
	}
	for level := range top + 1 {
		p.join(level, level == top)
	}
	start := uint32(0)
	for root := range n { // what no cables join follows one another
		if p.parts.root(int32(root)) == int32(root) {
			p.move(int32(root), start)
			start += p.size[root]
		}
	}
}

// move adds to the places of a part.
func (p *pods) move(part int32, by uint32) {
	for _, s := range p.members[part] {
		p.t.place[s] += by
	}
}

// join makes parts with the switches of one more level.
func (p *pods) join(level uint16, top bool) {
	n := len(p.t.Nodes)
	next, leads, step := p.lead(level)
	groups, width := map[int32][]int32{}, 0
	for root := range n {
		if p.parts.root(int32(root)) == int32(root) && p.size[root] > 0 {
			to := next.root(int32(root))
			groups[to] = append(groups[to], int32(root))
			width = max(width, len(groups[to]))
		}
	}
	for to, parts := range groups { // they share nothing
		at, span := standing(portsOf(parts, leads, step), width, top)
		p.size[to] = p.arrange(parts, at, span)
	}
	for root := range n {
		if to := next.root(int32(root)); p.parts.root(int32(root)) == int32(root) && to != int32(root) {
			p.members[to] = append(p.members[to], p.members[root]...)
			p.members[root] = nil
		}
	}
	p.parts = next
}

// portsOf are the places of parts by their ports, all 0 where these tell nothing.
func portsOf(parts []int32, leads map[int32]*ports, step int) []int {
	at := make([]int, len(parts))
	var agreed agreement
	for i, part := range parts {
		if leads[part] != nil {
			at[i] = (leads[part].most() - 1) / step
			agreed.add(leads[part])
		}
	}
	if !agreed.tells() {
		clear(at)
	}
	return at
}

// lead joins parts by the switches of a level. It counts the lowest ports of the cables of
// these to each part, and tells how far the ports to one part and to the next are from each
// other.
func (p *pods) lead(level uint16) (next *union, leads map[int32]*ports, step int) {
	t := p.t
	next, leads = &union{slices.Clone(p.parts.parent)}, map[int32]*ports{}
	var steps ports
	for s := range t.Nodes {
		if t.level[s] != level {
			continue
		}
		for pair := t.first[s]; pair < t.first[s+1]; pair++ {
			x := t.to[pair]
			if t.level[x] > level {
				continue
			}
			next.join(int32(s), int32(x))
			if t.level[x] == level {
				continue
			}
			part, exits := p.parts.root(int32(x)), t.exits(pair)
			if leads[part] == nil {
				leads[part] = new(ports)
			}
			leads[part][exits[0]]++
			if len(exits) == 1 || exits[1] != exits[0]+1 {
				steps[1]++
			} else {
				steps[len(exits)]++
			}
		}
	}
	return next, leads, max(1, steps.most())
}

// standing turns the places that ports give to parts into those that they take, of span:
// below the number of the parts in the widest pod, but at the top; one after the other where
// ports do not tell the parts apart.
func standing(at []int, width int, top bool) (taken []int, span int) {
	sorted := slices.Sorted(slices.Values(at))
	if len(slices.Compact(slices.Clone(sorted))) < len(at) {
		for i := range at {
			at[i] = i
		}
		return at, len(at)
	}
	taken = slices.Clone(at)
	switch last := sorted[len(sorted)-1]; {
	case top && last < 2*len(at):
		return at, last + 1
	case !top && mayBeGone(width-len(at), width):
		for i := range taken {
			taken[i] %= width
		}
		if len(slices.Compact(slices.Sorted(slices.Values(taken)))) == len(at) {
			return taken, width
		}
	}
	for i := range at {
		taken[i], _ = slices.BinarySearch(sorted, at[i])
	}
	return taken, len(at)
}

// arrange moves parts to their places, of span, in the part that they become, and returns
// the size of that. A place that is free has the size that most parts have.
func (p *pods) arrange(parts []int32, at []int, span int) (size uint32) {
	counts := map[uint32]int{}
	usual := uint32(0)
	for _, part := range parts {
		own := p.size[part]
		counts[own]++
		if cmp.Or(cmp.Compare(counts[own], counts[usual]), cmp.Compare(own, usual)) > 0 {
			usual = own
		}
	}
	sizes := slices.Repeat([]uint32{usual}, span)
	for i, part := range parts {
		sizes[at[i]] = p.size[part]
	}
	starts := make([]uint32, len(sizes))
	for i, own := range sizes {
		starts[i] = size
		size += own
	}
	for i, part := range parts {
		p.move(part, starts[at[i]])
	}
	return size
}
