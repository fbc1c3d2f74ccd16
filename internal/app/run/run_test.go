package run

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// results is a Printer that keeps what it is to print.
type results []*event.Result

func (r *results) Verdict(x *event.Result, _ daemon.SMPs, _ []sweep.Phase) { *r = append(*r, x) }
func (r *results) Again()                                                  {}

// demo is a run on the demonstration fabric that ends with its first verdict.
func demo(t *testing.T) *Config {
	t.Helper()
	c := &Config{
		Fabric: daemon.Demonstration, Profile: protect.Default, Once: true,
		Election: engine.Election{MasterTimeout: mastership.DefaultMasterTimeout},
		Periods:  engine.Periods{Sweep: engine.DefaultSweepInterval, Drift: engine.DefaultDriftPeriod, Guard: engine.DefaultGuardPeriod},
		Routing:  *RoutingOf("updn", ""),
		Open: func() (Port, error) {
			l, err := daemon.Open(daemon.Demonstration, 0)
			return Port{Link: l}, err
		},
	}
	c.Serves.Lease = mastership.DefaultTTL
	return c
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const apart = `version: 1
default: none
partitions:
  - name: red
    pkey: 0x0010
    members: {full: [{at: "leaf-1:2"}]}
`

// TestPolicyIsReadOnce: what was checked is what is applied, whatever becomes of the file meanwhile.
func TestPolicyIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	writeFile(t, file, apart)
	for _, data := range []string{"", filepath.Join(dir, "data")} { // without a service, and with one
		c := demo(t)
		c.Policy.File, c.Cables.Data = file, data
		open := c.Open
		c.Open = func() (Port, error) { // everything has been read by now
			writeFile(t, file, strings.Replace(apart, "red", "blue", 1))
			return open()
		}
		var got results
		err := Run(context.Background(), *c, &got, io.Discard)
		writeFile(t, file, apart)
		if len(got) != 1 {
			t.Fatalf("data %q: %d verdicts: %v", data, len(got), err)
		}
		var names []string
		for _, p := range got[0].Partitions {
			names = append(names, p.Name)
		}
		if text := strings.Join(names, " "); !strings.Contains(text, "red") || strings.Contains(text, "blue") {
			t.Errorf("data %q: the partitions are %s, want those of the file as it was checked", data, text)
		}
	}
}

// TestCheck: what cannot be is refused, by the name of its flag, before anything is opened.
func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"--lmc 8":                func(c *Config) { c.LMC = 8 },
		"--priority 16":          func(c *Config) { c.Election.Priority = 16 },
		"--master-timeout 0s":    func(c *Config) { c.Election.MasterTimeout = 0 },
		"--max-smps -1":          func(c *Config) { c.Window = -1 },
		"--guard-period 0s":      func(c *Config) { c.Periods.Guard = 0 },
		"--drift-period 1ms":     func(c *Config) { c.Periods.Drift = 1e6 },
		"--routing":              func(c *Config) { c.Routing = *RoutingOf("none such", "") },
		"--lfts-file":            func(c *Config) { c.Routing = *RoutingOf("updn", "a file") },
		"--lease 0s":             func(c *Config) { c.Serves.Lease = 0 },
		"no such file or direct": func(c *Config) { c.Policy.File = filepath.Join(t.TempDir(), "none") },
	} {
		c := demo(t)
		c.Open = func() (Port, error) {
			t.Errorf("%s: the fabric was opened", want)
			return Port{}, os.ErrInvalid
		}
		change(c)
		if err := Run(context.Background(), *c, new(results), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
