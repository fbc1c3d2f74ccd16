package ftree

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

const (
	// maxSlots bounds the exits up that a switch is taken to have had: a slot is a byte,
	// and ports are fewer.
	maxSlots = 250
	// A switch is one of a family when it has ownShare of familyShare of its parents.
	ownShare, familyShare = 1, 2
	// maxDivisor bounds the product of parents: numbers are smaller.
	maxDivisor = 1 << 20
	// modalShare: all but one in so many leaves have no more CAs than are numbered in
	// turn.
	modalShare = 10
)

// slots are the exits up of a switch: those that it has and those that its siblings have
// and it has lost.
type slots struct {
	// pair and port say where a slot leads, by number; pair is -1 and port 0 where the
	// cable is missing.
	pair []int32
	port []uint8
	// filled are the ports that are there.
	filled []uint8
	// parents is the number of switches that the slots lead to, cables how many a child
	// has of this switch at most.
	parents, cables uint32
	// divisor is the product of the parents of the levels below, under that of the level
	// below without its own.
	divisor, under uint32
	class          int
}

// entry is a LID and its number.
type entry struct {
	lid    ib.LID
	number uint32
	// first is the entry of the port's first LID.
	first int32
	// narrow reports whether its leaf has lost the cable that it would come by, and not the others
	// of the same pair: the switch above does not show that.
	narrow bool
	// extra reports whether it is not numbered leaf by leaf.
	extra bool
}

// number finds the slots of every switch and numbers all LIDs.
func (t *tree) number() {
	n := len(t.Nodes)
	t.slots = make([]slots, n)
	byLevel := make([]uint16, n)
	for s := range byLevel {
		byLevel[s] = uint16(s)
	}
	sortBy(byLevel, func(s uint16) int { return int(t.level[s]) })
	families := t.families()
	t.rankSwitches(byLevel, families)
	for _, s := range byLevel {
		up := &t.slots[s]
		for p := t.first[s]; p < t.first[s+1]; p++ {
			if x := t.to[p]; t.level[x] < t.level[s] {
				up.cables = max(up.cables, uint32(t.cables(p)))
			}
		}
	}
	columns := t.columnsOf(families, byLevel)
	for _, s := range byLevel {
		t.findSlots(s, columns)
	}
	t.placeSwitches()
	t.numberLIDs()
}

// family is the switches that share parents, directly or by others, and these parents.
type family struct {
	of      []int32 // by switch: its family as a child
	parents [][]uint16
}

// families joins switches that have a parent in common.
func (t *tree) families() family {
	n := len(t.Nodes)
	u := newUnion(2 * n) // as child, as parent
	for s := range n {
		for _, x := range t.neighbours(uint16(s)) {
			if t.level[x] > t.level[s] {
				u.join(int32(s), int32(n)+int32(x))
			}
		}
	}
	f := family{of: make([]int32, n), parents: make([][]uint16, 2*n)}
	for s := range n {
		f.of[s] = u.root(int32(s))
		if root := u.root(int32(n + s)); root != int32(n+s) { // smaller: of a child
			f.parents[root] = append(f.parents[root], uint16(s))
		}
	}
	return f
}

// rankSwitches orders the switches of each level so that those which lead to the same
// parents follow each other, in the same order in every pod.
func (t *tree) rankSwitches(byLevel []uint16, f family) {
	n := len(t.Nodes)
	t.rank = make([]int32, n)
	over := make([]int32, n)
	for end := n; end > 0; {
		start := end
		for start > 0 && t.level[byLevel[start-1]] == t.level[byLevel[end-1]] {
			start--
		}
		same := slices.Clone(byLevel[start:end])
		for _, s := range same {
			over[s] = int32(n)
			for _, x := range f.parents[f.of[s]] {
				over[s] = min(over[s], t.rank[x])
			}
		}
		slices.SortFunc(same, func(a, b uint16) int {
			return cmp.Or(cmp.Compare(over[a], over[b]), cmp.Compare(a, b))
		})
		for i, s := range same {
			t.rank[s] = int32(start + i)
		}
		end = start
	}
	for i := range f.parents {
		slices.SortFunc(f.parents[i], func(a, b uint16) int { return cmp.Compare(t.rank[a], t.rank[b]) })
	}
}

// findSlots fills slots[s]. Those of lower levels are there.
func (t *tree) findSlots(s uint16, c *columns) {
	up := &t.slots[s]
	up.divisor, up.under, up.class = 1, 1, -1
	own := map[int32]int32{}
	var mine []int32
	for p := t.first[s]; p < t.first[s+1]; p++ {
		x := t.to[p]
		if t.level[x] > t.level[s] {
			own[int32(x)] = p
			mine = append(mine, int32(x))
		}
		if low := &t.slots[x]; t.level[x] < t.level[s] && low.divisor*low.parents > up.divisor {
			up.divisor, up.under = min(low.divisor*low.parents, maxDivisor), low.divisor
		}
	}
	if len(mine) == 0 {
		return
	}
	parents, gone := c.placed(c.f.of[s])
	whole, total := true, 0
	cables := func(x int32) int {
		switch {
		case x == noParent:
			return gone
		case whole:
			return int(t.slots[x].cables)
		default:
			return t.cables(own[x])
		}
	}
	for _, x := range parents {
		total += cables(x)
	}
	if total > maxSlots || len(mine)*familyShare < len(parents)*ownShare {
		whole, parents = false, mine
		sortBy(parents, func(x int32) int { return int(t.rank[x]) })
	}
	up.parents = uint32(len(parents))
	for round, more := 0, true; more; round++ {
		more = false
		for _, x := range parents {
			want := cables(x)
			if round >= want {
				continue
			}
			more = true
			pair, have := own[x]
			port := uint8(0)
			if have {
				port = t.cableOf(pair, round, want)
			}
			if port == 0 {
				pair = -1
			} else {
				up.filled = append(up.filled, port)
			}
			up.pair, up.port = append(up.pair, pair), append(up.port, port)
		}
	}
}

// cableOf returns the exit of a pair that is number i of the count that there should be,
// 0 if it is missing. Which is which follows from the port numbers where they are
// consecutive.
func (t *tree) cableOf(pair int32, i, count int) uint8 {
	exits := t.exits(pair)
	var seen [maxSlots + 6]bool
	for _, port := range exits {
		if seen[int(port)%count] { // not consecutive
			if i < len(exits) {
				return exits[i]
			}
			return 0
		}
		seen[int(port)%count] = true
	}
	for _, port := range exits {
		if int(port)%count == i {
			return port
		}
	}
	return 0
}

// emptySlots counts the exits up that are missing, and all.
func (t *tree) emptySlots() (empty, all int) {
	for s := range t.slots {
		up := &t.slots[s]
		all += len(up.port)
		empty += len(up.port) - len(up.filled)
	}
	return empty, all
}

// numberLIDs numbers the LIDs: those of CAs at leaves leaf by leaf, as many at each; then
// what a leaf has beyond, and CAs at other switches; those of switches for themselves.
func (t *tree) numberLIDs() {
	var order []uint16
	places := uint32(0)
	for s := range t.Nodes {
		if t.isLeaf(uint16(s)) {
			order = append(order, uint16(s))
			places = max(places, t.place[s]+1)
		}
	}
	sortBy(order, func(s uint16) int { return int(t.place[s]) })
	stride := uint32(t.stride(order))
	extra := places * stride
	extras := extra
	for s := range t.Nodes {
		if !t.isLeaf(uint16(s)) {
			order = append(order, uint16(s))
		}
	}
	numbers := make([]uint32, len(t.Ends))
	var taken []bool
	for _, s := range order {
		start := t.EndFirst[s]
		taken = append(taken[:0], make([]bool, stride)...)
		ends := make([]int32, 0, len(t.EndsOf(s)))
		for j := range t.EndsOf(s) {
			ends = append(ends, start+int32(j))
		}
		sortBy(ends, func(e int32) int { return int(t.Ends[e].Port) })
		for _, e := range ends {
			port := int(t.Ends[e].Port)
			if port == 0 {
				numbers[e] = t.numberOf(s)
				continue
			}
			at, free := 0, false
			if t.isLeaf(s) {
				at, free = freePlace(taken, port)
			}
			if free {
				numbers[e] = t.place[s]*stride + uint32(at)
				continue
			}
			numbers[e] = extras
			extras++
		}
	}
	t.enterLIDs(numbers, extra)
}

// numberOf is the number of a switch itself: what does not change when others come and go.
func (t *tree) numberOf(s uint16) uint32 {
	if t.isLeaf(s) {
		return t.place[s]
	}
	guid := uint64(t.Nodes[s].GUID())
	return mixed(uint32(guid)^uint32(guid>>32)) >> 8
}

// freePlace takes place want modulo the number of places, or the next that is free.
func freePlace(taken []bool, want int) (int, bool) {
	for i := range taken {
		if at := (want + i) % len(taken); !taken[at] {
			taken[at] = true
			return at, true
		}
	}
	return 0, false
}

// enterLIDs lists the LIDs of all ends, whose numbers are those of leaves below extra.
func (t *tree) enterLIDs(numbers []uint32, extra uint32) {
	t.entryFirst = make([]int32, 1, len(t.Nodes)+1)
	for s := range t.Nodes {
		for e := t.EndFirst[s]; e < t.EndFirst[s+1]; e++ {
			first := int32(len(t.entries))
			for i := range t.Ends[e].LMC.Count() {
				l := entry{lid: t.Ends[e].LID + ib.LID(i), number: numbers[e] + uint32(i), first: first, extra: numbers[e] >= extra}
				l.narrow = !l.extra && t.isNarrow(uint16(s), l.number)
				t.entries = append(t.entries, l)
			}
		}
		t.entryFirst = append(t.entryFirst, int32(len(t.entries)))
	}
}

// isNarrow reports whether the cable by which a number would come to a leaf is missing in a
// pair that has others.
func (t *tree) isNarrow(s uint16, number uint32) bool {
	up := &t.slots[s]
	if !t.isLeaf(s) || len(up.filled) == len(up.port) {
		return false
	}
	slot := number % uint32(len(up.port))
	if up.port[slot] != 0 {
		return false
	}
	for i := slot % up.parents; i < uint32(len(up.port)); i += up.parents {
		if up.port[i] != 0 {
			return true
		}
	}
	return false
}

// stride is how many CAs are numbered at each leaf in turn: as many as almost all have at
// most; where that is more than a leaf has exits up, a multiple of these.
func (t *tree) stride(leaves []uint16) int {
	if len(leaves) == 0 {
		return 0
	}
	var counts, exits []int
	for _, s := range leaves {
		counts = append(counts, int(t.Hosts[s]))
		exits = append(exits, len(t.slots[s].port))
	}
	slices.Sort(counts)
	slices.Sort(exits)
	hosts, width := counts[len(counts)-1-len(counts)/modalShare], exits[len(exits)/2]
	if width > 0 && hosts > width {
		return hosts - hosts%width
	}
	return hosts
}
