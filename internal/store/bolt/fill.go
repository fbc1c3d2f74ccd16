package bolt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"github.com/ibwarden/ibwarden/internal/store"
)

// fillBytes is about how much Fill writes in one transaction.
const fillBytes = 8 << 20

// recordBytes is about what a record takes besides its data.
const recordBytes = 64

// Fill is store.Store's.
func (s *Store) Fill(ctx context.Context, records iter.Seq2[store.Record, error]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.updateLocked(ctx, s.empty); err != nil {
		return err
	}
	var state *store.State
	var batch []store.Record
	size := 0
	flush := func() error {
		err := s.updateLocked(ctx, func(tx *bbolt.Tx) error {
			for i := range batch {
				if err := putRecord(tx, &batch[i]); err != nil {
					return err
				}
			}
			return nil
		})
		batch, size = batch[:0], 0
		return err
	}
	for r, err := range records {
		if err != nil {
			return err
		}
		if r.Kind == store.RecordState {
			state = new(store.State)
			if err := json.Unmarshal(r.Data, state); err != nil {
				return fmt.Errorf("%w: the state of a store: %w", store.ErrInvalid, err)
			}
			continue
		}
		batch, size = append(batch, r), size+recordBytes+len(r.Data)
		if size > fillBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if state == nil {
		return fmt.Errorf("%w: records without a state", store.ErrInvalid)
	}
	if err := flush(); err != nil {
		return err
	}
	return s.updateLocked(ctx, func(tx *bbolt.Tx) error {
		if err := putState(tx, state); err != nil {
			return err
		}
		if err := tx.Bucket(metaBucket).Delete(incompleteKey); err != nil {
			return err
		}
		return s.check(tx)
	})
}

// empty begins to fill a store: it has to be empty, or to have been begun before.
func (s *Store) empty(tx *bbolt.Tx) error {
	meta := tx.Bucket(metaBucket)
	if meta.Get(incompleteKey) == nil {
		state, err := s.state(tx)
		if err != nil {
			return err
		}
		k, _ := tx.Bucket(objectBucket).Cursor().First()
		if *state != (store.State{}) || k != nil {
			return fmt.Errorf("%s: %w: it has revision %d, audit entry %d and epoch %d", s.path, store.ErrNotEmpty, state.Revision, state.Audit.Sequence, state.Epoch)
		}
		return meta.Put(incompleteKey, []byte{1})
	}
	for _, name := range buckets {
		if err := tx.DeleteBucket(name); err != nil {
			return err
		}
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return nil
}

func putRecord(tx *bbolt.Tx, r *store.Record) error {
	switch r.Kind {
	case store.RecordObject:
		return tx.Bucket(objectBucket).Put([]byte(r.Key), store.SealFrame("object "+r.Key, r.Data))
	case store.RecordRevision:
		return putRevision(tx, r.Number, r.Epoch, r.Data)
	case store.RecordOutcome:
		return putOutcome(tx, r.Number, r.Data)
	case store.RecordEntry:
		return numbered(tx, auditBucket).Put(number(r.Number), store.SealFrame(named(auditBucket, r.Number), r.Data))
	}
	return errors.New("a record of no known kind")
}
