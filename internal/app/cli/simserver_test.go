package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var simCount atomic.Int32

// startSim serves a simulated fabric until the script ends and sets FABRIC to
// its name: startsim [FLAG...] [FILE|GENERATOR]. The command powercycle NODE... takes the power
// from nodes of it and gives it back.
func startSim(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: startsim [FLAG...] [FILE|GENERATOR]")
	}
	name := fmt.Sprintf("cli%d-%d", os.Getpid(), simCount.Add(1))
	for i := range args {
		if f := ts.MkAbs(args[i]); strings.HasSuffix(args[i], ".net") {
			args[i] = f
		}
	}
	cmd := exec.Command(binary(ts), append([]string{"sim", "--socket", name}, args...)...)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	console, err := cmd.StdinPipe()
	ts.Check(err)
	consoles.Store(name, console)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready") {
		ts.Fatalf("ibwarden sim said %q, %v", line, err)
	}
	go io.Copy(io.Discard, said)
	ts.Setenv("FABRIC", "ibsim:"+name)
}

// consoles are those of the fabrics that startSim serves, by name.
var consoles sync.Map

// rebootTime is longer than a simulated device takes to come up again.
const rebootTime = 500 * time.Millisecond

func powerCycle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: powercycle NODE...")
	}
	console, _ := consoles.Load(strings.TrimPrefix(ts.Getenv("FABRIC"), "ibsim:"))
	for _, node := range args {
		_, err := fmt.Fprintf(console.(io.Writer), "Reboot %q\n", node)
		ts.Check(err)
	}
	time.Sleep(rebootTime)
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
