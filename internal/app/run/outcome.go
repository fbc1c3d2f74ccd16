package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// Printer prints verdicts.
type Printer interface {
	// Verdict prints the result of a pass, with what was sent so far and the phases of the pass.
	Verdict(r *event.Result, sent daemon.SMPs, took []sweep.Phase)
	// Again has the next verdict printed in full, although it is the one before.
	Again()
}

// outcome is what has become of a run so far.
type outcome struct {
	completed  *event.Result // until its state was saved
	last       *event.Result
	refused    bool
	locked     bool // refused for want of M_Keys
	deferred   bool // another manager is master
	unexpected bool // the fabric is left to a master that was found there
	// unkept is why a list of cables could not be kept. Nothing may be written then: the next run would
	// learn another. unsaved is why the state could not be kept after the last pass.
	unkept, unsaved error
}

// Event takes what the engine reports.
func (m *manager) Event(e event.Event) {
	LogEvent(m.log, e)
	m.service.Event(e)
	m.watched.Event(e)
	switch e := e.(type) {
	case event.Completed:
		m.completed, m.last = e.Result, e.Result
		m.print.Verdict(e.Result, m.runner.SMPs(), m.runner.TakePhases())
	case event.Learned:
		m.unkept = m.keepCables(e.List)
	case event.Refused:
		m.refused = m.last == nil
		var locked *mkey.LockedError
		m.locked = m.refused && errors.As(e.Err, &locked)
	case event.Deferred:
		m.deferred = true
	case event.Unexpected:
		m.unexpected = m.last == nil
	}
}

// LogEvent says what happens, but for the end of a phase.
func LogEvent(log *telemetry.Log, e event.Event) {
	if b, is := e.(event.PhaseBegun); !is || b.Phase != event.PhaseWatch {
		log.Event(e)
	}
}

// Progress says that a long phase goes on: of the first pass to everybody.
func (m *manager) Progress(phase string, answered uint64) {
	level := slog.LevelInfo
	if m.last != nil {
		level = slog.LevelDebug
	}
	LogProgress(m.ctx, level, phase, answered)
}

// LogProgress says in the log of ctx that a long phase goes on.
func LogProgress(ctx context.Context, level slog.Level, phase string, answered uint64) {
	telemetry.LogOf(ctx).LogAttrs(context.Background(), level, fmt.Sprintf("%s: %d requests answered", phase, answered),
		slog.String("event", "progress"), slog.String("phase", phase), slog.Uint64("answered", answered))
}

// Errors of a run that did not achieve its purpose.
var (
	errNotReached = errors.New("the fabric is not as the policy wants it")
	errStandby    = errors.New("another manager is master; nothing was written")
	errLocked     = errors.New("nothing was written: the keys of this fabric are not known here")
	errNoVerdict  = errors.New("ended before there was a verdict")
)

// ended handles the end of a run: an interrupt in the middle leaves the work half done,
// an interrupt at rest leaves a verdict.
func (m *manager) ended(err error) error {
	if !errors.Is(err, context.Canceled) {
		return m.result(err)
	}
	work, busy := m.runner.Engine().UnderWay()
	switch {
	case busy:
		return terminal.WithBad(terminal.ExitInterrupted(work.String()))
	case m.last == nil && m.deferred:
		return terminal.WithBad(terminal.ExitInterrupted("standing by for another manager; nothing was written"))
	case m.Once, m.last == nil:
		return terminal.WithBad(terminal.ExitInterrupted("before there was a verdict"))
	}
	m.log.Info("interrupted at rest: the fabric is as the last verdict says, and is no longer monitored")
	return m.result(nil)
}

// result is the exit status of the run.
func (o *outcome) result(err error) error {
	switch {
	case o.unkept != nil:
		return terminal.WithBad(o.unkept)
	case o.locked:
		return terminal.WithBad(errLocked)
	case o.unsaved != nil:
		return terminal.WithBad(nil) // it was said when it failed
	case o.refused:
		return terminal.WithMisuse(nil)
	case o.unexpected:
		return terminal.WithBad(nil)
	case err != nil:
		return terminal.WithBad(err)
	case o.last == nil && o.deferred:
		return terminal.WithBad(errStandby)
	case o.last == nil:
		return terminal.WithBad(errNoVerdict)
	case !o.last.Proof.Verdict.Holds(), o.last.Multicast != nil && !o.last.Multicast.Verdict.Holds():
		return terminal.WithBad(terminal.ErrNotProved)
	case !o.last.Reached():
		return terminal.WithBad(errNotReached)
	}
	return nil
}
