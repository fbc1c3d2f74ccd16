package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// consoleLine gives the served fabric a command: console WORD...
func consoleLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: console WORD...")
	}
	console, _ := consoles.Load(strings.TrimPrefix(ts.Getenv("FABRIC"), "ibsim:"))
	_, err := fmt.Fprintln(console.(io.Writer), strings.Join(args, " "))
	ts.Check(err)
	time.Sleep(rebootTime)
}

// interruptPatience is how long a command may take to say what it is waited for.
const interruptPatience = time.Minute

// interrupted starts a command, sends it a signal once it says something on
// standard error, and wants an exit status; standard output and standard error go to
// the files out and err: interrupted INT|TERM STATUS TEXT COMMAND...
func interrupted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: interrupted INT|TERM STATUS TEXT COMMAND...")
	}
	sig := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM}[args[0]]
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	cmd := exec.Command(binary(ts), args[4:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.MkAbs("."), "IBWARDEN_DATA="+ts.Getenv("IBWARDEN_DATA"), "IBWARDEN_FABRIC="+ts.Getenv("IBWARDEN_FABRIC"))
	out, err := os.Create(ts.MkAbs("out"))
	ts.Check(err)
	defer out.Close()
	cmd.Stdout = out
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	patience := time.AfterFunc(interruptPatience, func() { cmd.Process.Kill() })
	defer patience.Stop()
	var said strings.Builder
	sent := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !sent && strings.Contains(lines.Text(), args[2]) {
			sent = true
			ts.Check(cmd.Process.Signal(sig))
		}
	}
	cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs("err"), []byte(said.String()), 0o600))
	if got := cmd.ProcessState.ExitCode(); !sent || got != want {
		ts.Fatalf("%v: %q was said: %v; exit status %d, want %d\n%s", args[3:], args[2], sent, got, want, said.String())
	}
}
