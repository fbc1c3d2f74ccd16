package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/run"
)

// TestSettings: what is said of single settings is said of flags that there are, and
// SIGHUP takes no setting that a file cannot have.
func TestSettings(t *testing.T) {
	_, c := scratchRun()
	for _, name := range readOnlyUses {
		if c.Flags().Lookup(name) == nil {
			t.Errorf("--read-only uses --%s, which is no flag of run", name)
		}
	}
	inFiles := 0
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if run.InFiles(f.Name) {
			inFiles++
		}
	})
	if names := run.Names(c.Flags()); len(names) != inFiles || inFiles < 30 {
		t.Errorf("%d settings, %d named: want all flags of run but those of one run", inFiles, len(names))
	}
	for _, name := range []string{"once", "json", "verbose", "config", "print-config", "take-over", "accept-policy"} {
		if c.Flags().Lookup(name) == nil || run.InFiles(name) {
			t.Errorf("--%s: want a flag of run that no file has", name)
		}
	}
	for flag, variable := range environment {
		if c.Flags().Lookup(flag) == nil || variable == "" {
			t.Errorf("%s sets --%s, which is no flag of run", variable, flag)
		}
	}
}

// TestReconfigure: what the files say now has to fit what the command line said, which goes
// first; what does not fit changes nothing.
func TestReconfigure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sweep-interval: 1s\n")
	f, c := scratchRun()
	var said bytes.Buffer
	c.SetErr(&said)
	if err := c.ParseFlags([]string{"--config", path, "--drift-period", "5s"}); err != nil {
		t.Fatal(err)
	}
	if err := f.config.enter(c); err != nil {
		t.Fatal(err)
	}
	const fault = "a fault"
	for _, x := range []struct {
		text         string
		sweep, guard time.Duration
		says         string
	}{
		{"sweep-interval: 30s\nguard-period: 2s\n", time.Second, time.Second, fault}, // longer than 5s
		{"sweep-interval: 4s\ndrift-period: 1h\nguard-period: 2s\n", 4 * time.Second, 2 * time.Second, "configuration read again"},
		{"guard-period: soon\n", 4 * time.Second, 2 * time.Second, fault},
		{"priority: 3\n", 4 * time.Second, 2 * time.Second, fault}, // the default, 10s, is longer too
		{"sweep-interval: 4s\npriority: 3\n", 4 * time.Second, time.Second, "started again: priority"},
	} {
		said.Reset()
		write(x.text)
		if err := f.reconfigure(c); (err != nil) != (x.says == fault) {
			t.Errorf("%q: %v", x.text, err)
		} else if err != nil {
			said.WriteString(fault)
		}
		if f.manager.Periods.Sweep != x.sweep || f.manager.Periods.Guard != x.guard || f.manager.Periods.Drift != 5*time.Second || !strings.Contains(said.String(), x.says) {
			t.Errorf("%q: sweep %v, guard %v, drift %v, said %q; want %v, %v, 5s, %q", x.text, f.manager.Periods.Sweep, f.manager.Periods.Guard, f.manager.Periods.Drift, said.String(), x.sweep, x.guard, x.says)
		}
	}
}
