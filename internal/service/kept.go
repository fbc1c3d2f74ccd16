package service

import (
	"context"
	"strings"

	"github.com/ibwarden/ibwarden/internal/store"
)

// ManagerPrefix begins the keys of objects that belong to the subnet manager: the service
// keeps them and does not look at them.
const ManagerPrefix = store.Aside

// Epoch is that in which this service took the store over last; 0 if it never has. As long as it
// is the same, and something can be written, no other service has written.
func (s *Service) Epoch() store.Epoch {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.epoch
}

// Keep stores objects of the manager, all or none, which were made in an epoch (Epoch): a service
// that is not the writer any more stores nothing, and neither does one that has taken the store
// over again since, as others may have written meanwhile. The error is store.ErrFenced then.
func (s *Service) Keep(ctx context.Context, epoch store.Epoch, objects []store.Object) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.RLock()
	lost, last := s.lost, s.state.Last()
	s.mu.RUnlock()
	if lost != nil {
		return lost
	}
	if epoch != s.epoch {
		return store.ErrFenced
	}
	return s.put(ctx, store.Commit{Epoch: epoch, After: last, Puts: objects})
}

// Writable says why nothing can be stored now; nil where it can, as far as is known.
func (s *Service) Writable() error { return s.writable() }

// ofManager reports whether an object belongs to the manager.
func ofManager(key string) bool { return strings.HasPrefix(key, ManagerPrefix) }
