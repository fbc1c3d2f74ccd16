package testbed

import (
	"fmt"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// TrapList names the traps that were seen.
func (s *Testbed) TrapList() string {
	if len(s.Traps) == 0 {
		return "no trap"
	}
	var all []string
	for _, t := range s.Traps {
		all = append(all, fmt.Sprintf("trap %d", t.TrapNumber))
	}
	return strings.Join(all, ", ")
}

// maxListed is how many drops a message lists.
const maxListed = 8

// DropList names the packets that were dropped.
func (s *Testbed) DropList() string {
	if len(s.Drops) == 0 {
		return "no drop"
	}
	var all []string
	for i, d := range s.Drops {
		if i == maxListed {
			all = append(all, fmt.Sprintf("and %d more", len(s.Drops)-i))
			break
		}
		all = append(all, fmt.Sprintf("a drop at %s: %s", s.Name(d.Place), d.Reason))
	}
	return strings.Join(all, "; ")
}

// Reasons are the names of the ways in which a packet is lost: subnet management
// packets, then data packets on their way, then those that an end node refuses.
func Reasons() []string {
	var all []string
	for r := fabric.NotDiscarded + 1; r.String() != fabric.Reason(0xFF).String(); r++ {
		all = append(all, r.String())
	}
	for f := fabric.Outcome(0); f.String() != fabric.Outcome(0xFF).String(); f++ {
		if f.IsDrop() {
			all = append(all, f.String())
		}
	}
	for r := endpoint.Taken + 1; r.String() != endpoint.Reason(0xFF).String(); r++ {
		all = append(all, r.String())
	}
	return all
}

// Statuses are the ways in which a send request can end.
func Statuses() map[string]endpoint.Status {
	all := map[string]endpoint.Status{}
	for s := endpoint.Success; s <= endpoint.RNRRetryExceeded; s++ {
		all[s.String()] = s
	}
	return all
}

// Lie lets the answers of a node about one attribute say something else, until
// Misbehave ends it: change is given their data. Lies add up.
func (s *Testbed) Lie(g ib.NodeGUID, id mad.AttributeID, modifier uint32, change func(data *[mad.DataSize]byte)) error {
	return s.Misbehave(g, func(f *fabric.Fault) {
		earlier := f.Alter
		f.Alter = func(now time.Duration, m *[mad.Size]byte) {
			if earlier != nil {
				earlier(now, m)
			}
			var answer mad.SMP
			if answer.UnmarshalBinary(m[:]) == nil && answer.AttributeID == id && sameBlock(id, answer.AttributeModifier, modifier) {
				change(&answer.Data)
				_ = answer.Encode(m) // it was decoded: what is not said stays as it was
			}
		}
	})
}
