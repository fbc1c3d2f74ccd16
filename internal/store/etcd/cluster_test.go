package etcd

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/storetest"
)

const (
	members   = storetest.Members
	startWait = storetest.StartWait
)

// cluster is a real etcd cluster, and the stores in it.
type cluster struct{ *storetest.Cluster }

func startCluster(t testing.TB, args ...string) cluster {
	t.Helper()
	return cluster{storetest.StartEtcd(t, args...)}
}

func (c cluster) open(t testing.TB, prefix string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Endpoints: c.Endpoints(), Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answered asks the store until a majority answers: members that are kept waiting by a busy
// machine elect another leader, and meanwhile the store cannot be reached. Another error
// fails the test.
func answered(t testing.TB, ask func() error) {
	t.Helper()
	for late := time.Now().Add(startWait); ; {
		err := ask()
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

// hasty opens the store of a place with short time-outs.
func (c cluster) hasty(t testing.TB, p storetest.Place) *Store {
	t.Helper()
	s := p.Open(t).(*Store)
	s.config.ReadTimeout, s.config.CommitTimeout = 1500*time.Millisecond, 3*time.Second
	return s
}

var places atomic.Int64

// place is a store with a prefix of its own.
func (c cluster) place(testing.TB) storetest.Place {
	prefix := fmt.Sprintf("/test/%d/", places.Add(1))
	return storetest.Place{
		Open:   func(t testing.TB) store.Store { t.Helper(); return c.open(t, prefix) },
		Renew:  c.place,
		Shared: true,
	}
}

// direct is the connection to a member.
func (s *Store) direct(t testing.TB) *clientv3.Client {
	t.Helper()
	first, _ := s.endpoints.leading()
	client, err := s.endpoints.client(first)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
