package daemon

import (
	"context"

	"github.com/ibwarden/ibwarden/internal/api/traffic"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Counters implements traffic.Source.
func (s *Served) Counters(ctx context.Context) ([]traffic.PortCounters, error) {
	s.mu.Lock()
	r := s.runner
	s.mu.Unlock()
	if r == nil {
		return nil, service.ErrNotRead
	}
	poller := r.Counters()
	if poller == nil {
		return nil, traffic.ErrNotRead
	}
	list := []traffic.PortCounters{}
	err := r.Ask(ctx, func(e *engine.Engine) {
		f := e.Fabric()
		for reading := range poller.Readings(r.Now()) {
			list = append(list, traffic.PortOf(&reading, f.At(reading.Place)))
		}
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
