// logs*.go: writes the log to standard error: levels, one line for each
// event, as text (for people or the journal) or JSON, and summaries of repeated
// events.

package telemetry

import (
	"log/slog"

	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// charge describes an event about who is in charge.
func (d *EventDescription) charge(e event.Event) {
	d.Each = true // they are rare, and each counts
	switch e := e.(type) {
	case event.NoMaster:
		d.set(slog.LevelError, "no-master", slog.Any("last", e.Last.Port))
	case event.SeveralMasters:
		d.set(slog.LevelError, "several-masters", slog.Int("count", e.Count), slog.Any("masters", logsPortsOf(e.Masters)))
	case event.OneMaster:
		d.set(slog.LevelInfo, "one-master", slog.Any("master", e.Master.Port))
	case event.MasterChanged:
		d.set(slog.LevelWarn, "master-changed", slog.Any("from", e.From.Port), slog.Any("to", e.To.Port))
	case event.MasterFlapping:
		d.set(slog.LevelError, "master-flapping", slog.Int("changes", e.Changes), slog.Duration("within", e.Within), slog.Any("master", e.Master.Port))
	case event.OtherPolicy:
		d.set(slog.LevelWarn, "other-policy", slog.Int("count", e.Count), slog.Any("managers", logsPortsOf(e.Managers)))
	case event.SamePolicy:
		d.set(slog.LevelInfo, "same-policy")
	}
}

func logsPortsOf(list []event.Master) []string {
	ports := make([]string, 0, len(list))
	for _, m := range list {
		ports = append(ports, m.Port.String())
	}
	return ports
}
