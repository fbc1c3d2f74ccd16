package partition

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// placement finds an index for each key that a port should hold.
type placement struct {
	current Table
	keys    []wantedKey
	// at is the index of each of keys, or noEntry.
	at []int
	// left is the index that a key gives up by moving to index 0, or noEntry.
	left int
}

const noEntry = -1

// place makes the table of a port with room for tableCap keys, which are no
// more than that, from the one that it holds.
func place(current Table, keys []wantedKey, tableCap int) Table {
	p := placement{current: current[:min(len(current), tableCap)], keys: keys, at: make([]int, len(keys)), left: noEntry}
	p.locate()
	p.settleIndex0()
	return p.fill(tableCap)
}

// locate finds the keys that the table holds now. With one key per partition
// an entry of the other membership will do, if there is no better.
func (p *placement) locate() {
	where := make(map[ib.PKey]int, len(p.keys))
	for n, k := range p.keys {
		p.at[n] = noEntry
		where[k.PKey] = n
	}
	take := func(key ib.PKey, index int) {
		if n, wanted := where[key]; wanted && p.at[n] == noEntry {
			p.at[n] = index
		}
	}
	for i, k := range p.current {
		if k.IsValid() { // most entries of most tables are empty
			take(k, i)
		}
	}
	for i, k := range p.current {
		if !k.IsValid() {
			continue
		}
		if _, itself := where[k]; !itself {
			take(twin(k), i)
		}
	}
}

// twin is the key of the same partition with the other membership.
func twin(k ib.PKey) ib.PKey {
	if k.IsFull() {
		return k.Base().Limited()
	}
	return k.Base().Full()
}

// first is the key that index 0 is for, or noEntry when there is none at all:
// the one that has a claim to it; else the default key; else the one that stands
// there; else that of the first of the partitions in the order of the policy. Of
// two keys of one partition the full one.
func (p *placement) first() int {
	if n := slices.IndexFunc(p.keys, func(k wantedKey) bool { return k.index0 }); n >= 0 {
		return n
	}
	first := noEntry
	for n, k := range p.keys {
		if first == noEntry || p.rank(n) < p.rank(first) || p.rank(n) == p.rank(first) && k.order <= p.keys[first].order {
			first = n
		}
	}
	return first
}

// rank says how good the right of a key without a claim to index 0 is, the best
// being 0.
func (p *placement) rank(n int) int {
	switch {
	case p.keys[n].Base() == ib.PKeyBaseDefault:
		return 0
	case len(p.current) > 0 && p.current[0].IsValid() && p.current[0].Base() == p.keys[n].Base():
		return 1
	}
	return 2
}

// settleIndex0 gives index 0 to the key that it is for, and takes it from any
// other.
func (p *placement) settleIndex0() {
	first := p.first()
	if first == noEntry {
		return
	}
	for n := range p.at {
		if p.at[n] == 0 {
			p.at[n] = noEntry
		}
	}
	p.left, p.at[first] = p.at[first], 0
}

// fill makes the table: keys with an index stay there, the others go after the last entry
// in use, or into gaps when there is no room after it. The entry of a key that is removed
// counts as in use, since its index may still be used; the entry left for index 0 does
// not.
func (p *placement) fill(tableCap int) Table {
	last := 0
	for i, k := range p.current {
		if k.IsValid() && i != p.left {
			last = i
		}
	}
	table := make(Table, 0, len(p.current)+len(p.keys))
	put := func(i int, k ib.PKey) {
		if i >= len(table) {
			table = append(table, make(Table, i+1-len(table))...)
		}
		table[i] = k
	}
	for n, k := range p.keys {
		if p.at[n] != noEntry {
			put(p.at[n], k.PKey)
		}
	}
	gap := 0
	for n, k := range p.keys {
		switch {
		case p.at[n] != noEntry:
		case last+1 < tableCap:
			last++
			put(last, k.PKey)
		default:
			for gap < len(table) && table[gap].IsValid() {
				gap++
			}
			put(gap, k.PKey)
		}
	}
	return table
}
