package store_test

import (
	"reflect"
	"testing"

	"github.com/ibwarden/ibwarden/internal/store"
)

// TestLearn: what another manager has seen counts as far as it is later, and not at all where it
// does not know of a store that was accepted.
func TestLearn(t *testing.T) {
	at := func(revision uint64, digest byte) store.Point {
		return store.Point{Revision: revision, Digest: store.Hash{digest}}
	}
	points := func(p ...store.Point) []store.Point { return p }
	for name, x := range map[string]struct {
		own, told store.Seen
		points    []store.Point
		accepted  []string
	}{
		"nothing told":                {store.Seen{Points: points(at(3, 3))}, store.Seen{}, points(at(3, 3)), nil},
		"nothing seen":                {store.Seen{}, store.Seen{Points: points(at(2, 2), at(5, 5)), Accepted: []string{"a"}}, points(at(2, 2), at(5, 5)), []string{"a"}},
		"later":                       {store.Seen{Points: points(at(3, 3))}, store.Seen{Points: points(at(2, 2), at(5, 5))}, points(at(3, 3), at(5, 5)), nil},
		"earlier":                     {store.Seen{Points: points(at(6, 6))}, store.Seen{Points: points(at(2, 2), at(5, 5))}, points(at(6, 6)), nil},
		"another of the same number":  {store.Seen{Points: points(at(5, 1))}, store.Seen{Points: points(at(5, 5))}, points(at(5, 5)), nil},
		"before one was accepted":     {store.Seen{Points: points(at(3, 3)), Accepted: []string{"a"}}, store.Seen{Points: points(at(9, 9))}, points(at(3, 3)), []string{"a"}},
		"after one was accepted":      {store.Seen{Points: points(at(9, 9)), Accepted: []string{"a"}}, store.Seen{Points: points(at(4, 4)), Accepted: []string{"a", "b"}}, points(at(4, 4)), []string{"a", "b"}},
		"each knows one of their own": {store.Seen{Points: points(at(3, 3)), Accepted: []string{"a"}}, store.Seen{Points: points(at(9, 9)), Accepted: []string{"b"}}, points(at(3, 3)), []string{"a"}},
	} {
		seen := x.own.Clone()
		seen.Learn(x.told)
		if !reflect.DeepEqual(seen.Points, x.points) || !reflect.DeepEqual(seen.Accepted, x.accepted) {
			t.Errorf("%s: %v %q, want %v %q", name, seen.Points, seen.Accepted, x.points, x.accepted)
		}
	}
}
