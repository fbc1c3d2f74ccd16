package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// Counters implements views.CountersSource.
func (s *Served) Counters(ctx context.Context) ([]views.PortCounters, error) {
	r, err := s.running()
	if err != nil {
		return nil, err
	}
	poller := r.Counters()
	if poller == nil {
		return nil, views.ErrNotRead
	}
	list := []views.PortCounters{}
	err = r.Ask(ctx, func(e *engine.Engine) {
		f := e.Fabric()
		for reading := range poller.Readings(r.Now()) {
			list = append(list, countersOf(&reading, f.At(reading.Place)))
		}
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// errorCounters are those that PortCounters.Errors is the sum of. Discards and waiting are load, relay
// errors are multicast packets that nobody wanted, and VL15Dropped is management.
var errorCounters = []perfmgr.Counter{
	perfmgr.SymbolErrorCounter, perfmgr.LinkErrorRecoveryCounter, perfmgr.LinkDownedCounter, perfmgr.PortRcvErrors,
	perfmgr.PortXmitConstraintErrors, perfmgr.PortRcvConstraintErrors, perfmgr.LocalLinkIntegrityErrors,
	perfmgr.ExcessiveBufferOverrunErrors,
}

// countersOf is a reading of a port for the API; p is nil where the port is not in the
// snapshot any more.
func countersOf(r *perfmgr.Reading, p *observed.Port) views.PortCounters {
	out := views.PortCounters{Node: r.Place.Node.String(), Port: int(r.Place.Port), Age: r.Age.Round(time.Millisecond).Seconds(), Counters: map[string]uint64{}}
	if r.Fault != perfmgr.Answered {
		out.Fault = r.Fault.String()
	}
	if p != nil {
		out.Name = p.Node.Name()
		if p.Peer != nil {
			out.Peer = p.Peer.String()
		}
	}
	for c := range perfmgr.Counters {
		if n, known := r.Value(c); known {
			out.Counters[c.String()] = n
			if slices.Contains(errorCounters, c) {
				out.Errors += n
			}
			if r.Stuck(c) {
				out.Stuck = append(out.Stuck, c.String())
			}
		}
	}
	rate := func(c perfmgr.Counter) *float64 {
		if n, known := r.Rate(c); known {
			return &n
		}
		return nil
	}
	out.Sends, out.Receives = rate(perfmgr.PortXmitData), rate(perfmgr.PortRcvData)
	return out
}

// Loads is what cables carry, of those of which it is known. It takes a fraction of the time of Counters.
func (s *Served) Loads(ctx context.Context) (list []views.CableShare, err error) {
	r, err := s.running()
	if err != nil || r.Counters() == nil {
		return nil, err
	}
	most := map[views.Cable]int{}
	err = r.Ask(ctx, func(e *engine.Engine) {
		f := e.Fabric()
		if f == nil {
			return
		}
		for reading := range r.Counters().Readings(r.Now()) {
			p := f.At(reading.Place)
			if p == nil || p.Peer == nil {
				continue
			}
			cable := views.Cable{A: p.Place(), B: p.Peer.Place()}.Ordered()
			for _, c := range []perfmgr.Counter{perfmgr.PortXmitData, perfmgr.PortRcvData} {
				if rate, known := reading.Rate(c); known {
					if percent, known := views.PercentOf(p, rate); known {
						most[cable] = max(most[cable], percent)
					}
				}
			}
		}
	})
	for cable, percent := range most {
		list = append(list, views.CableShare{Cable: cable, Percent: percent})
	}
	return list, err
}
