// collection*.go: follows one collection of objects for a caller: what of it he sees, and how that
// changes, from a revision on.

package api

import "slices"

// The kinds of events of a watch.
const (
	// All has the keys of all objects that are there when a watch begins: what the reader knows besides
	// is gone.
	All = "all"
	// Put is an object that is new or another.
	Put = "put"
	// Gone is the key of one that is not there any more, or that the reader does not see any more.
	Gone = "gone"
	// Bookmark ends what one look has found: a watch after its revision goes on from there.
	Bookmark = "bookmark"
)

// Event is what a watch says, as JSON in the data of an event.
type Event[V any] struct {
	Kind     string   `json:"kind" enum:"all,put,gone,bookmark"`
	Revision uint64   `json:"revision" doc:"the revision that was looked at"`
	Key      string   `json:"key,omitempty" doc:"of put and gone: the number of a partition, or the name of a tenant"`
	Keys     []string `json:"keys,omitempty" doc:"of all: the keys of all objects that are there"`
	Item     *V       `json:"item,omitempty" doc:"of put: the object"`
}

// Entry is an object as the reader sees it now.
type Entry[V any] struct {
	Key string
	// Mark is another one whenever the object is; Changed the revision that last changed it, by the
	// reader's number.
	Mark    string
	Changed uint64
	Item    func() V
}

// Watch is what a reader has been told.
type Watch struct {
	after uint64
	marks map[string]string // by key; nil before the first look
}

// After is a watch of a reader who knows the collection as it was at a revision; 0 for one who knows
// nothing of it.
func After(revision uint64) *Watch { return &Watch{after: revision} }

// Idle reports whether a look at a revision would find nothing.
func (w *Watch) Idle(revision uint64) bool { return w.marks != nil && w.after == revision }

// Look is what a reader is to be told of the collection at a revision. The first look says what is there,
// and what changed after his revision; one at an earlier revision than the last begins again, since the
// store is another one then.
func (w *Watch) Look(revision uint64, now []string, entry func(i int) (mark string, changed uint64)) (all bool, put []int, gone []string) {
	if revision < w.after {
		*w = Watch{}
	}
	all = w.marks == nil
	marks := make(map[string]string, len(now))
	for i, key := range now {
		mark, changed := entry(i)
		was, known := w.marks[key]
		if all && (changed > w.after || w.after == 0) || !all && (!known || was != mark) {
			put = append(put, i)
		}
		marks[key] = mark
	}
	for key := range w.marks {
		if _, there := marks[key]; !there {
			gone = append(gone, key)
		}
	}
	w.marks, w.after = marks, revision
	return all, put, gone
}

// Events are those of one look at what is there now.
func Events[V any](w *Watch, revision uint64, now []Entry[V]) (list []Event[V]) {
	keys := make([]string, len(now))
	for i := range now {
		keys[i] = now[i].Key
	}
	all, put, gone := w.Look(revision, keys, func(i int) (string, uint64) { return now[i].Mark, now[i].Changed })
	if all {
		list = append(list, Event[V]{Kind: All, Revision: revision, Keys: keys})
	}
	slices.Sort(gone)
	for _, key := range gone {
		list = append(list, Event[V]{Kind: Gone, Revision: revision, Key: key})
	}
	for _, i := range put {
		item := now[i].Item()
		list = append(list, Event[V]{Kind: Put, Revision: revision, Key: now[i].Key, Item: &item})
	}
	return append(list, Event[V]{Kind: Bookmark, Revision: revision})
}
