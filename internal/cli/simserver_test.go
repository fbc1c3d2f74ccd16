package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

var simCount atomic.Int32

// startSim serves a simulated fabric until the script ends and sets FABRIC to
// its name: startsim [FILE|GENERATOR].
func startSim(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: startsim [FILE|GENERATOR]")
	}
	name := fmt.Sprintf("cli%d-%d", os.Getpid(), simCount.Add(1))
	for i := range args {
		if f := ts.MkAbs(args[i]); strings.HasSuffix(args[i], ".net") {
			args[i] = f
		}
	}
	cmd := exec.Command(binary(ts), append([]string{"sim", "--no-console", "--socket", name}, args...)...)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready") {
		ts.Fatalf("ibwarden sim said %q, %v", line, err)
	}
	ts.Setenv("FABRIC", "ibsim:"+name)
}

// binary is the command under test.
func binary(ts *testscript.TestScript) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, "ibwarden"); exec.Command(path, "--help").Run() == nil {
			return path
		}
	}
	ts.Fatalf("no ibwarden in PATH")
	return ""
}
