package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
)

// Sizes. A transaction that commits has at most: inlineRevision, inlineOutcome for
// each outcome, the entries, and inlineObjects; together less than the 1.5 MiB
// of a request. Its operations stay below the 128 of a transaction.
const (
	partBytes      = 1 << 20   // of a part
	partsRead      = 4         // parts read at a time
	inlineRevision = 128 << 10 // bytes of a revision that is not written in parts
	inlineOutcome  = 8 << 10   // bytes of an outcome that is not written in parts
	inlineObjects  = 256 << 10 // bytes of the objects of a commit that are not written in parts
	inlineChanges  = 60        // objects of a commit that are not written in parts
	batchOps       = 100       // operations in a transaction that only writes
	batchBytes     = 1 << 20   // bytes in it, but for a single larger value
)

// blob refers to a value in parts.
type blob struct {
	ID    string `json:"id"`
	Parts int    `json:"parts"`
}

type rangeResponse interface{ GetKvs() []*mvccpb.KeyValue }

var _ rangeResponse = (*etcdserverpb.RangeResponse)(nil)

func (s *Store) partKey(id string, n int) string {
	return s.prefix + "part/" + id + "/" + number(uint64(n))
}

// Kinds of values of revisions and outcomes: the first byte.
const (
	inline  = 0
	inParts = 1
)

// value makes the value of a revision or an outcome. If it is large, it writes the parts
// first, and adds the operation that enters them.
func (s *Store) value(ctx context.Context, at seen, name string, data []byte, most int, ops []clientv3.Op) (string, []clientv3.Op, error) {
	if len(data) <= most {
		return string(store.SealFrame(name, append([]byte{inline}, data...))), ops, nil
	}
	b, err := s.writeParts(ctx, at, data)
	if err != nil {
		return "", nil, err
	}
	ref, err := json.Marshal(b)
	if err != nil {
		return "", nil, err
	}
	ops = append(ops, clientv3.OpPut(s.prefix+"blob/"+b.ID, name))
	return string(store.SealFrame(name, append([]byte{inParts}, ref...))), ops, nil
}

// writeParts writes data under a new ID, which no earlier request can name.
func (s *Store) writeParts(ctx context.Context, at seen, data []byte) (*blob, error) {
	b := &blob{ID: number(uint64(at.Epoch)) + "-" + randomID()}
	for ; len(data) > 0; b.Parts++ {
		n := min(len(data), partBytes)
		key := s.partKey(b.ID, b.Parts)
		if err := s.put(ctx, at, clientv3.OpPut(key, string(store.SealFrame(key[len(s.prefix):], data[:n])))); err != nil {
			return nil, err
		}
		data = data[n:]
	}
	return b, nil
}

// put writes without a commit: parts, or objects that are pending. It fails with errMoved
// if the state is not the one that was seen. Writing the same twice does no harm.
func (s *Store) put(ctx context.Context, at seen, ops ...clientv3.Op) error {
	key := s.prefix + "state"
	return s.retry(ctx, s.config.CommitTimeout, func(ctx context.Context) error {
		r, _, err := s.txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", at.revision)}, ops, clientv3.OpGet(key))
		if err != nil {
			return err
		}
		if r.Succeeded {
			return nil
		}
		got, err := s.decodeState(r.Responses[0].GetResponseRange())
		if err == nil {
			s.remember(got, false)
			err = errMoved
		}
		return err
	})
}

// errMoved says that the state is not the one that was seen.
var errMoved = errors.New("the state of the store has changed")

// data is the data of a revision or an outcome.
func (s *Store) data(ctx context.Context, name string, value []byte, mayLack bool) ([]byte, error) {
	v, err := store.OpenFrame(name, value)
	if err == nil && len(v) == 0 {
		err = errors.New("no bytes")
	}
	if err != nil {
		return nil, s.corrupt(name, err)
	}
	switch v[0] {
	case inline:
		return v[1:], nil
	case inParts:
		var b blob
		if err := json.Unmarshal(v[1:], &b); err != nil {
			return nil, s.corrupt(name, err)
		}
		return s.readParts(ctx, name, b, 0, mayLack)
	}
	return nil, s.corrupt(name, fmt.Errorf("a value of kind %d", v[0]))
}

// readParts reads a value in parts, as it was at a revision of etcd, 0 for now.
func (s *Store) readParts(ctx context.Context, name string, b blob, revision int64, mayLack bool) ([]byte, error) {
	var out []byte
	for n := 0; n < b.Parts; {
		r, err := s.get(ctx, s.partKey(b.ID, n), mayLack, clientv3.WithRange(s.partKey(b.ID, b.Parts)), clientv3.WithLimit(partsRead), clientv3.WithRev(revision))
		if err != nil {
			return nil, err
		}
		for _, kv := range r.Kvs {
			key := s.partKey(b.ID, n)
			data, err := store.OpenFrame(key[len(s.prefix):], kv.Value)
			if err != nil || string(kv.Key) != key {
				return nil, s.corrupt(name, fmt.Errorf("part %d of %d: %w", n, b.Parts, err))
			}
			out = append(out, data...)
			n++
		}
		if len(r.Kvs) == 0 {
			return nil, s.corrupt(name, fmt.Errorf("part %d of %d is missing", n, b.Parts))
		}
	}
	return out, nil
}

// get reads keys, with retries.
func (s *Store) get(ctx context.Context, key string, mayLack bool, opts ...clientv3.OpOption) (out *clientv3.GetResponse, err error) {
	if mayLack {
		opts = append(opts, clientv3.WithSerializable())
	}
	err = s.retry(ctx, s.config.ReadTimeout, func(ctx context.Context) (err error) {
		out, _, err = ask(ctx, s, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
			return c.Get(ctx, key, opts...)
		})
		return err
	})
	return out, err
}

// sweep deletes parts that nothing refers to any more: of commits that did not come to
// their end, of revisions that were trimmed, of outcomes that were replaced.
func (s *Store) sweep(ctx context.Context, at seen) error {
	blobs, err := s.get(ctx, s.prefix+"blob/", false, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, kv := range blobs.Kvs {
		id, name := strings.TrimPrefix(string(kv.Key), s.prefix+"blob/"), string(kv.Value)
		owner, err := s.get(ctx, s.prefix+name, false)
		if err != nil {
			return err
		}
		if len(owner.Kvs) == 1 && strings.Contains(string(owner.Kvs[0].Value), id) {
			used[id] = true
			continue
		}
		if err := s.put(ctx, at, clientv3.OpDelete(string(kv.Key)), clientv3.OpDelete(s.prefix+"part/"+id+"/", clientv3.WithPrefix())); err != nil {
			return err
		}
	}
	if at.Pending != nil {
		used[at.Pending.ID] = true
	}
	parts, err := s.get(ctx, s.prefix+"part/", false, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	for _, kv := range parts.Kvs {
		id, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), s.prefix+"part/"), "/")
		if used[id] || id >= number(uint64(at.Epoch)) { // it begins with its epoch: those of this one may be in the making
			continue
		}
		used[id] = true // deleted once
		if err := s.put(ctx, at, clientv3.OpDelete(s.prefix+"part/"+id+"/", clientv3.WithPrefix())); err != nil {
			return err
		}
	}
	return nil
}
