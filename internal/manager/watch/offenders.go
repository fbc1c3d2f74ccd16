package watch

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// Offences is how often a port may get more than the policy gives it, by a foreign
	// change, within OffenceMemory before it is fenced.
	Offences      = 3
	OffenceMemory = 10 * time.Minute
	// attempts is how many requests with a wrong key a port may send within
	// OffenceMemory before it is named once more.
	attempts = 1024
)

// Offenders are the switch ports behind which a port benefits from foreign changes, or
// tries to. The zero value is empty.
type Offenders struct{ at map[observed.Place]*offender }

type offender struct {
	times []time.Duration
	tried int
	since time.Duration
}

// Count counts a foreign change from which the port behind a switch port benefits, and
// reports whether there were too many.
func (x *Offenders) Count(now time.Duration, at observed.Place) (tooOften bool) {
	o := x.account(now, at)
	if o.times = append(o.times, now); len(o.times) >= Offences {
		o.times = nil
		return true
	}
	return false
}

// Tried counts a request with a wrong key from behind a switch port, and reports
// whether that is to be told: the first is, and one after many more.
func (x *Offenders) Tried(now time.Duration, at observed.Place) (tell bool) {
	o := x.account(now, at)
	tell = o.tried%attempts == 0
	o.tried++
	return tell
}

// account is that of a switch port, without what is long past.
func (x *Offenders) account(now time.Duration, at observed.Place) *offender {
	if x.at == nil {
		x.at = make(map[observed.Place]*offender)
	}
	o := x.at[at]
	if o == nil {
		o = &offender{since: now}
		x.at[at] = o
	}
	for len(o.times) > 0 && o.times[0]+OffenceMemory < now {
		o.times = o.times[1:]
	}
	if o.since+OffenceMemory < now {
		o.tried, o.since = 0, now
	}
	return o
}

// GuardOf is the switch port before an end port, or the switch port itself. The
// link between two switches, and a switch's own port, has none.
func GuardOf(p *observed.Port) (observed.Place, bool) {
	if p.IsEnd() {
		if p = p.Peer; p == nil || p.IsEnd() {
			return observed.Place{}, false
		}
	}
	return p.Place(), p.FacesEnd() || p.FacesStranger()
}
