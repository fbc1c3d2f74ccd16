package sso

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/errgroup"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// held is somebody who has logged in.
type held struct {
	caller         resource.Caller
	subject, nonce string
	refresh        string // the token with which the provider is asked again
	since, ends    time.Time
	provider       *provider
}

// Watch asks the provider about everybody who has a session, whenever tick says so, until ctx ends.
func (s *Service) Watch(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			s.Check(ctx)
		}
	}
}

// Check is called by one goroutine at a time. It asks the provider about everybody who has a session or a code, and forgets the others. Whom the
// provider does not confirm any more has no session from then on. While it does not answer they
// last, until they end by themselves.
func (s *Service) Check(ctx context.Context) {
	inUse, now := s.hooks.InUse(), s.now()
	s.mu.Lock()
	maps.DeleteFunc(s.held, func(sum string, h *held) bool { return !inUse[sum] && now.Sub(h.since) > listen.CodeLife })
	maps.DeleteFunc(s.used, func(_ string, until time.Time) bool { return now.After(until) })
	all := maps.Clone(s.held)
	s.mu.Unlock()
	var works errgroup.Group
	works.SetLimit(checksAtOnce)
	var failed atomic.Value
	before := s.Counts()
	for sum, h := range all {
		works.Go(func() error {
			if err := s.check(ctx, h); ctx.Err() == nil && !s.checked(sum, h, err) {
				failed.Store(reason(err))
			}
			return nil
		})
	}
	_ = works.Wait() // none of them fails
	after := s.Counts()
	answered := after.Confirmed+after.Ended > before.Confirmed+before.Ended
	why, _ := failed.Load().(string)
	if s.away && answered {
		s.away = false
		s.log.Info("the OpenID provider answers again", "event", listen.ProviderBack, "issuer", s.config.Issuer)
	} else if !s.away && !answered && why != "" {
		s.away = true
		s.log.Warn("the OpenID provider does not answer, sessions last until they end by themselves: "+why, "event", listen.ProviderAway, "issuer", s.config.Issuer, "reason", why)
	}
}

// check asks the provider about somebody: for new tokens, and so whether the old one still counts.
func (s *Service) check(ctx context.Context, h *held) error {
	ctx, done := context.WithTimeout(oidc.ClientContext(ctx, s.client), CheckTime)
	defer done()
	t, err := h.provider.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: h.refresh}).Token()
	if err != nil {
		return err
	}
	h.refresh = t.RefreshToken // the same one where there is no other
	who, err := s.personOf(ctx, h.provider, t, h.subject)
	switch {
	case err != nil:
		return err
	case who.nonce != "" && who.nonce != h.nonce:
		return errRefused
	}
	if !slices.Contains(s.config.choices(who.groups), Grant{Tenant: h.caller.Tenant, ReadOnly: h.caller.ReadOnly}) {
		return errNoGroup
	}
	return nil
}

// checked enters what came of a check, and reports whether the provider answered.
func (s *Service) checked(sum string, h *held, err error) (answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.count.Confirmed++
	case refused(err):
		s.count.Ended++
		delete(s.held, sum)
		s.log.Warn(h.caller.Name+" has no session any more: "+reason(err), "event", listen.SessionRevoked, "caller", h.caller.Name, "tenant", h.caller.Tenant, "reason", reason(err))
	default:
		s.count.Unanswered++
		return false
	}
	return true
}

// Counts are the checks so far.
func (s *Service) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}
