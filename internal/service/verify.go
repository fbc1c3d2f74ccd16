package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/internal/store"
)

// DifferencesMost is how many differences a Verification has at most.
const DifferencesMost = 1000

// Problem is how an object of a store differs from what the revisions wrote.
type Problem string

// Problems.
const (
	Changed Problem = "changed" // its value or its revision is another than was written
	Deleted Problem = "deleted" // it is not in the store
	Added   Problem = "added"   // no revision wrote it, or a later one deleted it
)

// Difference is an object that differs from what the revisions wrote.
type Difference struct {
	Key      string
	Problem  Problem
	Revision uint64 // the last one that wrote or deleted it; 0 for none
}

// Verification is what Verify found in a store.
type Verification struct {
	Entries uint64     // of the audit log, that were read
	Head    store.Head // the end of the audit log; zero where Broken is set
	// Broken says where the log, the history or the store itself is not as it was written: a
	// *store.BrokenError or a *store.CorruptError. Then no object was compared.
	Broken error
	// Objects is how many objects are as the last revision that wrote them has them, and
	// Differ how many are not. Differences are the first of those, by key.
	Objects, Differ int
	Differences     []Difference
	// Older and Apart are how many objects were not compared: what wrote Older is before
	// Oldest, where the history begins, and Apart (numbers of revisions, idempotency keys,
	// objects of the manager) are not in the history. Objects that were written before Oldest
	// and are not there any more are in no count.
	Older, Apart int
	Oldest       uint64
}

// Verify checks the audit log and the history of a store as store.VerifyStore does, and compares
// the objects with what the revisions wrote. It needs no Service, and one may write meanwhile.
func Verify(ctx context.Context, db store.Store, heads []store.Head) (v Verification, err error) {
	r := replay{last: map[string]written{}}
	contents, entries, err := store.VerifyEach(ctx, db, heads, r.add)
	v.Entries = entries
	if err == nil {
		err = r.err
	}
	var broken *store.BrokenError
	var corrupt *store.CorruptError
	switch {
	case errors.As(err, &broken), errors.As(err, &corrupt):
		v.Broken = err
		return v, nil
	case err != nil:
		return Verification{}, err
	}
	v.Head, v.Oldest = contents.Audit, contents.Oldest
	for _, o := range contents.Objects {
		if apart(o.Key) {
			v.Apart++
			continue
		}
		r.compare(&v, o)
	}
	for key, w := range r.last {
		if w.sum != (store.Hash{}) {
			v.Differences = append(v.Differences, Difference{key, Deleted, w.revision})
		}
	}
	slices.SortFunc(v.Differences, func(a, b Difference) int { return strings.Compare(a.Key, b.Key) })
	v.Differ = len(v.Differences)
	v.Differences = v.Differences[:min(v.Differ, DifferencesMost)]
	return v, nil
}

// apart reports whether no revision has the object with a key, though the service writes it.
func apart(key string) bool {
	return ofManager(key) || strings.HasPrefix(key, numbersPrefix) || strings.HasPrefix(key, repeatedPrefix)
}

// replay is what the revisions of a history wrote last.
type replay struct {
	last map[string]written
	err  error // the first revision that cannot be read
}

// written is the last that was written of an object.
type written struct {
	revision uint64
	sum      store.Hash // of the stored value; zero where the revision deleted it
}

// add takes the next revision.
func (r *replay) add(rev store.Revision) {
	rev.Outcome = nil // it changed no object
	record, err := decodeRecord(rev)
	if err != nil {
		if r.err == nil {
			r.err = &store.CorruptError{What: "the history", Part: fmt.Sprintf("revision %d", rev.Number), Err: err}
		}
		return
	}
	for _, e := range record.Edits {
		w := written{revision: rev.Number}
		if len(e.After) > 0 {
			value, _ := json.Marshal(stored{rev.Number, e.After}) // it came as JSON
			w.sum = store.Sum(value)
		}
		r.last[e.Key] = w
	}
}

// compare holds an object of the store against what was written last, and forgets that.
func (r *replay) compare(v *Verification, o store.Object) {
	w, known := r.last[o.Key]
	delete(r.last, o.Key)
	var has stored
	switch {
	case known && w.sum == store.Sum(o.Value):
		v.Objects++
	case known && w.sum != (store.Hash{}):
		v.Differences = append(v.Differences, Difference{o.Key, Changed, w.revision})
	case !known && json.Unmarshal(o.Value, &has) == nil && 0 < has.Revision && has.Revision < v.Oldest:
		v.Older++
	default:
		v.Differences = append(v.Differences, Difference{o.Key, Added, w.revision})
	}
}
