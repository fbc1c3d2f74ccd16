package engine

import (
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// noteMutes remembers after a pass who owes an answer. whole says that it was about
// everything: who is not named any more has answered.
func (e *Engine) noteMutes(failures []apply.Failure, whole bool) {
	owing := make(map[observed.Place]watch.Owes)
	for _, p := range e.silent {
		owing[p.Place()] = watch.Everything
	}
	for _, f := range failures {
		if errors.Is(f.Err, transact.ErrNoAnswer) {
			owing[f.Port.Place()] = watch.Write
		}
	}
	for _, f := range e.faults {
		if f.Port != nil && !f.Port.Silent && errors.Is(f.Err, transact.ErrNoAnswer) {
			owing[f.Port.Place()] = watch.Read
		}
	}
	if whole {
		e.beside.mutes.Keep(func(at observed.Place) bool { return owing[at] != watch.Nothing })
	}
	for at, what := range owing {
		e.beside.mutes.Add(e.now, at, what)
	}
}

// asksMutes reports whether those who owe an answer are asked while the engine watches the subnet,
// or was refused.
func (e *Engine) asksMutes() bool {
	return e.isMaster() && e.agenda.sweep == "" && !e.config.Hold && !e.ownLID.robbed
}

// mutesDue is when askMutes is to be called.
func (e *Engine) mutesDue() (at time.Duration, some bool) {
	at, some = e.beside.mutes.Next()
	return at, some && e.asksMutes()
}

// askMutes asks those who owe an answer. As soon as one answers, it is read, and what is
// behind there is written.
func (e *Engine) askMutes(now time.Duration) {
	if !e.asksMutes() {
		return
	}
	e.beside.mutes.Due(now, func(at observed.Place, what watch.Owes) {
		p := e.fabric.At(at)
		switch {
		case p == nil:
		case p.Silent:
			e.probeBehind(p, true, e.linkMute)
		case what == watch.Everything || !p.Reached:
		case what == watch.Read:
			e.look(p, func() { e.missed(p, p.String()+" answers now, and did not answer all that was asked before") })
		default:
			e.look(p, func() { e.agenda.compare = true })
		}
	})
}

// linkMute has what is behind a link discovered again for a device that did not answer, or
// answers again. Those that answer at about the same time are read together.
func (e *Engine) linkMute(p *observed.Port, reason string) {
	if e.state() == stateRefused {
		e.agenda.wantSweep(reason)
		return
	}
	if p.IsEnd() && p.Peer != nil {
		p = p.Peer // the switch's, whatever its host calls itself next
	}
	e.noteOften(p, e.agenda.links.AddMute(e.now, p, reason))
}
