package run

import (
	"context"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
)

const (
	// alertsEvery is the time between two looks at the alarms for Alertmanagers.
	alertsEvery = 5 * time.Second
	// alertsRest is how many times as long as a look took the manager is left alone before the next; alertsRestMost
	// how long that is at most, well below views.AlertLife.
	alertsRest     = 20
	alertsRestMost = time.Minute
)

// openAlerts lists the alarms that are open.
type openAlerts = func(context.Context) ([]views.Alert, error)

// Alert has Alertmanagers sent what is wrong, once the API is served; nil for none.
func (s *Service) Alert(to *telemetry.Alertmanagers) {
	if s != nil {
		s.alertmanagers = to
	}
}

// alerts tells Alertmanagers what is wrong until ctx ends, while this manager is the master.
func (s *Service) alerts(ctx context.Context, open openAlerts) {
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		if !s.master.Load() {
			s.alertmanagers.Rest()
		} else if list, err := open(ctx); err == nil { // else nothing is known yet
			s.alertmanagers.Tell(list, time.Now())
		}
		wait = max(alertsEvery, min(alertsRest*time.Since(began), alertsRestMost))
	}
}
