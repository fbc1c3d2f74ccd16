package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// text writes a line for each record: what it says, without its attributes, which
// say the same for programs.
type text struct {
	mu      sync.Mutex
	w       io.Writer
	level   slog.LevelVar // of any goroutine
	journal bool
	// stamped lines begin with the time and the level: those of a command that runs
	// for long.
	stamped bool
}

// stampFormat is that of times, in UTC.
const stampFormat = "2006-01-02T15:04:05.000Z"

func (t *text) Enabled(_ context.Context, l slog.Level) bool { return l >= t.level.Level() }

// WithAttrs and WithGroup are not needed: nothing here adds attributes for good.
func (t *text) WithAttrs([]slog.Attr) slog.Handler { return t }
func (t *text) WithGroup(string) slog.Handler      { return t }

// Handle writes one line.
func (t *text) Handle(_ context.Context, r slog.Record) error {
	head := "ibwarden: "
	switch {
	case t.journal:
		head = priority(r.Level)
	case t.stamped:
		head = fmt.Sprintf("%s %-5s ", r.Time.UTC().Format(stampFormat), r.Level)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := io.WriteString(t.w, head+terminal.Plain(r.Message)+"\n")
	return err
}

// priority is how a line tells the journal its level.
func priority(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "<3>"
	case l >= slog.LevelWarn:
		return "<4>"
	case l >= slog.LevelInfo:
		return "<6>"
	}
	return "<7>"
}

// jsonLines is a JSON handler whose lines tell the journal their level.
type jsonLines struct {
	*text
	json *slog.JSONHandler
}

func newJSON(t *text) jsonLines {
	return jsonLines{t, slog.NewJSONHandler(t.w, &slog.HandlerOptions{Level: &t.level, ReplaceAttr: t.replace})}
}

// Handle writes one line.
func (j jsonLines) Handle(ctx context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.journal {
		if _, err := io.WriteString(j.w, priority(r.Level)); err != nil {
			return err
		}
	}
	return j.json.Handle(ctx, r)
}

// replace leaves the time to the journal, and has it in UTC elsewhere.
func (t *text) replace(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 || a.Key != slog.TimeKey {
		return a
	}
	if t.journal {
		return slog.Attr{}
	}
	if at, ok := a.Value.Any().(time.Time); ok {
		return slog.Time(slog.TimeKey, at.UTC())
	}
	return a
}
