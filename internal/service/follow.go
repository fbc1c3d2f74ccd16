package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

const (
	// followAgain is when a store that could not be followed is tried again, and backAgain
	// when one is that was rolled back: each time all of it is read.
	followAgain = time.Second
	backAgain   = 3 * time.Second
)

// errFollowing ends the following of revisions that do not fit what was read before.
var errFollowing = errors.New("the history does not go on where this service is")

// follow begins to follow what another manager writes; standby is held, or nobody knows of
// the service yet. The state is that of the last revision that was seen, so that readers
// see it, and the subnet manager begins with its policy when it takes over.
func (s *Service) follow() {
	s.attend(func(ctx context.Context) error {
		err := s.followOnce(ctx)
		if ctx.Err() == nil {
			s.aside(err)
		}
		return err
	})
}

// attend begins to watch the store, again and again until unfollow ends it; standby is
// held, or nobody knows of the service yet.
func (s *Service) attend(once func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.follows, s.ended = stop, ended
	go func() {
		defer close(ended)
		for {
			err := once(ctx)
			if errors.Is(err, store.ErrFenced) || ctx.Err() != nil {
				return // one that is fenced is told by yield what to do
			}
			again := followAgain
			if errors.Is(err, store.ErrRolledBack) {
				again = backAgain
			}
			select {
			case <-time.After(again):
			case <-ctx.Done():
				return
			}
		}
	}()
}

// unfollow ends it; standby is held.
func (s *Service) unfollow() {
	if s.follows != nil {
		s.follows()
		<-s.ended
		s.follows = nil
	}
}

// followOnce reads the store, and then each revision as it comes, until something is in
// the way.
func (s *Service) followOnce(ctx context.Context) error {
	before, _ := s.Policy()
	s.write.Lock()
	err := s.load(ctx)
	s.write.Unlock()
	if err != nil {
		return err
	}
	s.aside(nil)
	after, p := s.Policy()
	s.mu.RLock()
	released := s.released // then the same number may be that of another revision
	s.mu.RUnlock()
	if after != before || released {
		s.config.Manager.FollowPolicy(after, p)
	}
	s.release()
	for rev, err := range s.config.Store.Watch(ctx, after) {
		if err != nil {
			return err
		}
		if err := s.took(rev); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// aside says how a service that does not write does: it follows the store, or why it
// cannot.
func (s *Service) aside(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = s.asideLocked()
	if err != nil {
		s.lost = fmt.Errorf("%w; what it shows is that of revision %d, since it cannot follow the store: %w", s.lost, s.state.Last(), err)
	}
}

// asideLocked is why a service does not write that follows the store; mu is held.
func (s *Service) asideLocked() error {
	if s.leads {
		return s.fenced
	}
	return ErrNotMaster
}

// took enters a revision that another manager wrote.
func (s *Service) took(rev store.Revision) error {
	record, err := decodeRecord(rev)
	if err != nil {
		return err
	}
	var diff resource.Diff
	for _, e := range record.Edits {
		edit := resource.Edit{Key: e.Key}
		if edit.Before, err = object(e.Key, e.Before); err == nil {
			edit.After, err = object(e.Key, e.After)
		}
		if err != nil {
			return err
		}
		diff.Edits = append(diff.Edits, edit)
	}
	s.mu.Lock()
	if rev.Number != s.state.Last()+1 {
		s.mu.Unlock()
		return errFollowing
	}
	s.state.Commit(diff, rev.Number, resource.Caller{Name: record.By, Tenant: record.Tenant}, record.At)
	s.sawRevisionLocked(rev, diff)
	p := s.state.Policy()
	s.mu.Unlock()
	s.config.Manager.FollowPolicy(rev.Number, p)
	s.changed(record)
	return nil
}
