package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// ErrRepeat says that an idempotency key was used for something else.
var ErrRepeat = errors.New("the idempotency key was used for another request")

const (
	// RepeatedFor is how long an idempotency key is remembered.
	RepeatedFor = 24 * time.Hour
	// RepeatedMax is how many idempotency keys of one tenant are remembered: a further one
	// has the oldest forgotten.
	RepeatedMax = 10_000
	// forgottenMax is how many idempotency keys one change forgets.
	forgottenMax = 100
	// repeatedPrefix begins the keys of idempotency keys in the store.
	repeatedPrefix = "repeated/"
)

// repeated is what is kept of the answer for an idempotency key: where the history has the
// rest.
type repeated struct {
	Digest   string    `json:"digest"`
	Revision uint64    `json:"revision"`
	At       time.Time `json:"at"`
	// Tenant is the caller's.
	Tenant string `json:"tenant,omitempty"`
	// Changed reports whether the request made Revision. One that changed nothing has the last
	// one, which somebody else may have made.
	Changed bool `json:"changed,omitempty"`
	// Touched is that of the Result, of one that changed nothing.
	Touched uint64 `json:"touched,omitempty"`
}

// repeatKey is an idempotency key with its caller, whose name has no slash.
func repeatKey(by resource.Caller, key string) string { return by.Name + "/" + key }

// digest is the Digest of a request, or that of its change.
func (r *Request) digest(change []byte) string {
	if r.Digest != "" {
		return r.Digest
	}
	sum := sha256.Sum256(append([]byte(r.Change.Action()+"\n"), change...))
	return hex.EncodeToString(sum[:])
}

// Repeats reports whether a caller has made a change with an idempotency key. It waits
// for the change that is being made.
func (s *Service) Repeats(by resource.Caller, key string) bool {
	s.write.Lock()
	defer s.write.Unlock()
	_, again := s.repeats.of[repeatKey(by, key)]
	return again && key != ""
}

// again is the answer to a request that was made before with its idempotency key: what it
// changed then, as the history has it, and what has become of that since; nil for a request
// that was not made before. Who calls it holds write.
func (s *Service) again(ctx context.Context, r Request, digest string) (*Result, error) {
	old, again := s.repeats.of[repeatKey(r.By, r.Repeat)]
	if r.Repeat == "" || !again {
		return nil, nil
	}
	if old.Digest != digest {
		return nil, ErrRepeat
	}
	result := &Result{Revision: old.Revision, Repeated: true, Words: []string{}, Touched: old.Touched}
	if !old.Changed {
		return result, nil
	}
	record, err := s.record(ctx, old.Revision)
	switch {
	case errors.Is(err, store.ErrCompacted), errors.Is(err, store.ErrNotFound):
		return result, nil // it was made, and more is not known
	case err != nil:
		return nil, err
	case record.By != r.By.Name || record.Tenant != r.By.Tenant:
		return nil, ErrRepeat // the store is not the one that the key was kept in
	}
	result.Words, result.Outcome = record.Words, record.Outcome
	if record.Told != nil {
		result.Words = record.Told
	}
	for _, e := range record.Edits {
		edit := resource.Edit{Key: e.Key}
		if edit.Before, err = object(e.Key, e.Before); err == nil {
			edit.After, err = object(e.Key, e.After)
		}
		if err != nil {
			return nil, err
		}
		result.Keys, result.Edits = append(result.Keys, e.Key), append(result.Edits, edit)
	}
	return result, nil
}

// remember stores the idempotency key of a request that changed nothing: when it comes
// again it changes nothing either, though it could.
func (s *Service) remember(ctx context.Context, key string, r Request, v repeated) error {
	if r.Repeat == "" {
		return nil
	}
	data, _ := json.Marshal(v)
	forgotten := s.repeats.old(v.At, v.Tenant)
	err := s.put(ctx, store.Commit{
		Epoch: s.epoch, After: v.Revision, Puts: []store.Object{{Key: repeatedPrefix + key, Value: data}}, Deletes: forgotten.keys(),
	})
	if err != nil {
		return err
	}
	s.repeats.forget(forgotten)
	s.repeats.add(key, v)
	return nil
}

// repeats are the idempotency keys that are remembered, with their callers.
type repeats struct {
	of map[string]repeated
	// all are the keys of of, the oldest first, and tenants those of each tenant. One that
	// was forgotten may still be in a list.
	all     aged
	tenants map[string]aged
	count   map[string]int // by tenant
}

// aged are keys by age.
type aged []agedKey

type agedKey struct {
	key string
	at  time.Time
}

// keys are those of the store.
func (a aged) keys() (list []string) {
	for _, x := range a {
		list = append(list, repeatedPrefix+x.key)
	}
	return list
}

func newRepeats(of map[string]repeated) repeats {
	r := repeats{of: map[string]repeated{}, tenants: map[string]aged{}, count: map[string]int{}}
	for _, key := range slices.SortedFunc(maps.Keys(of), func(a, b string) int { return of[a].At.Compare(of[b].At) }) {
		r.add(key, of[key])
	}
	return r
}

func (r *repeats) add(key string, v repeated) {
	r.of[key] = v
	x := agedKey{key, v.At}
	r.all = append(r.all, x)
	r.tenants[v.Tenant] = append(r.tenants[v.Tenant], x)
	r.count[v.Tenant]++
}

// old are the keys to forget when a tenant adds one: those that are too old, and the oldest
// of the tenant where it has too many.
func (r *repeats) old(now time.Time, tenant string) (list aged) {
	for _, x := range r.all {
		if len(list) == forgottenMax || now.Sub(x.at) <= RepeatedFor {
			break
		}
		if r.has(x) {
			list = append(list, x)
		}
	}
	room := r.count[tenant] - RepeatedMax + 1
	for _, x := range list {
		if r.of[x.key].Tenant == tenant {
			room--
		}
	}
	for _, x := range r.tenants[tenant] {
		if room <= 0 || len(list) >= 2*forgottenMax {
			break
		}
		if r.has(x) && !slices.Contains(list, x) {
			list, room = append(list, x), room-1
		}
	}
	return list
}

// has reports whether a key of a list is still remembered.
func (r *repeats) has(x agedKey) bool {
	v, is := r.of[x.key]
	return is && v.At.Equal(x.at)
}

func (r *repeats) forget(list aged) {
	for _, x := range list {
		tenant := r.of[x.key].Tenant
		delete(r.of, x.key)
		if r.count[tenant]--; r.count[tenant] == 0 {
			delete(r.count, tenant)
		}
		if r.tenants[tenant] = r.present(r.tenants[tenant]); len(r.tenants[tenant]) == 0 {
			delete(r.tenants, tenant)
		}
	}
	if r.all = r.present(r.all); len(r.all) > 2*len(r.of)+forgottenMax {
		r.all = slices.DeleteFunc(r.all, func(x agedKey) bool { return !r.has(x) })
	}
}

// present is a list without what was forgotten at its start.
func (r *repeats) present(list aged) aged {
	for len(list) > 0 && !r.has(list[0]) {
		list = list[1:]
	}
	return list
}
