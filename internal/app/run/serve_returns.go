package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// returnAgain is the time until ports are given back again after that failed, or was refused
// by the manager because the policy with them did not fit.
const returnAgain = 10 * time.Minute

// returns gives ports that tenants had back to the policy file when their release is
// proved, until ctx ends. Only a proof lets more of them go back, so it waits for one.
func (s *Service) returns(ctx context.Context, log *slog.Logger) {
	for {
		settled := s.Settled()
		var again <-chan time.Time // never
		if s.Returnable() && !s.giveBack(ctx, log) {
			again, settled = time.After(returnAgain), nil
		}
		select {
		case <-ctx.Done():
			return
		case <-settled:
		case <-again:
		}
	}
}

// giveBack gives back what can be, and reports whether the manager has taken it.
func (s *Service) giveBack(ctx context.Context, log *slog.Logger) bool {
	done, err := s.Do(ctx, service.Request{Change: resource.ReturnPorts{}, By: trimCaller, Seen: resource.Unseen, Wait: true})
	switch {
	case ctx.Err() != nil, errors.Is(err, service.ErrNotMaster): // the master does, or this one when it is
		return true
	case err != nil:
		log.Warn("released ports are not given back to the policy file: "+err.Error(), "again", returnAgain)
		return false
	case done.Outcome != nil && done.Outcome.State == service.Refused:
		log.Warn("released ports are not given back to the policy file: the policy with them does not fit", "revision", done.Revision, "again", returnAgain)
		return false
	}
	return true
}
