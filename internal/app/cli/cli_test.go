package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
	"github.com/rogpeppe/go-internal/testscript"
)

// tests removes after the tests what they have built.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	os.Setenv("IBWARDEN_SERVER", "none") // of those that other tests run on this machine; scripts set it for themselves
	return need.Main(t.m)
}

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"ibwarden": func() { os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command as its users do; each file in testdata/script
// is a story.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: scriptCommands(), Setup: func(e *testscript.Env) error {
		e.Setenv("IBWARDEN_SERVER", "none") // of those that other tests run on this machine
		e.Setenv("GOGC", "400")             // a fifth of what a short command takes is collecting garbage
		examples, err := filepath.Abs("../../../examples")
		e.Setenv("EXAMPLES", examples)
		return err
	}})
}

// scriptCommands are what scripts have beside testscript's own commands.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"status":      wantStatus,
		"startsim":    startSim,
		"powercycle":  powerCycle,
		"nokeys":      noKeys,
		"until":       untilStatus,
		"same":        wantSame,
		"wantsm":      wantSMInfo,
		"console":     consoleLine,
		"interrupted": interrupted,
		"stranger":    stranger,
		"locked":      locked,
	}
}

// untilTries and untilPause bound the patience of untilStatus: two minutes.
const (
	untilTries = 1200
	untilPause = 100 * time.Millisecond
)

// untilStatus runs a command again and again until it ends with a status:
// until N command...
func untilStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until N command...")
	}
	for range untilTries {
		got := "0"
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			got = strings.TrimPrefix(err.Error(), "exit status ")
		}
		if got == args[0] {
			return
		}
		time.Sleep(untilPause)
	}
	ts.Fatalf("%v did not end with status %s", args[1:], args[0])
}

// wantStatus runs a command and checks its exit status: status N command...
func wantStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = err.Error()
	}
	want := "exit status " + args[0]
	if args[0] == "0" {
		want = "0"
	}
	if got != want {
		ts.Fatalf("%v ended with %s, want %s", args[1:], got, want)
	}
}

// sent is how many packets a command says that it sent: over a socket that depends
// on which answer came first.
var sent = regexp.MustCompile(`\d+ SubnGet`)

// wantSame runs a command several times and checks that it prints the same bytes
// each time, but for the number of packets that it sent: same N command...
func wantSame(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: same N command...")
	}
	times, err := strconv.Atoi(args[0])
	ts.Check(err)
	first := ""
	for i := range times {
		ts.Check(ts.Exec(args[1], args[2:]...))
		out := sent.ReplaceAllString(ts.ReadFile("stdout"), "N SubnGet")
		if i == 0 {
			first = out
		}
		if out != first || out == "" {
			ts.Fatalf("run %d of %v printed something else than the first:\n%s\nThe first:\n%s", i+1, args[1:], out, first)
		}
	}
}
