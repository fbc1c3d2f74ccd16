package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// Log is what a command says on standard error. It may be used by several at
// once, but for Event and Tick.
type Log struct {
	*slog.Logger
	// Verbose reports whether tables are wanted.
	Verbose bool
	text    *text
	json    bool
	storm   *storm
}

type key struct{}

// WithLog gives a command its log.
func WithLog(ctx context.Context, l *Log) context.Context { return context.WithValue(ctx, key{}, l) }

// LogOf is the log of a command; one that says nothing where there is none.
func LogOf(ctx context.Context) *Log {
	if ctx != nil {
		if l, ok := ctx.Value(key{}).(*Log); ok {
			return l
		}
	}
	return new(LogOptions).Default(io.Discard)
}

// Stamp has every line begin with its time: for a command that runs for long.
func (l *Log) Stamp() { l.text.stamped = true }

// IsJSON reports whether JSON is written.
func (l *Log) IsJSON() bool { return l.json }

// Event says what happened, unless that, or too much of its kind, was said just
// before: then Tick says how often.
func (l *Log) Event(e event.Event) {
	d := Describe(e)
	if !l.Enabled(context.Background(), d.Level) {
		return
	}
	l.Tick()
	if !l.storm.admits(d) {
		return
	}
	l.Emit(d)
}

// Emit says something, however often it was said.
func (l *Log) Emit(d EventDescription) {
	l.LogAttrs(context.Background(), d.Level, d.Text, append([]slog.Attr{slog.String("event", d.Kind)}, d.Attrs...)...)
}

// ReloadFailed says that a file was to be read again and has a fault, so that what was
// read before stays in force.
func (l *Log) ReloadFailed(what string, err error) {
	reason := strings.ReplaceAll(err.Error(), "\n", "; ")
	l.Emit(EventDescription{
		Level: slog.LevelError, Kind: ReloadFailed, Text: fmt.Sprintf("%s - the previous %s stays in force", reason, what),
		Attrs: []slog.Attr{slog.String("what", what), slog.String("reason", reason)},
	})
}

// Tick says how often what was said before came again, once that is over.
func (l *Log) Tick() {
	if l.storm.due() {
		l.say(l.storm.over(false))
	}
}

// Close says what Tick would say later.
func (l *Log) Close() { l.say(l.storm.over(true)) }

func (l *Log) say(sums []summary) {
	for _, s := range sums {
		l.LogAttrs(context.Background(), s.level, s.text(), slog.String("event", idRepeated), slog.String("of", s.kind),
			slog.Int("times", s.count), slog.Duration("within", s.period))
	}
}

func (s summary) text() string {
	switch {
	case s.same && s.count == 1:
		return fmt.Sprintf("once more within %v: %s", s.period, s.what)
	case s.same:
		return fmt.Sprintf("%d more times within %v: %s", s.count, s.period, s.what)
	}
	return fmt.Sprintf("%d more within %v that are not shown, after %d: %s", s.count, s.period, s.limit, s.what)
}
