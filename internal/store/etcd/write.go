package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
)

// change makes the operations of a commit out of the state that it is to follow, and
// edits the state.
type change func(ctx context.Context, at seen, next *state) ([]clientv3.Op, error)

// commit writes a change and the state that it makes, if the state is still the one that
// the change was made for; else it makes the change again. An attempt whose answer was
// lost is repeated as it is: if the first one was done, the second one fails the
// comparison, and the state has the ID of this commit.
func (s *Store) commit(ctx context.Context, make change, only ...clientv3.Cmp) (seen, error) {
	s.write.Lock()
	defer s.write.Unlock()
	if err := ctx.Err(); err != nil {
		return seen{}, err
	}
	deadline := s.now().Add(s.config.CommitTimeout)
	at, _ := s.remembered()
	for {
		if s.now().After(deadline) {
			return at, fmt.Errorf("%s: %w: other writers were faster for %s, nothing was written", s.where, store.ErrUnavailable, s.config.CommitTimeout)
		}
		next := at.state
		ops, err := make(ctx, at, &next)
		if errors.Is(err, errMoved) {
			at, _ = s.remembered()
			continue
		}
		if err != nil || ops == nil {
			fresh, readErr := s.readState(ctx, false)
			switch {
			case readErr != nil:
				return at, readErr // also where the refusal rests on a state that may be old
			case fresh.revision != at.revision:
				at = fresh
				continue
			}
			return at, err
		}
		next.Commit = randomID()
		done, after, err := s.attempt(ctx, at, &next, ops, deadline, only...)
		if err != nil {
			return after, err
		}
		s.found(after)
		if done {
			return after, nil
		}
		at = after
	}
}

// attempt tries one transaction until it is known what became of it.
func (s *Store) attempt(ctx context.Context, at seen, next *state, ops []clientv3.Op, deadline time.Time, only ...clientv3.Cmp) (done bool, after seen, err error) {
	value, err := encodeState(next)
	if err != nil {
		return false, at, err
	}
	key := s.prefix + "state"
	only = append(only, clientv3.Compare(clientv3.ModRevision(key), "=", at.revision))
	ops = append(ops, clientv3.OpPut(key, value))
	lost := error(nil) // the answer of an attempt before
	for {
		var r *clientv3.TxnResponse
		var asked int
		err := s.once(ctx, func(ctx context.Context) (err error) {
			r, asked, err = s.txn(ctx, only, ops, clientv3.OpGet(key))
			return err
		})
		switch {
		case err == nil && r.Succeeded:
			return true, seen{state: *next, revision: r.Header.Revision}, nil
		case err == nil:
			got, err := s.decodeState(r.Responses[0].GetResponseRange())
			switch {
			case err != nil:
				return false, at, err
			case got.Commit == next.Commit:
				return true, got, nil
			case lost != nil:
				return false, got, fmt.Errorf("%w; another writer has written since, so it is not known whether the commit was done", lost)
			case asked > 1: // one that has not answered may have done it before that
				return false, got, fmt.Errorf("%s: %w: another writer has written since a member did not answer, so it is not known whether the commit was done", s.where, store.ErrUnavailable)
			}
			return false, got, nil
		case errors.Is(err, store.ErrFull):
			// The request that crosses the limit is carried out, and answered with an error.
			if got, readErr := s.readState(ctx, false); readErr == nil && got.Commit == next.Commit {
				return true, got, nil
			}
			return false, at, err
		case !errors.Is(err, store.ErrUnavailable):
			return false, at, err
		case s.now().After(deadline):
			return false, at, fmt.Errorf("%w; it is not known whether the commit was done", err)
		}
		lost = err
		time.Sleep(retryPause)
	}
}

// writer looks whether an epoch may write.
func (s *Store) writer(epoch store.Epoch, at seen) error {
	if err := s.whole(&at.state); err != nil {
		return err
	}
	if _, id := s.remembered(); id != at.ID {
		return fmt.Errorf("%s: %w: the store was restored since it was acquired", s.where, store.ErrFenced)
	}
	if epoch != at.Epoch || epoch == 0 {
		return store.Fenced(epoch, &at.State)
	}
	s.mu.Lock()
	mine := s.mine
	s.mu.Unlock()
	if mine.epoch == epoch && mine.writer != at.Writer {
		return fmt.Errorf("%s: %w: etcd was restored, and another manager has epoch %d now", s.where, store.ErrFenced, epoch)
	}
	return nil
}

// Acquire is store.Store's.
func (s *Store) Acquire(ctx context.Context, owner string) (store.Epoch, error) {
	return s.acquire(ctx, owner, func(context.Context, *state) ([]clientv3.Op, error) { return []clientv3.Op{}, nil })
}

// acquire is Acquire with more operations in its transaction, which besides makes.
func (s *Store) acquire(ctx context.Context, owner string, besides func(context.Context, *state) ([]clientv3.Op, error), only ...clientv3.Cmp) (store.Epoch, error) {
	if err := store.CheckKey(owner); err != nil {
		return 0, fmt.Errorf("the owner of the store: %w", err)
	}
	after, err := s.commit(ctx, func(ctx context.Context, at seen, next *state) ([]clientv3.Op, error) {
		if err := s.whole(&at.state); err != nil {
			return nil, err
		}
		next.Epoch++
		next.Owner, next.Writer = owner, randomID()
		return besides(ctx, next)
	}, only...)
	if err != nil {
		return 0, err
	}
	s.remember(after, true)
	s.mu.Lock()
	s.mine = acquired{after.Epoch, after.Writer}
	s.mu.Unlock()
	s.write.Lock()
	defer s.write.Unlock()
	// What an earlier writer left is not in the way: the next commit finishes what is
	// pending, and the next Acquire deletes parts.
	if after, err := s.finish(ctx, after); err == nil {
		_ = s.sweep(ctx, after)
	}
	return after.Epoch, nil
}

// Commit is store.Store's.
func (s *Store) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	if err := c.Check(); err != nil {
		return store.Committed{}, err
	}
	after, err := s.commit(ctx, func(ctx context.Context, at seen, next *state) ([]clientv3.Op, error) {
		if err := s.writer(c.Epoch, at); err != nil {
			return nil, err
		}
		if err := c.Allowed(&at.State); err != nil {
			return nil, err
		}
		if at.Pending != nil {
			if _, err := s.finish(ctx, at); err != nil {
				return nil, err
			}
			return nil, errMoved
		}
		return s.operations(ctx, at, next, &c)
	})
	if err != nil {
		return store.Committed{}, err
	}
	out := store.Committed{Revision: after.Revision, Audit: after.Audit}
	if after.Pending != nil {
		s.write.Lock()
		defer s.write.Unlock()
		_, _ = s.finish(context.WithoutCancel(ctx), after) // it is committed; the next writer tries again
	}
	return out, nil
}

// operations are those of a commit.
func (s *Store) operations(ctx context.Context, at seen, next *state, c *store.Commit) ([]clientv3.Op, error) {
	ops, err := s.objects(ctx, at, next, c)
	if err != nil {
		return nil, err
	}
	if c.Revision != nil {
		next.Revision++
		next.Oldest = max(next.Oldest, 1)
		if ops, err = s.revisionOps(ctx, at, next.Revision, c.Epoch, c.Revision, ops); err != nil {
			return nil, err
		}
	}
	for _, o := range c.Outcomes {
		if ops, err = s.outcomeOps(ctx, at, o.Revision, o.Data, ops); err != nil {
			return nil, err
		}
	}
	entries, head := store.Link(at.Audit, c.Audit, next.Revision, c.Revision)
	for _, e := range entries {
		ops = append(ops, s.entryOp(e.Sequence, e.Line()))
	}
	next.Audit = head
	if ops == nil {
		ops = []clientv3.Op{}
	}
	return ops, nil
}

func (s *Store) revisionOps(ctx context.Context, at seen, n uint64, epoch store.Epoch, data []byte, ops []clientv3.Op) ([]clientv3.Op, error) {
	name := "revision/" + number(n)
	head := []byte(number(uint64(epoch)))
	value, ops, err := s.value(ctx, at, name, append(head, data...), inlineRevision, ops)
	return append(ops, clientv3.OpPut(s.prefix+name, value)), err
}

func (s *Store) outcomeOps(ctx context.Context, at seen, n uint64, data []byte, ops []clientv3.Op) ([]clientv3.Op, error) {
	name := "outcome/" + number(n)
	value, ops, err := s.value(ctx, at, name, data, inlineOutcome, ops)
	return append(ops, clientv3.OpPut(s.prefix+name, value)), err
}

func (s *Store) entryOp(n uint64, line []byte) clientv3.Op {
	name := "audit/" + number(n)
	return clientv3.OpPut(s.prefix+name, string(store.SealFrame(name, line)))
}

// objectName is where an object is, below the prefix.
func objectName(key string) string {
	if strings.HasPrefix(key, store.Aside) {
		return key
	}
	return "object/" + key
}

func (s *Store) objectOp(o store.Object) clientv3.Op {
	name := objectName(o.Key)
	return clientv3.OpPut(s.prefix+name, string(store.SealFrame(name, o.Value)))
}

// pending is what a commit does to objects, as it is written in parts.
type pending struct {
	Puts    []store.Object `json:"puts"`
	Deletes []string       `json:"deletes"`
}

// objects are the operations that a commit does to objects. If they are too many, it
// writes them in parts, and enters them as pending.
func (s *Store) objects(ctx context.Context, at seen, next *state, c *store.Commit) ([]clientv3.Op, error) {
	size := 0
	for _, o := range c.Puts {
		size += len(s.prefix) + len(o.Key) + len(o.Value)
	}
	for _, k := range c.Deletes {
		size += len(s.prefix) + len(k)
	}
	if size > inlineObjects || len(c.Puts)+len(c.Deletes) > inlineChanges {
		data, err := json.Marshal(pending{c.Puts, c.Deletes})
		if err != nil {
			return nil, err
		}
		next.Pending, err = s.writeParts(ctx, at, data)
		return nil, err
	}
	var ops []clientv3.Op
	for _, o := range c.Puts {
		ops = append(ops, s.objectOp(o))
	}
	for _, k := range c.Deletes {
		ops = append(ops, clientv3.OpDelete(s.prefix+objectName(k)))
	}
	return ops, nil
}

// readPending reads what is pending in a state, as it was at a revision of etcd.
func (s *Store) readPending(ctx context.Context, at seen, revision int64) (out pending, err error) {
	data, err := s.readParts(ctx, "the pending objects", *at.Pending, revision, false)
	if err == nil {
		if err = json.Unmarshal(data, &out); err != nil {
			err = s.corrupt("the pending objects", err)
		}
	}
	return out, err
}

// finish writes objects that are pending to their keys. It is called with write held.
func (s *Store) finish(ctx context.Context, at seen) (seen, error) {
	if at.Pending == nil {
		return at, nil
	}
	p, err := s.readPending(ctx, at, 0)
	if err != nil {
		return at, err
	}
	b := batch{s: s, at: at}
	for _, o := range p.Puts {
		if err := b.add(ctx, s.objectOp(o), len(o.Key)+len(o.Value)); err != nil {
			return at, err
		}
	}
	for _, k := range p.Deletes {
		if err := b.add(ctx, clientv3.OpDelete(s.prefix+objectName(k)), len(k)); err != nil {
			return at, err
		}
	}
	if err := b.flush(ctx); err != nil {
		return at, err
	}
	next := at.state
	next.Pending = nil
	next.Commit = randomID()
	ops := []clientv3.Op{clientv3.OpDelete(s.prefix+"part/"+at.Pending.ID+"/", clientv3.WithPrefix())}
	done, after, err := s.attempt(ctx, at, &next, ops, s.now().Add(s.config.CommitTimeout))
	if err != nil {
		return at, err
	}
	s.found(after)
	if !done {
		return after, errMoved
	}
	return after, nil
}

// batch collects operations that belong to no commit, and writes as many at a time as
// one transaction takes.
type batch struct {
	s    *Store
	at   seen
	ops  []clientv3.Op
	size int
}

func (b *batch) add(ctx context.Context, op clientv3.Op, size int) error {
	size += len(b.s.prefix)
	if len(b.ops) > 0 && (len(b.ops) == batchOps || b.size+size > batchBytes) {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.ops, b.size = append(b.ops, op), b.size+size
	return nil
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.ops) == 0 {
		return nil
	}
	err := b.s.put(ctx, b.at, b.ops...)
	b.ops, b.size = nil, 0
	return err
}
