package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/ibwarden/ibwarden/internal/store"
)

// Acquire is store.Store's.
func (s *Store) Acquire(ctx context.Context, owner string) (store.Epoch, error) {
	if err := store.CheckKey(owner); err != nil {
		return 0, fmt.Errorf("the owner of the store: %w", err)
	}
	var epoch store.Epoch
	err := s.update(ctx, func(tx *bbolt.Tx) error {
		state, err := s.state(tx)
		if err != nil {
			return err
		}
		state.Epoch++
		state.Owner = owner
		epoch = state.Epoch
		return putState(tx, state)
	})
	if err != nil {
		return 0, err
	}
	return epoch, nil
}

func writeObjects(tx *bbolt.Tx, c *store.Commit) error {
	objects := tx.Bucket(objectBucket)
	for _, o := range c.Puts {
		if err := objects.Put([]byte(o.Key), store.SealFrame("object "+o.Key, o.Value)); err != nil {
			return err
		}
	}
	for _, k := range c.Deletes {
		if err := objects.Delete([]byte(k)); err != nil {
			return err
		}
	}
	return nil
}

// fullPages is how full bbolt makes the pages of buckets that only grow at their end.
const fullPages = 0.95

func numbered(tx *bbolt.Tx, bucket []byte) *bbolt.Bucket {
	b := tx.Bucket(bucket)
	b.FillPercent = fullPages
	return b
}

func putRevision(tx *bbolt.Tx, n uint64, epoch store.Epoch, data []byte) error {
	value := append(number(uint64(epoch)), data...)
	return numbered(tx, revisionBucket).Put(number(n), store.SealFrame(named(revisionBucket, n), value))
}

func putOutcome(tx *bbolt.Tx, n uint64, data []byte) error {
	return numbered(tx, outcomeBucket).Put(number(n), store.SealFrame(named(outcomeBucket, n), data))
}

func putEntry(tx *bbolt.Tx, e *store.Entry) error {
	return numbered(tx, auditBucket).Put(number(e.Sequence), store.SealFrame(named(auditBucket, e.Sequence), e.Line()))
}

// Trim is store.Store's.
func (s *Store) Trim(ctx context.Context, t store.Trim) (store.Checkpoint, error) {
	if err := t.Check(); err != nil {
		return store.Checkpoint{}, err
	}
	var out store.Checkpoint
	err := s.update(ctx, func(tx *bbolt.Tx) error {
		state, err := s.state(tx)
		if err != nil {
			return err
		}
		out = state.Checkpoint
		if t.Epoch != state.Epoch {
			return store.Fenced(t.Epoch, state)
		}
		if state.Audit.Sequence == 0 {
			return nil
		}
		audit := tx.Bucket(auditBucket)
		newest, err := s.entry(state.Audit.Sequence, audit.Get(number(state.Audit.Sequence)))
		if err != nil {
			return err
		}
		if err := t.Keeps(s.now(), newest.Time); err != nil {
			return err
		}
		cut := store.Cut{Trim: t, Last: state.Revision}
		for n := state.Checkpoint.Sequence + 1; ; n++ {
			e, err := s.entry(n, audit.Get(number(n)))
			if err != nil {
				return err
			}
			if !cut.Takes(&e) {
				break
			}
		}
		if cut.Checkpoint.Sequence == 0 {
			return nil
		}
		for n := state.Checkpoint.Sequence + 1; n <= cut.Checkpoint.Sequence; n++ {
			if err := audit.Delete(number(n)); err != nil {
				return err
			}
		}
		for ; state.Oldest <= cut.Revision; state.Oldest++ {
			if err := tx.Bucket(revisionBucket).Delete(number(state.Oldest)); err != nil {
				return err
			}
			if err := tx.Bucket(outcomeBucket).Delete(number(state.Oldest)); err != nil {
				return err
			}
		}
		out, state.Checkpoint = cut.Checkpoint, cut.Checkpoint
		entry, head := store.LinkTrim(state.Audit, t.Audit, out)
		state.Audit = head
		if err := putEntry(tx, &entry); err != nil {
			return err
		}
		return putState(tx, state)
	})
	return out, err
}
