// Package describe holds the attribute descriptors of the codec packages, by
// attribute ID.
package describe

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// Table holds descriptors of one package. The zero Table is empty. It is filled
// while the package is initialized, and only read afterwards.
type Table[D any] struct{ byID map[mad.AttributeID]D }

// Add enters a descriptor. It panics when the attribute has one. The result, true,
// lets a package variable's initializer call it.
func (t *Table[D]) Add(id mad.AttributeID, d D) bool {
	if _, twice := t.byID[id]; twice {
		panic(fmt.Sprintf("attribute 0x%04x is described twice", uint16(id)))
	}
	if t.byID == nil {
		t.byID = make(map[mad.AttributeID]D)
	}
	t.byID[id] = d
	return true
}

// Find is the descriptor of an attribute; ok is false when it has none.
func (t *Table[D]) Find(id mad.AttributeID) (d D, ok bool) {
	d, ok = t.byID[id]
	return d, ok
}

// All are the descriptors, ordered by attribute number.
func (t *Table[D]) All() []D {
	out := make([]D, 0, len(t.byID))
	for _, id := range slices.Sorted(maps.Keys(t.byID)) {
		out = append(out, t.byID[id])
	}
	return out
}
