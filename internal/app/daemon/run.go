package daemon

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// Runner drives one subnet manager on one link.
type Runner struct {
	link    link.Link
	managed *master.Engine
	watcher Watcher
	counter counter
	endings endings
	turns   int
	record  sweep.PhaseRecord
	window  int       // of requests, if not the link's
	shown   time.Time // when progress was last shown
	// isAnnounced reports whether SMInfo is answered, announced is the error of setting IsSM.
	isAnnounced bool
	announced   error
	asked       asked
	inCharge    inCharge
	recall      recall
	aside       aside
}

// Watcher is told what a runner does.
type Watcher interface {
	// Event sees every event as it happens.
	Event(event.Event)
	// Progress is called about once a second while a phase lasts, with the
	// requests answered in it so far.
	Progress(phase string, answered uint64)
}

// NewRunner returns a runner for a manager with this configuration, whose
// request limits are the link's but for a window that c sets, and for the administration of
// its subnet.
func NewRunner(to link.Link, c engine.Config, a server.Config, p *policy.Policy, w Watcher) *Runner {
	r := &Runner{link: to, watcher: w, asked: newAsked()}
	r.window, c.Workers = c.Limits.Window, Workers()
	if c.Limits = to.Limits(); r.window > 0 {
		c.Limits.Window = r.window
	}
	_, a.Unacknowledged = to.(link.Unacknowledged)
	_, a.LongByLink = to.(link.Joiner)
	r.managed = master.New(c, a, p, func(e event.Event) {
		switch e := e.(type) {
		case event.PhaseBegun:
			r.turn(e.Phase)
		case event.Resweeping:
			r.record.Because(e.Reason)
		case event.PolicyGiven:
			r.record.Because(e.String())
		case event.Announced:
			r.isAnnounced, r.announced = true, to.SetIsSM(true)
			return
		case event.TakingOver:
			r.recall.from, r.recall.due = e.From, true
		case event.Completed:
			r.recall.lacks = r.recall.lacks && e.Result.Failures > 0
		}
		w.Event(e)
	})
	r.Engine().OnSend(r.counter.count)
	r.endings = make(endings)
	r.Engine().OnEnd(r.endings.count)
	r.aside.Engine = r.managed
	return r
}

// Secret is a seed that nobody else knows, for engine.Config.
func Secret() (seed [32]byte) {
	rand.Read(seed[:]) // never fails: it would end the program
	return seed
}

// Keep restores what hosts registered, and from now on hands save every state
// that is to be kept before anybody is told of it. It is called before Run, and
// of an administration whose Config says Keep.
func (r *Runner) Keep(state server.State, save func(server.State) error) error {
	return r.managed.Keep(state, save)
}

// KeepKeys hands save the book of M_Keys before a port is given a generation that
// is not kept. It is called before Run, of a manager whose Config says Keep.
func (r *Runner) KeepKeys(save func(*mkey.Book) error) { r.managed.KeepKeys(save) }

// Registered is what hosts have registered.
func (r *Runner) Registered() server.State { return r.managed.Registered() }

// Administration answers hosts.
func (r *Runner) Administration() *server.Server { return r.managed.Administration() }

// Engine is the manager.
func (r *Runner) Engine() *engine.Engine { return r.managed.Manager() }

// progressEvery is how often progress is shown within one phase.
const progressEvery = time.Second

// Run drives the engine until until reports true or the context ends. IsSM is
// set while it runs and answers.
func (r *Runner) Run(ctx context.Context, until func() bool) (err error) {
	defer r.managed.Flush()
	defer r.asked.end()
	return r.whileAnnounced(func() error {
		return r.drive(ctx, &r.aside, func() bool {
			r.recallFormer()
			r.asked.answer(r.Engine())
			r.lookInCharge()
			return until()
		})
	})
}

// drive drives an engine until until reports true, or the manager cannot be
// announced.
func (r *Runner) drive(ctx context.Context, e link.Engine, until func() bool) error {
	err := r.link.Drive(ctx, e, func() bool {
		r.showProgress()
		return r.announced != nil || until()
	})
	if r.announced != nil {
		return r.announced
	}
	return err
}

// whileAnnounced calls run with IsSM set, and clears IsSM afterwards.
func (r *Runner) whileAnnounced(run func() error) error {
	if r.isAnnounced { // driven before
		if r.announced = r.link.SetIsSM(true); r.announced != nil {
			return r.announced
		}
	}
	err := run()
	if e := r.link.SetIsSM(false); err == nil && e != nil {
		err = fmt.Errorf("leaving: %w", e)
	}
	return err
}

// SMPs is what was sent so far.
func (r *Runner) SMPs() SMPs { return r.counter.smps() }

// moment is now.
func (r *Runner) moment() sweep.Moment {
	m := sweep.Moment{Clock: time.Now()}
	if r.managed != nil { // the first phase begins while the engine is made
		m.Fabric, m.Counts, m.Least = r.Now(), r.Engine().Counts(), r.Engine().Least()
	}
	return m
}

// TakePhases returns the phases since the last call, the one under way as far
// as it has come.
func (r *Runner) TakePhases() []sweep.Phase { return r.record.Take(r.moment()) }

// Sweeps returns the last sweeps with their phases, the newest first. Only the goroutine
// that drives the manager calls it.
func (r *Runner) Sweeps() []sweep.SweepPhases { return r.record.Sweeps(r.moment()) }

// lookEvery is how many turns of the link pass between two looks at the clock.
const lookEvery = 256

func (r *Runner) showProgress() {
	if r.turns++; r.turns%lookEvery != 0 {
		return
	}
	phase, from := r.record.Phase()
	if phase == "" {
		return
	}
	if now := time.Now(); now.Sub(r.shown) >= progressEvery {
		r.shown = now
		r.watcher.Progress(phase, r.Engine().Counts().Answered-from.Counts.Answered)
	}
}

// turn ends the phase under way and begins another.
func (r *Runner) turn(phase string) {
	m := r.moment()
	r.shown = m.Clock
	if phase == event.PhaseWatch {
		r.record.End(m)
		return
	}
	r.record.Begin(phase, m)
}
