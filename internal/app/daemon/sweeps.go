package daemon

import (
	"context"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Sweeps implements views.SweepsSource.
func (s *Served) Sweeps(ctx context.Context) ([]views.Sweep, error) {
	r, err := s.running()
	if err != nil {
		return nil, err
	}
	var kept []sweep.SweepPhases
	if err := r.Ask(ctx, func(*engine.Engine) { kept = r.Sweeps() }); err != nil {
		return nil, err
	}
	list := make([]views.Sweep, 0, len(kept))
	for _, x := range kept {
		out := views.Sweep{Number: x.Number, Reason: x.Reason, Began: x.Began.UTC(), Done: x.Done, Cost: costOf(sweep.SumPhases(x.Phases)), Phases: []views.Phase{}}
		for _, p := range x.Phases {
			out.Phases = append(out.Phases, views.Phase{Name: p.Name, Cost: costOf(p)})
		}
		list = append(list, out)
	}
	return list, nil
}

func costOf(p sweep.Phase) views.Cost {
	return views.Cost{Seconds: p.Seconds, FabricSeconds: p.FabricSeconds, Sent: p.Sent, Answered: p.Answered, Repeated: p.Repeated, Lost: p.Lost, Least: p.Least}
}

// running is the manager that runs.
func (s *Served) running() (*Runner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runner == nil {
		return nil, service.ErrNotRead
	}
	return s.runner, nil
}
