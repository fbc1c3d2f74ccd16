package bolt

import (
	"context"
	"errors"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/ibwarden/ibwarden/internal/store"
)

// A group is the commits that waited while another one was synced. They are written in
// one transaction of bbolt, in the order in which they came, so that many callers at once
// wait for few syncs. What each one does is still decided and answered for itself.
const (
	groupCommits = 64      // in a group
	groupBytes   = 4 << 20 // in a group, but for the last commit
)

// request is a commit that waits.
type request struct {
	ctx  context.Context
	c    *store.Commit
	out  store.Committed
	err  error
	done bool
}

// queue is the commits that wait.
type queue struct {
	mu      sync.Mutex
	waiting []*request
}

func (q *queue) add(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
}

// take is the next group.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.waiting) && n < groupCommits && bytes < groupBytes {
		bytes += q.waiting[n].c.Size()
		n++
	}
	group := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return group
}

// Commit is store.Store's.
func (s *Store) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	if err := c.Check(); err != nil {
		return store.Committed{}, err
	}
	r := &request{ctx: ctx, c: &c}
	s.queue.add(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	for !r.done {
		s.commit(s.queue.take())
	}
	return r.out, r.err
}

// errNothing says that no commit of a group may be written.
var errNothing = errors.New("nothing to write")

// commit writes a group. It is called with mu held.
func (s *Store) commit(group []*request) {
	news := false
	err := s.updateLocked(context.Background(), func(tx *bbolt.Tx) error {
		if err := s.whole(tx); err != nil {
			return err
		}
		state, err := s.state(tx)
		if err != nil {
			return err
		}
		wrote := false
		for _, r := range group {
			if r.err = r.ctx.Err(); r.err == nil {
				r.err = r.c.Allowed(state)
			}
			if r.err != nil {
				continue
			}
			if r.c.Empty() { // who asks whether he could write
				r.out = store.Committed{Revision: state.Revision, Audit: state.Audit}
				continue
			}
			if err := s.write(tx, state, r); err != nil {
				return err
			}
			wrote = true
			news = news || r.c.Revision != nil
		}
		if !wrote {
			return errNothing
		}
		return putState(tx, state)
	})
	for _, r := range group {
		r.done = true
		if err != nil && err != errNothing { // a refusal may rest on a commit that was not written either
			r.err = err
		}
		if r.err != nil {
			r.out = store.Committed{}
		}
	}
	if err == nil && news {
		close(s.news)
		s.news = make(chan struct{})
	}
}

// write writes one commit, and edits the state.
func (s *Store) write(tx *bbolt.Tx, state *store.State, r *request) error {
	c := r.c
	if err := writeObjects(tx, c); err != nil {
		return err
	}
	if c.Revision != nil {
		state.Revision++
		state.Oldest = max(state.Oldest, 1)
		if err := putRevision(tx, state.Revision, c.Epoch, c.Revision); err != nil {
			return err
		}
	}
	for _, o := range c.Outcomes {
		if err := putOutcome(tx, o.Revision, o.Data); err != nil {
			return err
		}
	}
	entries, head := store.Link(state.Audit, c.Audit, state.Revision, c.Revision)
	for _, e := range entries {
		if err := putEntry(tx, &e); err != nil {
			return err
		}
	}
	state.Audit = head
	r.out = store.Committed{Revision: state.Revision, Audit: head}
	return nil
}
