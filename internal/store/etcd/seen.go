package etcd

import (
	"context"
	"encoding/json"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
)

var _ store.Witness = (*Store)(nil)

// seenName is the name of the key that has what managers have seen. No commit writes it: who tells
// that the store was rolled back may not write to it.
const seenName = "seen"

// Told is store.Witness's.
func (s *Store) Told(ctx context.Context) (out store.Seen, err error) {
	r, err := s.get(ctx, s.prefix+seenName, false)
	if err != nil || len(r.Kvs) == 0 {
		return out, err
	}
	data, err := store.OpenFrame(seenName, r.Kvs[0].Value)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return store.Seen{}, s.corrupt("what managers have seen of it, the key "+s.prefix+seenName, err)
	}
	return out, nil
}

// Tell is store.Witness's.
func (s *Store) Tell(ctx context.Context, seen store.Seen) error {
	data, err := json.Marshal(&seen)
	if err != nil {
		return err
	}
	return s.retry(ctx, s.config.ReadTimeout, func(ctx context.Context) error {
		_, _, err := s.txn(ctx, nil, []clientv3.Op{clientv3.OpPut(s.prefix+seenName, string(store.SealFrame(seenName, data)))})
		return err
	})
}
