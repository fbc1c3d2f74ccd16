package routes

import (
	"math/bits"
	"slices"
)

// dependencies are which channels wait for which. A channel is a link and a lane, with the
// number link times lanes plus lane.
type dependencies struct {
	j *Job
	// bits has for each channel, and where it is not flat for each lane of the next one,
	// one bit for each slot of the switch behind the link.
	bits []uint64
	used uint16 // lanes that packets take between switches
}

func newDependencies(j *Job) dependencies {
	n := (len(j.links) + 1) * len(j.vls) * j.words
	if !j.flat {
		n *= len(j.vls)
	}
	return dependencies{j: j, bits: make([]uint64, n)}
}

// row is where the bits of a channel begin for the next lane.
func (d *dependencies) row(link int32, lane, next uint8) int {
	lanes := len(d.j.vls)
	at := int(link)*lanes + int(lane)
	if !d.j.flat {
		at = at*lanes + int(next)
	}
	return at * d.j.words
}

// add enters that packets of one channel wait for the next.
func (d *dependencies) add(link int32, lane uint8, nextLink int32, next uint8) {
	slot := nextLink - d.j.firstLink[d.j.links[link].to]
	d.bits[d.row(link, lane, next)+int(slot)/64] |= 1 << (slot % 64)
}

func (d *dependencies) merge(other *dependencies) {
	for i, b := range other.bits {
		d.bits[i] |= b
	}
	d.used |= other.used
}

// next calls visit with every channel that a channel waits for, until it returns false.
func (d *dependencies) next(channel int32, visit func(int32) bool) {
	j := d.j
	lanes := int32(len(j.vls))
	link, lane := channel/lanes, uint8(channel%lanes)
	to := j.links[link].to
	first, slots := j.firstLink[to], j.firstLink[to+1]-j.firstLink[to]
	for w := range uint8(lanes) {
		if j.flat && w != lane {
			continue
		}
		row := d.row(link, lane, w)
		for word := range j.words {
			for b := d.bits[row+word]; b != 0; b &= b - 1 {
				slot := int32(word*64 + bits.TrailingZeros64(b))
				if slot < slots && !visit((first+slot)*lanes+int32(w)) {
					return
				}
			}
		}
	}
}

// count is the number of dependencies.
func (d *dependencies) count() (n uint64) {
	for c := range int32(len(d.j.links) * len(d.j.vls)) {
		d.next(c, func(int32) bool { n++; return true })
	}
	return n
}

// circle is a circle of channels, each waiting for the next and the last for the first; nil
// when there is none. Of those through the channels of the first that is found it is the
// shortest.
func (d *dependencies) circle() []int32 {
	found := d.anyCircle()
	best := found
	for _, c := range found {
		if got := d.shortest(c, len(best)); got != nil {
			best = got
		}
	}
	if best == nil {
		return nil
	}
	least := slices.Index(best, slices.Min(best))
	return append(slices.Clone(best[least:]), best[:least]...)
}

// anyCircle searches depth first.
func (d *dependencies) anyCircle() []int32 {
	const open, done = 1, 2
	channels := len(d.j.links) * len(d.j.vls)
	state := make([]uint8, channels)
	type frame struct {
		channel int32
		first   int // its successors still to visit, in rest
	}
	var stack []frame
	var rest []int32
	enter := func(c int32) {
		state[c] = open
		stack = append(stack, frame{c, len(rest)})
		d.next(c, func(n int32) bool {
			if state[n] != done {
				rest = append(rest, n)
			}
			return true
		})
	}
	for root := range channels {
		if state[root] != 0 {
			continue
		}
		for enter(int32(root)); len(stack) > 0; {
			top := &stack[len(stack)-1]
			if len(rest) == top.first {
				state[top.channel] = done
				stack = stack[:len(stack)-1]
				continue
			}
			n := rest[len(rest)-1]
			rest = rest[:len(rest)-1]
			switch state[n] {
			case 0:
				enter(n)
			case open:
				at := slices.IndexFunc(stack, func(f frame) bool { return f.channel == n })
				var out []int32
				for _, f := range stack[at:] {
					out = append(out, f.channel)
				}
				return out
			}
		}
	}
	return nil
}

// shortest is the shortest circle through a channel that has fewer channels than less; nil
// when there is none.
func (d *dependencies) shortest(from int32, less int) []int32 {
	before := map[int32]int32{}
	level := []int32{from}
	for depth := 1; depth < less && len(level) > 0; depth++ {
		var next []int32
		for _, c := range level {
			closed := false
			d.next(c, func(n int32) bool {
				if closed = n == from; closed {
					return false
				}
				if _, seen := before[n]; !seen {
					before[n] = c
					next = append(next, n)
				}
				return true
			})
			if closed {
				out := []int32{c}
				for c != from {
					c = before[c]
					out = append(out, c)
				}
				slices.Reverse(out)
				return out
			}
		}
		level = next
	}
	return nil
}
