package isolation

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// keySet is what a number of P_Keys gives their holder: one key for each
// partition, full when any of them is, ordered by partition.
type keySet []ib.PKey

// newKeySet reduces keys to a keySet in place.
func newKeySet(keys []ib.PKey) keySet {
	// Limited comes before full, so that the last of a partition is the one
	// that counts.
	slices.SortFunc(keys, func(a, b ib.PKey) int {
		return cmp.Or(cmp.Compare(a.Base(), b.Base()), cmp.Compare(a, b))
	})
	out := keys[:0]
	for _, k := range keys {
		switch {
		case !k.IsValid():
		case len(out) > 0 && out[len(out)-1].Base() == k.Base():
			out[len(out)-1] = k
		default:
			out = append(out, k)
		}
	}
	return out
}

// covers reports whether s gives all that k does.
func (s keySet) covers(k ib.PKey) bool {
	i, found := slices.BinarySearchFunc(s, k.Base(), func(e ib.PKey, b ib.PKeyBase) int {
		return cmp.Compare(e.Base(), b)
	})
	return found && (s[i].IsFull() || !k.IsFull())
}

// keySets numbers the distinct sets that it is shown. Set 0 is the empty one.
type keySets struct {
	ids    map[string]int32
	sets   []keySet
	lifted []int32 // by set: the number of its lift, noLift when not made yet
	text   []byte
}

const noLift = -1

func newKeySets() *keySets {
	x := &keySets{ids: make(map[string]int32)}
	x.id(nil)
	return x
}

// id is the number of s, which is copied when it is new.
func (x *keySets) id(s keySet) int32 {
	x.text = x.text[:0]
	for _, k := range s {
		x.text = binary.BigEndian.AppendUint16(x.text, uint16(k))
	}
	if id, known := x.ids[string(x.text)]; known {
		return id
	}
	id := int32(len(x.sets))
	x.ids[string(x.text)] = id
	x.sets = append(x.sets, slices.Clone(s))
	x.lifted = append(x.lifted, noLift)
	return id
}

// lift is the number of the set with the partitions of set id, all full: what
// remains of it when nobody's membership bit is believed.
func (x *keySets) lift(id int32) int32 {
	if x.lifted[id] == noLift {
		full := slices.Clone(x.sets[id])
		for i, k := range full {
			full[i] = k.Base().Full()
		}
		up := x.id(full)
		x.lifted[id] = up
	}
	return x.lifted[id]
}
