package store_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// TestSeen compares a store with what was seen of another one, with which it has the first
// revisions in common: of every number of them, with any number behind that, and with what was
// seen at each revision, at some, or as heads of the audit log only.
func TestSeen(t *testing.T) {
	const seenRevisions = 5
	open := func() (store.Store, store.Epoch) {
		db, err := bolt.Open(t.TempDir() + "/store")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		epoch, err := db.Acquire(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		return db, epoch
	}
	write := func(db store.Store, epoch store.Epoch, n int, text string) store.Point {
		data := fmt.Appendf(nil, "%s %d", text, n)
		done, err := db.Commit(t.Context(), store.Commit{
			Epoch: epoch, After: uint64(n - 1), Revision: data,
			Audit: []store.Entry{{Time: time.Unix(1e9, 0), Action: "test", Decision: store.Accepted, Reason: text, Revision: uint64(n)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return store.Point{Revision: done.Revision, Digest: store.Sum(data), Audit: done.Audit}
	}
	right, epoch := open()
	var points []store.Point
	copies := make([]*bytes.Buffer, seenRevisions+1)
	for n := range seenRevisions + 1 {
		if n > 0 {
			points = append(points, write(right, epoch, n, "right"))
		}
		copies[n] = new(bytes.Buffer)
		if _, err := store.Backup(t.Context(), right, copies[n]); err != nil {
			t.Fatal(err)
		}
	}
	for common := range seenRevisions + 1 {
		for more := range seenRevisions + 2 - common {
			db, err := bolt.Open(t.TempDir() + "/store")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if _, err := store.Restore(t.Context(), db, bytes.NewReader(copies[common].Bytes()), "copy"); err != nil {
				t.Fatal(err)
			}
			epoch, err := db.Acquire(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			for n := range more {
				write(db, epoch, common+n+1, "other")
			}
			c, err := db.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, how := range []string{"all", "heads", "digests"} {
				var seen store.Seen
				for _, p := range points {
					switch how {
					case "heads":
						p.Digest = store.Hash{}
					case "digests":
						p.Audit = store.Head{}
					}
					seen.Add(p)
				}
				back, err := seen.Compare(t.Context(), db, c)
				if err != nil {
					t.Fatal(err)
				}
				if common == seenRevisions {
					if back != nil {
						t.Errorf("%s, %d behind all that was seen: %v", how, more, back)
					}
					continue
				}
				if back == nil {
					t.Errorf("%s, %d in common, %d others: it has all", how, common, more)
				} else if from, to := back.Missing(); from != uint64(common+1) || to != seenRevisions {
					t.Errorf("%s, %d in common, %d others: %d to %d are missing: %v", how, common, more, from, to, back)
				}
			}
		}
	}
}

// TestSeenKeeps: what is told late does not make it older, the last pointsKept count, and an
// acceptance ends what was seen before it.
func TestSeenKeeps(t *testing.T) {
	at := func(revision, sequence uint64) store.Point {
		return store.Point{Revision: revision, Audit: store.Head{Sequence: sequence, Hash: store.Sum(fmt.Append(nil, sequence))}}
	}
	var s store.Seen
	for n := range uint64(200) {
		s.Add(at(n+1, n+1))
	}
	serial := s.Serial
	for _, late := range []store.Point{at(199, 199), at(200, 150), at(200, 200), {Revision: 200}} {
		if s.Add(late); s.Serial != serial {
			t.Errorf("%+v makes a change", late)
		}
	}
	if len(s.Points) != 64 || s.Last() != at(200, 200) || s.Head() != at(200, 200).Audit {
		t.Errorf("%d points, the last %+v", len(s.Points), s.Last())
	}
	s.Add(store.Point{Revision: 200, Digest: store.Sum(nil)})
	s.Add(at(200, 205))
	if p := s.Last(); p.Digest != store.Sum(nil) || p.Audit.Sequence != 205 || len(s.Points) != 64 {
		t.Errorf("of one revision: %+v", p)
	}
	other := s.Clone()
	s.Accept("a")
	if len(s.Points) > 0 || !s.Knows("a") || s.Serial <= other.Serial || other.Knows("a") || len(other.Points) != 64 {
		t.Errorf("after an acceptance %+v", s)
	}
}
