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
	// RefusedWithin is the time in which refusals of the same kind are one entry of the
	// audit log besides the first.
	RefusedWithin = 10 * time.Minute
	// RefusedKinds is how many kinds of refusals of one tenant have entries of their own
	// within RefusedWithin: all further ones are one entry together.
	RefusedKinds = 20
	// refusedLook is how often it is looked whether RefusedWithin is over.
	refusedLook = 30 * time.Second
	// quotaSeconds is the time that the quota of changes a minute is about.
	quotaSeconds = 60
)

// refusals are those of the last RefusedWithin: of each kind the first is in the audit log,
// and the others are counted here until that is over. So whoever sends what is refused, a
// thousand times a second and in a thousand ways, has the service keep no more than
// 2*RefusedKinds+2 entries of his tenant in RefusedWithin. Only who holds Service.write may use them.
type refusals struct {
	kinds map[refusedKind]*refused
	count map[string]int // kinds by tenant
	rate  map[string]*rate
}

// refusedKind is what refusals have in common that are one entry; all but the tenant is
// empty for those beyond RefusedKinds.
type refusedKind struct{ tenant, caller, action, reason string }

// refused are refusals of one kind.
type refused struct {
	began time.Time
	// entry has how many of them are not in the audit log yet, and the last one.
	entry store.Entry
}

func newRefusals() refusals {
	return refusals{kinds: map[refusedKind]*refused{}, count: map[string]int{}, rate: map[string]*rate{}}
}

// add counts a refusal, and reports whether it has to be stored by itself: it is the first of
// its kind.
func (r *refusals) add(e store.Entry) (first bool) {
	kind := refusedKind{e.Tenant, e.Caller, e.Action, e.Reason}
	x := r.kinds[kind]
	if x == nil && r.count[e.Tenant] >= RefusedKinds {
		kind = refusedKind{tenant: e.Tenant}
		x = r.kinds[kind]
	}
	if x == nil {
		r.kinds[kind] = &refused{began: e.Time}
		r.count[e.Tenant]++
		return true
	}
	count, since, caller := x.entry.Count+1, x.entry.Since, x.entry.Caller
	if count == 1 {
		since, caller = e.Time, e.Caller
	}
	if caller != e.Caller {
		e.Caller = "" // several
	}
	e.Count, e.Since, e.Request = count, since, ""
	x.entry = e
	return false
}

// forget is for a first refusal that could not be stored: the next one is the first.
func (r *refusals) forget(e store.Entry) {
	for _, kind := range []refusedKind{{e.Tenant, e.Caller, e.Action, e.Reason}, {tenant: e.Tenant}} {
		if x := r.kinds[kind]; x != nil && x.entry.Count == 0 && x.began.Equal(e.Time) {
			r.end(kind)
			return
		}
	}
}

// due are the kinds whose time is over, or all, with their entries where they have one.
func (r *refusals) due(now time.Time, all bool) (kinds []refusedKind, entries []store.Entry) {
	for kind, x := range r.kinds {
		if !all && now.Sub(x.began) < RefusedWithin {
			continue
		}
		if len(entries) == store.MaxEntries {
			break
		}
		kinds = append(kinds, kind)
		if x.entry.Count == 0 {
			continue
		}
		e := x.entry
		if kind.action == "" {
			e.Reason = bounded("of several kinds; the last one: " + e.Reason)
		}
		entries = append(entries, e)
	}
	for name, x := range r.rate {
		if x.sum(now) == 0 {
			delete(r.rate, name)
		}
	}
	return kinds, entries
}

// end forgets a kind.
func (r *refusals) end(kind refusedKind) {
	delete(r.kinds, kind)
	if r.count[kind.tenant]--; r.count[kind.tenant] == 0 {
		delete(r.count, kind.tenant)
	}
}

// rate counts what happened in the last minute, second by second.
type rate struct {
	last int64 // Unix time in seconds
	n    [quotaSeconds]int
}

func (x *rate) move(now time.Time) {
	at := now.Unix()
	for i := range min(max(at-x.last, 0), quotaSeconds) {
		x.n[(at-i)%quotaSeconds] = 0
	}
	x.last = max(x.last, at)
}

func (x *rate) sum(now time.Time) (total int) {
	x.move(now)
	for _, n := range x.n {
		total += n
	}
	return total
}

// refusedLately is how many requests of a caller were refused in the last minute.
func (r *refusals) lately(by resource.Caller, now time.Time) int {
	if x := r.rate[by.Name]; x != nil {
		return x.sum(now)
	}
	return 0
}

// counted counts a refusal against the quota of its caller: not one that the quota itself
// refused, after which he could never come back.
func (r *refusals) counted(by resource.Caller, now time.Time, why error) {
	var refusal *resource.Refusal
	if errors.As(why, &refusal) && refusal.Reason == resource.TooFast {
		return
	}
	x := r.rate[by.Name]
	if x == nil {
		x = &rate{last: now.Unix()}
		r.rate[by.Name] = x
	}
	x.move(now)
	x.n[x.last%quotaSeconds]++
}

// refuse enters a refusal into the audit log, or counts it there.
func (s *Service) refuse(ctx context.Context, r Request, e store.Entry, why error) error {
	e.Decision, e.Reason = store.Refused, bounded(why.Error())
	s.refusals.counted(r.By, e.Time, why)
	if !s.refusals.add(e) {
		return nil
	}
	if err := s.put(ctx, store.Commit{Epoch: s.epoch, Audit: []store.Entry{e}}); err != nil {
		s.refusals.forget(e)
		return fmt.Errorf("a refusal could not be recorded: %w", err)
	}
	return nil
}

// noteRefusals stores what was counted of refusals whose time is over, or of all. Who calls it
// holds write.
func (s *Service) noteRefusals(all bool) {
	for {
		kinds, entries := s.refusals.due(s.config.Now(), all)
		if len(kinds) == 0 {
			return
		}
		s.mu.RLock()
		lost := s.lost
		s.mu.RUnlock()
		if len(entries) > 0 && (lost != nil || s.put(context.Background(), store.Commit{Epoch: s.epoch, Audit: entries}) != nil) {
			return // they wait for the store
		}
		for _, kind := range kinds {
			s.refusals.end(kind)
		}
	}
}
