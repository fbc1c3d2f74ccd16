package etcd

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
)

// Trim is store.Store's.
func (s *Store) Trim(ctx context.Context, t store.Trim) (store.Checkpoint, error) {
	if err := t.Check(); err != nil {
		return store.Checkpoint{}, err
	}
	after, err := s.commit(ctx, func(ctx context.Context, at seen, next *state) ([]clientv3.Op, error) {
		if err := s.writer(t.Epoch, at); err != nil {
			return nil, err
		}
		cut, err := s.cut(ctx, t, at)
		if err != nil || cut.Checkpoint.Sequence == 0 {
			return nil, err
		}
		ops := []clientv3.Op{s.deleteRange("audit/", at.Checkpoint.Sequence+1, cut.Checkpoint.Sequence)}
		if cut.Revision > 0 {
			ops = append(ops, s.deleteRange("revision/", at.Oldest, cut.Revision), s.deleteRange("outcome/", at.Oldest, cut.Revision))
			next.Oldest = cut.Revision + 1
		}
		next.Checkpoint = cut.Checkpoint
		entry, head := store.LinkTrim(at.Audit, t.Audit, cut.Checkpoint)
		next.Audit = head
		return append(ops, s.entryOp(entry.Sequence, entry.Line())), nil
	})
	return after.Checkpoint, err
}

func (s *Store) deleteRange(kind string, first, last uint64) clientv3.Op {
	return clientv3.OpDelete(s.prefix+kind+number(first), clientv3.WithRange(s.prefix+kind+number(last+1)))
}

// cut finds what a trim removes from a store in a state.
func (s *Store) cut(ctx context.Context, t store.Trim, at seen) (store.Cut, error) {
	cut := store.Cut{Trim: t, Last: at.Revision}
	for e, err := range s.Audit(ctx, store.Range{Newest: true, Limit: 1}) {
		if err != nil {
			return cut, err
		}
		if err := t.Keeps(s.now(), e.Time); err != nil {
			return cut, err
		}
	}
	for e, err := range s.Audit(ctx, store.Range{From: at.Checkpoint.Sequence + 1}) {
		if errors.Is(err, store.ErrCompacted) {
			return cut, errMoved
		}
		if err != nil {
			return cut, err
		}
		if e.Sequence > at.Audit.Sequence || !cut.Takes(&e) {
			break
		}
	}
	return cut, nil
}
