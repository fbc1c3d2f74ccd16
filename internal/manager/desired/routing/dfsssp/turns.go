package dfsssp

import "math/bits"

// turnSet is a set of turns.
type turnSet []uint64

func (c *cabling) newSet() turnSet { return make(turnSet, (len(c.To)*int(c.width)+63)/64) }

func (t turnSet) has(turn int32) bool { return t[turn>>6]&(1<<(turn&63)) != 0 }
func (t turnSet) put(turn int32)      { t[turn>>6] |= 1 << (turn & 63) }

func (t turnSet) remove(turn int32) { t[turn>>6] &^= 1 << (turn & 63) }

// each calls visit for every turn of the set that is in [first, last).
func (t turnSet) each(first, last int32, visit func(turn int32)) {
	for first < last {
		word := t[first>>6] >> (first & 63)
		if word == 0 {
			first = first&^63 + 64
			continue
		}
		first += int32(bits.TrailingZeros64(word))
		if first < last {
			visit(first)
		}
		first++
	}
}
