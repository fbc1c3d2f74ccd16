package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/spf13/pflag"
)

// TestRunHelp: every flag of run is in one part of its help, which is short; the manual page has all.
func TestRunHelp(t *testing.T) {
	root := newRoot(new(telemetry.LogOptions))
	c, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	c.InitDefaultHelpFlag()
	var grouped []string
	for _, g := range runFlagGroups {
		grouped = append(grouped, g.flags...)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		i := slices.Index(grouped, f.Name)
		if i < 0 {
			t.Errorf("--%s is in no group", f.Name)
			return
		}
		if grouped = slices.Delete(grouped, i, i+1); slices.Contains(grouped, f.Name) {
			t.Errorf("--%s is in two groups", f.Name)
		}
	})
	if len(grouped) > 0 {
		t.Errorf("no flags of run: %s", grouped)
	}
	help := runHelp(c)
	if n := len(strings.Fields(help)); n > 900 {
		t.Errorf("%d words, want at most 900:\n%s", n, help)
	}
	for _, want := range []string{"Bring up a fabric", "Usage:\n  ", "--once --fabric sim", "Other managers:\n      --priority uint8", "umad[:DEVICE[/PORT]]", "updn, auto", "man ibwarden-run"} {
		if !strings.Contains(help, want) {
			t.Errorf("no %q in:\n%s", want, help)
		}
	}
}
