package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// LogOptions are the flags of all commands that say how they log.
type LogOptions struct {
	Verbose       bool
	format, level string
}

// Add adds the flags.
func (o *LogOptions) Add(flags *pflag.FlagSet) {
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "print every step on standard error, and the tables of a verdict")
	flags.StringVar(&o.format, "log-format", "text", "format of the log on standard error: text or json")
	flags.StringVar(&o.level, "log-level", "", "lowest level that is logged on standard error: debug, info, warn or error (default info; debug with --verbose)")
}

// levels are the values of --log-level.
var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Default is the log before anybody has read the flags.
func (o *LogOptions) Default(w io.Writer) *Log {
	t := &text{w: w, journal: toJournal(w)} // from info up
	return &Log{Logger: slog.New(t), text: t, storm: newStorm(time.Now)}
}

// Apply makes the log what the flags ask for.
func (l *Log) Apply(o *LogOptions) error {
	l.Verbose = o.Verbose
	if err := l.SetLevel(o.level); err != nil {
		return fmt.Errorf("--log-level %w", err)
	}
	switch o.format {
	case "text":
	case "json":
		l.Logger = slog.New(newJSON(l.text))
		l.json = true
	default:
		return fmt.Errorf("--log-format %q: want text or json", o.format)
	}
	return nil
}

// toJournal reports whether a stream ends in systemd's journal, which notes the
// time of every line itself, and reads its level from its first characters
// (systemd.exec: JOURNAL_STREAM; sd-daemon: SD_INFO).
func toJournal(stream io.Writer) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	var at unix.Stat_t
	if unix.Fstat(int(file.Fd()), &at) != nil {
		return false
	}
	return os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", at.Dev, at.Ino)
}

// SetLevel sets the lowest level that is logged, as --log-level names it; empty for that of
// who named none. It may be called while others log.
func (l *Log) SetLevel(name string) error {
	level, ok := levels[strings.ToLower(name)]
	switch {
	case name == "" && l.Verbose:
		level = slog.LevelDebug
	case name == "":
		level = slog.LevelInfo
	case !ok:
		return fmt.Errorf("%q: want debug, info, warn or error", name)
	}
	l.text.level.Set(level)
	return nil
}
