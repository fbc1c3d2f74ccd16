package service

import (
	"context"
	"errors"

	"github.com/ibwarden/ibwarden/internal/store"
)

// Lead reports whether the manager is master of the subnet. With a store that others
// share, a master takes it over, and its policy is handed to the manager; whoever is
// not writes nothing, and follows what the master writes.
func (s *Service) Lead(ctx context.Context, master bool) error {
	if !s.config.Shared {
		return nil
	}
	s.standby.Lock()
	defer s.standby.Unlock()
	s.mu.RLock()
	leads := s.leads
	s.mu.RUnlock()
	switch {
	case master == leads:
		return nil
	case master:
		return s.takeOver(ctx)
	default:
		s.unfollow()
		s.stepDown()
		s.follow()
	}
	return nil
}

// Regain takes the store over once more, if another manager has taken it over while this
// service led: it loads what that one wrote, and has its manager carry it out. It does
// nothing for a service that does not lead. Its caller has just learned that no other
// manager is master of the subnet; while there is one, the election decides who is to
// have the store.
func (s *Service) Regain(ctx context.Context) error {
	if !s.config.Shared {
		return nil
	}
	s.standby.Lock()
	defer s.standby.Unlock()
	if leads, _ := s.leading(); !leads {
		return nil
	}
	if err := s.look(ctx, 0); !errors.Is(err, store.ErrFenced) {
		return err
	}
	return s.takeOver(ctx)
}

// Retake takes the store over once more: this service has led it, and has given up the right
// to write to the fabric, or lost it. Its caller knows that it may be taken. It does nothing for
// a service that does not lead.
func (s *Service) Retake(ctx context.Context) error {
	s.standby.Lock()
	defer s.standby.Unlock()
	if leads, _ := s.leading(); !leads || !s.config.Shared {
		return nil
	}
	return s.takeOver(ctx)
}

// Look has the service learn whether another one has taken the store over.
func (s *Service) Look(ctx context.Context) error { return s.look(ctx, 0) }

// Refresh reads the store, of a service that does not lead, as it is now.
func (s *Service) Refresh(ctx context.Context) error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.load(ctx)
}

// Confirm asks the store whether this service leads still, and knows so what is in force.
// If not, it reads the store, hands the policy to the manager, and returns true.
func (s *Service) Confirm(ctx context.Context) (changed bool, err error) {
	leads, _ := s.leading()
	if leads {
		err = s.look(ctx, 0)
	}
	if !leads || final(err) {
		err = s.Refresh(ctx)
		changed = err == nil
	}
	switch back := s.Back(); {
	case back != nil && errors.Is(err, store.ErrRolledBack):
		s.config.Manager.HoldBack(back.Error(), s.isOlder()) // by the tables as they are now
		return false, nil
	case changed:
		s.config.Manager.SetPolicy(s.Policy())
		s.release()
	}
	return changed, err
}

// leading reports whether this service leads, and who has taken the store over from it all
// the same.
func (s *Service) leading() (leads bool, fenced error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.leads, s.fenced
}

// takeOver makes this service the writer; standby is held. Where the store does not let it,
// it follows who writes.
func (s *Service) takeOver(ctx context.Context) error {
	s.unfollow()
	if err := s.take(ctx); err != nil {
		s.follow()
		return err
	}
	s.guard()
	return nil
}

func (s *Service) take(ctx context.Context) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.lead(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.leads, s.fenced = true, nil
	s.mu.Unlock()
	s.found()
	return nil
}

// guard begins to look for revisions of another manager, which has taken the store over
// then; standby is held. One to whom nobody writes would not know, and keep a policy that
// is not in force any more.
func (s *Service) guard() {
	s.attend(func(ctx context.Context) error {
		s.mu.RLock()
		epoch, last := s.epoch, s.state.Last()
		s.mu.RUnlock()
		for rev, err := range s.config.Store.Watch(ctx, last) {
			if err != nil && !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
				return s.look(ctx, 0) // the store may have been rolled back
			}
			if err != nil {
				return err
			}
			if rev.Epoch > epoch {
				return s.look(ctx, 0)
			}
		}
		return ctx.Err()
	})
}

// yield has a service that was fenced follow who has taken the store over.
func (s *Service) yield() {
	s.standby.Lock()
	defer s.standby.Unlock()
	select {
	case <-s.closing:
		return
	default:
	}
	if leads, fenced := s.leading(); leads && fenced != nil {
		s.unfollow()
		s.follow()
	}
}

// stepDown ends the writing. Outcomes that were not stored are forgotten: the next
// master proves what it finds, and says so; and what was counted of refusals.
func (s *Service) stepDown() {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads, s.lost, s.fenced, s.notes = false, ErrNotMaster, nil, nil
	s.refusals = newRefusals()
}

// Close stores the outcomes that are known. The store stays open.
func (s *Service) Close() {
	s.standby.Lock()
	s.unfollow()
	close(s.closing)
	s.standby.Unlock()
	s.closed.Wait()
}
