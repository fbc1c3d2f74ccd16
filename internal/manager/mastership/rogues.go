package mastership

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// reportGap is the least time between two reports of one port whose manager comes
// and goes.
const reportGap = 10 * time.Second

// Rogues are the managers that do not count, by the ports that they are behind.
type Rogues map[observed.Place]*rogue

// rogue is what was said of a port.
type rogue struct {
	guid ib.PortGUID
	told map[string]bool
	last time.Duration // when something was said
	gone bool
}

// Saw takes notice of a manager that does not count, and why. tell says whether it is to be
// reported: once for each reason.
func (x Rogues) Saw(now time.Duration, at observed.Place, guid ib.PortGUID, reason string) (tell bool) {
	r := x[at]
	if r == nil || r.guid != guid {
		r = &rogue{guid: guid, told: make(map[string]bool)}
		x[at] = r
	}
	if r.gone && now >= r.last+reportGap {
		clear(r.told)
	}
	r.gone = false
	if tell = !r.told[reason]; tell {
		r.told[reason], r.last = true, now
	}
	return tell
}

// Went takes notice that no manager is behind a port any more.
func (x Rogues) Went(at observed.Place) {
	if r := x[at]; r != nil {
		r.gone = true
	}
}

// Has reports whether such a manager is behind a port with this GUID.
func (x Rogues) Has(at observed.Place, guid ib.PortGUID) bool {
	r := x[at]
	return r != nil && r.guid == guid && !r.gone
}
