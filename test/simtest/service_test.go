package simtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
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

// Changes that 8 writers make in a run, and in a long one.
const (
	serviceChanges     = 200
	serviceChangesSoak = 2000
	serviceWriters     = 8
	serviceTenants     = 4
	// keysEach is how many partition numbers a tenant has.
	keysEach = 8
)

// ledger says which tenancy each revision of a store means. It knows the objects of the
// history and none of the code that makes policies of them.
type ledger struct {
	objects map[string]json.RawMessage
	of      map[uint64]tenancy
	last    uint64
}

// enter takes the revisions that were committed since it was last called.
func (l *ledger) enter(db store.Store) error {
	for rev, err := range db.Revisions(context.Background(), store.Range{From: l.last + 1}) {
		if err != nil {
			return err
		}
		var record service.Record
		if err := json.Unmarshal(rev.Data, &record); err != nil {
			return err
		}
		for _, e := range record.Edits {
			if l.objects[e.Key] = e.After; e.After == nil {
				delete(l.objects, e.Key)
			}
		}
		l.last = rev.Number
		if l.of[rev.Number], err = l.tenancy(); err != nil {
			return err
		}
	}
	return nil
}

// tenancy is that of the objects: a member counts when both owners agreed.
func (l *ledger) tenancy() (y tenancy, err error) {
	byBase := map[ib.PKeyBase]*tenant{}
	for key, data := range l.objects {
		if !strings.HasPrefix(key, "member/") {
			continue
		}
		var m struct {
			PKey                ib.PKeyBase
			Port                ib.PortGUID
			Membership          string
			ByPartition, ByPort bool
		}
		var agreed struct {
			ByPartition bool `json:"by_partition"`
			ByPort      bool `json:"by_port"`
		}
		if err := errors.Join(json.Unmarshal(data, &m), json.Unmarshal(data, &agreed)); err != nil {
			return y, err
		}
		if !agreed.ByPartition || !agreed.ByPort {
			continue
		}
		if byBase[m.PKey] == nil {
			byBase[m.PKey] = &tenant{base: m.PKey}
		}
		if t := byBase[m.PKey]; m.Membership == "full" {
			t.full = append(t.full, m.Port)
		} else {
			t.limited = append(t.limited, m.Port)
		}
	}
	for _, t := range byBase {
		slices.Sort(t.full)
		slices.Sort(t.limited)
		y.tenants = append(y.tenants, *t)
	}
	slices.SortFunc(y.tenants, func(a, b tenant) int { return int(a.base) - int(b.base) })
	return y, nil
}

// guarded is a manager whose policies are told to the exposure before the engine has
// them: from then on what any of the revisions on the way allows may arrive.
type guarded struct {
	*daemon.Served
	t  *testing.T
	x  *exposure
	db store.Store

	mu       sync.Mutex
	ledger   *ledger
	next     *policy.Policy
	revision uint64 // of next
	waiting  uint64 // the revision that Served has and the engine not, 0 for none
	given    uint64 // to the engine
	proved   uint64
}

func (g *guarded) SetPolicy(revision uint64, p *policy.Policy) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next, g.revision = p, revision
	g.Served.Wake()
}

// turn gives the engine the newest policy, when it has had time for the last.
func (g *guarded) turn(e *engine.Engine) {
	g.mu.Lock()
	if g.next != nil {
		g.Served.SetPolicy(g.revision, g.next)
		g.next, g.waiting = nil, g.revision
	}
	before, waiting := g.given, g.waiting
	if waiting != 0 {
		g.allow(waiting)
	}
	g.mu.Unlock()
	given := g.Served.Turn(e)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case given:
		g.waiting = 0
	case waiting != 0:
		g.allow(before)
	}
}

// allow lets everything pass that a revision from the last proved one on allows.
func (g *guarded) allow(revision uint64) {
	if err := g.ledger.enter(g.db); err != nil {
		g.t.Error(err)
	}
	g.given = revision
	var list []tenancy
	for n := g.proved; n <= revision; n++ {
		list = append(list, g.ledger.of[n])
	}
	g.x.rule(list...)
}

func (g *guarded) Event(e event.Event) {
	g.Served.Event(e)
	c, is := e.(event.Completed)
	if !is {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if revision, known := g.Served.Revision(c.Result.Policy); known && c.Result.Proof.Verdict.Holds() && c.Result.Failures == 0 {
		g.proved = max(g.proved, revision)
		if g.proved == g.given {
			g.allow(g.given)
		}
	}
}

func (g *guarded) Progress(string, uint64) {}

// Snapshot is not asked for here.
func (g *guarded) Snapshot(context.Context) (*snapshot.Snapshot, error) {
	return nil, service.ErrNotRead
}

// served is a service with its manager on the fabric of a world.
type served struct {
	*service.Service
	*guarded
	end func()
}

// serve starts the manager and the service of a store, with what was proved before.
func serve(t *testing.T, w *world, x *exposure, dir string, proved uint64) *served {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "store"))
	w.must(err)
	g := &guarded{
		Served: daemon.NewServed("sim"), t: t, x: x, db: db, proved: proved,
		ledger: &ledger{objects: map[string]json.RawMessage{}, of: map[uint64]tenancy{0: {}}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := service.Open(ctx, service.Config{Store: db, Manager: g, Base: &policy.Policy{Default: policy.Limited}, Owner: t.Name(), Now: time.Now})
	w.must(err)
	link, err := inproc.New(w.fabric, w.self.node, w.self.num, true)
	w.must(err)
	revision, p := s.Policy()
	g.mu.Lock()
	g.allow(revision)
	g.mu.Unlock()
	r := daemon.NewRunner(link, engine.Config{Seed: daemon.Secret(), Routing: routing.UpDown, Profile: protect.None, Pause: daemon.Quarantine()}, server.Config{}, p, g)
	g.Begin(r, s, revision, p)
	ended := make(chan error, 1)
	go func() {
		ended <- r.Run(ctx, func() bool { g.turn(r.Engine()); return false })
	}()
	return &served{s, g, func() {
		cancel()
		<-ended
		s.Close()
		w.must(errors.Join(db.Close(), link.Close()))
	}}
}

// writer makes random changes for one caller.
type writer struct {
	r       *rand.Rand
	by      resource.Caller
	first   ib.PKeyBase // of the keys of its tenant
	ports   []ib.PortGUID
	tenants []string
	// last is what it did last, to be repeated, and what came of it.
	last     service.Request
	revision uint64
	counts   map[string]int
	// offers are those of ports that wait for its tenant.
	offers []string
}

// change is something that the writer may want, and may not be allowed to.
func (w *writer) change() resource.Change {
	key := w.first + ib.PKeyBase(w.r.IntN(keysEach))
	if w.r.IntN(6) == 0 { // another tenant's
		key = ib.PKeyBase(0x100*(1+w.r.IntN(serviceTenants)) + w.r.IntN(keysEach))
	}
	port := func() ib.PortGUID { return w.ports[w.r.IntN(len(w.ports))] }
	var members []resource.Member
	for range 1 + w.r.IntN(3) {
		members = append(members, resource.Member{Port: port(), Membership: policy.Limited + policy.Membership(w.r.IntN(2))})
	}
	switch n := w.r.IntN(20); {
	case n < 3:
		return resource.PutPartition{Partition: resource.Partition{PKey: key, Name: fmt.Sprintf("p%04x", uint16(key))}}
	case n < 4:
		return resource.DeletePartition{PKey: key}
	case n < 8:
		return resource.RemoveMembers{PKey: key, Ports: []ib.PortGUID{port(), port()}}
	case n < 9 && w.by.IsProvider():
		return resource.ReleasePorts{Ports: []ib.PortGUID{port()}}
	case n < 10 && w.by.IsProvider():
		return resource.MovePorts{Tenant: w.tenants[w.r.IntN(len(w.tenants))], Ports: []ib.PortGUID{port()}}
	case n < 12 && w.by.IsProvider():
		return resource.AssignPorts{Tenant: w.tenants[w.r.IntN(len(w.tenants))], Ports: []resource.Port{{GUID: port()}}}
	case n < 10:
		return resource.SetMembers{PKey: key, Members: members[:1], All: true}
	case n < 12:
		return resource.OfferPorts{Tenant: w.tenants[w.r.IntN(len(w.tenants))], Ports: []ib.PortGUID{port()}}
	case n < 14 && len(w.offers) > 0:
		yes := resource.Approve{ID: w.offers[w.r.IntN(len(w.offers))]}
		if w.r.IntN(2) == 0 {
			yes.Into = []resource.Joined{{PKey: key, Membership: policy.Full}}
		}
		return yes
	}
	return resource.SetMembers{PKey: key, Members: members[:1]}
}

// write makes one change, with what goes wrong with callers: repeats, old reads, dry
// runs, impatience.
func (w *writer) write(t *testing.T, s *served) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if w.last.Repeat != "" && w.r.IntN(8) == 0 {
		again, err := s.Do(ctx, w.last)
		if err == nil && (!again.Repeated || again.Revision != w.revision) {
			t.Errorf("a repeated %s made revision %d, and %d the first time", w.last.Change.Action(), again.Revision, w.revision)
		}
		w.counts["repeated"]++
		return err
	}
	var last uint64
	w.offers = nil
	_ = s.Read(func(st *resource.State) {
		last = st.Last()
		for _, a := range st.Approvals() {
			if a.Tenant == w.by.Tenant {
				w.offers = append(w.offers, a.ID)
			}
		}
	})
	r := service.Request{Change: w.change(), By: w.by, Seen: resource.Unseen, Wait: w.r.IntN(4) == 0}
	switch w.r.IntN(3) {
	case 0:
		r.Seen = last - min(last, uint64(w.r.IntN(20)))
	case 1:
		r.Repeat = fmt.Sprintf("%s-%d", w.by.Name, w.r.Uint64())
	}
	result, err := s.Do(ctx, r)
	var refusal *resource.Refusal
	switch {
	case errors.As(err, &refusal):
		w.counts[string(refusal.Reason)]++
		return nil
	case err != nil:
		return err
	}
	w.counts["accepted"]++
	w.counts[r.Change.Action()]++
	if r.Wait && (result.Outcome == nil || result.Outcome.State == service.Pending) {
		w.counts["without outcome"]++
	}
	if w.last = r; r.Repeat != "" {
		w.revision = result.Revision
	}
	return nil
}

// While eight writers change who belongs to which partition through the service, with
// old reads and repeats, and the manager is ended again and again in the middle of
// it, nobody reaches anybody whom no revision on the way allows.
func TestServiceZeroExposure(t *testing.T) {
	need.Long(t, "seconds of processor time")
	seed, soak := soakSeed(t)
	want := need.Share(serviceChanges/5, serviceChanges)
	if soak {
		want = serviceChangesSoak
	}
	t.Logf("SOAK_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 16))
	list := generate(t, fmt.Sprintf("random,seed=%d,switches=3,hosts=12", seed%1000))
	w := bringUp(t, setup{list: list, policy: tenancy{}.policy()})
	w.calm()
	w.stop()
	x := newExposure(w)
	dir := t.TempDir()
	s := serve(t, w, x, dir, 0)
	writers := serviceTenantsOf(t, s, r, ends(list), w.selfGUID())
	revisions, kills := uint64(0), 0
	for revisions < uint64(want) && !t.Failed() {
		until := revisions + 10 + uint64(r.IntN(40))
		var all sync.WaitGroup
		for _, each := range writers {
			all.Go(func() {
				for {
					var last uint64
					_ = s.Read(func(st *resource.State) { last = st.Last() })
					if last >= until || t.Failed() {
						return
					}
					if err := each.write(t, s); err != nil {
						t.Errorf("%s: %v", each.by.Name, err)
						return
					}
				}
			})
		}
		all.Wait()
		_ = s.Read(func(st *resource.State) { revisions = st.Last() })
		kills++
		s.end() // the manager, with whatever it is in the middle of
		x.check(t)
		s = serve(t, w, x, dir, s.proved)
	}
	// What stands in the end is the last revision.
	need.Eventually(t, need.Patience, "the last revision is proved", s.settled)
	if v, err := service.Verify(context.Background(), s.db, nil); err != nil || v.Broken != nil || v.Differ > 0 || v.Entries < revisions {
		t.Errorf("the history, of %d revisions: %+v: %v", revisions, v, err)
	}
	s.end()
	x.check(t)
	y := s.ledger.of[s.ledger.last]
	for _, e := range w.ends() {
		if got, want := valid(w.table(e.place)), y.keys(e.guid, w.selfGUID()); !slices.Equal(got, want) {
			t.Errorf("port %v holds %v: want %v", e.guid, got, want)
		}
	}
	sum := map[string]int{}
	for _, each := range writers {
		for what, n := range each.counts {
			sum[what] += n
		}
	}
	for _, what := range []string{"accepted", "repeated", "stale", "forbidden", "not-found", "conflict"} {
		if sum[what] == 0 {
			t.Errorf("no call ended as %q: the test does not try it", what)
		}
	}
	t.Logf("%d revisions, %d managers ended, %v; %d SMPs, %d packets tried, %d exposed", revisions, kills, sum, x.smps, x.packets, x.exposed)
}

// settled reports whether the last revision was proved.
func (s *served) settled() bool {
	var last uint64
	_ = s.Read(func(st *resource.State) { last = st.Last() })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proved == last
}

// serviceTenantsOf makes the tenants, gives each its share of the ports, and returns the
// writers: two for each tenant, but one of them for the provider.
func serviceTenantsOf(t *testing.T, s *served, r *rand.Rand, all []ib.PortGUID, self ib.PortGUID) (list []*writer) {
	t.Helper()
	all = slices.DeleteFunc(slices.Clone(all), func(g ib.PortGUID) bool { return g == self })
	provider := resource.Caller{Name: "uid 0", Tenant: resource.Provider}
	var names []string
	for i := range serviceTenants {
		names = append(names, fmt.Sprintf("tenant-%d", i))
		first := ib.PKeyBase(0x100 * (i + 1))
		c := resource.AssignPorts{Tenant: names[i]}
		for n := i; n < len(all); n += serviceTenants {
			c.Ports = append(c.Ports, resource.Port{GUID: all[n]})
		}
		for _, change := range []resource.Change{
			resource.PutTenant{Tenant: resource.Tenant{Name: names[i], Keys: resource.KeyRange{First: first, Last: first + keysEach - 1}}}, c,
		} {
			if _, err := s.Do(context.Background(), service.Request{Change: change, By: provider, Seen: resource.Unseen}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range serviceWriters {
		by := resource.Caller{Name: fmt.Sprintf("writer-%d", i), Tenant: names[i%serviceTenants]}
		if i == serviceWriters-1 {
			by.Tenant = resource.Provider
		}
		list = append(list, &writer{
			r: rand.New(rand.NewPCG(r.Uint64(), uint64(i))), by: by, first: ib.PKeyBase(0x100 * (i%serviceTenants + 1)),
			ports: all, tenants: names, counts: map[string]int{},
		})
	}
	return list
}
