package daemon_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/service"
)

// told is what became of a revision.
type told struct {
	revision uint64
	outcome  service.Outcome
	refused  error
}

// teller passes on what a manager says of policies.
type teller chan told

func (teller) Numbered([]observed.Partition) {}

func (c teller) Done(revision uint64, o service.Outcome) { c <- told{revision: revision, outcome: o} }
func (c teller) Refused(revision uint64, err error)      { c <- told{revision: revision, refused: err} }

// toServed hands a manager's events to its Served.
type toServed struct{ *daemon.Served }

func (toServed) Progress(string, uint64) {}
func (w toServed) Event(e event.Event)   { w.Served.Event(e) }

// of waits for what becomes of a revision.
func (c teller) of(t *testing.T, revision uint64) told {
	t.Helper()
	for {
		select {
		case x := <-c:
			if x.revision == revision {
				return x
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing is told of revision %d", revision)
		}
	}
}

// serving is a manager that runs until the test ends, alone on a fabric.
func serving(t *testing.T, p *policy.Policy) (*daemon.Served, teller, func()) {
	t.Helper()
	link, err := daemon.Open("sim:fattree,radix=4,levels=2", 0)
	if err != nil {
		t.Fatal(err)
	}
	s, c := daemon.NewServed("a test"), make(teller, 1000)
	beforeAManager(t, s)
	r := daemon.NewRunner(link, engine.Config{Routing: routing.UpDown, Profile: protect.Tenant}, server.Config{}, p, toServed{s})
	s.Begin(r, c, 1, p)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, func() bool { s.Turn(r.Engine()); return false }) }()
	end := sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(func() {
		end()
		link.Close()
	})
	return s, c, end
}

// beforeAManager: a Served that has no manager yet has read nothing.
func beforeAManager(t *testing.T, s *daemon.Served) {
	t.Helper()
	ctx := t.Context()
	for what, ask := range map[string]func() error{
		"proof":     func() error { _, _, err := s.Proof(ctx); return err },
		"allowed":   func() error { _, err := s.Allowed(ctx); return err },
		"multicast": func() error { _, _, err := s.Multicast(ctx); return err },
		"cabling":   func() error { _, err := s.Cabling(ctx); return err },
		"audit":     func() error { _, _, err := s.Audit(ctx, audit.Profile(0), false); return err },
		"sweeps":    func() error { _, err := s.Sweeps(ctx); return err },
		"counters":  func() error { _, err := s.Counters(ctx); return err },
		"others":    func() error { return s.AskOthers(ctx) },
	} {
		if err := ask(); !errors.Is(err, service.ErrNotRead) {
			t.Errorf("%s before a manager runs: %v", what, err)
		}
	}
	if _, some := s.ProvedRevision(); some {
		t.Error("a revision is proved before a manager runs")
	}
}

// TestServed: what a manager that runs says of itself, of its fabric and of its policies, and what
// it says once it has ended.
func TestServed(t *testing.T) {
	ctx := t.Context()
	first, next := mustRead(t, unreadPolicy), mustRead(t, movedPolicy)
	s, c, end := serving(t, first)
	if x := c.of(t, 1); x.refused != nil || !x.outcome.Verdict.Holds() || x.outcome.Writes == 0 || x.outcome.Failures != 0 {
		t.Fatalf("the first policy: %+v", x)
	}
	proved := func(want uint64) {
		t.Helper()
		if n, some := s.ProvedRevision(); n != want || !some {
			t.Errorf("revision %d is proved, %v; want %d", n, some, want)
		}
	}
	proved(1)
	snap, err := s.Snapshot(ctx)
	if err != nil || snap.Source != "a test" || snap.Fabric.Self == nil || !snap.Concealed {
		t.Fatalf("%+v, %v", snap, err)
	}
	if again, err := s.Snapshot(ctx); err != nil || again != snap {
		t.Errorf("another snapshot of one pass: %v", err)
	}
	for _, n := range snap.Fabric.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.IsEnd() && p.Reached {
				if keys, known := s.TableSize(p.GUID); !known || keys != p.PKeyCap() {
					t.Errorf("%s has room for %d keys, %v; want %d", p, keys, known, p.PKeyCap())
				}
			}
		}
	}
	if _, known := s.TableSize(1); known {
		t.Error("the table of a port that is not there is known")
	}

	plan, err := s.Predict(ctx, next)
	if err != nil || plan.Text == "" || plan.Faults != 0 || plan.Fabric.Switches == 0 || plan.Preview == nil {
		t.Errorf("a prediction: %+v, %v", plan, err)
	}
	s.SetPolicy(2, next)
	if n, known := s.Revision(next); n != 2 || !known {
		t.Errorf("the next policy has revision %d, %v", n, known)
	}
	if x := c.of(t, 2); x.refused != nil || !x.outcome.Verdict.Holds() || x.outcome.Writes == 0 {
		t.Errorf("the next policy: %+v", x)
	}
	proved(2)
	if _, known := s.Revision(first); known || s.Pending() {
		t.Error("the policy before is not forgotten, or the next one is not given yet")
	}
	if again, err := s.Snapshot(ctx); err != nil || again == snap {
		t.Errorf("the snapshot of the pass before: %v", err)
	}
	nobody := mustRead(t, strings.NewReplacer("000000000010000", "0000000000aa000").Replace(unreadPolicy))
	s.FollowPolicy(3, nobody)
	if x := c.of(t, 3); x.refused == nil {
		t.Errorf("a policy for nobody who is here: %+v", x)
	}
	proved(2)
	s.SetPolicy(4, next)
	c.of(t, 4)
	proved(4)
	saysOfPasses(t, s)
	saysOfManagers(t, s)
	end()
	saysNothing(t, s, next)
}

// saysOfPasses: what the last pass came to.
func saysOfPasses(t *testing.T, s *daemon.Served) {
	t.Helper()
	ctx := t.Context()
	proof, at, err := s.Proof(ctx)
	if err != nil || !proof.Verdict.Holds() || at.IsZero() {
		t.Errorf("proof %v at %v: %v", proof, at, err)
	}
	allowed, err := s.Allowed(ctx)
	if err != nil || len(allowed) < 2 || !slices.ContainsFunc(allowed, func(p observed.Partition) bool { return p.Name == "blue" && len(p.Full) == 2 }) {
		t.Errorf("partitions %v: %v", allowed, err)
	}
	if groups, _, err := s.Multicast(ctx); err != nil || groups == nil {
		t.Errorf("multicast %v: %v", groups, err)
	}
	past, err := s.Past(ctx)
	if err != nil || len(past) == 0 {
		t.Errorf("past %v: %v", past, err)
	}
	cabling, err := s.Cabling(ctx)
	if err != nil || cabling.List != nil || cabling.Differences != nil {
		t.Errorf("cabling %+v: %v", cabling, err)
	}
	swept, err := s.Sweeps(ctx)
	if err != nil || len(swept) < 2 || swept[len(swept)-1].Number != 1 || len(swept[len(swept)-1].Phases) < 3 || swept[len(swept)-1].Sent == 0 {
		t.Errorf("sweeps %+v: %v", swept, err)
	}
	betweenPasses(t, s, func() bool { return saysOfReadings(t, s) })
}

// betweenPasses repeats what is done until no pass of the manager ended meanwhile.
func betweenPasses(t *testing.T, s *daemon.Served, do func() (good bool)) {
	t.Helper()
	for range 10 {
		before, err := s.Snapshot(t.Context())
		good := do()
		after, err2 := s.Snapshot(t.Context())
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if good {
			return
		}
		if before == after {
			t.Fatal("and no pass ended meanwhile")
		}
		t.Log("a pass ended meanwhile")
	}
	t.Fatal("each time a pass ended meanwhile")
}

// saysOfReadings: a reading on demand serves those who ask for as much or less, until the next pass.
func saysOfReadings(t *testing.T, s *daemon.Served) bool {
	t.Helper()
	ctx := t.Context()
	plain, err := s.Complete(ctx, service.Parts{})
	whole, err2 := s.Complete(ctx, service.Parts{QoS: true, Audit: true, Aliases: true})
	if err = errors.Join(err, err2); err != nil || slices.Contains(plain.Asked, snapshot.AskedAudit) ||
		!slices.Contains(whole.Asked, snapshot.AskedAudit) || !slices.Contains(whole.Asked, snapshot.AskedQoS) || !whole.Concealed {
		t.Fatalf("asked %v and %v: %v", plain.Asked, whole.Asked, err)
	}
	again, err := s.Complete(ctx, service.Parts{QoS: true})
	if err != nil || again != whole {
		t.Logf("a smaller reading is not that which was just made: %v", err)
		return false
	}
	r, read, err := s.Audit(ctx, audit.Profile(0), true)
	r2, _, err2 := s.Audit(ctx, audit.Profile(0), true)
	unread, _, err3 := s.Audit(ctx, audit.Profile(0), false)
	if err := errors.Join(err, err2, err3); err != nil || r != r2 || unread == r || !read.Equal(whole.ReadAt) || len(r.Passed) <= len(unread.Passed) {
		t.Logf("audits: %v, the same %v, passed %v, without a reading %v", err, r == r2, r.Passed, unread.Passed)
		return false
	}
	return true
}

// saysOfManagers: it is alone, and hands over to nobody.
func saysOfManagers(t *testing.T, s *daemon.Served) {
	t.Helper()
	if list, err := s.Counters(t.Context()); !errors.Is(err, views.ErrNotRead) || list != nil {
		t.Errorf("counters that nobody reads: %v, %v", list, err)
	}
	ctx := t.Context()
	list, err := s.Managers(ctx)
	if err != nil || len(list) != 1 || list[0].Trust != observed.TrustSelf || list[0].State != smp.SMMaster || !list[0].Answered {
		t.Errorf("managers %+v: %v", list, err)
	}
	var none *service.NotHandedOver
	if m, err := s.Standby(ctx, 0); m != nil || !errors.As(err, &none) {
		t.Errorf("a standby %+v: %v", m, err)
	}
	for _, to := range []ib.PortGUID{0, 0x100009} {
		var refused *service.NotHandedOver
		if master, err := s.HandOver(ctx, to); master || !errors.As(err, &refused) || !strings.Contains(refused.Reason, "no standby") {
			t.Errorf("handed over to %v: %v, %v", to, master, err)
		}
	}
	if err := s.AskOthers(ctx); err != nil {
		t.Error(err)
	}
}

// saysNothing: one that has ended is asked in vain, and what it said last stands.
func saysNothing(t *testing.T, s *daemon.Served, p *policy.Policy) {
	t.Helper()
	ctx := t.Context()
	for what, ask := range map[string]func() error{
		"managers": func() error { _, err := s.Managers(ctx); return err },
		"standby":  func() error { _, err := s.Standby(ctx, 0); return err },
		"handover": func() error { _, err := s.HandOver(ctx, 0); return err },
		"others":   func() error { return s.AskOthers(ctx) },
		"predict":  func() error { _, err := s.Predict(ctx, p); return err },
		"sweeps":   func() error { _, err := s.Sweeps(ctx); return err },
	} {
		if err := ask(); !errors.Is(err, daemon.ErrEnded) {
			t.Errorf("%s of a manager that has ended: %v", what, err)
		}
	}
	if proof, _, err := s.Proof(ctx); err != nil || proof == nil {
		t.Errorf("the last proof: %v, %v", proof, err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Predict(canceled, p); err == nil {
		t.Error("who has gone is given a prediction")
	}
}
