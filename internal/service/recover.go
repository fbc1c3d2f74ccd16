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
func (s *Service) Recover(ctx context.Context) error {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.RLock()
	lost, last := s.lost, s.state.Last()
	s.mu.RUnlock()
	switch {
	case final(lost):
		return lost
	case lost != nil:
		if err := s.load(ctx); err != nil { // what a disk that is full still allows
			return err
		}
		s.mu.RLock()
		last = s.state.Last()
		s.mu.RUnlock()
	case !s.config.Shared || s.config.Now().Sub(s.wrote) < idleMost:
		return nil
	}
	if err := s.put(ctx, store.Commit{Epoch: s.epoch, After: last, Deletes: []string{probeKey}}); err != nil {
		return err
	}
	if lost != nil {
		s.found()
	}
	return nil
}

// found notes that the store can be written again. What it holds, which load has read,
// goes to the manager.
func (s *Service) found() {
	s.mu.Lock()
	s.lost, s.tried = nil, time.Time{}
	last, p := s.state.Last(), s.state.Policy()
	s.mu.Unlock()
	s.config.Manager.SetPolicy(last, p)
	s.wakeNotes()
}

// triedEvery is the least time between two tries of a store that is lost which changes
// make: all others of that time are refused at once.
const triedEvery = time.Second

// reached reports whether the store can be written. After a time in which it could
// not be reached, what it holds is read again: a change may have been stored of which
// this service was not told.
func (s *Service) reached(ctx context.Context) error {
	s.mu.RLock()
	lost, tried := s.lost, s.tried
	s.mu.RUnlock()
	if lost == nil {
		return nil
	}
	if final(lost) || s.config.Now().Sub(tried) < triedEvery {
		return lost
	}
	if err := s.load(ctx); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ctx.Err() == nil {
			s.tried = s.config.Now()
		}
		return err
	}
	s.found()
	return nil
}

// barred says why nothing can be written for good. It waits for nobody who reads the store.
func (s *Service) barred() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if final(s.lost) {
		return s.lost
	}
	return nil
}

// final reports whether a store that is lost stays so: others write it.
func final(lost error) bool {
	return errors.Is(lost, store.ErrFenced) || errors.Is(lost, ErrNotMaster)
}
