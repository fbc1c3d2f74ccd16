// This file numbers the revisions of each tenant: a tenant that saw the numbers of the store could
// count what others change.

package resource

import (
	"maps"
	"slices"
	"sort"
)

// WholeNumber is the tenant that knows every revision by the number of the store: the provider.
const WholeNumber = "provider"

// NumberBook has the revisions that each tenant numbers: those that changed anything it sees. The first is
// its revision 1.
type NumberBook map[string][]uint64

// Add enters a revision for tenants; the last one before was earlier.
func (b NumberBook) Add(tenants []string, revision uint64) {
	for _, t := range tenants {
		if t != WholeNumber && t != "" {
			b[t] = append(b[t], revision)
		}
	}
}

// Tenants are those that number revisions, by name, also those that are no more.
func (b NumberBook) Tenants() []string { return slices.Sorted(maps.Keys(b)) }

// For is the number by which a tenant knows a revision; of one that changed nothing it sees, that of
// the last before which did; 0 where there is none. The highest number of all is no revision and stays.
func (b NumberBook) For(tenant string, revision uint64) uint64 {
	if tenant == WholeNumber || revision == ^uint64(0) {
		return revision
	}
	list := b[tenant]
	return uint64(sort.Search(len(list), func(i int) bool { return list[i] > revision }))
}

// Revision is the revision that a tenant knows by a number; false for none. 0 is the state before the
// first, and last the last of all.
func (b NumberBook) Revision(tenant string, number, last uint64) (revision uint64, is bool) {
	list := b[tenant]
	switch {
	case tenant == WholeNumber:
		return number, number <= last
	case number > uint64(len(list)):
		return 0, false
	case number == 0:
		return 0, true
	}
	return list[number-1], true
}
