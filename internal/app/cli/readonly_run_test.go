package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
)

// buffer is a writer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func report(findings ...audit.Finding) *audit.Report {
	r := &audit.Report{Findings: findings}
	for _, f := range findings {
		if f.Severity == audit.Critical {
			r.Counts.Critical++
		} else {
			r.Counts.Low++
		}
	}
	return r
}

// TestWatch: the first report is shown whole, later ones by what is new and gone; a reading
// that fails is said once, and changes nothing of what is known.
func TestWatch(t *testing.T) {
	a := audit.Finding{Check: "a", Number: 1, Severity: audit.Critical, Where: "leaf-1:1", Read: "0x8001"}
	b := audit.Finding{Check: "b", Number: 2, Severity: audit.Low, Where: "leaf-1:2\x1b[2J", Read: "x"}
	other := a
	other.Read = "0x8002"
	readings := []func() (*audit.Report, error){
		func() (*audit.Report, error) { return report(a), nil },
		func() (*audit.Report, error) { return report(a), nil },
		func() (*audit.Report, error) { return nil, errors.New("port 1 is down") },
		func() (*audit.Report, error) { return nil, errors.New("port 1 is down") },
		func() (*audit.Report, error) { return report(a, b), nil },
		func() (*audit.Report, error) { return report(other), nil },
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var out, log buffer
	n := 0
	err := RunReadOnly(ctx, ReadOnlyOptions{
		Read: func(context.Context) (*audit.Report, error) {
			if n == len(readings) {
				end()
				return nil, ctx.Err()
			}
			n++
			return readings[n-1]()
		},
		Show: func(w io.Writer, r *audit.Report) error {
			_, err := fmt.Fprintf(w, "whole: %d\n", len(r.Findings))
			return err
		},
		Every: func() time.Duration { return time.Millisecond }, Reload: func() {}, Out: &out, Log: &log,
		Now: func() time.Time { return time.Unix(1e9, 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `whole: 1
2001-09-09T01:46:40Z new: low b (2) at leaf-1:2?[2J: x
2001-09-09T01:46:40Z findings: 1 critical, 0 high, 0 medium, 1 low, 0 unknown
2001-09-09T01:46:40Z new: critical a (1) at leaf-1:1: 0x8002
2001-09-09T01:46:40Z gone: critical a (1) at leaf-1:1: 0x8001
2001-09-09T01:46:40Z gone: low b (2) at leaf-1:2?[2J: x
2001-09-09T01:46:40Z findings: 1 critical, 0 high, 0 medium, 0 low, 0 unknown
`
	if out.String() != want {
		t.Errorf("written:\n%s\nwant:\n%s", out.String(), want)
	}
	want = "ibwarden: the fabric cannot be read: port 1 is down; trying again every 1ms\nibwarden: the fabric can be read again\n"
	if log.String() != want {
		t.Errorf("said:\n%s\nwant:\n%s", log.String(), want)
	}
}

// TestManyFindings: the lines of one reading are bounded, and say how many there are.
func TestManyFindings(t *testing.T) {
	var list []audit.Finding
	for i := range LinesMax + 7 {
		list = append(list, audit.Finding{Check: "a", Severity: audit.Low, Where: fmt.Sprint(i)})
	}
	var out bytes.Buffer
	w := watch{ReadOnlyOptions: ReadOnlyOptions{Out: &out, Now: time.Now}}
	if err := w.changes(report(), report(list...)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "new: low"); n != LinesMax || !strings.Contains(out.String(), "new: 7 more\n") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

// TestReloadWaits: files are not read again while a reading uses what they said. The reading
// ends after the loop has taken a second SIGHUP, so the loop is through with the first one
// then: what it did about that, it did during the reading.
func TestReloadWaits(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	hangup := make(chan os.Signal)
	var reading atomic.Bool
	n, reloaded := 0, 0
	err := RunReadOnly(ctx, ReadOnlyOptions{
		Read: func(context.Context) (*audit.Report, error) {
			n++
			if n == 3 {
				end()
				return nil, ctx.Err()
			}
			if n == 1 {
				reading.Store(true)
				hangup <- os.Interrupt
				hangup <- os.Interrupt
				reading.Store(false)
			}
			if n == 2 {
				go func() { hangup <- os.Interrupt }() // now, or while it waits for an hour
			}
			return report(), nil
		},
		Reload: func() {
			if reloaded++; reading.Load() {
				t.Error("reloaded during a reading")
			}
		},
		Show: func(io.Writer, *audit.Report) error { return nil }, Every: func() time.Duration { return time.Hour },
		Hangup: hangup, Out: io.Discard, Log: io.Discard, Now: time.Now,
	})
	if err != nil || reloaded != 2 || n != 3 {
		t.Errorf("%v; reloaded %d times, want 2; read %d times, want 3", err, reloaded, n)
	}
}

// TestHealth: /healthz is about the loop, /readyz about the fabric.
func TestHealth(t *testing.T) {
	now := time.Unix(1e9, 0)
	m := newMetrics(func() time.Time { return now })
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	check := func(when string, healthy, ready int) {
		t.Helper()
		if code, text := get("/healthz"); code != healthy {
			t.Errorf("%s: /healthz %d %s", when, code, text)
		}
		if code, text := get("/readyz"); code != ready {
			t.Errorf("%s: /readyz %d %s", when, code, text)
		}
	}
	check("at the start", http.StatusOK, http.StatusServiceUnavailable)
	m.read(report(audit.Finding{Severity: audit.Critical}), 3*time.Second)
	check("after a reading", http.StatusOK, http.StatusOK)
	_, text := get("/metrics")
	for _, line := range []string{
		`ibwarden_audit_findings{severity="critical"} 1`, `ibwarden_audit_findings{severity="unknown"} 0`, `ibwarden_audit_readings_total{result="failed"} 0`,
		`ibwarden_audit_readings_total{result="read"} 1`, "ibwarden_audit_reading_duration_seconds 3", "ibwarden_audit_last_reading_timestamp_seconds 1e+09",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	m.failed()
	check("after one that failed", http.StatusOK, http.StatusServiceUnavailable)
	now = now.Add(telemetry.HungAfter + time.Second)
	check("when the loop hangs", http.StatusServiceUnavailable, http.StatusServiceUnavailable)
}
