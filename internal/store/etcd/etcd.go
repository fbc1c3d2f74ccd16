package etcd

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ibwarden/ibwarden/internal/store"
)

// Time-outs, of which a Config can say others. An election among members takes one to
// two seconds by etcd's defaults.
const (
	ReadTimeout   = 6 * time.Second  // of a read, with its attempts
	CommitTimeout = 12 * time.Second // of a commit, with its attempts
	WatchCheck    = 5 * time.Second  // how often a watch that hears nothing looks whether there is a majority
	dialTimeout   = 3 * time.Second
	keepAliveTime = 5 * time.Second // how often a connection without traffic is probed: servers take no more
	keepAliveWait = 3 * time.Second // for the answer to a probe
	retryPause    = 50 * time.Millisecond
)

// attempts of a read that no member answers: the next one asks another member.
const attempts = 3

// Format is the version of the format that this package writes.
const Format = 1

// DefaultPrefix is the prefix of a store when none is given.
const DefaultPrefix = "/ibwarden/"

// Config says where a store is.
type Config struct {
	Endpoints          []string // URLs of members: http://HOST:PORT or https://HOST:PORT
	Prefix             string   // of all keys, with a slash at its end; DefaultPrefix if it is empty
	TLS                *tls.Config
	Username, Password string

	ReadTimeout, CommitTimeout time.Duration // 0: the constants of this package
}

// state is the value of the key state.
type state struct {
	Format     int    `json:"format"`
	ID         string `json:"id"` // of the store: another one after a restore
	Incomplete bool   `json:"incomplete,omitempty"`
	Commit     string `json:"commit,omitempty"`  // the ID of the last commit
	Writer     string `json:"writer,omitempty"`  // the ID of the last Acquire: after etcd was restored another one may have the same epoch
	Pending    *blob  `json:"pending,omitempty"` // objects that are committed and not yet written to their keys
	store.State
}

// seen is a state as it was read.
type seen struct {
	state
	revision int64 // of etcd, at which it was written
}

// Store is a store in an etcd cluster. It is a store.Store.
type Store struct {
	endpoints *endpoints
	prefix    string
	config    Config
	where     string // for errors
	ctx       context.Context
	close     context.CancelFunc
	now       func() time.Time

	write sync.Mutex // held while writing
	mu    sync.Mutex // of what follows
	last  seen       // the state that was seen last
	id    string     // of the store that was opened or acquired
	lease held       // that was acquired last
	mine  acquired   // the last Acquire of this handle
}

// acquired is what an Acquire came to.
type acquired struct {
	epoch  store.Epoch
	writer string
}

var _ store.Store = (*Store)(nil)

// Open connects to a cluster, and makes the store if it is not there. It fails with
// ErrUnavailable if there is no majority, with ErrNewer and ErrCorrupt.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if !strings.HasSuffix(c.Prefix, "/") || len(c.Endpoints) == 0 {
		return nil, fmt.Errorf("etcd %v, prefix %q: want endpoints, and a prefix that ends with /", c.Endpoints, c.Prefix)
	}
	if c.ReadTimeout <= 0 {
		c.ReadTimeout = ReadTimeout
	}
	if c.CommitTimeout <= 0 {
		c.CommitTimeout = CommitTimeout
	}
	where := fmt.Sprintf("etcd %s%s", strings.Join(c.Endpoints, ","), c.Prefix)
	s := &Store{config: c, prefix: c.Prefix, where: where, now: time.Now}
	s.endpoints = newEndpoints(c.Endpoints, clientv3.Config{
		TLS: c.TLS, Username: c.Username, Password: c.Password, Logger: zap.NewNop(),
		DialTimeout: dialTimeout, DialKeepAliveTime: keepAliveTime, DialKeepAliveTimeout: keepAliveWait,
	})
	s.ctx, s.close = context.WithCancel(context.Background())
	if err := s.create(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// create writes the state of an empty store where there is none, and reads what is there.
func (s *Store) create(ctx context.Context) error {
	first, err := encodeState(&state{Format: Format, ID: randomID()})
	if err != nil {
		return err
	}
	key := s.prefix + "state"
	return s.retry(ctx, s.config.ReadTimeout, func(ctx context.Context) error {
		r, _, err := s.txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
			[]clientv3.Op{clientv3.OpPut(key, first), clientv3.OpGet(key)}, clientv3.OpGet(key))
		if err != nil {
			return err
		}
		got, err := s.decodeState(r.Responses[len(r.Responses)-1].GetResponseRange())
		if err != nil {
			return err
		}
		s.remember(got, true)
		return nil
	})
}

// Close ends watches and the connection.
func (s *Store) Close() error {
	s.close()
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.endpoints.close(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (s *Store) remember(got seen, adopt bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got.revision > s.last.revision {
		s.last = got
	}
	if adopt {
		s.id = got.ID
	}
}

// found notes the state that a commit found or made. It may be older than one before: after etcd
// was restored.
func (s *Store) found(at seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = at
}

func (s *Store) remembered() (seen, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.id
}

// retry tries until it succeeds, the time is over, or trying again is no use.
func (s *Store) retry(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	for {
		err := s.once(inner, f)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case s.ctx.Err() != nil:
			return store.ErrClosed
		case inner.Err() != nil:
			return fmt.Errorf("%s: %w: no answer of a majority within %s", s.where, store.ErrUnavailable, limit)
		case !errors.Is(err, store.ErrUnavailable):
			return err
		}
		select {
		case <-time.After(retryPause):
		case <-inner.Done():
		}
	}
}

// attemptWait is how long one attempt may take.
func (s *Store) attemptWait() time.Duration { return s.config.ReadTimeout / attempts }

// once makes one attempt.
func (s *Store) once(ctx context.Context, f func(context.Context) error) error {
	inner, cancel := context.WithTimeout(ctx, s.attemptWait())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if err := f(inner); err != nil {
		return s.explain(ctx, err)
	}
	return nil
}

// explain makes an error of package store out of one of etcd's client.
func (s *Store) explain(ctx context.Context, err error) error {
	switch {
	case s.ctx.Err() != nil:
		return store.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	for _, own := range []error{store.ErrUnavailable, store.ErrFull, store.ErrCorrupt, store.ErrNewer, store.ErrFenced, store.ErrHeld, store.ErrStale,
		store.ErrNotFound, store.ErrCompacted, store.ErrIncomplete, store.ErrNotEmpty, store.ErrTooLarge, store.ErrInvalid, store.ErrRetention, store.ErrRolledBack, errMoved} {
		if errors.Is(err, own) {
			return err
		}
	}
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%s: %w: its alarm NOSPACE is set: compact and defragment it, then disarm the alarm", s.where, store.ErrFull)
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%s: %w: --max-request-bytes of the servers is lower than etcd's default of 1.5 MiB", s.where, store.ErrTooLarge)
	case errors.Is(err, rpctypes.ErrCorrupt):
		return s.corrupt("a member", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: no answer of a majority within %s", s.where, store.ErrUnavailable, s.attemptWait())
	}
	if refused(err) {
		return fmt.Errorf("%s: %w", s.where, err)
	}
	return fmt.Errorf("%s: %w: %w", s.where, store.ErrUnavailable, err)
}

// refused reports whether a member refused a request, as each of them would.
func refused(err error) bool {
	code := status.Code(err)
	var etcd rpctypes.EtcdError
	if errors.As(err, &etcd) {
		code = etcd.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated:
		return true
	}
	return false
}

func encodeState(st *state) (string, error) {
	data, err := json.Marshal(st)
	return string(store.SealFrame("state", data)), err
}

// decodeState reads the answer to a Get of the key state.
func (s *Store) decodeState(r rangeResponse) (out seen, err error) {
	if len(r.GetKvs()) == 0 {
		return out, s.corrupt("its state", errors.New("the key is gone"))
	}
	kv := r.GetKvs()[0]
	data, err := store.OpenFrame("state", kv.Value)
	if err == nil {
		err = json.Unmarshal(data, &out.state)
	}
	if err == nil && (out.Format < 1 || out.ID == "") {
		err = fmt.Errorf("format %d, identity %q", out.Format, out.ID)
	}
	if err != nil {
		return out, s.corrupt("its state", err)
	}
	if out.Format > Format {
		return out, &store.NewerError{What: s.where, Has: out.Format, Knows: Format}
	}
	out.revision = kv.ModRevision
	return out, nil
}

// whole looks whether a restore has ended.
func (s *Store) whole(st *state) error {
	if st.Incomplete {
		return fmt.Errorf("%s: %w", s.where, store.ErrIncomplete)
	}
	return nil
}

func (s *Store) corrupt(part string, err error) error {
	return &store.CorruptError{What: s.where, Part: part, Err: err}
}

func randomID() string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func number(n uint64) string { return fmt.Sprintf("%016x", n) }
