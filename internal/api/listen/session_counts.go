package listen

import (
	"net/netip"
	"time"
)

// Limits of logins that fail.
const (
	FailuresMax    = 10          // from one address within FailuresWithin
	FailuresWithin = time.Minute // from the first one
	countedMax     = 4096        // addresses, or tenants, that are counted at once
	network6       = 64          // bits of an IPv6 address that a host does not choose
)

// Failed counts a login that failed, and reports whether there are too many from there.
//
// A login that is right is taken however many failed before it: secrets have 256 random
// bits, so that nobody finds one by trying, and whoever shares the address of somebody else
// (a proxy, a tunnel, another user of this machine) could shut him out. The limit is for
// the log, and for programs that try again and again.
func (s *Sessions) Failed(from string) (tooMany bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures.add(network(from), now, FailuresWithin) > FailuresMax
}

// Unknown counts a request, which is no login, of somebody whom the service does not know,
// and reports whether it is the first from there within FailuresWithin.
func (s *Sessions) Unknown(from string) (first bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknown.add(network(from), now, FailuresWithin) == 1
}

// network is what one host may have many addresses of, or the address.
func network(from string) string {
	if a, err := netip.ParseAddr(from); err == nil && a.Unmap().Is6() {
		if p, err := a.WithZone("").Prefix(network6); err == nil {
			return p.String() // who has one address of it has them all
		}
	}
	return from
}

// counts counts what somebody does within a time.
type counts map[string]*count

type count struct {
	since time.Time
	n     int
}

// add counts one more, and returns how many there are since the first one, which is not
// longer ago than within.
func (c counts) add(who string, now time.Time, within time.Duration) int {
	x := c[who]
	if x == nil || now.Sub(x.since) >= within {
		if x == nil && len(c) >= countedMax {
			c.forget(now, within)
		}
		x = &count{since: now}
		c[who] = x
	}
	x.n++
	return x.n
}

// forget makes room: of what is over, and where that is nothing all begin again.
func (c counts) forget(now time.Time, within time.Duration) {
	for who, x := range c {
		if now.Sub(x.since) >= within {
			delete(c, who)
		}
	}
	if len(c) >= countedMax {
		clear(c)
	}
}
