package service

import (
	"context"
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
)

// probeKey is the key of an object that is never there. Deleting it changes nothing, and
// is a transaction all the same.
const probeKey = "probe"

// idleMost is how long a service that shares its store may write nothing before Recover
// looks whether it still could: another one may have become the writer.
const idleMost = 5 * time.Second

// Recover tries whether a store that was lost takes changes again, without waiting for
// somebody to make one; and of a store that others share, whether it still does. It
// returns why not; nil where the store is not lost.
func (s *Service) Recover(ctx context.Context) error { return s.look(ctx, idleMost) }

// look is Recover for a service that has written nothing for some time.
func (s *Service) look(ctx context.Context, idle time.Duration) error {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.RLock()
	lost, last := s.lost, s.state.Last()
	s.mu.RUnlock()
	switch {
	case final(lost):
		return lost
	case lost != nil && s.epoch == 0: // the disk was full when the service was opened
		if err := s.lead(ctx); err != nil {
			return err
		}
		s.found()
		return s.writable()
	case lost != nil:
		if err := s.load(ctx); err != nil { // what a disk that is full still allows
			if errors.Is(err, store.ErrRolledBack) && s.config.Shared {
				if _, fenced := s.transact(ctx, store.Commit{Epoch: s.epoch}); errors.Is(fenced, store.ErrFenced) {
					return fenced // it is taken over again, so that it can be accepted
				}
			}
			return err
		}
		s.mu.RLock()
		last = s.state.Last()
		s.mu.RUnlock()
	case !s.config.Shared:
		return s.put(ctx, store.Commit{Epoch: s.epoch}) // nothing is written, if it could be
	case s.config.Now().Sub(s.wrote) < idle:
		return nil
	}
	err := s.put(ctx, store.Commit{Epoch: s.epoch, After: last, Deletes: []string{probeKey}})
	if errors.Is(err, store.ErrStale) {
		if e := s.load(ctx); e != nil { // it was rolled back, or another one has written
			return e
		}
	}
	if err != nil {
		return err
	}
	if lost != nil {
		s.found()
	}
	return nil
}

// found notes that the store can be written again. What it holds, which load has read,
// goes to the manager. One that was rolled back is not written, and what it holds counts for
// nobody.
func (s *Service) found() {
	s.mu.Lock()
	if s.lost = nil; s.back != nil {
		s.lost = s.back
		s.mu.Unlock()
		return
	}
	last, p := s.state.Last(), s.state.Policy()
	s.mu.Unlock()
	s.config.Manager.SetPolicy(last, p)
	s.release()
	s.wakeNotes()
}

const (
	// reachWait is how long a change waits for a store that was lost: those who can try
	// again are told soon.
	reachWait = time.Second
	// reachTimeout bounds one try of a store that was lost.
	reachTimeout = 10 * time.Second
)

// ready reports whether the store can be written. One that was lost is tried: what it holds
// is read again, since a change may have been stored of which this service was not told. One
// try is made for all who ask meanwhile.
func (s *Service) ready(ctx context.Context) error {
	s.mu.Lock()
	lost, trying := s.lost, s.trying
	if lost == nil || final(lost) {
		s.mu.Unlock()
		return lost
	}
	if trying == nil {
		trying = make(chan struct{})
		s.trying = trying
		s.closed.Go(func() {
			try, cancel := context.WithTimeout(context.Background(), reachTimeout)
			defer cancel()
			_ = s.Recover(try) // lost says why not
			s.mu.Lock()
			s.trying = nil
			s.mu.Unlock()
			close(trying)
		})
	}
	s.mu.Unlock()
	select {
	case <-trying:
	case <-time.After(reachWait):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.writable()
}

// writable says why nothing can be written now.
func (s *Service) writable() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lost
}

// final reports whether a store that is lost stays so until this service takes it over:
// others write it.
func final(lost error) bool {
	return errors.Is(lost, store.ErrFenced) || errors.Is(lost, ErrNotMaster)
}
