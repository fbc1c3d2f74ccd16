package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
)

// leaseSilence is how long a follower of the lease, which its holder renews several times a
// second, waits for news until it asks whether there are any: the member that it watches may be
// the one that is stopped.
const leaseSilence = 500 * time.Millisecond

// held is the value of the key lease.
type held struct {
	ID    string      `json:"id"` // of this term
	Epoch store.Epoch `json:"epoch"`
	Given bool        `json:"given,omitempty"`
	TTL   int64       `json:"ttl_ms"`
}

var _ store.Leaser = (*Store)(nil)

func (s *Store) leaseKey() string { return s.prefix + "lease" }

// decodeLease reads the lease; kv is nil where there is none.
func (s *Store) decodeLease(kv *mvccpb.KeyValue) (store.Lease, error) {
	if kv == nil {
		return store.Lease{}, nil
	}
	var h held
	if err := json.Unmarshal(kv.Value, &h); err != nil || h.TTL < 0 || h.TTL > int64(time.Hour/time.Millisecond) {
		return store.Lease{}, s.corrupt("the lease", fmt.Errorf("%q: %w", kv.Value, err))
	}
	return store.Lease{Version: kv.ModRevision, Epoch: h.Epoch, Given: h.Given, TTL: time.Duration(h.TTL) * time.Millisecond}, nil
}

// FollowLease is store.Leaser's.
func (s *Store) FollowLease(ctx context.Context, see func(store.Lease)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	for ctx.Err() == nil {
		r, err := s.get(ctx, s.leaseKey(), false)
		if err != nil {
			return err
		}
		var first *mvccpb.KeyValue
		if len(r.Kvs) > 0 {
			first = r.Kvs[0]
		}
		l, err := s.decodeLease(first)
		if err != nil {
			return err
		}
		see(l)
		if err := s.followLease(ctx, r.Header.Revision+1, see); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// followLease sees every change of the lease from a revision of etcd on, until nothing was
// heard for leaseSilence, or another member is asked.
func (s *Store) followLease(ctx context.Context, from int64, see func(store.Lease)) error {
	news, end := s.watch(ctx, s.leaseKey(), from)
	defer end()
	silence := time.NewTimer(leaseSilence)
	defer silence.Stop()
	for {
		select {
		case w, more := <-news:
			if !more {
				return nil
			}
			if err := w.Err(); err != nil {
				return s.explain(ctx, err)
			}
			for _, e := range w.Events {
				if e.Type != clientv3.EventTypePut {
					continue
				}
				l, err := s.decodeLease(e.Kv)
				if err != nil {
					return err
				}
				see(l)
			}
			silence.Reset(leaseSilence)
		case <-silence.C:
			return nil
		}
	}
}

// AcquireLease is store.Leaser's.
func (s *Store) AcquireLease(ctx context.Context, owner string, version int64, ttl time.Duration) (store.Epoch, error) {
	unchanged := clientv3.Compare(clientv3.ModRevision(s.leaseKey()), "=", version)
	var mine held
	epoch, err := s.acquire(ctx, owner, func(ctx context.Context, next *state) ([]clientv3.Op, error) {
		r, err := s.get(ctx, s.leaseKey(), false)
		if err != nil {
			return nil, err
		}
		if len(r.Kvs) > 0 && r.Kvs[0].ModRevision != version || len(r.Kvs) == 0 && version != 0 {
			return nil, fmt.Errorf("%s: %w", s.where, store.ErrHeld)
		}
		mine = held{ID: randomID(), Epoch: next.Epoch, TTL: ttl.Milliseconds()}
		data, err := json.Marshal(&mine)
		return []clientv3.Op{clientv3.OpPut(s.leaseKey(), string(data))}, err
	}, unchanged)
	if err == nil {
		s.mu.Lock()
		s.lease = mine
		s.mu.Unlock()
	}
	return epoch, err
}

// RenewLease is store.Leaser's.
func (s *Store) RenewLease(ctx context.Context) error { return s.writeLease(ctx, false) }

// GiveLease is store.Leaser's.
func (s *Store) GiveLease(ctx context.Context) error { return s.writeLease(ctx, true) }

func (s *Store) writeLease(ctx context.Context, gives bool) error {
	s.mu.Lock()
	mine := s.lease
	s.mu.Unlock()
	is, err := json.Marshal(&mine)
	if err != nil {
		return err
	}
	mine.Given = gives
	data, err := json.Marshal(&mine)
	if err != nil {
		return err
	}
	key := s.leaseKey()
	// An older version takes the store over without the lease: so the epoch is looked at too.
	state := clientv3.OpGet(s.prefix + "state")
	r, _, err := s.txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.Value(key), "=", string(is))},
		[]clientv3.Op{clientv3.OpPut(key, string(data)), state}, clientv3.OpGet(key), state)
	if err != nil {
		return s.explain(ctx, err)
	}
	// Where the answer of one member was late and another was asked, it is written already.
	written := r.Succeeded
	if !written {
		kvs := r.Responses[0].GetResponseRange().Kvs
		written = len(kvs) == 1 && string(kvs[0].Value) == string(data)
	}
	at, err := s.decodeState(r.Responses[len(r.Responses)-1].GetResponseRange())
	switch {
	case err != nil:
		return err
	case !written || at.Epoch != mine.Epoch:
		return store.Fenced(mine.Epoch, &at.State)
	}
	return nil
}
