package daemon

import (
	"bytes"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
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

	mu sync.Mutex
	// next is the policy that the engine has not been given yet; only the newest
	// counts.
	next     *policy.Policy
	followed bool // next was set by another manager
	// following reports whether of what take gave last, for the goroutine of Run.
	following bool
	// given is when the engine was given one to carry out, atWork that it has not done so
	// yet, and turn how long it has for that. One that it follows gives it nothing to do.
	given  time.Time
	atWork bool
	turn   time.Duration
	// confirmed is what Confirm was told last; nil when the engine knows.
	confirmed *bool
	// heldBack is what HoldBack was told last; nil when the engine knows.
	heldBack *heldBack
	// revisions are those of the policies that the engine was given, and of next.
	revisions map[*policy.Policy]uint64
	// taken is the snapshot of pass number of.
	taken *snapshot.Snapshot
	of    uint64
	// passes counts what has changed the engine's snapshot.
	passes uint64
	last   judged
	past   views.Past // has a lock of its own
	// auditing is held while the fabric is audited; audits are the last ones.
	auditing sync.Mutex
	audits   map[auditKind]audited // guarded by auditing
	// drawn is the last list of cables as the API has it, and of the list itself.
	drawn   *views.MapList
	drawnOf *cables.List
	// proved is the last revision that was proved, if some was.
	proved    uint64
	hasProved bool
	// predicting is held by the one prediction under way, and predictAgain is for who
	// holds it: no prediction begins before that time.
	predicting   chan struct{}
	predictAgain time.Time
	// sizes are those of the P_Key tables of end ports.
	sizes map[ib.PortGUID]int
	sized []portSize // the same, for the goroutine of Run
	// completing is held by the one reading on demand under way; completed is the last,
	// for who holds it.
	completing chan struct{}
	completed  completed
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
	return &Served{source: source, revisions: map[*policy.Policy]uint64{}, predicting: make(chan struct{}, 1), completing: make(chan struct{}, 1)}
}

// Begin tells with which policy, of which revision, the engine of the runner was made,
// and whom to tell. It is called once, before the runner runs. A later one, which another
// manager has written since p was read, goes to the engine all the same.
func (s *Served) Begin(r *Runner, t Teller, revision uint64, p *policy.Policy) {
	s.mu.Lock()
	s.runner, s.tell = r, t
	if s.next != nil && s.revisions[s.next] <= revision {
		delete(s.revisions, s.next)
		s.next = nil
	}
	s.revisions[p] = revision
	s.mu.Unlock()
	if h := s.takeHeldBack(false); h != nil { // before anything is written
		r.Engine().HoldBack(h.why, h.older)
	}
}

// SetPolicy implements service.SubnetManager.
func (s *Served) SetPolicy(revision uint64, p *policy.Policy) { s.have(revision, p, false) }

// FollowPolicy implements service.SubnetManager.
func (s *Served) FollowPolicy(revision uint64, p *policy.Policy) { s.have(revision, p, true) }

// heldBack is why ports are given nothing new; "" for no reason.
type heldBack struct {
	why   string
	older bool
}

// HoldBack implements service.SubnetManager.
func (s *Served) HoldBack(why string, older bool) {
	s.mu.Lock()
	s.heldBack = &heldBack{why, older}
	s.mu.Unlock()
	s.Wake()
}

// takeHeldBack is what the engine is to be told by HoldBack; nil for nothing. That it ends waits
// until the engine has the newest policy: the one before may be that of the store which was
// rolled back.
func (s *Served) takeHeldBack(ends bool) *heldBack {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.heldBack
	if h == nil || (h.why == "") != ends || ends && s.next != nil {
		return nil
	}
	s.heldBack = nil
	return h
}

func (s *Served) have(revision uint64, p *policy.Policy, followed bool) {
	s.mu.Lock()
	delete(s.revisions, s.next)
	s.next, s.followed, s.revisions[p] = p, followed, revision
	s.mu.Unlock()
	s.Wake()
}

// Turn gives the engine the newest policy, if there is one that it has not and it has
// had time for the last, and reports whether it did. It is called between any two turns
// of the engine, in the goroutine of Run.
func (s *Served) Turn(e *engine.Engine) (given bool) {
	confirmed := s.takeConfirmed()
	if h := s.takeHeldBack(false); h != nil { // before the policy, which may widen
		e.HoldBack(h.why, h.older)
	}
	p := s.take(time.Now())
	switch {
	case p == nil:
	case s.following:
		e.FollowPolicy(p)
	default:
		e.SetPolicy(p)
	}
	if h := s.takeHeldBack(true); h != nil {
		e.HoldBack("", false)
	}
	if confirmed != nil {
		e.Confirm(*confirmed)
	}
	return p != nil
}

// Confirm tells the engine, which did not run for a while, that the policy is known to be
// the one in force, and whether it was another: then SetPolicy was called before.
func (s *Served) Confirm(changed bool) {
	s.mu.Lock()
	s.confirmed = &changed
	s.mu.Unlock()
	s.Wake()
}

// takeConfirmed is what the engine is to be told by Confirm; nil for nothing. The newest
// policy does not wait then.
func (s *Served) takeConfirmed() *bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.confirmed
	if s.confirmed = nil; c != nil {
		s.atWork = false
	}
	return c
}

// Pending reports whether there is a policy that the engine has not been given yet.
func (s *Served) Pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next != nil
}

const (
	// turnLeast is how long the engine has for a policy before a newer one interrupts it:
	// what is revoked waits that long at most. It doubles with each interruption, up to
	// turnMost, until a policy is carried out, so that who makes changes without an end
	// does not keep the engine from carrying out any.
	turnLeast = 100 * time.Millisecond
	turnMost  = time.Second
)

// take is the policy that the engine is to be given now; nil for none.
func (s *Served) take(now time.Time) *policy.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.next
	switch {
	case p == nil, s.atWork && now.Sub(s.given) < s.turn:
		return nil
	case s.atWork:
		s.turn = min(2*s.turn, turnMost)
	default:
		s.turn = turnLeast
	}
	s.next, s.given, s.atWork, s.following = nil, now, !s.followed, s.followed
	return p
}

// rested notes that the engine has carried out a policy, or could not.
func (s *Served) rested() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atWork = false
}

// Event takes what the engine reports, in the goroutine of Run.
func (s *Served) Event(e event.Event) {
	switch e := e.(type) {
	case event.Completed:
		s.rested()
		now := time.Now().UTC()
		s.mu.Lock()
		s.last = judged{e.Result, s.runner.Engine().Cables(), now}
		s.mu.Unlock()
		s.readSizes()
		revision, known := s.revision(e.Result.Policy)
		s.past.Add(e.Result.Proof, now, revision)
		s.tell.Numbered(e.Result.Partitions)
		if known {
			s.prove(revision, outcome(e.Result))
			s.tell.Done(revision, outcome(e.Result))
		}
	case event.Refused:
		s.rested()
		if revision, known := s.revision(e.Policy); known {
			s.tell.Refused(revision, e.Err)
		}
	}
}

// readSizes notes how large the P_Key tables of end ports are, when ports have come or
// gone. It is called after every pass, and there are thousands of ports: those that are
// as they were are passed over in their order.
func (s *Served) readSizes() {
	known, same := s.sized, true
	for p := range endPorts(s.runner.Engine().Fabric()) {
		size := portSize{p.GUID, p.PKeyCap()}
		if same = len(known) > 0 && known[0] == size; !same {
			break
		}
		known = known[1:]
	}
	if same && len(known) == 0 {
		return
	}
	s.sized = s.sized[:0]
	sizes := make(map[ib.PortGUID]int, cap(s.sized))
	for p := range endPorts(s.runner.Engine().Fabric()) {
		s.sized = append(s.sized, portSize{p.GUID, p.PKeyCap()})
		sizes[p.GUID] = p.PKeyCap()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = sizes
}

// portSize is how many keys the table of a port has room for.
type portSize struct {
	port ib.PortGUID
	keys int
}

// endPorts are the end ports that were reached, in the order of their nodes.
func endPorts(f *observed.Fabric) iter.Seq[*observed.Port] {
	return func(yield func(*observed.Port) bool) {
		for _, n := range f.Nodes {
			ports := n.Ports[1:]
			if n.Switch != nil {
				ports = n.Ports[:1]
			}
			for i := range ports {
				if p := &ports[i]; p.Reached && !yield(p) {
					return
				}
			}
		}
	}
}

// TableSize is how many keys the P_Key table of a port has room for; false for a port
// that the manager has not found. It implements resource.Fabric.
func (s *Served) TableSize(g ib.PortGUID) (keys int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, known = s.sizes[g]
	return keys, known
}

// revision is that of a policy that the engine was given. Older ones are forgotten:
// the engine is done with them.
func (s *Served) revision(p *policy.Policy) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes++
	revision, known := s.revisions[p]
	for other, n := range s.revisions {
		if known && n < revision {
			delete(s.revisions, other)
		}
	}
	return revision, known
}

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

// prediction is the answer of Predict.
type prediction struct {
	plan *service.Plan
	err  error
}

// Predict implements service.SubnetManager. The engine does nothing else while it is
// worked out, so predictions are made one at a time, with rests between them, also when
// those who asked have gone.
func (s *Served) Predict(ctx context.Context, p *policy.Policy) (*service.Plan, error) {
	select {
	case s.predicting <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-time.After(time.Until(s.predictAgain)):
	case <-ctx.Done():
		<-s.predicting
		return nil, ctx.Err()
	}
	done := make(chan prediction, 1)
	go func() {
		defer func() { <-s.predicting }()
		done <- s.predict(context.WithoutCancel(ctx), p)
	}()
	select {
	case out := <-done:
		return out.plan, out.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// predict asks the engine, and says when it may be asked again.
func (s *Served) predict(ctx context.Context, p *policy.Policy) (out prediction) {
	asked := s.runner.Ask(ctx, func(e *engine.Engine) {
		began := time.Now()
		defer func() { s.predictAgain = time.Now().Add(predictRest * time.Since(began)) }()
		if e.Fabric() == nil {
			out.err = service.ErrNotRead
			return
		}
		want, err := e.Predict(p)
		if err == nil {
			out.plan, err = predicted(e.Fabric(), want, e.Faults())
		}
		out.err = err
	})
	if asked != nil {
		return prediction{err: asked}
	}
	return out
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

// Revision is that of a policy that the engine has or is to be given.
func (s *Served) Revision(p *policy.Policy) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, known := s.revisions[p]
	return revision, known
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
