package daemon

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/saserver"
	"github.com/ibwarden/ibwarden/internal/sm"
	"github.com/ibwarden/ibwarden/internal/transport"
)

// Phase is a part of a pass and the wall time that it took.
type Phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Runner drives one subnet manager on one link.
type Runner struct {
	link    transport.Link
	engine  *sm.Engine
	managed *managed
	watcher Watcher
	counter counter
	turns   int
	phases  []Phase
	open    bool      // the last phase is under way
	began   time.Time // when it began
	shown   time.Time // when progress was last shown
	base    uint64    // requests answered when the phase began
}

// Watcher is told what a runner does.
type Watcher interface {
	// Event sees every event as it happens.
	Event(sm.Event)
	// Progress is called about once a second while a phase lasts, with the
	// requests answered in it so far.
	Progress(phase string, answered uint64)
}

// NewRunner returns a runner for a manager with this configuration, whose
// request limits are the link's, and for the administration of its subnet.
func NewRunner(link transport.Link, c sm.Config, a saserver.Config, p *policy.Policy, w Watcher) *Runner {
	r := &Runner{link: link, watcher: w}
	c.Limits = link.Limits()
	_, a.Unacknowledged = link.(transport.Unacknowledged)
	_, a.LongByLink = link.(transport.Joiner)
	r.managed = &managed{admin: saserver.New(a), warn: func(text string) { w.Event(sm.Warned{Text: text}) }}
	r.engine = sm.New(c, p, func(e sm.Event) {
		if b, ok := e.(sm.PhaseBegun); ok {
			r.turn(b.Phase)
		}
		r.managed.observe(e)
		w.Event(e)
	})
	r.managed.manager, r.managed.leaves = r.engine, c.LeaveMulticast
	r.engine.OnSend(r.counter.count)
	return r
}

// Secret is a seed that nobody else knows, for sm.Config.
func Secret() (seed [32]byte) {
	rand.Read(seed[:]) // never fails: it would end the program
	return seed
}

// Keep restores what hosts registered, and from now on hands save every state
// that is to be kept before anybody is told of it. It is called before Run, and
// of an administration whose Config says Keep.
func (r *Runner) Keep(state saserver.State, save func(saserver.State) error) error {
	if err := r.managed.admin.Restore(0, state); err != nil {
		return err
	}
	r.managed.keeper = keeper{save: save, kept: r.managed.admin.Version()}
	r.managed.admin.Kept(r.managed.keeper.kept)
	return nil
}

// Registered is what hosts have registered.
func (r *Runner) Registered() saserver.State { return r.managed.admin.State(r.managed.now) }

// Administration answers hosts.
func (r *Runner) Administration() *saserver.Server { return r.managed.admin }

// Engine is the manager.
func (r *Runner) Engine() *sm.Engine { return r.engine }

// progressEvery is how often progress is shown within one phase.
const progressEvery = time.Second

// Run drives the engine until until reports true or the context ends. IsSM is
// set while it runs.
func (r *Runner) Run(ctx context.Context, until func() bool) (err error) {
	if err := r.link.SetIsSM(true); err != nil {
		return err
	}
	defer r.managed.flush()
	defer func() {
		if e := r.link.SetIsSM(false); err == nil && e != nil {
			err = fmt.Errorf("leaving: %w", e)
		}
	}()
	return r.link.Drive(ctx, r.managed, func() bool {
		r.showProgress()
		return until()
	})
}

// SMPs is what was sent so far.
func (r *Runner) SMPs() SMPs { return r.counter.smps() }

// TakePhases returns the phases since the last call, the one under way as far
// as it has come.
func (r *Runner) TakePhases() []Phase {
	r.end(time.Now())
	out := r.phases
	r.phases = nil
	return out
}

// lookEvery is how many turns of the link pass between two looks at the clock.
const lookEvery = 256

func (r *Runner) showProgress() {
	if r.turns++; r.turns%lookEvery != 0 || !r.open {
		return
	}
	if now := time.Now(); now.Sub(r.shown) >= progressEvery {
		r.shown = now
		r.watcher.Progress(r.phases[len(r.phases)-1].Name, r.engine.Counts().Answered-r.base)
	}
}

// turn ends the phase under way and begins another.
func (r *Runner) turn(phase string) {
	now := time.Now()
	r.end(now)
	r.began, r.shown = now, now
	if r.engine != nil { // the first phase begins while the engine is made
		r.base = r.engine.Counts().Answered
	}
	if r.open = phase != sm.PhaseWatch; r.open {
		r.phases = append(r.phases, Phase{Name: phase})
	}
}

func (r *Runner) end(now time.Time) {
	if n := len(r.phases); n > 0 && r.open {
		r.phases[n-1].Seconds = now.Sub(r.began).Seconds()
	}
}
