package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

// keysLacking is what a command says that did not have the M_Keys of a fabric.
const keysLacking = "guarded by M_Keys that this command does not have"

// locked runs a reading command on the fabric of startsim, whose keys are in the directory
// data: without it the command has to end with a status and say what it lacks, with it it
// must not say so: locked N command...
func locked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: locked N command...")
	}
	words := append(args[1:], "--fabric", ts.Getenv("FABRIC"))
	wantStatus(ts, false, append([]string{args[0], "ibwarden"}, words...))
	said := ts.ReadFile("stdout") + ts.ReadFile("stderr")
	if strings.Count(said, keysLacking) != 1 {
		ts.Fatalf("%v does not say once that it lacks keys", args[1:])
	}
	for _, wrong := range []string{"no end port that was reached", "nobody manages", "every device answered"} {
		if strings.Contains(said, wrong) {
			ts.Fatalf("%v says %q of a fabric that it did not read", args[1:], wrong)
		}
	}
	_ = ts.Exec("ibwarden", append(words, "--data", ts.MkAbs("data"))...) // it may fail for other reasons
	if said := ts.ReadFile("stdout") + ts.ReadFile("stderr"); strings.Contains(said, keysLacking) || strings.Contains(said, "did not answer") {
		ts.Fatalf("%v says that it lacks keys, and has them", args[1:])
	}
}

// TestGuardedHasAll: the script guarded has every command that reads a fabric.
func TestGuardedHasAll(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("testdata", "script", "guarded.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]string{
		"run":           "it says that this manager does not have them: keys.txtar",
		"apply":         "it writes, and is refused as run is",
		"keys show":     "it reads no fabric",
		"keys signer":   "it reads no fabric",
		"status":        "it asks a service, and refuses --fabric",
		"keys rotate":   "it reads no fabric",
		"snapshot diff": "it reads no fabric",
		"keys import":   "it reads no fabric",
		"keys exec":     "the program reads, with the keys that exec has; it refuses a fabric that is no adapter",
		// They have keys, which are others.
		"keys export":   "in the script with --data",
		"keys recover":  "in the script with --data",
		"topology show": "it reads no fabric",
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "ibwarden ")
		fabric := c.Flags().Lookup("fabric")
		if fabric == nil {
			fabric = c.InheritedFlags().Lookup("fabric")
		}
		if c.Runnable() && !c.HasSubCommands() && !isMoved(c) && fabric != nil && others[path] == "" && !strings.Contains(string(script), " "+path+"\n") && !strings.Contains(string(script), " "+path+" ") {
			t.Errorf("guarded.txtar has no line for ibwarden %s, which has --fabric", path)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(Root())
}
