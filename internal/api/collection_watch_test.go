package api

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// TestAReaderKnowsTheCollection: who applies the events of a watch has the collection at each bookmark,
// from whatever revision he begins, whatever changed, and also when he was cut off in between and goes
// on after his last bookmark.
func TestAReaderKnowsTheCollection(t *testing.T) {
	seed := need.Seed(t, rand.Uint64())
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		history := []map[string]uint64{{}} // by revision: the objects, with the revision that changed them
		for n := range 12 {
			next := maps.Clone(history[n])
			key := string(rune('a' + r.IntN(5)))
			if r.IntN(3) == 0 {
				delete(next, key)
			} else {
				next[key] = uint64(n + 1)
			}
			history = append(history, next)
		}
		begin := r.IntN(len(history))
		known, at := maps.Clone(history[begin]), uint64(begin)
		if r.IntN(4) == 0 {
			known, at = map[string]uint64{}, 0
		}
		w := After(at)
		for n := begin; n < len(history); n += 1 + r.IntN(3) {
			now := history[n]
			var entries []Entry[uint64]
			for _, k := range slices.Sorted(maps.Keys(now)) {
				entries = append(entries, Entry[uint64]{k, fmt.Sprint(now[k]), now[k], func() uint64 { return now[k] }})
			}
			events := Events(w, uint64(n), entries)
			cut := len(events)
			if r.IntN(4) == 0 {
				cut = r.IntN(len(events)) // the connection ends: the last bookmark is the one before
			}
			for _, e := range events[:cut] {
				switch e.Kind {
				case All:
					maps.DeleteFunc(known, func(k string, _ uint64) bool { return !slices.Contains(e.Keys, k) })
				case Put:
					known[e.Key] = *e.Item
				case Gone:
					delete(known, e.Key)
				case Bookmark:
					if at = e.Revision; !maps.Equal(known, now) {
						t.Fatalf("seed %d: at revision %d the reader knows %v, want %v", seed, n, known, now)
					}
				}
			}
			if cut < len(events) {
				w = After(at)
				n-- // and the same is looked at again
			}
			if !w.Idle(uint64(n)) && cut == len(events) {
				t.Fatalf("seed %d: a look at revision %d would find something again", seed, n)
			}
		}
	}
}

// TestAnotherStore: at an earlier revision than the last everything is said again.
func TestAnotherStore(t *testing.T) {
	one := func(changed uint64) []Entry[int] {
		return []Entry[int]{{"a", fmt.Sprint(changed), changed, func() int { return int(changed) }}}
	}
	w := After(7)
	for _, x := range []struct {
		revision, changed uint64
		want              string
	}{{9, 3, "all bookmark"}, {9, 3, "bookmark"}, {5, 3, "all put bookmark"}, {6, 6, "put bookmark"}} {
		got := ""
		for _, e := range Events(w, x.revision, one(x.changed)) {
			got += " " + e.Kind
		}
		if got != " "+x.want {
			t.Errorf("at revision %d:%s, want %s", x.revision, got, x.want)
		}
	}
}
