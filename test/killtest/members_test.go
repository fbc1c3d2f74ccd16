package killtest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// site is a manager with its store in an etcd cluster.
type site struct {
	*client
	cluster    *storetest.Cluster
	unanswered int // changes that had to be sent again
}

// newSite starts a cluster, with arguments for its members, and a manager with flags.
func newSite(t *testing.T, seed uint64, flags []string, args ...string) *site {
	t.Helper()
	cluster := storetest.StartEtcd(t, args...)
	w := newWorld(t)
	s := &site{client: newClient(w.place(0, append(flags, "--store", "etcd:"+strings.Join(cluster.Endpoints(), ","))...), seed), cluster: cluster}
	s.start()
	s.changed(1)
	s.settled()
	return s
}

// changed makes some changes, and sends each until it is acknowledged.
func (s *site) changed(count int) {
	s.Helper()
	for range count {
		for late := time.Now().Add(patience); !s.send(s.IntN(4) == 0); s.unanswered++ {
			if time.Now().After(late) {
				s.Fatalf("a change is not taken within %v\n%s", patience, s.log)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// during makes changes while something happens, and some after it.
func (s *site) during(happens func(), after int) {
	s.Helper()
	defer s.loses()()
	over := make(chan struct{})
	go func() {
		defer close(over)
		happens()
	}()
	for {
		s.send(s.IntN(4) == 0)
		select {
		case <-over:
			s.changed(after)
			return
		default:
		}
	}
}

// loses notes the revisions from the last one on, until the function that it returns is
// called, as those that may have met a lost store.
func (s *site) loses() (end func()) {
	i := len(s.lost)
	s.lost = append(s.lost, [2]uint64{s.revision, math.MaxUint64})
	return func() { s.lost[i][1] = s.revision }
}

// whole holds everything against the model: what the service says, the audit log, and the
// tables of the fabric.
func (s *site) whole() {
	s.Helper()
	s.check()
	s.settled()
	s.verify()
}

// killMember kills a member and starts it again, with some time for changes before,
// between and after.
func (s *site) killMember(i int) {
	s.Helper()
	s.during(func() {
		time.Sleep(time.Duration(i*20) * time.Millisecond)
		s.cluster.Kill(i)
		time.Sleep(200 * time.Millisecond)
		s.cluster.Start(i)
		s.cluster.Healthy()
	}, 1)
}

// TestMembers does to the members of the store what happens to members, while changes
// are made through the API.
func TestMembers(t *testing.T) {
	need.Long(t, "members of etcd end one after the other")
	t.Parallel()
	s := newSite(t, need.Seed(t, 2), nil)
	for i := range storetest.Members {
		s.killMember(i)
	}
	s.killMember(s.cluster.Leader())
	s.whole()
	s.cutOff()
	s.whole()
	// Every member at once, as when the power fails.
	s.during(func() {
		for i := range storetest.Members {
			s.cluster.Kill(i)
		}
		for i := range storetest.Members {
			s.cluster.Start(i)
		}
		s.cluster.Healthy()
	}, 2)
	s.whole()
	s.outcomes()
	t.Logf("%d changes, %d of which were sent again", s.acked, s.unanswered)
}

// soon is less than the store itself takes to find out that it is lost, with some time for
// a machine that is busy.
const soon = 4 * time.Second

// cutOff takes the way to all members away: writes are refused, reads are marked as old,
// and the fabric stays as it is, until the way is there again.
func (s *site) cutOff() {
	s.Helper()
	s.settled()
	defer s.loses()()
	s.cluster.Cut(true)
	began := time.Now()
	if s.send(false) {
		s.Fatal("a change is acknowledged that cannot have been stored")
	}
	a, err := s.try("GET", "/partitions", nil, nil)
	if err != nil || a.status != 200 || a.header.Get("Ibwarden-Old") == "" || a.body["old"] == nil {
		s.Fatalf("a read without a store: %d %v %v, %v: want it marked as old", a.status, a.header, a.body, err)
	}
	if got, revision := s.read(); revision != s.revision || got.String() != s.now.String() {
		s.Fatalf("without its store it shows revision %d:\n%s\nwant %d:\n%s", revision, got, s.revision, s.now)
	}
	before := s.now
	s.eventually("writes are refused soon", func() error {
		asked := time.Now()
		if s.send(false) {
			s.Fatal("a change is acknowledged that cannot have been stored")
		}
		if took := time.Since(asked); took > soon {
			return fmt.Errorf("it took %v", took)
		}
		return nil
	})
	for i, held := range s.keys() {
		for key := range held {
			if !before.keysOf(s.hosts[i].Ports[1].GUID.String(), i == s.host)[key] {
				s.Fatalf("%s holds %v, which was not stored", s.hosts[i].ID, key)
			}
		}
	}
	s.Logf("the first change without a store was refused, and another soon, after %v", time.Since(began))
	s.cluster.Cut(false)
	s.changed(2)
	if a := s.get("/partitions"); a.header.Get("Ibwarden-Old") != "" {
		s.Fatalf("the store is back, and reads are marked: %v", a.header)
	}
}

// TestFullStore fills the disk quota of the cluster, as somebody else does who uses it too.
func TestFullStore(t *testing.T) {
	need.Long(t, "fills a cluster of etcd")
	t.Parallel()
	s := newSite(t, need.Seed(t, 3), nil, "--quota-backend-bytes", fmt.Sprint(8<<20))
	etcd := s.cluster.Client(0)
	defer etcd.Close()
	regained := s.loses()
	for i := 0; ; i++ {
		if _, err := etcd.Put(t.Context(), fmt.Sprint("other/", i%4), strings.Repeat("x", 1<<20)); err != nil {
			break
		}
		if i > 100 {
			t.Fatal("the cluster is never full")
		}
	}
	s.eventually("a change is refused", func() error {
		if s.send(false) {
			return errors.New("it is stored")
		}
		return nil
	})
	if a := s.get("/partitions"); !strings.Contains(a.header.Get("Ibwarden-Old"), "full") {
		t.Errorf("%v: want reads marked, since the store is full", a.header)
	}
	if got, revision := s.read(); revision != s.revision || got.String() != s.now.String() {
		t.Fatalf("revision %d:\n%s\nwant %d:\n%s", revision, got, s.revision, s.now)
	}
	at, err := etcd.Delete(t.Context(), "other/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	s.tidy(etcd, at.Header.Revision)
	s.changed(5)
	regained()
	s.whole()
	s.outcomes()
}

// tidy compacts and defragments the cluster, and ends its alarms.
func (s *site) tidy(etcd *clientv3.Client, revision int64) {
	s.Helper()
	if _, err := etcd.Compact(s.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
		s.Fatal(err)
	}
	for _, member := range s.cluster.Direct() {
		if _, err := etcd.Defragment(s.Context(), member); err != nil {
			s.Fatal(err)
		}
	}
	if _, err := etcd.AlarmDisarm(s.Context(), &clientv3.AlarmMember{}); err != nil {
		s.Fatal(err)
	}
}

// standby starts a second manager on the same store, at another host. It gets the secret of
// the first, and nothing else.
func (s *site) standby(t *testing.T) *client {
	t.Helper()
	r := s.place(1, s.flags...)
	secret, err := os.ReadFile(filepath.Join(s.dir, "secret"))
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "secret"), secret, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.start()
	return newClient(r, 0)
}

// TestStandbyFollows: a standby shows what the master writes, also across compactions of
// etcd and while members end; it takes no writes, and says what it has.
func TestStandbyFollows(t *testing.T) {
	need.Long(t, "a cluster of etcd, and two managers")
	t.Parallel()
	s := newSite(t, need.Seed(t, 4), nil)
	b := s.standby(t)
	etcd := s.cluster.Client(0)
	defer etcd.Close()
	caughtUp := func() {
		t.Helper()
		s.eventually("the standby has what the master has", func() error {
			got, revision, err := b.look()
			if err != nil {
				return err
			}
			if revision != s.revision || got.String() != s.now.String() {
				return fmt.Errorf("revision %d:\n%s\nwant %d:\n%s", revision, got, s.revision, s.now)
			}
			return nil
		})
		a := b.get("/partitions")
		if !strings.Contains(a.header.Get("Ibwarden-Old"), fmt.Sprintf("revision %d", s.revision)) {
			t.Fatalf("%v: want which revision it shows", a.header)
		}
	}
	for round := range 3 {
		s.changed(4)
		at, err := etcd.Get(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := etcd.Compact(t.Context(), at.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			t.Fatal(err)
		}
		s.changed(3)
		caughtUp()
		if round == 0 {
			s.killMember(s.cluster.Leader())
			caughtUp()
		}
	}
	a, err := b.try("PUT", "/partitions/0x0200", js{"name": "x"}, map[string]string{"If-None-Match": "*"})
	if err != nil || a.status != 503 || !strings.Contains(fmt.Sprint(a.body), "not the master") {
		t.Errorf("a write to a standby: %d %v, %v", a.status, a.body, err)
	}
	// The standby takes over when the master is killed, with what was acknowledged, and with
	// the M_Keys that the master gave to ports meanwhile.
	s.kill()
	b.now, b.revision, b.sent, b.states, b.prefix = s.now, s.revision, nil, []state{s.now}, "b"
	took := &site{client: b, cluster: s.cluster}
	b.serial = s.serial
	took.changed(5)
	took.whole()
	t.Logf("%d changes to the first, %d to the second", s.acked, b.acked)
}

// Kills of members in the long form.
const memberKillsLong = 1000

// TestKilledMembers kills the members in turn while changes are made. The share in CI is in
// TestMembers.
func TestKilledMembers(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set")
	}
	s := newSite(t, need.Seed(t, 5), nil, "--snapshot-count", "5000", "--auto-compaction-mode", "revision", "--auto-compaction-retention", "1000")
	for n := range memberKillsLong {
		s.killMember(n % storetest.Members)
		if n%50 == 49 {
			s.whole()
			t.Logf("%d members killed: %d changes, %d of which were sent again", n+1, s.acked, s.unanswered)
		}
	}
	s.whole()
	s.outcomes()
}
