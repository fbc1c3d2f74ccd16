package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
)

const (
	// noteEvery is the least time between two writings of outcomes.
	noteEvery = 100 * time.Millisecond
	// notesMax is how many outcomes are written at once: as many as a commit may have.
	notesMax = store.MaxOutcomes
	// notesKept is how many outcomes wait for a store that is lost; the oldest go first.
	notesKept = outcomesKept
	// commitTimeout bounds a commit that has begun: longer than every store takes.
	commitTimeout = 20 * time.Second
)

// noteLocked adds an outcome to those that are to be stored; mu is held. Of a revision only
// the newest counts.
func (s *Service) noteLocked(o store.Outcome) {
	if o.Revision == 0 {
		return // that of a fabric on which nothing was changed yet
	}
	if n := len(s.notes); n > 0 && s.notes[n-1].Revision == o.Revision {
		s.notes = s.notes[:n-1] // each verdict on an unchanged policy is one of the last revision
	}
	s.notes = append(s.notes, o)
	s.notes = s.notes[max(0, len(s.notes)-notesKept):]
}

// wakeNotes has outcomes stored.
func (s *Service) wakeNotes() {
	select {
	case s.noted <- struct{}{}:
	default: // they are about to be
	}
}

// keepNotes stores outcomes until the service is closed.
func (s *Service) keepNotes() {
	for {
		select {
		case <-s.noted:
		case <-time.After(refusedLook):
		case <-s.closing:
			s.note(true)
			s.keepSeen()
			return
		}
		s.note(false)
		s.keepSeen()
		select {
		case <-time.After(noteEvery):
		case <-s.closing:
		}
	}
}

// note attaches outcomes to their revisions, and stores how often was refused what is refused
// no more, or all that was. What the store does not take waits until it does.
func (s *Service) note(all bool) {
	s.write.Lock()
	defer s.write.Unlock()
	s.noteRefusals(all)
	for {
		s.mu.Lock()
		some := slices.Clone(s.notes[:min(len(s.notes), notesMax)])
		lost := s.lost
		s.mu.Unlock()
		if len(some) == 0 || lost != nil {
			return
		}
		if err := s.put(context.Background(), store.Commit{Epoch: s.epoch, Outcomes: some}); err != nil && !certain(err) {
			return
		}
		s.mu.Lock()
		s.notes = slices.DeleteFunc(s.notes, func(o store.Outcome) bool {
			return slices.ContainsFunc(some, func(done store.Outcome) bool {
				return done.Revision == o.Revision && string(done.Data) == string(o.Data)
			})
		})
		s.mu.Unlock()
	}
}

// put commits. A commit that has begun is ended though its caller has gone: a store that
// is interrupted does not know what it has done, and neither does this service then.
func (s *Service) put(ctx context.Context, c store.Commit) error {
	done, err := s.transact(ctx, c)
	if err == nil {
		err = s.sawCommit(&c, done)
	}
	return err
}

// transact is put where nothing is known of what the store had before.
func (s *Service) transact(ctx context.Context, c store.Commit) (done store.Committed, err error) {
	if err := ctx.Err(); err != nil {
		return done, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	done, err = s.config.Store.Commit(ctx, c)
	switch {
	case err == nil:
		s.wrote = s.config.Now()
		return done, nil
	case certain(err):
		return done, err
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrStale):
		s.failed(err)
		return done, err
	}
	s.failed(err)
	return done, &unknownError{err}
}

// unknownError is ErrUnknown with its reason.
type unknownError struct{ why error }

func (e *unknownError) Error() string   { return ErrUnknown.Error() + ": " + e.why.Error() }
func (e *unknownError) Unwrap() []error { return []error{ErrUnknown, e.why} }

// certain reports whether an error of a commit leaves no doubt: the store has read it and
// refuses it, and would refuse it again.
func certain(err error) bool {
	return errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCompacted)
}

// failed notes that the store is lost to this service until it has been read again. One
// that another manager has taken over is lost to it until it takes that over (Lead,
// Regain); until then it follows it.
func (s *Service) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leads {
		return
	}
	s.lost = err
	if s.config.Shared && errors.Is(err, store.ErrFenced) {
		s.fenced = err
		s.closed.Go(s.yield)
	}
}
