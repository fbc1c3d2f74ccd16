package watch

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

const (
	// memory is how long a trap is known after it was heard: a port sends one in a
	// second or so, and may have a few of them.
	memory = time.Minute
	// most bounds the traps that are known.
	most = 4096
)

// Trap is a trap as it comes again and again.
type Trap struct {
	From        ib.LID
	Transaction uint64
	Notice      smp.Notice
}

// Heard are the traps that were heard lately. The zero value has heard none.
type Heard struct{ until map[Trap]time.Duration }

// Again notes a trap and reports whether it was heard before. Of more than it can
// remember, none counts as heard.
func (h *Heard) Again(now time.Duration, t Trap) bool {
	if h.until == nil {
		h.until = make(map[Trap]time.Duration)
	}
	until, known := h.until[t]
	if !known && len(h.until) >= most {
		for x, until := range h.until {
			if until < now {
				delete(h.until, x)
			}
		}
		if len(h.until) >= most {
			return false
		}
	}
	h.until[t] = now + memory
	return known && until >= now
}
