package cli

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/config"
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
		if config.InFiles(f.Name) {
			inFiles++
		}
	})
	if names := config.Names(c.Flags()); len(names) != inFiles || inFiles < 30 {
		t.Errorf("%d settings, %d named: want all flags of run but those of one run", inFiles, len(names))
	}
	for _, name := range []string{"once", "json", "verbose", "config", "print-config", "take-over", "accept-policy"} {
		if c.Flags().Lookup(name) == nil || config.InFiles(name) {
			t.Errorf("--%s: want a flag of run that no file has", name)
		}
	}
	for flag, variable := range environment {
		if c.Flags().Lookup(flag) == nil || variable == "" {
			t.Errorf("%s sets --%s, which is no flag of run", variable, flag)
		}
	}
}
