package run

import (
	"context"
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

const (
	// recoverEvery is how often a store that was lost is tried again, and recoverTimeout
	// bounds one try.
	recoverEvery   = 10 * time.Second
	recoverTimeout = 10 * time.Second
)

// errNotTaken says that a manager which is master cannot write the store that others
// share.
var errNotTaken = errors.New("this manager is master, and has not taken the store over yet")

// Watch has /readyz say whether the store can be written, and /metrics what it
// and the API do.
func (s *Service) Watch(t *telemetry.Telemetry) {
	if s != nil {
		t.AddCheck(telemetry.Check{Name: "store", Test: s.writable})
		t.Collect(s.counts)
		t.Collect(s.calls)
	}
}

// writable says why changes cannot be stored. A standby stores none, and nothing is
// wrong with that for as long as it can follow who does.
func (s *Service) writable() error {
	lost := s.Read(func(*resource.State) {})
	if back := s.Back(); back != nil {
		return back
	}
	if errors.Is(lost, service.ErrNotMaster) && !errors.Is(lost, store.ErrUnavailable) {
		if s.master.Load() {
			return errNotTaken
		}
		return nil
	}
	return lost
}

// recovers tries a store that was lost until ctx ends: /readyz keeps those away whose
// changes would try it. It tries a store that others share too, which this manager may
// have lost without noticing.
func (s *Service) recovers(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		try, cancel := context.WithTimeout(ctx, recoverTimeout)
		if s.Recover(try) == nil { // else Read says why not
			_ = s.applyLater(try) // of a file that waited for this; the next time tries again
		}
		cancel()
	}
}
