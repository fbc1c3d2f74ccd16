package service

import (
	"context"
	"errors"

	"github.com/ibwarden/ibwarden/internal/store"
)

// probeKey is the key of an object that is never there. Deleting it changes nothing, and
// is a transaction all the same.
const probeKey = "probe"

// Recover tries whether a store that was lost takes changes again, without waiting for
// somebody to make one. It returns why not; nil where the store is not lost.
func (s *Service) Recover(ctx context.Context) error {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.RLock()
	lost := s.lost
	s.mu.RUnlock()
	if lost == nil || errors.Is(lost, store.ErrFenced) || errors.Is(lost, ErrNotMaster) {
		return lost
	}
	if err := s.load(ctx); err != nil { // what a disk that is full still allows
		return err
	}
	s.mu.RLock()
	last := s.state.Last()
	s.mu.RUnlock()
	if _, err := s.config.Store.Commit(ctx, store.Commit{Epoch: s.epoch, After: last, Deletes: []string{probeKey}}); err != nil {
		s.failed(err)
		return err
	}
	s.found()
	return nil
}

// found notes that the store can be written again. What it holds, which load has read,
// goes to the manager.
func (s *Service) found() {
	s.mu.Lock()
	s.lost = nil
	last, p := s.state.Last(), s.state.Policy()
	s.mu.Unlock()
	s.config.Manager.SetPolicy(last, p)
}
