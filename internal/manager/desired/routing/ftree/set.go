package ftree

import (
	"cmp"
	"math/bits"
	"slices"
)

// set is a set of small numbers.
type set []uint64

func (s set) add(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s set) has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

// each calls visit with each number, in rising order.
func (s set) each(visit func(i int)) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			visit(w<<6 + bits.TrailingZeros64(word))
		}
	}
}

func count(word uint64) int  { return bits.OnesCount64(word) }
func lowest(word uint64) int { return bits.TrailingZeros64(word) }

// part is a set without its empty ends: word i stands for from+i.
type part struct {
	from int
	bits set
}

// partOf copies what of s is not empty.
func partOf(s set) part {
	from, to := 0, len(s)
	for to > 0 && s[to-1] == 0 {
		to--
	}
	for from < to && s[from] == 0 {
		from++
	}
	return part{from, slices.Clone(s[from:to])}
}

// addTo adds all of p to s.
func (p part) addTo(s set) {
	to := s[p.from : p.from+len(p.bits)]
	for i, w := range p.bits {
		to[i] |= w
	}
}

// addCommon adds to s what is both in p and in q.
func addCommon(s set, p, q part) {
	from, to := max(p.from, q.from), min(p.from+len(p.bits), q.from+len(q.bits))
	if from >= to {
		return
	}
	a, b, out := p.bits[from-p.from:to-p.from], q.bits[from-q.from:to-q.from], s[from:to]
	for i := range out {
		out[i] |= a[i] & b[i]
	}
}

// sortBy sorts by a key.
func sortBy[T any](all []T, key func(T) int) {
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
