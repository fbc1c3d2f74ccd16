package cli

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ibwarden": func() { os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command as its users do; each file in testdata/script
// is a story.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":   wantStatus,
			"startsim": startSim,
		},
	})
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
