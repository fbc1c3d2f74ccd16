// session*.go: keeps who has logged in to the console, and the one-time codes that let
// somebody do so. It is all in memory: what it knows ends with the program.
//
// A session stands for the token, the certificate or the user with which it began, and is
// worth no more than that: each time it is shown, its holder is looked up again. Of secrets
// it has the SHA-256 alone.

package listen

import (
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// Limits of sessions and codes.
const (
	SessionLife = 8 * time.Hour    // of a session, at most
	Idle        = 30 * time.Minute // how long a session lasts without a request of a person
	Max         = 1000             // sessions at once
	PerCaller   = 20               // of them of one token, certificate or user
	CodeLife    = 60 * time.Second // of a code
	CodesMax    = 1000             // codes at once
	codesOfOne  = 20               // of them of one token, certificate or user
	// BegunMax is how many sessions one caller begins within BegunWithin: each is a line in the log.
	BegunMax    = 120
	BegunWithin = time.Minute
)

// ShownSSO is Account.Shown of whom an OpenID provider named.
const ShownSSO = "sso"

// Account is someone who may log in.
type Account struct {
	Caller resource.Caller
	// Sums are of what he showed, as credential.go makes them; none for the peer of
	// a Unix socket.
	Sums []string
	// Until is when what he showed ends; zero for never.
	Until time.Time
	// Shown is what that was: token, certificate, peer, code, or sso.
	Shown string
	// Logout is where a browser ends its session at the OpenID provider; "" for nowhere.
	Logout string
}

// Session is a session that lasts.
type Session struct {
	Account
	Expires time.Time // at the latest
	Idle    time.Time // when it ends unless a person asks something before

	sum string // of its secret
}

// entry is a session or a code.
type entry struct {
	who           Account
	expires, seen time.Time
}

// HolderOf is the caller whom one of the sums was given to; false for none any more.
type HolderOf func(sums []string) (resource.Caller, bool)

// Sessions has the sessions and the codes. It may be used by several goroutines.
type Sessions struct {
	now    func() time.Time
	holder HolderOf

	mu                       sync.Mutex
	sessions, codes          map[string]*entry // by the sums of their secrets
	failures, begun, unknown counts
}

// NewSessions returns a store without sessions.
func NewSessions(now func() time.Time, holder HolderOf) *Sessions {
	return &Sessions{now: now, holder: holder, sessions: map[string]*entry{}, codes: map[string]*entry{}, failures: counts{}, begun: counts{}, unknown: counts{}}
}

// Begin makes a session. Where there are too many, another ends: of the same caller the
// one that has been idle for the longest time, and else that of the tenant that has most.
// It returns false, and makes none, for a caller who has begun too many just now.
func (s *Sessions) Begin(w Account) (secret string, made Session, ok bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.counted(w, now) {
		return "", made, false
	}
	secret = NewSecret(SessionPrefix)
	e := &entry{who: w, expires: ends(now, SessionLife, w.Until), seen: now}
	add(s.sessions, secret, e, now, PerCaller, Max)
	return secret, e.session(), true
}

// Counted counts a session that is begun and kept elsewhere, and reports whether those of the
// caller are not too many.
func (s *Sessions) Counted(w Account) bool {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counted(w, now)
}

func (s *Sessions) counted(w Account, now time.Time) bool {
	return s.begun.add(w.Caller.Tenant+" "+w.Caller.Name, now, BegunWithin) <= BegunMax
}

// Code makes a code.
func (s *Sessions) Code(w Account) (secret string, expires time.Time) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	secret = NewSecret(Code)
	e := &entry{who: w, expires: ends(now, CodeLife, w.Until), seen: now}
	add(s.codes, secret, e, now, codesOfOne, CodesMax)
	return secret, e.expires
}

// Redeem is who made a code, which is worth nothing then; false for a code that was used,
// or is too old, or whose maker may not log in himself any more.
func (s *Sessions) Redeem(secret string) (Account, bool) {
	sum := SecretSum([]byte(secret))
	s.mu.Lock()
	e := s.codes[sum]
	delete(s.codes, sum)
	s.mu.Unlock()
	if e == nil || e.over(s.now()) || !s.holds(e.who) {
		return Account{}, false
	}
	w := e.who
	if w.Shown != ShownSSO {
		w.Shown = "code"
	}
	return w, true
}

// Find is the session with a secret; false where there is none, or none any more. A
// session that a person uses is not idle.
func (s *Sessions) Find(secret string, person bool) (Session, bool) {
	return s.find(SecretSum([]byte(secret)), person)
}

// Lasts reports whether a session that was found has not ended since.
func (s *Sessions) Lasts(found *Session) bool {
	_, lasts := s.find(found.sum, false)
	return lasts
}

func (s *Sessions) find(sum string, person bool) (Session, bool) {
	now := s.now()
	s.mu.Lock()
	e := s.sessions[sum]
	var found Session
	if e != nil {
		found = e.session()
		found.sum = sum
	}
	s.mu.Unlock()
	if e == nil {
		return found, false
	}
	// Not with the lock: the state of the service has one of its own.
	lasts := now.Before(found.Expires) && now.Before(found.Idle) && s.holds(found.Account)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !lasts:
		delete(s.sessions, sum)
	case s.sessions[sum] != e: // it was ended meanwhile
		lasts = false
	case person && e.seen.Before(now):
		e.seen = now
		found.Idle = e.session().Idle
	}
	return found, lasts
}

// InUse are the sums of those who have a session or a code.
func (s *Sessions) InUse() map[string]bool {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	in := map[string]bool{}
	for _, list := range []map[string]*entry{s.sessions, s.codes} {
		for _, e := range list {
			if !e.over(now) && now.Before(e.session().Idle) {
				for _, sum := range e.who.Sums {
					in[sum] = true
				}
			}
		}
	}
	return in
}

// End ends a session.
func (s *Sessions) End(found *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, found.sum)
}

// holds reports whether somebody is still whom he was when he logged in. Another token
// for the same certificate makes him another.
func (s *Sessions) holds(w Account) bool {
	if len(w.Sums) == 0 {
		return true
	}
	c, known := s.holder(w.Sums)
	was := w.Caller
	return known && c.Name == was.Name && c.Tenant == was.Tenant && c.ReadOnly == was.ReadOnly && c.Keys == was.Keys && c.Expires.Equal(was.Expires)
}

func (e *entry) over(now time.Time) bool { return !now.Before(e.expires) }

func (e *entry) session() Session {
	return Session{Account: e.who, Expires: e.expires, Idle: ends(e.seen, Idle, e.expires)}
}

// ends is a time after now, and not after a limit that is not zero.
func ends(now time.Time, after time.Duration, limit time.Time) time.Time {
	if at := now.Add(after); limit.IsZero() || at.Before(limit) {
		return at
	}
	return limit
}

// add adds what has a secret, and removes what is over and what is too much.
func add(to map[string]*entry, secret string, e *entry, now time.Time, ofOne, most int) {
	of := map[string]int{} // tenants
	mine := 0
	for sum, x := range to {
		if x.over(now) || !now.Before(x.session().Idle) {
			delete(to, sum)
			continue
		}
		of[x.who.Caller.Tenant]++
		if x.of(e) {
			mine++
		}
	}
	if mine >= ofOne {
		removeIdlest(to, e.of)
	} else if len(to) >= most {
		tenant := ""
		for name, n := range of {
			if n > of[tenant] || n == of[tenant] && name < tenant {
				tenant = name
			}
		}
		removeIdlest(to, func(x *entry) bool { return x.who.Caller.Tenant == tenant })
	}
	to[SecretSum([]byte(secret))] = e
}

// of reports whether two are of the same caller.
func (e *entry) of(x *entry) bool {
	return e.who.Caller.Name == x.who.Caller.Name && e.who.Caller.Tenant == x.who.Caller.Tenant
}

// removeIdlest removes the one that was used last before all others, of some.
func removeIdlest(from map[string]*entry, of func(*entry) bool) {
	oldest := ""
	for sum, x := range from {
		if !of(x) {
			continue
		}
		if o := from[oldest]; o == nil || x.seen.Before(o.seen) || x.seen.Equal(o.seen) && sum < oldest {
			oldest = sum
		}
	}
	delete(from, oldest)
}
