package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
)

// askNext is how long a request waits for one member until it goes to the next one too: more
// than a healthy member takes, and less than half of the lease that managers write by.
const askNext = 200 * time.Millisecond

// endpoints are the members of a cluster, each with a connection of its own. A request goes to
// the first one; while there is no answer, to the others too, and the first answer
// counts. Whoever gave that is the first from then on. So a member that is stopped, or cut
// off, costs one request askNext, and the others nothing.
type endpoints struct {
	config clientv3.Config // but for the endpoint
	all    []*endpoint

	mu    sync.Mutex
	first int
	moved chan struct{} // closed when another one becomes the first
}

// endpoint is one of them.
type endpoint struct {
	url    string
	mu     sync.Mutex
	client *clientv3.Client // nil until it was needed
}

func newEndpoints(urls []string, c clientv3.Config) *endpoints {
	m := &endpoints{config: c, moved: make(chan struct{})}
	for _, e := range urls {
		m.all = append(m.all, &endpoint{url: e})
	}
	return m
}

// client is the connection to a member.
func (m *endpoints) client(i int) (*clientv3.Client, error) {
	x := m.all[i]
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.client != nil {
		return x.client, nil
	}
	c := m.config
	c.Endpoints = []string{x.url}
	client, err := clientv3.New(c)
	if err == nil {
		x.client = client
	}
	return client, err
}

// close ends all connections. Nothing is asked any more.
func (m *endpoints) close() (err error) {
	for _, x := range m.all {
		x.mu.Lock()
		if x.client != nil {
			err = errors.Join(err, x.client.Close())
		}
		x.mu.Unlock()
	}
	return err
}

// leading is the member that is asked first, and what is closed when that changes.
func (m *endpoints) leading() (first int, moved <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first, m.moved
}

// prefer makes a member the first one, in place of the one that it was faster than.
func (m *endpoints) prefer(i, before int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i == before || m.first != before {
		return
	}
	m.first = i
	close(m.moved)
	m.moved = make(chan struct{})
}

// answer is what a member said to a request.
type answer[T any] struct {
	by  int
	out T
	err error
}

// ask makes a request, and tells how many members it went to: any of them may carry it out,
// also later.
func ask[T any](ctx context.Context, s *Store, request func(context.Context, *clientv3.Client) (T, error)) (out T, asked int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of those who have not answered
	m := s.endpoints
	first, _ := m.leading()
	answers := make(chan answer[T], len(m.all))
	next := func() {
		a := answer[T]{by: (first + asked) % len(m.all)}
		asked++
		go func() {
			client, err := m.client(a.by)
			if a.err = err; err == nil {
				a.out, a.err = request(ctx, client)
			}
			answers <- a
		}()
	}
	next()
	for answered := 0; ; {
		var late <-chan time.Time
		if asked < len(m.all) {
			late = time.After(askNext)
		}
		select {
		case a := <-answers:
			if s.said(a.err) {
				m.prefer(a.by, first)
				return a.out, asked, a.err
			}
			if answered++; answered == len(m.all) || ctx.Err() != nil {
				return a.out, asked, a.err
			}
			if answered == asked { // nobody else is asked by now
				next()
			}
		case <-late:
			next()
		case <-ctx.Done():
			return out, asked, ctx.Err()
		}
	}
}

// said reports whether a member has answered a request, be it by a refusal.
func (s *Store) said(err error) bool {
	return err == nil || !errors.Is(s.explain(context.Background(), err), store.ErrUnavailable)
}

// txn makes a transaction.
func (s *Store) txn(ctx context.Context, only []clientv3.Cmp, then []clientv3.Op, otherwise ...clientv3.Op) (*clientv3.TxnResponse, int, error) {
	return ask(ctx, s, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).If(only...).Then(then...).Else(otherwise...).Commit()
	})
}

// watch watches a key from a revision of etcd on, at the member that is asked first. It ends
// when that is another one.
func (s *Store) watch(ctx context.Context, key string, from int64) (<-chan clientv3.WatchResponse, context.CancelFunc) {
	first, moved := s.endpoints.leading()
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	client, err := s.endpoints.client(first)
	if err != nil {
		none := make(chan clientv3.WatchResponse)
		close(none)
		return none, cancel
	}
	go func() {
		select {
		case <-moved:
			cancel()
		case <-ctx.Done():
		}
	}()
	return client.Watch(ctx, key, clientv3.WithRev(from)), cancel
}
