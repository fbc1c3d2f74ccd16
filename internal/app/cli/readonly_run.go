package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
)

const (
	// ReadingMax is how long one reading may take.
	ReadingMax = time.Hour
	// LinesMax is how many findings are printed of one reading after the first, new and gone.
	LinesMax = 20
	// turnEvery is how often systemd is told that the loop turns.
	turnEvery = time.Second
)

// ReadOnlyOptions say what is watched, and how.
type ReadOnlyOptions struct {
	// Read reads the fabric once and audits it. An error is told, and the fabric read again
	// when it is due.
	Read func(context.Context) (*audit.Report, error)
	// Show writes the first report.
	Show func(io.Writer, *audit.Report) error
	// Every is the time from the beginning of one reading to that of the next; a reading
	// that takes longer is followed by the next at once. It is asked before each.
	Every func() time.Duration
	// Hangup asks for Reload, which is not called during Read, and then for a reading at
	// once.
	Hangup <-chan os.Signal
	Reload func()
	// Metrics is the loopback address of /metrics, /healthz and /readyz; empty for none.
	Metrics string
	// Out is where reports go, Log where it is said what happens.
	Out, Log io.Writer
	// Now is the clock.
	Now func() time.Time
}

// RunReadOnly watches until ctx ends, and returns nil then. Another error is of the address of
// metrics, or of writing to Out.
func RunReadOnly(ctx context.Context, o ReadOnlyOptions) error {
	w := watch{ReadOnlyOptions: o, metrics: newMetrics(o.Now)}
	notifier, err := telemetry.NewNotifier(os.Getenv)
	if err != nil {
		fmt.Fprintln(o.Log, "ibwarden: systemd cannot be told of this service:", err)
	}
	defer notifier.Stop()
	if o.Metrics != "" {
		server, err := telemetry.Serve(o.Metrics, w.metrics.handler())
		if err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
		defer server.Close()
		fmt.Fprintf(o.Log, "ibwarden: metrics at http://%s/metrics\n", server.Address())
	}
	turn := time.NewTicker(turnEvery)
	defer turn.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	var reading chan result // nil while none is under way
	var begun time.Time
	again := false // asked for during a reading
	for {
		w.metrics.turned()
		notifier.Turn(o.Now(), w.status)
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
		case <-o.Hangup:
			if again = reading != nil; !again { // Read uses what Reload changes
				o.Reload()
				next.Reset(0)
			}
		case <-next.C:
			begun = o.Now()
			reading = w.begin(ctx)
		case r := <-reading:
			reading = nil
			if ctx.Err() != nil {
				return nil
			}
			if err := w.take(r, o.Now().Sub(begun)); err != nil {
				return err
			}
			wait := max(o.Every()-o.Now().Sub(begun), 0)
			if again {
				o.Reload()
				wait, again = 0, false
			}
			next.Reset(wait)
		}
	}
}

type result struct {
	report *audit.Report
	err    error
}

// watch is what is known of the fabric.
type watch struct {
	ReadOnlyOptions
	metrics *readings
	last    *audit.Report // nil before the first
	failed  string        // why the last reading failed, empty when it did not
	status  string        // for systemd
}

// begin reads the fabric beside the loop.
func (w *watch) begin(ctx context.Context) chan result {
	done := make(chan result, 1)
	if w.status == "" {
		w.status = "read-only, reading the fabric"
	}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, ReadingMax)
		defer cancel()
		report, err := w.Read(ctx)
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("not read within %v", ReadingMax)
		}
		done <- result{report, err}
	}()
	return done
}

// take says what a reading found.
func (w *watch) take(r result, took time.Duration) error {
	if r.err != nil {
		w.metrics.failed()
		text := r.err.Error()
		if text != w.failed {
			fmt.Fprintf(w.Log, "ibwarden: the fabric cannot be read: %s; trying again every %v\n", text, w.Every())
		}
		w.failed, w.status = text, "read-only, the fabric cannot be read"
		return nil
	}
	if w.failed != "" {
		fmt.Fprintln(w.Log, "ibwarden: the fabric can be read again")
	}
	w.failed = ""
	w.metrics.read(r.report, took)
	c := r.report.Counts
	w.status = fmt.Sprintf("read-only, findings: %d critical, %d high, %d medium, %d low, %d unknown", c.Critical, c.High, c.Medium, c.Low, c.Unknown)
	before := w.last
	w.last = r.report
	if before == nil {
		return w.Show(w.Out, r.report)
	}
	return w.changes(before, r.report)
}

// changes writes what is new and what is gone, and the counts where they are others.
func (w *watch) changes(before, now *audit.Report) error {
	gone, fresh := without(before.Findings, now.Findings), without(now.Findings, before.Findings)
	at := w.Now().UTC().Format(time.RFC3339)
	for _, list := range []struct {
		word string
		of   []audit.Finding
	}{{"new", fresh}, {"gone", gone}} {
		for i, f := range list.of {
			if i == LinesMax {
				if _, err := fmt.Fprintf(w.Out, "%s %s: %d more\n", at, list.word, len(list.of)-i); err != nil {
					return err
				}
				break
			}
			if _, err := fmt.Fprintf(w.Out, "%s %s: %s %s (%d) at %s: %s\n", at, list.word, f.Severity, f.Check, f.Number, plain(f.Where), plain(f.Read)); err != nil {
				return err
			}
		}
	}
	if before.Counts == now.Counts && len(gone)+len(fresh) == 0 {
		return nil
	}
	c := now.Counts
	_, err := fmt.Fprintf(w.Out, "%s findings: %d critical, %d high, %d medium, %d low, %d unknown\n", at, c.Critical, c.High, c.Medium, c.Low, c.Unknown)
	return err
}

// without are the findings of a list that are not among others. What is read at a place
// counts: another key there is another finding.
func without(list, others []audit.Finding) (out []audit.Finding) {
	known := map[audit.Finding]bool{}
	for _, f := range others {
		known[f] = true
	}
	for _, f := range list {
		if !known[f] {
			out = append(out, f)
		}
	}
	return out
}
