package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/internal/store"
)

// LargeStep has more objects than fit into one transaction of etcd.
const LargeStep = 150

// Step is the commit that makes revision n of a history in which every revision says
// what the whole store holds: after it, some objects have the value n, and those of revision n-1
// are gone. A commit that is half done, or done twice, shows. It also has the outcome of
// revision n-1.
func Step(epoch store.Epoch, n uint64) store.Commit {
	c := store.Commit{Epoch: epoch, After: n - 1, Revision: stepData(n), Audit: []store.Entry{About(n)}}
	c.Puts = stepObjects(n)
	now := map[string]bool{}
	for _, o := range c.Puts {
		now[o.Key] = true
	}
	if n > 1 {
		for _, o := range stepObjects(n - 1) {
			if !now[o.Key] {
				c.Deletes = append(c.Deletes, o.Key)
			}
		}
		c.Outcomes = []store.Outcome{{Revision: n - 1, Data: fmt.Append(nil, "done ", n-1)}}
	}
	return c
}

// stepData is small in most revisions; each ninth one is larger than a transaction of etcd
// takes at once.
func stepData(n uint64) []byte {
	if n%9 == 4 {
		out := make([]byte, 200<<10)
		r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
		r.Read(out)
		return out
	}
	return fmt.Appendf(nil, "revision %d", n)
}

// stepObjects are the objects that the store holds at revision n, by key: every fifth
// time many.
func stepObjects(n uint64) []store.Object {
	out := []store.Object{object("a", fmt.Sprint(n))}
	count := 3
	if n%5 == 2 {
		count = LargeStep
	}
	for i := range count {
		out = append(out, object(fmt.Sprintf("step/%03d/%d", i, n%7), fmt.Sprint(n)))
	}
	return append(out, object("z", fmt.Sprint(n)))
}

// CheckObjects holds what was loaded against what Step makes, at its revision.
func CheckObjects(t testing.TB, now *store.Contents) {
	t.Helper()
	var want []store.Object
	if now.Revision > 0 {
		want = stepObjects(now.Revision)
	}
	same(t, fmt.Sprintf("the objects at revision %d", now.Revision), now.Objects, want)
}

// CheckSteps holds a store against the history that Step makes: no revision that was
// acknowledged is missing, none is half done, and the chain holds and passes through
// every head that was acknowledged.
func CheckSteps(t testing.TB, s store.Store, acknowledged uint64, heads ...store.Head) *store.Contents {
	t.Helper()
	now := Verify(t, s, heads...)
	if now.Revision < acknowledged {
		t.Fatalf("revision %d was acknowledged, and the store has %d", acknowledged, now.Revision)
	}
	CheckObjects(t, now)
	n := uint64(0)
	for r, err := range s.Revisions(t.Context(), store.Range{}) {
		n++
		if err != nil {
			t.Fatal(err)
		}
		outcome := fmt.Sprint("done ", n)
		if n == now.Revision {
			outcome = ""
		}
		if r.Number != n || string(r.Data) != string(stepData(n)) || string(r.Outcome) != outcome {
			t.Fatalf("revision %d is %d, with the outcome %q", n, r.Number, r.Outcome)
		}
	}
	if n != now.Revision || now.Audit.Sequence != n {
		t.Fatalf("%d revisions and %d entries at revision %d", n, now.Audit.Sequence, now.Revision)
	}
	return now
}
