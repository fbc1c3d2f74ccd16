// Package servicetest holds the service, with its store and the subnet manager behind
// it, against the simulated fabric.
//
// It holds the exported metrics against other programs: promtool,
// Prometheus, and samples that infiniband_exporter made of the same fabric.
package servicetest

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
	"github.com/ibwarden/ibwarden/test/need"
)

// watcher hands events to the served manager.
type watcher struct{ to *daemon.Served }

func (w watcher) Event(e event.Event)     { w.to.Event(e) }
func (w watcher) Progress(string, uint64) {}

// start runs a manager on a simulated fabric until the test ends.
func start(t testing.TB, fabric, dir string) (*service.Service, *daemon.Served) {
	t.Helper()
	s, served, _ := startStore(t, fabric, dir)
	return s, served
}

// startStore is start for who needs the store besides.
func startStore(t testing.TB, fabric, dir string) (*service.Service, *daemon.Served, store.Store) {
	t.Helper()
	link, err := daemon.Open(fabric, 0)
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	served := daemon.NewServed(fabric)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := service.Open(ctx, service.Config{Store: db, Manager: served, Base: &policy.Policy{Default: policy.Limited}, Owner: "test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	revision, p := s.Policy()
	r := daemon.NewRunner(link, engine.Config{Seed: daemon.Secret(), Routing: routing.UpDown, Profile: protect.Default}, server.Config{}, p, watcher{served})
	served.Begin(r, s, revision, p)
	ended := make(chan error, 1)
	go func() {
		ended <- r.Run(ctx, func() bool { served.Turn(r.Engine()); return false })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		s.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		link.Close()
	})
	return s, served, db
}

var provider = resource.Caller{Name: "uid 0", Tenant: resource.Provider}

// do makes a change and waits until it is proved.
func do(t testing.TB, s *service.Service, by resource.Caller, c resource.Change) *service.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := s.Do(ctx, service.Request{Change: c, By: by, Seen: resource.Unseen, Wait: true})
	if err != nil {
		t.Fatalf("%s: %v", c.Action(), err)
	}
	if r.Outcome == nil || r.Outcome.State != service.Proved {
		t.Fatalf("%s: revision %d: %+v: want it proved", c.Action(), r.Revision, r.Outcome)
	}
	return r
}

// wasRead is what the manager has read, once it has.
func wasRead(t testing.TB, served *daemon.Served) (snap *snapshot.Snapshot) {
	t.Helper()
	var err error
	need.Eventually(t, need.Patience, "the fabric has been read", func() bool {
		snap, err = served.Snapshot(context.Background())
		return err != service.ErrNotRead
	})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func TestAChangeIsProvedOnTheFabric(t *testing.T) {
	s, served := start(t, "sim", t.TempDir())
	snap := wasRead(t, served)
	var hosts []ib.PortGUID
	for _, n := range snap.Fabric.Nodes {
		if n.Switch == nil {
			hosts = append(hosts, n.Ports[1].GUID)
		}
	}
	do(t, s, provider, resource.PutPartition{Partition: resource.Partition{PKey: 0x123, Name: "training"}})
	r := do(t, s, provider, resource.SetMembers{PKey: 0x123, Members: []resource.Member{
		{Port: hosts[1], Membership: policy.Full}, {Port: hosts[2], Membership: policy.Limited},
	}})
	snap, err := served.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := map[ib.PortGUID]ib.PKey{hosts[1]: ib.PKeyBase(0x123).Full(), hosts[2]: ib.PKeyBase(0x123).Limited()}
	for _, n := range snap.Fabric.Nodes {
		if key, member := want[n.Ports[len(n.Ports)-1].GUID]; member && !slices.Contains(n.Ports[1].PKeys, key) {
			t.Errorf("port %v holds %v: want %v", n.Ports[1].GUID, n.Ports[1].PKeys, key)
		}
	}
	t.Logf("from the change to the proof: %v s", r.Outcome.Seconds)
	past, err := served.Past(context.Background())
	if err != nil || len(past) == 0 || past[0].Verdict != r.Outcome.Verdict.String() || past[0].Until.Before(past[0].At) {
		t.Errorf("the history of verdicts: %+v, %v: want it to end with %v", past, err, r.Outcome.Verdict)
	}
}
