package umadtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	_ "github.com/ibwarden/ibwarden/internal/app/cli" // the program that is built: go test keeps no result of another one
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// commandTime bounds every program that a test waits for, patience every wait for
// something to become true.
const (
	commandTime = ibsimtest.CommandTime
	patience    = ibsimtest.Patience
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == attackWord {
		os.Exit(attackMain(os.Args[2], os.Args[3:])) // an attacker inside
	}
	os.Exit(need.Main(m))
}

// binary is ibwarden, built once for all tests.
var binary = need.Ibwarden

// needPrograms skips a test, or fails it in CI, where the machine or a program is not
// there.
func needPrograms(t testing.TB, programs ...string) {
	t.Helper()
	ibsimtest.Need(t, programs...)
}

// program also looks where the path of an ordinary user does not lead.
func program(name string) (string, error) { return ibsimtest.Program(name) }

// rig is a running `ibwarden sim --devices`.
type rig struct {
	testing.TB
	name, dir string
	topology  *topology.Netlist
	cmd       *exec.Cmd
	console   io.WriteCloser
	said      chan string // lines of its standard output
	ended     chan struct{}
	linux     map[string]bool // nodes where a Linux machine is
}

var rigs atomic.Uint32

// newRig serves the fabric of a generator or of a topology file's text, or the
// demonstration for "".
func newRig(t testing.TB, spec string, flags ...string) *rig {
	t.Helper()
	needPrograms(t)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		TB: t, name: fmt.Sprintf("umadtest-%d-%d", os.Getpid(), rigs.Add(1)), dir: ibsimtest.Dir(t),
		topology: topology.Demo(), said: make(chan string, 100), ended: make(chan struct{}), linux: map[string]bool{},
	}
	args := append([]string{"sim", "--devices", "--socket", r.name}, flags...)
	switch {
	case strings.Contains(spec, "\n"):
		args = append(args, r.file("fabric.net", spec))
		r.topology, _, err = topology.Read([]byte(spec), "fabric.net", nil)
	case spec != "":
		args = append(args, spec)
		r.topology, err = topology.Generate(spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.Command(path, args...)
	tame(r.cmd, r.dir)
	r.cmd.Stderr = os.Stderr
	if r.console, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.said <- lines.Text()
		}
		_ = r.cmd.Wait() // a test that kills it knows
		close(r.ended)
	}()
	t.Cleanup(r.kill)
	r.says("ready")
	return r
}

// says waits for a line of the simulator.
func (r *rig) says(part string) {
	r.Helper()
	for late := time.After(patience); ; {
		select {
		case line := <-r.said:
			if strings.Contains(line, part) {
				return
			}
		case <-r.ended:
			r.Fatalf("the simulator ended and has not said %q", part)
		case <-late:
			r.Fatalf("the simulator has not said %q", part)
		}
	}
}

// tell gives the simulator's console a command.
func (r *rig) tell(command string) {
	r.Helper()
	if _, err := io.WriteString(r.console, command+"\n"); err != nil {
		r.Fatal(err)
	}
}

// kill ends the simulator at once. It may be called again.
func (r *rig) kill() {
	_ = r.cmd.Process.Kill() // it may have ended
	<-r.ended
}

// tame makes a process run in dir and end with this one.
func tame(cmd *exec.Cmd, dir string) { ibsimtest.Tame(cmd, dir) }

// command prepares a program inside, at a node; "" is the first CA.
func (r *rig) command(ctx context.Context, node string, words ...string) *exec.Cmd {
	r.Helper()
	if r.linux[node] {
		return r.inLinux(ctx, node, words...)
	}
	cmd, err := ibsimtest.Command(ctx, r.name, r.dir, node, words...)
	if err != nil {
		r.Fatal(err)
	}
	return cmd
}

// output is what a program left behind.
type output struct {
	stdout, stderr string
	status         int
}

// run runs a program inside to its end.
func (r *rig) run(node string, words ...string) output {
	r.Helper()
	return r.finish(words, func(ctx context.Context) *exec.Cmd { return r.command(ctx, node, words...) })
}

// finish runs a command to its end.
func (r *rig) finish(words []string, prepare func(context.Context) *exec.Cmd) output {
	r.Helper()
	o := ibsimtest.Finish(r, words, prepare)
	return output{o.Stdout, o.Stderr, o.Status}
}

// ask is run that has to succeed, and its standard output.
func (r *rig) ask(node string, words ...string) string {
	r.Helper()
	o := r.run(node, words...)
	if o.status != 0 {
		r.Fatalf("%v: exit status %d\n%s%s", words, o.status, o.stdout, o.stderr)
	}
	return o.stdout
}

// start runs a program inside until stop is called, which interrupts it and
// waits for its end.
func (r *rig) start(node string, words ...string) (cmd *exec.Cmd, stop func()) {
	r.Helper()
	return r.background(words, func(ctx context.Context) *exec.Cmd { return r.command(ctx, node, words...) })
}

// background runs a command until stop is called, which interrupts it and waits for
// its end.
func (r *rig) background(words []string, prepare func(context.Context) *exec.Cmd) (cmd *exec.Cmd, stop func()) {
	r.Helper()
	return ibsimtest.Background(r, words, prepare)
}

// eventually waits until something is true.
func (r *rig) eventually(what string, is func() bool) {
	r.Helper()
	if !r.within(patience, is) {
		r.Fatalf("after %v still not: %s", patience, what)
	}
}

// within reports whether something became true in a time.
func (r *rig) within(limit time.Duration, is func() bool) bool { return ibsimtest.Within(limit, is) }

// openSM brings the fabric up with an OpenSM at a node and leaves it running.
// Its log may hold no error until stop is called.
func (r *rig) openSM(node string, args ...string) (stop func()) {
	r.Helper()
	log := filepath.Join(r.dir, fmt.Sprintf("opensm-%d.log", rigs.Add(1)))
	conf := log + ".conf"
	if err := os.WriteFile(conf, []byte("force_log_flush TRUE\n"), 0o600); err != nil { // else SUBNET UP waits in a buffer
		r.Fatal(err)
	}
	words := append([]string{"opensm", "-F", conf, "-e", "-f", log}, args...)
	_, end := r.start(node, words...)
	read := func() string {
		text, _ := os.ReadFile(log) // it is not there at first
		return string(text)
	}
	r.Cleanup(func() {
		if r.Failed() {
			text := read()
			r.Logf("OpenSM at %q, its log:\n%s", node, text[max(0, len(text)-1000):])
		}
	})
	far := r.hosts()[len(r.hosts())-1].ID
	r.eventually("OpenSM has brought the fabric up", func() bool {
		// Who asks before it is up makes it log that it cannot place him.
		return strings.Contains(read(), "SUBNET UP") && strings.HasPrefix(r.ask(far, "cat", "/sys/class/infiniband/sim0/ports/1/state"), "4:") &&
			strings.Count(r.run(far, "saquery", "NR").stdout, "NodeRecord dump") > 1
	})
	checked := sync.OnceFunc(func() {
		// What it says of requests that its own end cuts short is no fault.
		for line := range strings.Lines(read()) {
			if strings.Contains(line, " ERR ") {
				r.Errorf("OpenSM's log: %s", line)
			}
		}
		end()
		if !strings.Contains(read(), "SUBNET UP") {
			r.Errorf("OpenSM at %q never said SUBNET UP", node)
		}
	})
	r.Cleanup(checked)
	return checked
}

// hosts are the CAs of the topology, in its order.
func (r *rig) hosts() (out []*topology.Node) {
	for _, n := range r.topology.Nodes {
		if n.Type == ib.NodeCA {
			out = append(out, n)
		}
	}
	return out
}
