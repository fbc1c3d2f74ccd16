package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/ibwarden/ibwarden/internal/store"
)

var _ store.Follower = (*Store)(nil)

// Objects is store.Follower's. A Mark is a revision of etcd.
func (s *Store) Objects(ctx context.Context, prefix string, after store.Mark) ([]store.Object, store.Mark, error) {
	for {
		out, at, err := s.objectsSince(ctx, prefix, int64(after))
		if !errors.Is(err, rpctypes.ErrCompacted) { // between two pages
			return out, store.Mark(at), err
		}
	}
}

func (s *Store) objectsSince(ctx context.Context, prefix string, after int64) ([]store.Object, int64, error) {
	r, err := s.get(ctx, s.prefix+"state", false)
	if err != nil {
		return nil, after, err
	}
	at, err := s.decodeState((*rangeOf)(r))
	if err == nil {
		s.remember(at, false)
		err = s.whole(&at.state)
	}
	if err != nil || at.revision <= after && at.Pending == nil { // every commit writes the state
		return nil, after, err
	}
	moment := r.Header.Revision
	out, err := s.readObjects(ctx, prefix, after, moment)
	if err != nil || at.Pending == nil {
		return out, moment, err
	}
	p, err := s.readPending(ctx, at, moment)
	if err != nil {
		return nil, after, err
	}
	p.Puts = slices.DeleteFunc(p.Puts, func(o store.Object) bool { return !strings.HasPrefix(o.Key, prefix) })
	return p.over(out), moment, nil
}

// Await is store.Follower's.
func (s *Store) Await(ctx context.Context, after store.Mark) {
	s.await(ctx, seen{revision: int64(after)})
}
