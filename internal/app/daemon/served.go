package daemon

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/preview"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Served is the subnet manager of a Runner as a service knows it (service.SubnetManager).
// It hands policies to the engine and says what became of them.
type Served struct {
	source string
	tell   Teller
	runner *Runner

	inbox inbox

	mu sync.Mutex // of what follows
	// passes counts what has changed the engine's snapshot, and taken is a copy of that of pass number of.
	passes, of uint64
	taken      *snapshot.Snapshot
	last       judged
	drawn      drawn
	proved     proved

	checked atomic.Int64 // when the last round of Engine.Checked began, in nanoseconds; 0 for none

	past   views.Past
	sizes  sizes
	audits audits
	// One prediction and one reading on demand are under way at a time. No prediction begins before
	// predictAgain; completed is the last reading. Both are for who holds the channel.
	predicting, completing chan struct{}
	predictAgain           time.Time
	completed              completed
}

// Teller is told what became of policies: a *service.Service.
type Teller interface {
	Numbered(list []observed.Partition)
	Done(revision uint64, o service.Outcome)
	Refused(revision uint64, err error)
}

var _ service.SubnetManager = (*Served)(nil)

// NewServed returns the manager of a fabric with this name, which begins with the policy
// of a revision. Run is called before anything else is asked of it.
func NewServed(source string) *Served {
	return &Served{source: source, inbox: newInbox(), predicting: make(chan struct{}, 1), completing: make(chan struct{}, 1)}
}

// Begin tells with which policy, of which revision, the engine of the runner was made,
// and whom to tell. It is called once, before the runner runs. A later one, which another
// manager has written since p was read, goes to the engine all the same.
func (s *Served) Begin(r *Runner, t Teller, revision uint64, p *policy.Policy) {
	s.mu.Lock()
	s.runner, s.tell = r, t
	s.mu.Unlock()
	s.inbox.begin(revision, p)
	if h := s.inbox.takeHeldBack(false); h != nil { // before anything is written
		r.Engine().HoldBack(h.why, h.older)
	}
}

// SetPolicy implements service.SubnetManager.
func (s *Served) SetPolicy(revision uint64, p *policy.Policy) {
	s.inbox.have(revision, p, false)
	s.Wake()
}

// FollowPolicy implements service.SubnetManager.
func (s *Served) FollowPolicy(revision uint64, p *policy.Policy) {
	s.inbox.have(revision, p, true)
	s.Wake()
}

// HoldBack implements service.SubnetManager.
func (s *Served) HoldBack(why string, older bool) {
	s.inbox.holdBack(why, older)
	s.Wake()
}

// Confirm tells the engine, which did not run for a while, that the policy is known to be
// the one in force, and whether it was another: then SetPolicy was called before.
func (s *Served) Confirm(changed bool) {
	s.inbox.confirm(changed)
	s.Wake()
}

// Pending reports whether there is a policy that the engine has not been given yet.
func (s *Served) Pending() bool { return s.inbox.pending() }

// Revision is that of a policy that the engine has or is to be given.
func (s *Served) Revision(p *policy.Policy) (uint64, bool) { return s.inbox.revision(p) }

// Turn gives the engine what there is for it, and reports whether that was a policy. It is called
// between any two turns of the engine, in the goroutine of Run.
func (s *Served) Turn(e *engine.Engine) (given bool) {
	now := time.Now()
	if age, some := e.Checked(); some {
		s.checked.Store(now.Add(-age).UnixNano())
	}
	return s.inbox.empty(e, now)
}

// Event takes what the engine reports, in the goroutine of Run.
func (s *Served) Event(e event.Event) {
	switch e := e.(type) {
	case event.Completed:
		s.inbox.rested()
		now := time.Now().UTC()
		s.mu.Lock()
		s.last = judged{e.Result, s.runner.Engine().Cables(), now}
		s.mu.Unlock()
		s.sizes.read(s.runner.Engine().Fabric())
		revision, known := s.done(e.Result.Policy)
		s.past.Add(e.Result.Proof, now, revision)
		s.tell.Numbered(e.Result.Partitions)
		if known {
			s.prove(revision, outcome(e.Result))
			s.tell.Done(revision, outcome(e.Result))
		}
	case event.Refused:
		s.inbox.rested()
		if revision, known := s.done(e.Policy); known {
			s.tell.Refused(revision, e.Err)
		}
	}
}

// done is the revision of a policy that the engine is done with, which it has carried out or refused.
func (s *Served) done(p *policy.Policy) (uint64, bool) {
	s.mu.Lock()
	s.passes++
	s.mu.Unlock()
	return s.inbox.done(p)
}

// TableSize is how many keys the P_Key table of a port has room for; false for a port
// that the manager has not found. It implements resource.Fabric.
func (s *Served) TableSize(g ib.PortGUID) (keys int, known bool) { return s.sizes.of(g) }

// reasonsMax bounds the reasons of a verdict that an outcome keeps.
const reasonsMax = 20

func outcome(r *event.Result) service.Outcome {
	o := service.Outcome{Verdict: r.Proof.Verdict, Writes: r.Writes, Failures: r.Failures}
	o.Reasons = append(o.Reasons, r.Proof.Reasons[:min(len(r.Proof.Reasons), reasonsMax)]...)
	return o
}

// predictRest is how many times as long as a prediction took the engine is left alone
// before the next: whoever asks for dry runs without an end gets a tenth of its time.
const predictRest = 9

// Predict implements service.SubnetManager. The engine does nothing else while it is
// worked out, so predictions are made one at a time, with rests between them, also when
// those who asked have gone.
func (s *Served) Predict(ctx context.Context, p *policy.Policy) (*service.Plan, error) {
	return inTurn(ctx, s.predicting, func() time.Time { return s.predictAgain }, func(ctx context.Context) (*service.Plan, error) { return s.predict(ctx, p) })
}

// predict asks the engine, and says when it may be asked again.
func (s *Served) predict(ctx context.Context, p *policy.Policy) (out *service.Plan, err error) {
	asked := s.runner.Ask(ctx, func(e *engine.Engine) {
		began := time.Now()
		defer func() { s.predictAgain = time.Now().Add(predictRest * time.Since(began)) }()
		if e.Fabric() == nil {
			err = service.ErrNotRead
			return
		}
		want, failed := e.Predict(p)
		if err = failed; err == nil {
			out, err = predicted(e.Fabric(), want, e.Faults())
		}
	})
	if asked != nil {
		return nil, asked // the question may still be answered
	}
	return out, err
}

// inTurn does what only one may do at a time, and not before from says. It ends when who asked has
// gone; what has begun goes on, for the next has no use for half of it.
func inTurn[T any](ctx context.Context, held chan struct{}, from func() time.Time, do func(context.Context) (T, error)) (out T, err error) {
	select {
	case held <- struct{}{}:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	select {
	case <-time.After(time.Until(from())):
	case <-ctx.Done():
		<-held
		return out, ctx.Err()
	}
	type answer struct {
		out T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-held }()
		out, err := do(context.WithoutCancel(ctx))
		done <- answer{out, err}
	}()
	select {
	case a := <-done:
		return a.out, a.err
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

func predicted(f *observed.Fabric, want *desired.Result, faults []sweep.Fault) (*service.Plan, error) {
	in := preview.Input{Fabric: f, Desired: want.Tables, Plan: plan.Diff(f, want.Tables), Partitions: want.Resolution.Partitions}
	groups, err := want.Groups()
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		in.Groups = append(in.Groups, preview.Set{Name: g.Name, Ports: g.Ports})
	}
	p, err := preview.Look(in)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := p.Print(&text); err != nil {
		return nil, err
	}
	return &service.Plan{
		Preview: p, Text: text.String(), Fabric: f.Count(), Warnings: want.Warnings, Faults: len(faults), Unread: Unread(faults),
	}, nil
}

// Snapshot implements service.SubnetManager. What it returns stays as it is; it is the same
// until the engine has completed another pass.
func (s *Served) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	s.mu.Lock()
	taken, of, passes := s.taken, s.of, s.passes
	s.mu.Unlock()
	if taken != nil && of == passes {
		return taken, nil
	}
	taken, _, err := s.copied(ctx)
	if err != nil {
		return nil, err
	}
	taken.Conceal(Secret())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken, s.of = taken, passes
	return taken, nil
}

// copied is a copy of what the engine knows of the fabric, with how that was asked for.
func (s *Served) copied(ctx context.Context) (taken *snapshot.Snapshot, reads sweep.Options, err error) {
	asked := s.runner.Ask(ctx, func(e *engine.Engine) {
		if e.Fabric() == nil {
			err = service.ErrNotRead
			return
		}
		reads = e.Reads()
		taken = &snapshot.Snapshot{
			ReadAt: time.Now().UTC().Round(0), Source: s.source, Asked: askedIn(reads), Fabric: e.Fabric().Clone(), Faults: faultsIn(e.Faults()),
		}
	})
	if asked != nil {
		return nil, sweep.Options{}, asked // the question may still be answered
	}
	if err != nil {
		return nil, reads, err
	}
	taken.Fabric.OrderFromManager() // as after any other reading
	return taken, reads, nil
}

// Wake has the runner look for what it was given.
func (s *Served) Wake() {
	s.mu.Lock()
	r := s.runner
	s.mu.Unlock()
	if r != nil {
		r.Wake()
	}
}
