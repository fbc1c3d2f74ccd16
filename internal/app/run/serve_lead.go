package run

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
)

const (
	// leadTimeout bounds one try to take over the store.
	leadTimeout = 10 * time.Second
	// leadAgain is when a try that failed is made again: another one may have been faster.
	leadAgain = 100 * time.Millisecond
	// askAgain is the least time between two rounds of questions to the other managers that
	// are asked for since the store was taken over: two that cannot see each other take it
	// from each other no faster.
	askAgain = 5 * time.Second
	// confirmAgain is when a store that could not be asked whether its policy is in force is
	// asked again.
	confirmAgain = 100 * time.Millisecond
)

// leader has the service take the store over while this manager is the master of the
// subnet.
type leader struct {
	// masters says whether this manager is the master, as it changes; nil where the store is
	// not shared.
	masters chan bool
	master  atomic.Bool // as it was last told
	// alone reports whether a round of questions showed no other master, and that it has not been
	// looked at yet.
	alone atomic.Bool
	led   chan struct{} // closed when masters is not read any more
	asks  sync.WaitGroup

	mu    sync.Mutex
	end   context.CancelFunc // ends the try that is under way
	begun time.Time          // the last round that was asked for
	ended bool
}

func (s *Service) beginLead() {
	s.masters, s.led = make(chan bool, 1), make(chan struct{})
	go s.lead()
}

func (s *Service) endLead() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	if s.masters != nil {
		close(s.masters)
		<-s.led
	}
	s.asks.Wait()
}

// lead takes over the store while this manager is the master of the subnet.
func (s *Service) lead() {
	defer close(s.led)
	for master := range s.masters {
		for s.leadOnce(master) != nil {
			select {
			case next, more := <-s.masters:
				if !more {
					return
				}
				master = next
			case <-time.After(leadAgain):
			}
		}
	}
}

// leadOnce makes one try. That of a manager which is master no more ends at once.
func (s *Service) leadOnce(master bool) error {
	trying, stop := context.WithCancel(context.Background())
	defer stop()
	s.mu.Lock()
	s.end = stop
	s.mu.Unlock()
	if master != s.master.Load() {
		return nil // what is so by now comes next
	}
	if s.rights.give(!master); master {
		if err := s.rights.await(trying); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(trying, leadTimeout)
	defer cancel()
	err := s.Lead(ctx, master)
	if err != nil || !master {
		return err
	}
	if err = s.regain(ctx); err == nil && s.rights.uses() {
		s.manager.Wake()
		err = s.applyLater(ctx)
	}
	return err
}

// regain takes the store over once more where another manager has taken it over, and is not
// master any more, or where this one has given the lease up.
func (s *Service) regain(ctx context.Context) error {
	if s.rights == nil {
		if s.alone.Swap(false) {
			return s.Regain(ctx)
		}
		return nil
	}
	if s.rights.holds() || errors.Is(s.Writable(), store.ErrFenced) && !s.alone.Swap(false) {
		return nil
	}
	return s.Retake(ctx)
}

// ask does something that may wait for others, beside the caller, who holds s.mu.
func (s *Service) ask(do func(context.Context)) {
	s.asks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), leadTimeout)
		defer cancel()
		do(ctx)
	})
}

// lostLease is called when another manager has taken the lease over, and so the store.
func (s *Service) lostLease() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.masters == nil {
		return
	}
	s.ask(func(ctx context.Context) {
		_ = s.Look(ctx) // it finds that it is fenced, and follows
	})
}

// isMaster tells lead, which may be at work, what counts now.
func (s *Service) isMaster(master bool) {
	s.master.Store(master)
	if s.masters == nil {
		return
	}
	if !master {
		s.alone.Store(false)
		s.mu.Lock()
		if s.end != nil {
			s.end()
		}
		s.mu.Unlock()
	}
	select {
	case <-s.masters: // what has not been looked at
	default:
	}
	s.masters <- master
}

// asked tells lead of the end of a round of questions: where another manager took the store
// over and is not master any more, this one takes it back.
func (s *Service) asked(alone bool) {
	if s.masters == nil {
		return
	}
	s.alone.Store(alone)
	if alone && s.master.Load() {
		s.isMaster(true)
	}
}

// fencing is a store that tells when another manager has taken it over.
type fencing struct {
	store.Store
	rights *rights // nil for none
	fenced func()
}

// Acquire implements store.Store.
func (f *fencing) Acquire(ctx context.Context, owner string) (store.Epoch, error) {
	if f.rights == nil {
		return f.Store.Acquire(ctx, owner)
	}
	return f.rights.acquire(ctx, owner)
}

// Commit implements store.Store.
func (f *fencing) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	done, err := f.Store.Commit(ctx, c)
	if errors.Is(err, store.ErrFenced) {
		f.fenced()
	}
	return done, err
}

// askOthers asks the other managers whether one of them is master: whoever took the store
// over was, or this manager would not have to ask.
func (s *Service) askOthers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.masters == nil || time.Since(s.begun) < askAgain {
		return
	}
	s.begun = time.Now()
	s.ask(func(ctx context.Context) {
		_ = s.manager.AskOthers(ctx) // else the next round of the manager itself tells
	})
}

// confirm looks whether the policy is the one in force, after the manager did not run for a
// while, and tells it.
func (s *Service) confirm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.masters == nil {
		return
	}
	s.ask(func(ctx context.Context) {
		for ctx.Err() == nil {
			if changed, err := s.Confirm(ctx); err == nil {
				s.manager.Confirm(changed)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(confirmAgain):
			}
		}
	})
}
