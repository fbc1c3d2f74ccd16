package ftree

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// maxSpread is the number of slots that what lost its own tries with steps between them.
const maxSpread = 8

// filler writes the tables, one switch after the other.
type filler struct {
	t *tree
	r *reach
	// slot holds, for every kind of switch, the slot of each entry.
	slot [][]uint8
	// For the switch at hand: the destinations that each pair leads to by a shortest way,
	// those that one pair alone does, those that more do, and those that all pairs up do
	// and none else.
	leads                  []set
	some, more, whole, low set
	// Storage.
	ports []uint8
	pairs []int32
}

func newFiller(t *tree, r *reach) *filler {
	f := &filler{t: t, r: r}
	classes := map[[2]uint32]int{}
	for s := range t.slots {
		up := &t.slots[s]
		width := uint32(len(up.port))
		if width == 0 {
			continue
		}
		class, known := classes[[2]uint32{up.divisor, width}]
		if !known {
			class = len(f.slot)
			classes[[2]uint32{up.divisor, width}] = class
			all := make([]uint8, len(t.entries))
			for i, e := range t.entries {
				all[i] = uint8(e.number / up.divisor % width)
			}
			f.slot = append(f.slot, all)
		}
		up.class = class
	}
	return f
}

// another is a filler with sets and storage of its own.
func (f *filler) another() *filler {
	words := f.r.words
	return &filler{
		t: f.t, r: f.r, slot: f.slot,
		some: make(set, words), more: make(set, words), whole: make(set, words), low: make(set, words),
	}
}

// fill writes the table of a switch, in which nothing is routed.
func (f *filler) fill(s uint16, row []ib.PortNum) {
	t := f.t
	for _, e := range t.EndsOf(s) {
		for i := range e.LMC.Count() {
			row[int(e.LID)+i] = e.Port
		}
	}
	f.find(s)
	f.fillWhole(s, row)
	for i, leads := range f.leads {
		pair := t.first[s] + int32(i)
		for w := range f.some {
			f.some[w] = leads[w] &^ f.more[w] &^ f.whole[w]
		}
		if t.cables(pair) == 1 {
			port := ib.PortNum(t.exits(pair)[0])
			f.some.each(func(bit int) {
				for _, e := range f.entriesAt(bit) {
					row[e.lid] = port
				}
			})
			continue
		}
		f.some.each(func(bit int) { f.fillParallel(s, pair, bit, row) })
	}
	for w := range f.more {
		f.more[w] &^= f.whole[w]
	}
	f.more.each(func(bit int) { f.fillSeveral(s, bit, row) })
}

// entriesAt are the entries of the switch with a bit.
func (f *filler) entriesAt(bit int) []entry {
	d := f.r.at[bit]
	return f.t.entries[f.t.entryFirst[d]:f.t.entryFirst[d+1]]
}

// find fills the sets of switch s.
func (f *filler) find(s uint16) {
	t, r := f.t, f.r
	pairs := t.neighbours(s)
	for len(f.leads) < len(pairs) {
		f.leads = append(f.leads, make(set, r.words))
	}
	f.leads = f.leads[:len(pairs)]
	clear(f.some)
	clear(f.more)
	clear(f.low)
	clear(f.whole)
	ups, wanted, forced, upward := 0, r.all[s], r.forced[s], r.upward[s]
	for i, x := range pairs {
		leads := f.leads[i]
		clear(leads)
		there, below := r.all[x], r.place[x] > r.place[s]
		if below {
			there = r.down[x]
		}
		for k := 1; k < len(wanted) && k <= len(there); k++ {
			addCommon(leads, wanted[k], there[k-1])
		}
		for w, bits := range leads {
			switch {
			case !below:
				bits &^= forced[w]
			case t.level[x] < t.level[s]:
				bits &^= upward[w]
			}
			leads[w] = bits
			f.more[w] |= f.some[w] & bits
			f.some[w] |= bits
		}
		if t.level[x] <= t.level[s] {
			for w, bits := range leads {
				f.low[w] |= bits
			}
			continue
		}
		if ups++; ups == 1 {
			copy(f.whole, leads)
			continue
		}
		for w, bits := range leads {
			f.whole[w] &= bits
		}
	}
	for w := range f.whole {
		f.whole[w] &^= f.low[w]
	}
}

// slotOf is the slot of an entry at a switch. What is not numbered leaf by leaf would share
// the links of others all the way: it takes another slot at each switch.
func (f *filler) slotOf(s uint16, e entry) uint32 {
	slot, width := e.number/f.t.slots[s].divisor, uint32(len(f.t.slots[s].port))
	if e.extra {
		slot += f.t.place[s]
	}
	return slot % width
}

// fillWhole routes to what all pairs up lead to: by slot.
func (f *filler) fillWhole(s uint16, row []ib.PortNum) {
	up := &f.t.slots[s]
	if up.class < 0 || len(up.filled) == 0 {
		return
	}
	slot := f.slot[up.class]
	var ports [256]ib.PortNum
	for i, port := range up.port {
		ports[i] = ib.PortNum(port)
	}
	atLeaf := f.t.isLeaf(s)
	f.whole.each(func(bit int) {
		d := f.r.at[bit]
		from, to := f.t.entryFirst[d], f.t.entryFirst[d+1]
		entries, slot := f.t.entries[from:to], slot[from:to]
		lost := false
		for i := range entries {
			port := ports[slot[i]]
			if entries[i].extra {
				port = ports[f.slotOf(s, entries[i])]
			}
			if port == 0 || atLeaf && entries[i].narrow {
				port, lost = ib.PortNone, true
			}
			row[entries[i].lid] = port
		}
		if lost {
			f.instead(s, bit, row)
		}
	})
}

// fillParallel routes to entries by the one pair that leads there, of several cables.
func (f *filler) fillParallel(s uint16, pair int32, bit int, row []ib.PortNum) {
	t := f.t
	x := t.to[pair]
	if t.level[x] >= t.level[s] {
		f.fillSeveral(s, bit, row)
		return
	}
	by, count := t.slots[x].divisor*max(t.slots[x].parents, 1), t.slots[s].cables
	d := f.r.at[bit]
	from, to := t.entryFirst[d], t.entryFirst[d+1]
	lost := false
	for _, e := range t.entries[from:to] {
		if port := t.cableOf(pair, int(e.number/by%count), int(count)); port != 0 {
			row[e.lid] = ib.PortNum(port)
		} else {
			lost = true
		}
	}
	if lost {
		f.spread(by*count, from, to, t.exits(pair), row)
	}
}

// fillSeveral routes to the entries of the switch with a bit by slot, where the pair of
// the slot leads there, else by whichever leads there.
func (f *filler) fillSeveral(s uint16, bit int, row []ib.PortNum) {
	t := f.t
	up, first, atLeaf := &t.slots[s], t.first[s], t.isLeaf(s)
	d := f.r.at[bit]
	from, to := t.entryFirst[d], t.entryFirst[d+1]
	lost := up.class < 0
	if up.class >= 0 {
		for i := from; i < to; i++ {
			slot := f.slotOf(s, t.entries[i])
			if p := up.pair[slot]; p >= 0 && f.leads[p-first].has(bit) && !(atLeaf && t.entries[i].narrow) {
				row[t.entries[i].lid] = ib.PortNum(up.port[slot])
			} else {
				lost = true
			}
		}
	}
	if lost {
		f.instead(s, bit, row)
	}
}

// instead routes to the entries of the switch with a bit that have no exit yet, since that
// of their slot is missing or leads elsewhere. They try other slots, each at each switch its
// own, and so keep theirs when others go, and share what is left.
func (f *filler) instead(s uint16, bit int, row []ib.PortNum) {
	t := f.t
	up, first := &t.slots[s], t.first[s]
	d := f.r.at[bit]
	from, to := t.entryFirst[d], t.entryFirst[d+1]
	f.ports = f.ports[:0]
	some := false
	for i, port := range up.port {
		if port == 0 || !f.leads[up.pair[i]-first].has(bit) {
			port = 0
		}
		f.ports, some = append(f.ports, port), some || port != 0
	}
	if !some {
		ports, by := f.exitsDown(s, bit)
		f.spread(by, from, to, ports, row)
		return
	}
	width := uint32(len(f.ports))
	for i := from; i < to; i++ {
		e := f.t.entries[i]
		if row[e.lid] != ib.PortNone {
			continue
		}
		// Those of one slot go to the others in turn, those of another slot elsewhere at the
		// same time.
		slot := f.slotOf(s, e)
		turn, others := e.number/up.divisor/width+t.place[s], max(width-1, 1)
		at := slot + 1 + turn%others
		port := f.ports[at%width]
		for try := uint32(1); try < maxSpread && f.isNoExit(e, to, port, row); try++ {
			at = slot + 1 + (turn+try*(1+turn/others%others))%others
			port = f.ports[at%width]
		}
		for try := uint32(1); try <= width && f.isNoExit(e, to, port, row); try++ {
			port = f.ports[(at+try)%width]
		}
		for try := uint32(1); port == 0; try++ { // all that there are lead to LIDs of this port
			port = f.ports[(at+try)%width]
		}
		row[e.lid] = ib.PortNum(port)
	}
}

// isNoExit reports whether a port is missing or has another LID of the entry's end port.
func (f *filler) isNoExit(e entry, to int32, port uint8, row []ib.PortNum) bool {
	return port == 0 || f.isUsed(e.first, to, ib.PortNum(port), row)
}

// mixed is a number whose bits all depend on those of x.
func mixed(x uint32) uint32 {
	x = (x ^ x>>16) * 0x7feb352d
	x = (x ^ x>>15) * 0x846ca68b
	return x ^ x>>16
}

// exitsDown are the ports of switch s that lead to the switch with a bit by no switch of a
// higher level, and what numbers are divided by to choose among them.
func (f *filler) exitsDown(s uint16, bit int) (ports []uint8, by uint32) {
	t := f.t
	f.pairs, f.ports = f.pairs[:0], f.ports[:0]
	for i, leads := range f.leads {
		if pair := t.first[s] + int32(i); leads.has(bit) && t.level[t.to[pair]] <= t.level[s] {
			f.pairs = append(f.pairs, pair)
		}
	}
	slices.SortFunc(f.pairs, func(a, b int32) int { return cmp.Compare(t.rank[t.to[a]], t.rank[t.to[b]]) })
	for round, more := 0, true; more; round++ {
		more = false
		for _, pair := range f.pairs {
			if exits := t.exits(pair); round < len(exits) {
				f.ports, more = append(f.ports, exits[round]), true
			}
		}
	}
	return f.ports, t.slots[t.to[f.pairs[0]]].under
}

// spread routes those of a range of entries that have no exit yet by the given ports, by
// their numbers divided. The LIDs of one end port take different exits.
func (f *filler) spread(by uint32, from, to int32, ports []uint8, row []ib.PortNum) {
	for i := from; i < to; i++ {
		e := f.t.entries[i]
		if row[e.lid] != ib.PortNone {
			continue
		}
		at := int(e.number / by)
		port := ib.PortNum(ports[at%len(ports)])
		for try := 1; try < len(ports) && f.isUsed(e.first, to, port, row); try++ {
			port = ib.PortNum(ports[(at+try)%len(ports)])
		}
		row[e.lid] = port
	}
}

// isUsed reports whether a LID of the end port whose entries begin at first has this exit.
func (f *filler) isUsed(first, end int32, port ib.PortNum, row []ib.PortNum) bool {
	for i := first; i < end && f.t.entries[i].first == first; i++ {
		if row[f.t.entries[i].lid] == port {
			return true
		}
	}
	return false
}
