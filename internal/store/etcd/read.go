package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
)

// How much is read at a time.
const (
	pageValues  = 64
	pageObjects = 1000
)

// readState reads the state, as a majority has it.
func (s *Store) readState(ctx context.Context, mayLack bool) (seen, error) {
	r, err := s.get(ctx, s.prefix+"state", mayLack)
	if err != nil {
		return seen{}, err
	}
	got, err := s.decodeState((*rangeOf)(r))
	if err == nil {
		s.remember(got, false)
	}
	return got, err
}

// rangeOf lets a GetResponse be read as the answers in transactions are.
type rangeOf clientv3.GetResponse

func (r *rangeOf) GetKvs() []*mvccpb.KeyValue { return r.Kvs }

// Load is store.Store's.
func (s *Store) Load(ctx context.Context) (*store.Contents, error) {
	for {
		out, err := s.load(ctx)
		if !errors.Is(err, rpctypes.ErrCompacted) { // between two pages
			return out, err
		}
	}
}

func (s *Store) load(ctx context.Context) (*store.Contents, error) {
	r, err := s.get(ctx, s.prefix+"state", false)
	if err != nil {
		return nil, err
	}
	at, err := s.decodeState((*rangeOf)(r))
	if err == nil {
		s.remember(at, false)
		err = s.whole(&at.state)
	}
	if err != nil {
		return nil, err
	}
	out := &store.Contents{
		Revision: at.Revision, Oldest: at.Oldest, Audit: at.Audit, Checkpoint: at.Checkpoint, Epoch: at.Epoch, Owner: at.Owner,
	}
	moment := r.Header.Revision
	if out.Objects, err = s.readObjects(ctx, "", 0, moment); err != nil {
		return nil, err
	}
	if at.Pending == nil {
		return out, nil
	}
	p, err := s.readPending(ctx, at, moment)
	if err != nil {
		return nil, err
	}
	p.Puts = slices.DeleteFunc(p.Puts, func(o store.Object) bool { return strings.HasPrefix(o.Key, store.Aside) })
	out.Objects = p.over(out.Objects)
	return out, nil
}

// readObjects reads the objects whose keys begin with a prefix and that were written after a
// revision of etcd, as they were at another.
func (s *Store) readObjects(ctx context.Context, prefix string, after, moment int64) (out []store.Object, err error) {
	start := s.prefix + objectName(prefix)
	end := clientv3.GetPrefixRangeEnd(start)
	for more := true; more; {
		opts := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(pageObjects), clientv3.WithRev(moment)}
		if after > 0 {
			opts = append(opts, clientv3.WithMinModRev(after+1))
		}
		r, err := s.get(ctx, start, false, opts...)
		if err != nil {
			return nil, err
		}
		for _, kv := range r.Kvs {
			name := string(kv.Key[len(s.prefix):])
			value, err := store.OpenFrame(name, kv.Value)
			if err != nil {
				return nil, s.corrupt(fmt.Sprintf("object %q", strings.TrimPrefix(name, "object/")), err)
			}
			out = append(out, store.Object{Key: strings.TrimPrefix(name, "object/"), Value: value})
			start = string(kv.Key) + "\x00"
		}
		more = r.More
	}
	return out, nil
}

// over is what objects are with those that are pending.
func (p *pending) over(objects []store.Object) []store.Object {
	all := make(map[string]store.Object, len(objects)+len(p.Puts))
	for _, o := range slices.Concat(objects, p.Puts) {
		if o.Value == nil {
			o.Value = []byte{}
		}
		all[o.Key] = o
	}
	for _, k := range p.Deletes {
		delete(all, k)
	}
	if len(all) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(all), func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })
}

// Revision is store.Store's.
func (s *Store) Revision(ctx context.Context, n uint64) (store.Revision, error) {
	at, err := s.readState(ctx, false)
	if err == nil {
		err = s.whole(&at.state)
	}
	if err == nil {
		err = at.Has(n)
	}
	if err != nil {
		return store.Revision{}, err
	}
	for r, err := range s.Revisions(ctx, store.Range{From: n, Limit: 1}) {
		return r, err
	}
	return store.Revision{}, fmt.Errorf("revision %d: %w", n, store.ErrCompacted)
}

// Revisions is store.Store's.
func (s *Store) Revisions(ctx context.Context, r store.Range) iter.Seq2[store.Revision, error] {
	return pages(ctx, s, r, "revision/", func(st *store.State) (uint64, uint64) { return st.Oldest, st.Revision },
		func(n uint64, value, outcome []byte) (store.Revision, error) {
			return s.revision(ctx, n, value, outcome, r.MayLack)
		})
}

// Audit is store.Store's.
func (s *Store) Audit(ctx context.Context, r store.Range) iter.Seq2[store.Entry, error] {
	return pages(ctx, s, r, "audit/", func(st *store.State) (uint64, uint64) { return st.Checkpoint.Sequence + 1, st.Audit.Sequence },
		func(n uint64, value, _ []byte) (store.Entry, error) {
			name := "audit/" + number(n)
			line, err := store.OpenFrame(name, value)
			var e store.Entry
			if err == nil {
				e, err = store.ParseEntry(line)
			}
			if err == nil && e.Sequence != n {
				err = fmt.Errorf("it says it is entry %d", e.Sequence)
			}
			if err != nil {
				err = s.corrupt(fmt.Sprintf("audit entry %d", n), err)
			}
			return e, err
		})
}

func (s *Store) revision(ctx context.Context, n uint64, value, outcome []byte, mayLack bool) (store.Revision, error) {
	name := "revision/" + number(n)
	data, err := s.data(ctx, name, value, mayLack)
	if err != nil {
		return store.Revision{}, err
	}
	if len(data) < 16 {
		return store.Revision{}, s.corrupt(name, errors.New("too short for its epoch"))
	}
	epoch, err := strconv.ParseUint(string(data[:16]), 16, 64)
	if err != nil {
		return store.Revision{}, s.corrupt(name, err)
	}
	out := store.Revision{Number: n, Epoch: store.Epoch(epoch), Data: data[16:]}
	if outcome != nil {
		if out.Outcome, err = s.data(ctx, "outcome/"+number(n), outcome, mayLack); err != nil {
			return store.Revision{}, err
		}
	}
	return out, nil
}

// named is what a numbered value is called, by its kind.
var named = map[string]string{"revision/": "revision", "audit/": "audit entry"}

// pages yields numbered values, which lie without gaps between two numbers that the state
// says, and reads a page at a time.
func pages[T any](ctx context.Context, s *Store, r store.Range, kind string, bounds func(*store.State) (first, last uint64),
	read func(n uint64, value, outcome []byte) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		fail := func(err error) { var none T; yield(none, err) }
		at, err := s.readState(ctx, r.MayLack)
		if err == nil {
			err = s.whole(&at.state)
		}
		if err != nil {
			fail(err)
			return
		}
		first, last := bounds(&at.State)
		next := max(r.From, first)
		if r.Newest {
			if next = last; r.From != 0 {
				next = min(r.From, last)
			}
		}
		left := uint64(math.MaxUint64)
		if r.Limit > 0 {
			left = uint64(r.Limit)
		}
		for left > 0 && next >= first && next <= last && next > 0 {
			n := min(left, pageValues)
			a, b := next, min(next+n-1, last)
			if r.Newest {
				a, b = max(first, next-min(n, next)+1), next
			}
			page, now, err := s.page(ctx, kind, a, b, r.MayLack)
			if err != nil {
				fail(err)
				return
			}
			if first, last = bounds(&now.State); a < first {
				fail(fmt.Errorf("%s%d: %w meanwhile", kind, a, store.ErrCompacted))
				return
			}
			for i := a; i <= b; i++ {
				n := i
				if r.Newest {
					n = b - (i - a)
				}
				kv, ok := page[n]
				if !ok {
					fail(s.corrupt(fmt.Sprintf("%s %d", named[kind], n), errors.New("it is missing")))
					return
				}
				v, err := read(n, kv.value, kv.outcome)
				if err != nil {
					fail(err)
					return
				}
				if !yield(v, nil) {
					return
				}
			}
			left -= b - a + 1
			if next = b + 1; r.Newest {
				next = a - 1
			}
		}
	}
}

// numbered is a value, and the outcome of a revision.
type numbered struct{ value, outcome []byte }

// page reads the values from number a to b, and the state, at one moment.
func (s *Store) page(ctx context.Context, kind string, a, b uint64, mayLack bool) (out map[uint64]numbered, at seen, err error) {
	var opts []clientv3.OpOption
	if mayLack {
		opts = append(opts, clientv3.WithSerializable())
	}
	span := func(kind string) clientv3.Op {
		return clientv3.OpGet(s.prefix+kind+number(a), append(opts, clientv3.WithRange(s.prefix+kind+number(b)+"\x00"))...)
	}
	ops := []clientv3.Op{clientv3.OpGet(s.prefix+"state", opts...), span(kind)}
	if kind == "revision/" {
		ops = append(ops, span("outcome/"))
	}
	err = s.retry(ctx, s.config.ReadTimeout, func(ctx context.Context) error {
		r, _, err := s.txn(ctx, nil, ops)
		if err != nil {
			return err
		}
		if at, err = s.decodeState(r.Responses[0].GetResponseRange()); err != nil {
			return err
		}
		out = map[uint64]numbered{}
		for i, response := range r.Responses[1:] {
			for _, kv := range response.GetResponseRange().Kvs {
				key := kv.Key[bytes.LastIndexByte(kv.Key, '/')+1:]
				n, err := strconv.ParseUint(string(key), 16, 64)
				if err != nil {
					return s.corrupt(string(kv.Key), errors.New("the key has no number"))
				}
				v := out[n]
				if i == 0 {
					v.value = kv.Value
				} else {
					v.outcome = kv.Value
				}
				out[n] = v
			}
		}
		return s.whole(&at.state)
	})
	return out, at, err
}

// Watch is store.Store's.
func (s *Store) Watch(ctx context.Context, after uint64) iter.Seq2[store.Revision, error] {
	return func(yield func(store.Revision, error) bool) {
		var sum store.Hash // of the revision that was yielded last
		for {
			at, err := s.readState(ctx, false)
			if err == nil {
				err = s.whole(&at.state)
			}
			switch {
			case err != nil:
			case after > at.Revision:
				err = fmt.Errorf("revision %d: %w: the last is %d", after, store.ErrNotFound, at.Revision)
			case after+1 < at.Oldest:
				err = fmt.Errorf("revision %d: %w: the oldest is %d", after+1, store.ErrCompacted, at.Oldest)
			}
			if err != nil {
				yield(store.Revision{}, err)
				return
			}
			if after < at.Revision {
				from, again := after+1, false
				if sum != (store.Hash{}) && after >= at.Oldest { // etcd may have been restored, and written since
					from, again = after, true
				}
				for r, err := range s.Revisions(ctx, store.Range{From: from}) {
					switch {
					case err != nil:
					case again && (r.Number != from || store.Sum(r.Data) != sum):
						err = fmt.Errorf("revision %d: %w: it has another content now", after, store.ErrRolledBack)
					case again:
						again = false
						continue
					case r.Number != after+1:
						err = fmt.Errorf("revision %d: %w: the oldest is %d", after+1, store.ErrCompacted, r.Number)
					}
					if !yield(r, err) || err != nil {
						return
					}
					after, sum = r.Number, store.Sum(r.Data)
				}
				continue
			}
			s.await(ctx, at)
		}
	}
}

// await waits until the state is not the one that was seen, or for WatchCheck, or until
// something ends the wait: the caller looks what it is.
func (s *Store) await(ctx context.Context, at seen) {
	ctx, cancel := context.WithTimeout(ctx, WatchCheck)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	began := time.Now()
	news, end := s.watch(ctx, s.prefix+"state", at.revision+1)
	defer end()
	for r := range news {
		if len(r.Events) > 0 {
			return
		}
		if r.Err() != nil {
			break
		}
	}
	if time.Since(began) < retryPause { // a watch that ends at once, as one that was compacted away does
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
}
