package service

import (
	"context"
	"strings"

	"github.com/ibwarden/ibwarden/internal/store"
)

// ManagerPrefix begins the keys of objects that belong to the subnet manager: the service
// keeps them and does not look at them.
const ManagerPrefix = store.Aside

// Keep stores objects of the manager, all or none, by the epoch of this service like
// everything that it writes: one that is not the writer any more stores nothing.
func (s *Service) Keep(ctx context.Context, objects []store.Object) error {
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
	return s.put(ctx, store.Commit{Epoch: s.epoch, After: last, Puts: objects})
}

// Writable says why nothing can be stored now; nil where it can, as far as is known.
func (s *Service) Writable() error { return s.writable() }

// ofManager reports whether an object belongs to the manager.
func ofManager(key string) bool { return strings.HasPrefix(key, ManagerPrefix) }
