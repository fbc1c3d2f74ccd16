package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
)

// prefix begins what commands say on standard error by themselves.
const prefix = "ibwarden: "

// Lines is for what commands write to standard error line by line: it goes out as
// it is, or as the log has its lines.
func (l *Log) Lines() io.Writer { return &lines{log: l} }

// LogAt is a writer of Lines whose lines have another level than info in the log; another
// writer as it is.
func LogAt(w io.Writer, level slog.Level) io.Writer {
	if x, is := w.(*lines); is {
		return &lines{log: x.log, level: level}
	}
	return w
}

type lines struct {
	log   *Log
	level slog.Level
}

// Write takes whole lines, and a question that ends without one.
func (w *lines) Write(p []byte) (int, error) {
	t := w.log.text
	if !w.log.json && !t.journal && !t.stamped || !bytes.HasSuffix(p, []byte("\n")) {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.w.Write(p)
	}
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimPrefix(strings.TrimRight(line, "\n"), prefix); line != "" {
			w.log.LogAttrs(context.Background(), w.level, line)
		}
	}
	return len(p), nil
}

// Fail says why a command failed.
func (l *Log) Fail(err error) {
	if !l.json && !l.text.journal && !l.text.stamped {
		l.text.mu.Lock()
		defer l.text.mu.Unlock()
		_, _ = io.WriteString(l.text.w, prefix+err.Error()+"\n") // its lines are its own
		return
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		l.LogAttrs(context.Background(), slog.LevelError, line)
	}
}
