package policy

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// GUIDRange is the port GUIDs from First to Last.
type GUIDRange struct{ First, Last ib.PortGUID }

// Apart are the GUIDs of ranges without those of except, as Policy.Apart wants them:
// sorted, and none twice.
func Apart(ranges []GUIDRange, except []ib.PortGUID) []GUIDRange {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b GUIDRange) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	var joined []GUIDRange
	for _, r := range sorted {
		if r.Last < r.First {
			continue
		}
		if n := len(joined); n > 0 && r.First <= joined[n-1].Last {
			joined[n-1].Last = max(joined[n-1].Last, r.Last)
			continue
		}
		joined = append(joined, r)
	}
	holes := slices.Sorted(slices.Values(except))
	var out []GUIDRange
	for _, r := range joined {
		first, _ := slices.BinarySearch(holes, r.First)
		whole := true
		for _, g := range holes[first:] {
			if g > r.Last {
				break
			}
			if g > r.First {
				out = append(out, GUIDRange{r.First, g - 1})
			}
			if whole = g < r.Last; !whole {
				break
			}
			r.First = g + 1
		}
		if whole {
			out = append(out, r)
		}
	}
	return out
}

// IsApart reports whether a port is among Policy.Apart.
func (p *Policy) IsApart(g ib.PortGUID) bool {
	_, found := slices.BinarySearchFunc(p.Apart, g, func(r GUIDRange, g ib.PortGUID) int {
		switch {
		case r.Last < g:
			return -1
		case r.First > g:
			return 1
		}
		return 0
	})
	return found
}

// Exact reports whether the selector names one port by its GUID, or the port of the
// subnet manager: only such a one selects ports of Policy.Apart.
func (s Selector) Exact() bool {
	return s.Kind == SelectPort || s.Kind == SelectSelf || s.Kind == SelectPlace && s.GUID != 0
}

// setApart marks the ports of Policy.Apart.
func (x *lookup) setApart(p *Policy) {
	ranges := p.Apart
	for i, g := range x.guids {
		for len(ranges) > 0 && ranges[0].Last < g {
			ranges = ranges[1:]
		}
		if len(ranges) == 0 {
			return
		}
		if ranges[0].First <= g {
			if x.apart == nil {
				x.apart = make([]bool, len(x.guids))
			}
			x.apart[i] = true
		}
	}
}

// findMembers is find without the ports of Policy.Apart, unless s names one of them.
func (x *lookup) findMembers(s Selector) ([]int32, error) {
	found, err := x.find(s)
	if err != nil || x.apart == nil || s.Exact() {
		return found, err
	}
	return slices.DeleteFunc(slices.Clone(found), func(i int32) bool { return x.apart[i] }), nil
}

// sameSlice reports whether two slices are the same part of the same array.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
