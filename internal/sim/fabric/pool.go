// This file allocates and reuses objects of one type in slabs, such as packets in
// flight. Objects never move and are identified by an index.
//
//	Take, Put, Get   a free object, by its index
//	InFlight         how many are taken

package fabric

// PacketPool is a pool of T. The zero value is empty.
type PacketPool[T any] struct {
	slabs [][]T
	free  []int32
}

const slabSize = 256 // things; a power of two

// Get is the thing with an index that Take gave.
func (l *PacketPool[T]) Get(index int32) *T { return &l.slabs[index/slabSize][index%slabSize] }

// Take returns a thing as it was left by its last use, and its index; nil when
// limit, in whole slabs, are taken already.
func (l *PacketPool[T]) Take(limit int) (*T, int32) {
	if len(l.free) == 0 {
		first := len(l.slabs) * slabSize
		if first >= limit {
			return nil, -1
		}
		for i := slabSize - 1; i >= 0; i-- {
			l.free = append(l.free, int32(first+i))
		}
		l.slabs = append(l.slabs, make([]T, slabSize))
	}
	last := len(l.free) - 1
	index := l.free[last]
	l.free = l.free[:last]
	return l.Get(index), index
}

// Put gives a thing back.
func (l *PacketPool[T]) Put(index int32) { l.free = append(l.free, index) }

// InFlight is the number of things taken and not put back.
func (l *PacketPool[T]) InFlight() int { return len(l.slabs)*slabSize - len(l.free) }
