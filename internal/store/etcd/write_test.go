package etcd

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ibwarden/ibwarden/internal/store"
)

// says is what a member makes of a transaction.
type says string

const (
	saysNothing  says = "it does not answer"
	saysNoLeader says = "it has no leader"
	saysDone     says = "it is done"
	saysWasDone  says = "it was done before"
	saysAnother  says = "another writer has written"
)

// fakeMember is a member of etcd that answers transactions as it is told, the last way again
// and again.
type fakeMember struct {
	etcdserverpb.UnimplementedKVServer
	mu    sync.Mutex
	says  []says
	asked int
	other string // the state that another writer has written
}

func (m *fakeMember) Txn(ctx context.Context, r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	m.mu.Lock()
	now := m.says[min(m.asked, len(m.says)-1)]
	m.asked++
	m.mu.Unlock()
	value := []byte(m.other)
	switch now {
	case saysNothing:
		<-ctx.Done()
		return nil, ctx.Err()
	case saysNoLeader:
		return nil, status.Error(codes.Unavailable, "no leader")
	case saysDone:
		return &etcdserverpb.TxnResponse{Header: &etcdserverpb.ResponseHeader{Revision: 9}, Succeeded: true}, nil
	case saysWasDone:
		value = r.Success[len(r.Success)-1].GetRequestPut().Value
	}
	return &etcdserverpb.TxnResponse{Header: &etcdserverpb.ResponseHeader{Revision: 9}, Responses: []*etcdserverpb.ResponseOp{{
		Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: &etcdserverpb.RangeResponse{Kvs: []*mvccpb.KeyValue{{Value: value, ModRevision: 8}}}},
	}}}, nil
}

// fakeCluster is a store whose members are these.
func fakeCluster(t *testing.T, members ...*fakeMember) *Store {
	t.Helper()
	other, err := encodeState(&state{Format: Format, ID: "this", Commit: "other"})
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, m := range members {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		m.other = other
		server := grpc.NewServer()
		etcdserverpb.RegisterKVServer(server, m)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.Serve(l)
		}()
		t.Cleanup(func() { server.Stop(); <-ended })
		urls = append(urls, "http://"+l.Addr().String())
	}
	s := &Store{endpoints: newEndpoints(urls, clientv3.Config{}), where: "here", prefix: "/", now: time.Now,
		config: Config{ReadTimeout: ReadTimeout, CommitTimeout: CommitTimeout}}
	s.ctx, s.close = context.WithCancel(t.Context())
	t.Cleanup(func() { _ = s.endpoints.close() })
	s.remember(seen{state: state{Format: Format, ID: "this", Commit: "before"}, revision: 5}, true)
	return s
}

// A commit of which it is not known whether it was done is not made again: a member that did not
// answer may have carried it out, before another writer wrote. Who was the only one to be asked
// has not.
func TestNothingIsDoneTwice(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name    string
		members [][]says
		makes   int // of the commit
		unknown bool
	}{
		{"done", [][]says{{saysDone}}, 1, false},
		{"another was faster", [][]says{{saysAnother, saysDone}}, 2, false},
		{"two others were faster", [][]says{{saysAnother, saysAnother, saysDone}}, 3, false},
		{"the first does not answer, the next does it", [][]says{{saysNothing}, {saysDone}}, 1, false},
		{"the first has done it, and does not answer", [][]says{{saysNothing}, {saysWasDone}}, 1, false},
		{"the first does not answer, and another has written", [][]says{{saysNothing}, {saysAnother, saysDone}}, 1, true},
		{"the first has no leader, and another has written", [][]says{{saysNoLeader}, {saysAnother, saysDone}}, 1, true},
		{"two do not answer, and another has written", [][]says{{saysNothing}, {saysNoLeader}, {saysAnother, saysDone}}, 1, true},
		{"the answer is lost, and another has written", [][]says{{saysNoLeader, saysAnother, saysDone}}, 1, true},
		{"the answer is lost, and it was done", [][]says{{saysNoLeader, saysWasDone}}, 1, false},
		{"the answer is lost, and it is done", [][]says{{saysNoLeader, saysDone}}, 1, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			var members []*fakeMember
			for _, says := range x.members {
				members = append(members, &fakeMember{says: says})
			}
			s := fakeCluster(t, members...)
			makes := 0
			at, err := s.commit(t.Context(), func(_ context.Context, at seen, next *state) ([]clientv3.Op, error) {
				makes++
				next.Revision++
				if want := []string{"before", "other"}[min(makes-1, 1)]; at.Commit != want {
					t.Errorf("it is made for the state of commit %q, want %q", at.Commit, want)
				}
				return []clientv3.Op{}, nil
			})
			if unknown := errors.Is(err, store.ErrUnavailable); unknown != x.unknown || !unknown && err != nil || makes != x.makes {
				t.Errorf("made %d times, %v; want %d, not known %v", makes, err, x.makes, x.unknown)
			}
			if err == nil && (at.Revision != 1 || slices.Contains([]string{"", "before", "other"}, at.Commit)) {
				t.Errorf("it ends with %+v", at.state)
			}
		})
	}
}

// Who may write: whoever acquired the store last, in the store that it opened. After etcd was
// restored another one may have the same epoch, and after a restore the store is another.
func TestWhoWrites(t *testing.T) {
	for _, x := range []struct {
		name  string
		epoch store.Epoch
		mine  acquired
		edit  func(*state)
		want  error
	}{
		{"who acquired it last", 2, acquired{2, "mine"}, nil, nil},
		{"who has the epoch from elsewhere", 2, acquired{}, nil, nil},
		{"nobody", 0, acquired{2, "mine"}, nil, store.ErrFenced},
		{"nobody, of a store that nobody has acquired", 0, acquired{}, func(s *state) { s.Epoch = 0 }, store.ErrFenced},
		{"an earlier writer", 1, acquired{1, "mine"}, nil, store.ErrFenced},
		{"a later writer, after etcd was restored", 3, acquired{3, "mine"}, nil, store.ErrFenced},
		{"the same epoch, after etcd was restored", 2, acquired{2, "mine"}, func(s *state) { s.Writer = "another" }, store.ErrFenced},
		{"the same epoch, after the store was restored", 2, acquired{2, "mine"}, func(s *state) { s.ID = "another" }, store.ErrFenced},
		{"while it is restored", 2, acquired{2, "mine"}, func(s *state) { s.Incomplete = true }, store.ErrIncomplete},
	} {
		s := &Store{where: "here", mine: x.mine}
		at := seen{state: state{Format: Format, ID: "this", Writer: "mine"}, revision: 1}
		at.Epoch = 2
		s.remember(at, true)
		if x.edit != nil {
			x.edit(&at.state)
		}
		if err := s.writer(x.epoch, at); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
	}
}
