package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// TestAsk: who is asked, whose answer counts, and who is asked first from then on, for every
// way in which three members can behave.
func TestAsk(t *testing.T) {
	t.Parallel()
	kinds := []string{memberAnswers, memberRefuses, memberFails, memberHangs}
	for n := range len(kinds) * len(kinds) * len(kinds) {
		is := []string{kinds[n%4], kinds[n/4%4], kinds[n/16]}
		t.Run(fmt.Sprint(is), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { asksMembers(t, is) }) // in its own time
		})
	}
}

// How a member behaves in TestAsk.
const memberAnswers, memberRefuses, memberFails, memberHangs = "fine", "refuses", "fails", "hangs"

func asksMembers(t *testing.T, is []string) {
	// Nobody is connected to: request answers for the members.
	s := &Store{endpoints: newEndpoints([]string{"http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"}, clientv3.Config{}), where: "here"}
	s.ctx, s.close = context.WithCancel(t.Context())
	defer s.endpoints.close()
	request := func(ctx context.Context, c *clientv3.Client) (int, error) {
		i := int(c.Endpoints()[0][len("http://127.0.0.1:")]-'0') - 1
		switch is[i] {
		case memberRefuses:
			return 0, rpctypes.ErrNoSpace
		case memberFails:
			return 0, status.Error(codes.Unavailable, "no leader")
		case memberHangs:
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return i + 1, nil
	}
	answers := slices.IndexFunc(is, func(k string) bool { return k == memberAnswers || k == memberRefuses })
	_, moved := s.endpoints.leading()
	ctx, cancel := context.WithTimeout(t.Context(), 4*askNext)
	defer cancel()
	if answers >= 0 {
		ctx = t.Context()
	}
	got, asked, err := ask(ctx, s, request)
	first, _ := s.endpoints.leading()
	if answers < 0 {
		if err == nil || s.said(err) || asked != 3 || first != 0 {
			t.Fatalf("nobody answers: %v, %d asked, %d is first", err, asked, first)
		}
		return
	}
	if fine := is[answers] == memberAnswers; fine != (err == nil) || fine && got != answers+1 || !fine && !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("%d, %v: want the answer of %d", got, err, answers)
	}
	if asked != answers+1 || first != answers {
		t.Errorf("%d were asked, and %d is first: want %d and %d", asked, first, answers+1, answers)
	}
	select {
	case <-moved:
		if answers == 0 {
			t.Error("the first one answered, and whoever watches is sent to another")
		}
	default:
		if answers != 0 {
			t.Error("who watches is not told of another first one")
		}
	}
	if _, asked, _ := ask(t.Context(), s, request); asked != 1 {
		t.Errorf("the next request went to %d", asked)
	}
}

// TestStoppedMember stops the member that is asked first: requests, watches and the lease
// go on by another one, which is asked first from then on.
func TestStoppedMember(t *testing.T) {
	need.Long(t, "a cluster whose member hangs")
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	s, b := place.Open(t).(*Store), place.Open(t).(*Store)
	defer s.Close()
	defer b.Close()
	epoch, err := s.AcquireLease(t.Context(), "a", 0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	revision := uint64(0)
	commit := func() time.Duration {
		t.Helper()
		began := time.Now()
		revision++
		if _, err := s.Commit(t.Context(), storetest.Step(epoch, revision)); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	commit()
	leader := c.Leader()
	follower := (leader + 1) % members
	for _, x := range []*Store{s, b} {
		first, _ := x.endpoints.leading()
		x.endpoints.prefer(follower, first)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	leases, revisions := make(chan store.Lease, 1000), make(chan uint64, 1000)
	ended.Go(func() { _ = b.FollowLease(ctx, func(l store.Lease) { leases <- l }) })
	ended.Go(func() {
		for r, err := range b.Watch(ctx, 0) {
			if err == nil {
				revisions <- r.Number
			}
		}
	})
	seen := <-leases
	for r := range revisions {
		if r == revision {
			break
		}
	}
	c.Signal(follower, syscall.SIGSTOP)
	defer c.Signal(follower, syscall.SIGCONT)
	first, rest := commit(), time.Duration(0)
	for range 10 {
		rest = max(rest, commit())
	}
	if err := s.RenewLease(t.Context()); err != nil {
		t.Error(err)
	}
	for l := range leases {
		if l.Version > seen.Version {
			break
		}
	}
	for r := range revisions {
		if r == revision {
			break
		}
	}
	for name, x := range map[string]*Store{"writer": s, "reader": b} {
		if now, _ := x.endpoints.leading(); now == follower {
			t.Errorf("the %s asks the stopped member first", name)
		}
	}
	t.Logf("with a stopped follower the first commit took %v, the slowest of the others %v", first, rest)
}
