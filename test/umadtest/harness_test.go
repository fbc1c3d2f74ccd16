package umadtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	_ "github.com/ibwarden/ibwarden/internal/app/cli" // the program that is built: go test keeps no result of another one
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// commandTime bounds every program that a test waits for, backgroundTime those that
// run beside it, patience every wait for something to become true.
const (
	commandTime = 2 * time.Minute
	// backgroundTime is as long as the longest soak.
	backgroundTime = 30 * time.Minute
	patience       = 5 * time.Minute
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == attackWord {
		os.Exit(attackMain(os.Args[2], os.Args[3:])) // an attacker inside
	}
	os.Exit(need.Main(m))
}

// binary is ibwarden, built once for all tests.
var binary = need.Ibwarden

// ground is what `sim exec` needs of the machine, nil when it is there.
var ground = sync.OnceValue(func() error {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("no FUSE: %w", err)
	}
	f.Close()
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := probe.Run(); err != nil {
		return fmt.Errorf("no mount namespaces: %w", err)
	}
	return nil
})

// debians says which package has a program.
var debians = map[string]string{"opensm": "opensm", "ibdiagnet": "ibutils", "tshark": "tshark"}

// needPrograms skips a test, or fails it in CI, where the machine or a program is not
// there.
func needPrograms(t testing.TB, programs ...string) {
	t.Helper()
	err := ground()
	for _, p := range programs {
		if _, missing := program(p); missing != nil && err == nil {
			err = missing
		}
	}
	need.Need(t, err)
}

// program also looks where the path of an ordinary user does not lead.
func program(name string) (string, error) {
	if path, err := need.Find(name); err == nil {
		return path, nil
	}
	from := debians[name]
	if from == "" {
		from = "infiniband-diags"
	}
	return "", fmt.Errorf("%s is not installed (Debian package %s)", name, from)
}

// rig is a running `ibwarden sim --devices`.
type rig struct {
	testing.TB
	name, dir string
	topology  *topology.Netlist
	cmd       *exec.Cmd
	console   io.WriteCloser
	said      chan string // lines of its standard output
	ended     chan struct{}
}

var rigs atomic.Uint32

// shortDir is a directory of the test that is removed at its end. t.TempDir has the
// test's name in it, and a socket's path holds 107 octets: the names here are so long
// that it was the digits of a random number that decided whether one fitted.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "umad-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

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
		TB: t, name: fmt.Sprintf("umadtest-%d-%d", os.Getpid(), rigs.Add(1)), dir: shortDir(t),
		topology: topology.Demo(), said: make(chan string, 100), ended: make(chan struct{}),
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
func tame(cmd *exec.Cmd, dir string) {
	cmd.Dir = dir
	cmd.WaitDelay = 2 * time.Second
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir,
		"OSM_TMP_DIR=" + dir, "OSM_CACHE_DIR=" + dir,
		"IBWARDEN_DATA=" + filepath.Join(dir, "data"), // not what this machine's own manager keeps
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// limited are the words of a command, with a limit for the log if it is OpenSM.
func limited(words []string) []string {
	if words[0] == "opensm" {
		return slices.Insert(slices.Clone(words), 1, ibsimtest.LogLimit)
	}
	return slices.Clone(words)
}

// command prepares a program inside, at a node; "" is the first CA.
func (r *rig) command(ctx context.Context, node string, words ...string) *exec.Cmd {
	r.Helper()
	path, err := binary()
	if err != nil {
		r.Fatal(err)
	}
	if words = limited(words); words[0] == "ibwarden" {
		words[0] = path
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"sim", "exec", "--socket", r.name, "--node", node, "--"}, words...)...)
	tame(cmd, r.dir)
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
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := prepare(ctx)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		r.Fatalf("%v: %v, %v\n%s%s", words, err, ctx.Err(), stdout.String(), stderr.String())
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
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
	ctx, cancel := context.WithTimeout(context.Background(), backgroundTime)
	cmd = prepare(ctx)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		cancel()
		r.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is interrupted, or killed
		close(ended)
	}()
	stopped := false
	stop = sync.OnceFunc(func() {
		stopped = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(patience):
			r.Errorf("%v: it does not end\n%s", words, out.String())
		}
		cancel()
	})
	r.Cleanup(stop)
	r.Cleanup(func() {
		select {
		case <-ended:
			if r.Failed() && !stopped {
				r.Logf("%v ended by itself: %v\n%s", words, cmd.ProcessState, out.String())
			}
		default:
		}
	})
	return cmd, stop
}

// eventually waits until something is true.
func (r *rig) eventually(what string, is func() bool) {
	r.Helper()
	if !r.within(patience, is) {
		r.Fatalf("after %v still not: %s", patience, what)
	}
}

// within reports whether something became true in a time.
func (r *rig) within(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

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
