package ftree

import (
	"cmp"
	"fmt"
	"slices"
)

const (
	// maxTries is the number of ways to tell leaves from other switches with CAs that
	// are tried.
	maxTries = 16
	// maxLifts is the number of times that switches next to others of their level are
	// lifted.
	maxLifts = 8
	// A graph is no tree when one in oddShare of its cables joins switches of one
	// level, or one in farShare of the pairs of leaves has no way up and down.
	oddShare = 8
	farShare = 4
)

// findLevels gives every switch its level. Leaves are the switches with at least so many
// CAs that the fewest cables join switches of one level: a spine with a CA of its own is
// none.
func (t *tree) findLevels() {
	n := len(t.Nodes)
	seen := make([]bool, n)
	dist, best := make([]uint16, n), make([]uint16, n)
	var queue []uint16
	for s := range n {
		if seen[s] {
			continue
		}
		queue = t.Distances(dist, queue, uint16(s))
		island := slices.Clone(queue)
		for _, x := range island {
			seen[x] = true
		}
		fewest := -1
		for _, leaves := range t.leafSets(island) {
			queue = t.Distances(dist, queue, leaves...)
			if level := t.levelCables(island, dist); fewest < 0 || level < fewest {
				fewest = level
				copy(best, dist)
			}
			if fewest == 0 {
				break
			}
		}
		for _, x := range island {
			t.level[x] = best[x]
		}
		if fewest > 0 {
			t.sumDistances(island)
			t.lift(island)
		}
	}
}

// leafSets are sets of switches that may be the leaves of an island, the largest first.
func (t *tree) leafSets(island []uint16) [][]uint16 {
	var counts []uint32
	for _, s := range island {
		if t.Hosts[s] > 0 {
			counts = append(counts, t.Hosts[s])
		}
	}
	if len(counts) == 0 {
		return [][]uint16{t.narrowest(island)}
	}
	slices.Sort(counts)
	counts = slices.Compact(counts)
	var out [][]uint16
	tries := min(len(counts), maxTries)
	for i := range tries {
		atLeast := counts[i*len(counts)/tries]
		var leaves []uint16
		for _, s := range island {
			if t.Hosts[s] >= atLeast {
				leaves = append(leaves, s)
			}
		}
		out = append(out, leaves)
	}
	return out
}

// narrowest are the switches with the fewest neighbours.
func (t *tree) narrowest(island []uint16) (out []uint16) {
	fewest := len(t.to) + 1
	for _, s := range island {
		n := len(t.neighbours(s))
		if n < fewest {
			fewest, out = n, out[:0]
		}
		if n == fewest {
			out = append(out, s)
		}
	}
	return out
}

// levelCables counts the cables between switches of one level.
func (t *tree) levelCables(island []uint16, level []uint16) int {
	count := 0
	for _, s := range island {
		for l := t.First[s]; l < t.First[s+1]; l++ {
			if level[t.To[l]] == level[s] {
				count++
			}
		}
	}
	return count / 2
}

// sumDistances fills remote. All leaves spread at once, hop by hop.
func (t *tree) sumDistances(island []uint16) {
	var leaves []uint16
	for _, s := range island {
		if t.Hosts[s] > 0 {
			leaves = append(leaves, s)
		}
	}
	words := (len(leaves) + 63) / 64
	place := make([]int, len(t.Nodes))
	for i, s := range island {
		place[s] = i * words
	}
	seen, last, next := make(set, len(island)*words), make(set, len(island)*words), make(set, len(island)*words)
	for i, s := range leaves {
		last[place[s]:].add(i)
		seen[place[s]:].add(i)
	}
	for hop := uint64(1); ; hop++ {
		grown := false
		for _, s := range island {
			at := place[s]
			to, known := next[at:at+words], seen[at:at+words]
			clear(to)
			for _, x := range t.neighbours(s) {
				for w, bits := range last[place[x] : place[x]+words] {
					to[w] |= bits
				}
			}
			for w := range to {
				to[w] &^= known[w]
				known[w] |= to[w]
			}
			to.each(func(i int) {
				t.remote[s] += hop * uint64(t.Hosts[leaves[i]])
				grown = true
			})
		}
		last, next = next, last
		if !grown {
			return
		}
	}
}

// lift puts a switch above its neighbours of the same level that are farther from all CAs
// than it is, where these are more than what is below it: the cores of a tree, of which
// some have a leaf of their own.
func (t *tree) lift(island []uint16) {
	for range maxLifts {
		var lifted []uint16
		for _, s := range island {
			balance := 0
			for p := t.first[s]; p < t.first[s+1]; p++ {
				x := t.to[p]
				switch {
				case t.level[x] == t.level[s] && t.remote[x] > t.remote[s]:
					balance += t.cables(p)
				case t.level[x]+1 == t.level[s]:
					balance -= t.cables(p)
				}
			}
			if balance > 0 && t.level[s] > 0 {
				lifted = append(lifted, s)
			}
		}
		if len(lifted) == 0 {
			return
		}
		for _, s := range lifted {
			t.level[s]++
		}
	}
}

// compare orders switches from the highest to the lowest.
func (t *tree) compare(a, b uint16) int {
	return cmp.Or(cmp.Compare(t.level[b], t.level[a]), cmp.Compare(t.remote[a], t.remote[b]), cmp.Compare(a, b))
}

// isAbove reports whether a stands above b.
func (t *tree) isAbove(a, b uint16) bool { return t.compare(a, b) < 0 }

// isOdd reports whether a link does not lead to an adjacent level.
func (t *tree) isOdd(s uint16, l int32) bool {
	a, b := t.level[s], t.level[t.To[l]]
	return a+1 != b && b+1 != a
}

// oddCables counts the cables that do not join adjacent levels, and names one.
func (t *tree) oddCables() (count int, example string) {
	for s := range t.Nodes {
		for l := t.First[s]; l < t.First[s+1]; l++ {
			if int(t.To[l]) < s || !t.isOdd(uint16(s), l) {
				continue
			}
			if count++; count == 1 {
				far := t.To[l]
				example = fmt.Sprintf("from %s port %d at level %d to %s port %d at level %d",
					t.Nodes[s].Name(), t.Port[l], t.level[s], t.Nodes[far].Name(), t.Port[t.Back[l]], t.level[far])
			}
		}
	}
	return count, example
}

// checkCables fails when the cables are not those of a tree. Those that pass over levels
// count half of those between switches of one level.
func (t *tree) checkCables() error {
	odd, example := t.oddCables()
	within := 0
	for s := range t.Nodes {
		for l := t.First[s]; l < t.First[s+1]; l++ {
			if t.level[s] == t.level[t.To[l]] {
				within++
			}
		}
	}
	if (odd+within/2)*oddShare > len(t.To) {
		return fmt.Errorf("no fat tree: %d of %d cables between switches join switches of one level, and %d others do not join adjacent levels, for example %s; at most one in %d is expected, or twice as many that pass over a level",
			within/2, len(t.To)/2, odd-within/2, example, oddShare)
	}
	return nil
}

// isLeaf reports whether a switch has CAs and nothing below it.
func (t *tree) isLeaf(s uint16) bool { return t.level[s] == 0 && t.Hosts[s] > 0 }

// farLeaves counts the ordered pairs of leaves whose way is longer than up to the top and
// down, and all that are connected, and names a pair that is far.
func (t *tree) farLeaves(r *reach) (far, all int, example string) {
	leaves := make(set, r.words)
	top := uint16(0)
	for s := range t.Nodes {
		top = max(top, t.level[s])
		if t.isLeaf(uint16(s)) {
			leaves.add(int(r.bit[s]))
		}
	}
	for s := range t.Nodes {
		if !t.isLeaf(uint16(s)) {
			continue
		}
		for hops, l := range r.all[s] {
			for w, bits := range l.bits {
				n := count(bits & leaves[l.from+w])
				all += n
				if n == 0 || hops <= 2*int(top) {
					continue
				}
				if far += n; example == "" {
					to := r.at[(l.from+w)*64+lowest(bits&leaves[l.from+w])]
					example = fmt.Sprintf("%s reaches %s in %d hops", t.Nodes[s].Name(), t.Nodes[to].Name(), hops)
				}
			}
		}
		all-- // itself
	}
	return far, all, example
}

// checkWays fails when the ways between leaves are not those of a tree.
func (t *tree) checkWays(r *reach) error {
	if far, all, example := t.farLeaves(r); far*farShare > all {
		return fmt.Errorf("no fat tree: %d of %d pairs of switches with CAs have no way up and down again: %s; at most one in %d is expected",
			far, all, example, farShare)
	}
	return nil
}

// notes say what was seen.
func (t *tree) notes(r *reach) []string {
	var sizes []int
	for s := range t.Nodes {
		for len(sizes) <= int(t.level[s]) {
			sizes = append(sizes, 0)
		}
		sizes[t.level[s]]++
	}
	text := fmt.Sprintf("fat tree of %d levels; switches from the lowest up:", len(sizes))
	for i, n := range sizes {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d", n)
	}
	out := []string{text}
	if odd, example := t.oddCables(); odd > 0 {
		out = append(out, fmt.Sprintf("fat tree: %d of %d cables between switches do not join adjacent levels, for example %s", odd, len(t.To)/2, example))
	}
	if far, all, example := t.farLeaves(r); far > 0 {
		out = append(out, fmt.Sprintf("fat tree: %d of %d pairs of switches with CAs have no way up and down again, and take a longer one: %s", far, all, example))
	}
	if empty, all := t.emptySlots(); empty > 0 {
		out = append(out, fmt.Sprintf("fat tree: %d of %d cables up that switches of the same place have are missing", empty, all))
	}
	return out
}
