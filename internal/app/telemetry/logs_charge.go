// logs*.go: writes the log to standard error: levels, one line for each
// event, as text (for people or the journal) or JSON, and summaries of repeated
// events.

package telemetry

import (
	"log/slog"

	"github.com/ibwarden/ibwarden/internal/manager/charge"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// charge describes an event about who is in charge.
func (d *EventDescription) charge(e event.Event) {
	d.Each = true // they are rare, and each counts
	switch e := e.(type) {
	case charge.None:
		d.set(slog.LevelError, "no-master", slog.Any("last", e.Last.Port))
	case charge.Several:
		d.set(slog.LevelError, "several-masters", slog.Int("count", e.Count), slog.Any("masters", logsPortsOf(e.Masters)))
	case charge.One:
		d.set(slog.LevelInfo, "one-master", slog.Any("master", e.Master.Port))
	case charge.Changed:
		d.set(slog.LevelWarn, "master-changed", slog.Any("from", e.From.Port), slog.Any("to", e.To.Port))
	case charge.Flapping:
		d.set(slog.LevelError, "master-flapping", slog.Int("changes", e.Changes), slog.Duration("within", e.Within), slog.Any("master", e.Master.Port))
	case charge.OtherPolicy:
		d.set(slog.LevelWarn, "other-policy", slog.Int("count", e.Count), slog.Any("managers", logsPortsOf(e.Managers)))
	case charge.SamePolicy:
		d.set(slog.LevelInfo, "same-policy")
	}
}

func logsPortsOf(list []charge.Master) []string {
	ports := make([]string, 0, len(list))
	for _, m := range list {
		ports = append(ports, m.Port.String())
	}
	return ports
}
