package metrics

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// rising is a violation counter of a port.
type rising struct {
	at      observed.Place
	counter observed.Violations
}

// rise is what a counter has shown: before it was set back the last time, in all, and since then.
type rise struct{ before, last uint64 }

// stopped notes that counters stand at their highest value, and will be set back: perhaps before anybody
// looks at the metrics. What stops twice between two looks counts once.
func (o *Observer) stopped(e event.Stopped) {
	for _, c := range e.Counters {
		o.of(rising{e.Port.Place(), c}).last = smp.ViolationsMax
	}
}

func (o *Observer) of(k rising) *rise {
	if o.rises[k] == nil {
		o.rises[k] = &rise{}
	}
	return o.rises[k]
}

// Rise has the violation counters in a state rise on where they were set back. It is called once a state,
// after CopyFabric.
func (o *Observer) Rise(s *State) {
	for _, d := range s.Devices {
		for i := range d.Ports {
			p := &d.Ports[i]
			if !p.Violations.Known {
				continue
			}
			o.rise(p.Place, observed.MKeyViolations, &p.Violations.MKey)
			o.rise(p.Place, observed.PKeyViolations, &p.Violations.PKey)
			o.rise(p.Place, observed.QKeyViolations, &p.Violations.QKey)
		}
	}
}

func (o *Observer) rise(at observed.Place, c observed.Violations, value *uint64) {
	k := rising{at, c}
	if *value == 0 && o.rises[k] == nil {
		return // nearly all of them
	}
	r := o.of(k)
	if *value < r.last {
		r.before += r.last
	}
	r.last = *value
	*value += r.before
}
