package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"github.com/ibwarden/ibwarden/internal/store"
)

// A page is how much an iterator reads at a time, in one short transaction: a
// transaction that stays open would keep writers from growing the file.
const (
	pageValues = 64
	pageBytes  = 1 << 20
)

// Load is store.Store's.
func (s *Store) Load(ctx context.Context) (*store.Contents, error) {
	var out store.Contents
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		state, err := s.state(tx)
		if err != nil {
			return err
		}
		out = store.Contents{
			Revision: state.Revision, Oldest: state.Oldest, Audit: state.Audit, Checkpoint: state.Checkpoint,
			Epoch: state.Epoch, Owner: state.Owner,
		}
		return tx.Bucket(objectBucket).ForEach(func(k, v []byte) error {
			value, err := store.OpenFrame("object "+string(k), v)
			if err != nil {
				return s.corrupt(fmt.Sprintf("object %q", k), err)
			}
			out.Objects = append(out.Objects, store.Object{Key: string(k), Value: bytes.Clone(value)})
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func (s *Store) readState(ctx context.Context) (out *store.State, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error { out, err = s.state(tx); return err })
	return out, err
}

// Revision is store.Store's.
func (s *Store) Revision(ctx context.Context, n uint64) (out store.Revision, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		state, err := s.state(tx)
		if err != nil {
			return err
		}
		if err := state.Has(n); err != nil {
			return err
		}
		out, err = s.revision(tx, n, tx.Bucket(revisionBucket).Get(number(n)))
		return err
	})
	return out, err
}

// Revisions is store.Store's.
func (s *Store) Revisions(ctx context.Context, r store.Range) iter.Seq2[store.Revision, error] {
	return pages(ctx, s, revisionBucket, r, s.revision, func(v store.Revision) int { return len(v.Data) + len(v.Outcome) })
}

// Audit is store.Store's.
func (s *Store) Audit(ctx context.Context, r store.Range) iter.Seq2[store.Entry, error] {
	entry := func(_ *bbolt.Tx, n uint64, v []byte) (store.Entry, error) { return s.entry(n, v) }
	return pages(ctx, s, auditBucket, r, entry, func(store.Entry) int { return store.MaxLine / 64 })
}

// revision reads a revision, of which value is nil if it is not there.
func (s *Store) revision(tx *bbolt.Tx, n uint64, value []byte) (out store.Revision, err error) {
	data, err := store.OpenFrame(named(revisionBucket, n), value)
	if err == nil && len(data) < 8 {
		err = errors.New("too short for its epoch")
	}
	if err != nil {
		return out, s.corrupt(named(revisionBucket, n), err)
	}
	out = store.Revision{Number: n, Epoch: store.Epoch(binary.BigEndian.Uint64(data)), Data: bytes.Clone(data[8:])}
	if value = tx.Bucket(outcomeBucket).Get(number(n)); value == nil {
		return out, nil
	}
	if data, err = store.OpenFrame(named(outcomeBucket, n), value); err != nil {
		return out, s.corrupt(fmt.Sprintf("the outcome of revision %d", n), err)
	}
	out.Outcome = bytes.Clone(data)
	return out, nil
}

// entry reads an entry, of which value is nil if it is not there.
func (s *Store) entry(n uint64, value []byte) (store.Entry, error) {
	line, err := store.OpenFrame(named(auditBucket, n), value)
	var e store.Entry
	if err == nil {
		e, err = store.ParseEntry(line)
	}
	if err != nil {
		return e, s.corrupt(fmt.Sprintf("audit entry %d", n), err)
	}
	return e, nil
}

// pages yields the values of a bucket of numbers, and reads a page at a time.
func pages[T any](ctx context.Context, s *Store, bucket []byte, r store.Range, read func(*bbolt.Tx, uint64, []byte) (T, error), size func(T) int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		left := r.Limit
		if left <= 0 {
			left = allOf
		}
		var at uint64 // the number that was read last
		for from, more := r.From, true; more && left > 0; {
			var page []T
			more = false
			err := s.view(ctx, func(tx *bbolt.Tx) error {
				c := tx.Bucket(bucket).Cursor()
				raw := 0
				for k, v := first(c, from, r.Newest); k != nil; k, v = next(c, r.Newest) {
					if len(page) == min(left, pageValues) || raw > pageBytes {
						more = true
						return nil
					}
					if len(k) != 8 {
						return s.corrupt(string(bucket), fmt.Errorf("key %x is no number", k))
					}
					n := binary.BigEndian.Uint64(k)
					if at != 0 && n != from {
						return s.missing(tx, bucket, from)
					}
					value, err := read(tx, n, v)
					if err != nil {
						return err
					}
					page = append(page, value)
					raw += size(value)
					at, from = n, n+1
					if r.Newest {
						from = n - 1
					}
				}
				return nil
			})
			for _, v := range page {
				if !yield(v, nil) {
					return
				}
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			left -= len(page)
		}
	}
}

// missing says why a number is not there.
func (s *Store) missing(tx *bbolt.Tx, bucket []byte, n uint64) error {
	state, err := s.state(tx)
	if err != nil {
		return err
	}
	oldest, name := state.Oldest, named(bucket, n)
	if bytes.Equal(bucket, auditBucket) {
		oldest, name = state.Checkpoint.Sequence+1, fmt.Sprintf("audit entry %d", n)
	}
	if n < oldest {
		return fmt.Errorf("%s: %w meanwhile", name, store.ErrCompacted)
	}
	return s.corrupt(name, errors.New("it is missing"))
}

// first is the first value of a range.
func first(c *bbolt.Cursor, from uint64, newest bool) (k, v []byte) {
	switch {
	case !newest:
		return c.Seek(number(from))
	case from == 0:
		return c.Last()
	}
	if k, v = c.Seek(number(from)); k == nil {
		return c.Last()
	}
	if binary.BigEndian.Uint64(k) > from {
		return c.Prev()
	}
	return k, v
}

func next(c *bbolt.Cursor, newest bool) (k, v []byte) {
	if newest {
		return c.Prev()
	}
	return c.Next()
}

// Watch is store.Store's.
func (s *Store) Watch(ctx context.Context, after uint64) iter.Seq2[store.Revision, error] {
	return func(yield func(store.Revision, error) bool) {
		for {
			s.mu.Lock()
			news := s.news
			s.mu.Unlock()
			now, err := s.readState(ctx)
			if err == nil && after > now.Revision {
				err = fmt.Errorf("revision %d: %w: the last is %d", after, store.ErrNotFound, now.Revision)
			}
			if err != nil {
				yield(store.Revision{}, err)
				return
			}
			for r, err := range s.Revisions(ctx, store.Range{From: after + 1}) {
				if err == nil && r.Number != after+1 {
					err = fmt.Errorf("revision %d: %w: the oldest is %d", after+1, store.ErrCompacted, r.Number)
				}
				if err != nil {
					yield(store.Revision{}, err)
					return
				}
				if !yield(r, nil) {
					return
				}
				after = r.Number
			}
			select {
			case <-news:
			case <-s.closed:
				yield(store.Revision{}, store.ErrClosed)
				return
			case <-ctx.Done():
				yield(store.Revision{}, ctx.Err())
				return
			}
		}
	}
}
