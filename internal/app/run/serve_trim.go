package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

const (
	// trimFirst is when the service first forgets what has had its time, after the start:
	// removals are forgotten only when they have been proved in this run.
	trimFirst = 10 * time.Minute
	// trimEvery is the time between two such trims, trimAgain after one that failed.
	trimEvery = 24 * time.Hour
	trimAgain = time.Hour
	// trimsMost is how many changes a trim makes at most, of resource.TrimMax objects each.
	trimsMost = 16
)

// trimCaller is who forgets what has had its time.
var trimCaller = resource.Caller{Name: "run", Tenant: resource.Provider}

// trims forgets what has had its time, once a day until ctx ends.
func (s *Service) trims(ctx context.Context, log *slog.Logger) {
	for next := trimFirst; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		next = s.trim(ctx, log)
	}
}

// trim forgets what has had its time, and returns when to do so again. Where there is
// nothing to forget there is no revision.
func (s *Service) trim(ctx context.Context, log *slog.Logger) (next time.Duration) {
	for range trimsMost {
		done, err := s.Do(ctx, service.Request{Change: resource.Trim{}, By: trimCaller, Seen: resource.Unseen})
		switch {
		case errors.Is(err, service.ErrNotMaster): // the master does
			return trimAgain
		case err != nil:
			log.Warn("what has had its time is not forgotten: "+err.Error(), "again", trimAgain)
			return trimAgain
		case len(done.Keys) == 0:
			return trimEvery
		}
	}
	return trimEvery
}
