package perfmgr

import (
	"iter"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// Reading is what is known of the counters of a port.
type Reading struct {
	Place observed.Place
	// Agent is the place of the end port that was asked.
	Agent observed.Place
	Fault Fault
	// Age is how long ago the port was read last.
	Age         time.Duration
	value       *[Counters]uint64
	known, held set
	rates       *rates
}

// Value is what a counter showed; ok is false where that is not known.
func (r *Reading) Value(c Counter) (n uint64, ok bool) { return r.value[c], r.known.has(c) }

// Stuck reports whether a counter shows the highest value that it has room for: it
// counts no further.
func (r *Reading) Stuck(c Counter) bool { return r.known.has(c) && r.held.has(c) }

// Readings are what is known of every port that is read, in the order of the GUIDs
// of those who answer. They are valid until the poller is called again.
func (p *Poller) Readings(now time.Duration) iter.Seq[Reading] {
	old := staleAfter * max(p.limits.Period, p.counts.LastRound)
	return func(yield func(Reading) bool) {
		for _, a := range p.agents {
			for i := range a.ports {
				q := &a.ports[i]
				r := Reading{Place: observed.Place{Node: a.at.Node, Port: q.num}, Agent: a.at, Fault: q.fault, Age: now - q.at, value: &q.value, known: q.known, held: q.stuck, rates: &q.rates}
				if r.Age > old {
					r.known = 0
					if r.Fault == Answered {
						r.Fault = NotAsked
					}
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}

// Copy is a Reading that stays valid.
type Copy struct {
	value       [Counters]uint64
	known, held set
}

// Copy returns a copy of the counters.
func (r *Reading) Copy() *Copy { return &Copy{*r.value, r.known, r.held} }

// Value is as in Reading.
func (c *Copy) Value(n Counter) (value uint64, ok bool) { return c.value[n], c.known.has(n) }

// Stuck is as in Reading.
func (c *Copy) Stuck(n Counter) bool { return c.known.has(n) && c.held.has(n) }
