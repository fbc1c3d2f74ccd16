package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
)

// Fill is store.Store's. The store has another ID afterwards, so that handles which were
// opened before write nothing.
func (s *Store) Fill(ctx context.Context, records iter.Seq2[store.Record, error]) error {
	at, err := s.empty(ctx)
	if err != nil {
		return err
	}
	s.remember(at, true)
	s.write.Lock()
	filled := at.state
	filled.State = store.State{}
	none := true
	b := batch{s: s, at: at}
	err = func() error {
		defer s.write.Unlock()
		for r, err := range records {
			if err != nil {
				return err
			}
			if r.Kind == store.RecordState {
				none = false
				if err := json.Unmarshal(r.Data, &filled.State); err != nil {
					return fmt.Errorf("%w: the state of a store: %w", store.ErrInvalid, err)
				}
				continue
			}
			if err := s.fillOne(ctx, &b, &r); err != nil {
				return err
			}
		}
		return b.flush(ctx)
	}()
	switch {
	case errors.Is(err, errMoved):
		return fmt.Errorf("%s: %w: somebody else restores into it", s.where, store.ErrNotEmpty)
	case err != nil:
		return err
	case none:
		return fmt.Errorf("%w: records without a state", store.ErrInvalid)
	}
	_, err = s.commit(ctx, func(_ context.Context, now seen, next *state) ([]clientv3.Op, error) {
		if now.ID != at.ID {
			return nil, fmt.Errorf("%s: %w: somebody else restores into it", s.where, store.ErrNotEmpty)
		}
		*next = filled
		next.Incomplete = false
		return []clientv3.Op{}, nil
	})
	return err
}

// empty begins to fill a store: it has to be empty, or to have been begun before.
func (s *Store) empty(ctx context.Context) (seen, error) {
	id := randomID()
	return s.commit(ctx, func(ctx context.Context, at seen, next *state) ([]clientv3.Op, error) {
		if !at.Incomplete {
			r, err := s.get(ctx, s.prefix+"object/", false, clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil {
				return nil, err
			}
			if at.State != (store.State{}) || r.Count > 0 {
				return nil, fmt.Errorf("%s: %w: it has revision %d, audit entry %d and epoch %d", s.where, store.ErrNotEmpty, at.Revision, at.Audit.Sequence, at.Epoch)
			}
		}
		*next = state{Format: Format, ID: id, Incomplete: true}
		ops := []clientv3.Op{}
		for _, kind := range []string{"object/", "revision/", "outcome/", "audit/", "part/", "blob/", store.Aside} {
			ops = append(ops, clientv3.OpDelete(s.prefix+kind, clientv3.WithPrefix()))
		}
		return ops, nil
	})
}

func (s *Store) fillOne(ctx context.Context, b *batch, r *store.Record) error {
	var ops []clientv3.Op
	var err error
	most := len(r.Data)
	switch r.Kind {
	case store.RecordObject:
		ops = append(ops, s.objectOp(store.Object{Key: r.Key, Value: r.Data}))
	case store.RecordRevision:
		ops, err = s.revisionOps(ctx, b.at, r.Number, r.Epoch, r.Data, nil)
		most = min(most, inlineRevision)
	case store.RecordOutcome:
		ops, err = s.outcomeOps(ctx, b.at, r.Number, r.Data, nil)
		most = min(most, inlineOutcome)
	case store.RecordEntry:
		ops = append(ops, s.entryOp(r.Number, r.Data))
	default:
		err = errors.New("a record of no known kind")
	}
	for _, op := range ops {
		if err == nil {
			err = b.add(ctx, op, most+store.FrameOverhead+store.MaxKey)
		}
	}
	return err
}
