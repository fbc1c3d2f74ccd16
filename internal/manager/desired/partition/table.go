package partition

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// Holds reports whether the table holds a key of a partition.
func (t Table) Holds(b ib.PKeyBase) bool {
	return slices.ContainsFunc(t, func(k ib.PKey) bool { return k.IsValid() && k.Base() == b })
}

// Allows reports whether the table lets its port do all that a key k does.
func (t Table) Allows(k ib.PKey) bool {
	for _, have := range t {
		if have == k || have == k.Base().Full() {
			return true
		}
	}
	return false
}
