package watch

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// askedFirst is how long after a host did not answer it is asked to register again once
	// more, askedLast the longest time between two such requests. The time doubles.
	askedFirst = time.Second
	askedLast  = time.Minute
)

// Asked are the hosts that were asked to register again, for one reason: each is asked once, and
// who does not answer is asked again later and later. The zero value has asked nobody.
type Asked struct {
	done  map[ib.PortGUID]bool
	waits map[ib.PortGUID]*wait
}

type wait struct{ at, next time.Duration }

// Has reports whether a host need not be asked with the others: it was, or waits for another try.
func (x *Asked) Has(g ib.PortGUID) bool { return x.done[g] || x.waits[g] != nil }

// Enter enters who was asked by a pass that has ended, as its tables have it, and who was not to
// be: who is not up registers when his link comes up. failed are the ports that did not answer.
// The tables ask nobody from then on, however often they are compared.
func (x *Asked) Enter(now time.Duration, ends []*observed.Port, tables *observed.Desired, failed map[*observed.Port]bool) {
	if x.done == nil {
		x.done, x.waits = make(map[ib.PortGUID]bool), make(map[ib.PortGUID]*wait)
	}
	for _, p := range ends {
		want, w := tables.Port(p), x.waits[p.GUID]
		switch {
		case want.Reregister && failed[p]:
			if w == nil {
				x.waits[p.GUID] = &wait{at: now + askedFirst, next: 2 * askedFirst}
			}
		case want.Reregister || w == nil:
			x.done[p.GUID] = true
			delete(x.waits, p.GUID)
		}
		want.Reregister = false
	}
}

// Again has tables ask those that are to be asked once more now, if they are up.
func (x *Asked) Again(now time.Duration, ends []*observed.Port, tables *observed.Desired) {
	again := make(map[ib.PortGUID]bool)
	for g, w := range x.waits {
		if w.at <= now {
			w.at, w.next = now+w.next, min(2*w.next, askedLast)
			again[g] = true
		}
	}
	for _, p := range ends {
		if again[p.GUID] && p.Node.Switch == nil && p.InfoRead && p.Info.PortState == smp.PortActive {
			tables.Port(p).Reregister = true
		}
	}
}

// Next is when the first of them is to be asked; false when all have answered.
func (x *Asked) Next() (at time.Duration, some bool) {
	for _, w := range x.waits {
		if !some || w.at < at {
			at, some = w.at, true
		}
	}
	return at, some
}
