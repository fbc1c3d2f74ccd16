package ibsimd_test

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
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/ibwarden/ibwarden/internal/app/cli" // the program that is built: go test keeps no result of another one
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// commandTime bounds every program that a test runs.
const commandTime = 30 * time.Second

func TestMain(m *testing.M) {
	os.Exit(need.Main(m))
}

// ibwarden is the program, built once for all tests.
var ibwarden = need.Ibwarden

// needTools finds Debian's programs; without them the test skips, and fails in
// CI.
func needTools(t testing.TB) *ibsimtest.Tools {
	t.Helper()
	tools, err := ibsimtest.FindTools()
	need.Need(t, err)
	return tools
}

var names atomic.Uint32

// socketName is one that nobody else uses.
func socketName() string { return fmt.Sprintf("ibsimd-%d-%d", os.Getpid(), names.Add(1)) }

// serve serves a topology in this process until the test ends.
func serve(t testing.TB, l *topology.Netlist, c ibsimd.Config) *ibsimd.Server {
	t.Helper()
	if c.Socket == "" && c.UDP == "" {
		c.Socket = socketName()
	}
	s, err := ibsimd.Listen(l, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the server ended: %v", err)
		}
		s.Close()
	})
	return s
}

// process is `ibwarden sim`, as others start it.
type process struct {
	name  string // IBSIM_SOCKNAME
	stdin io.WriteCloser
	out   *bufio.Reader
	cmd   *exec.Cmd
}

// simulate runs `ibwarden sim` until the test ends, and waits until it is
// ready.
func simulate(t testing.TB, args ...string) *process {
	t.Helper()
	path, err := ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: socketName()}
	p.cmd = exec.Command(path, append([]string{"sim", "--socket", p.name}, args...)...)
	tame(p.cmd, t.TempDir())
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = os.Stderr
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t) })
	line, err := p.out.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready: ") || !strings.Contains(line, "IBSIM_SOCKNAME="+p.name) {
		t.Fatalf("first line %q, %v: want that it is ready, and the socket", line, err)
	}
	return p
}

// end interrupts the process and waits for its good end.
func (p *process) end(t testing.TB) {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("ibwarden sim ended: %v", err)
	}
}

// tame makes a process run in dir and end with this one.
func tame(cmd *exec.Cmd, dir string) {
	cmd.Dir = dir
	cmd.WaitDelay = 2 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// program is one of Debian's, beside smpquery or where programs are.
func program(tools *ibsimtest.Tools, name string) string {
	return filepath.Join(filepath.Dir(tools.SMPQuery), name)
}

// at is where a program that uses libibumad runs.
type at struct {
	testing.TB
	tools        *ibsimtest.Tools
	socket, host string
	dir          string
	environment  []string // in addition
}

// command prepares a program.
func (a at) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path := name
	if !filepath.IsAbs(name) {
		path = program(a.tools, name)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	tame(cmd, a.dir)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + a.dir, "IBSIM_SOCKNAME=" + a.socket, "SIM_HOST=" + a.host,
		preload(a.tools), "OSM_TMP_DIR=" + a.dir, "OSM_CACHE_DIR=" + a.dir,
	}
	cmd.Env = append(cmd.Env, a.environment...)
	return cmd
}

// try runs a program to its end and returns what it printed.
func (a at) try(name string, args ...string) (string, error) {
	a.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := a.command(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %q: %w\n%s", name, args, err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// run is try that has to succeed.
func (a at) run(name string, args ...string) string {
	a.Helper()
	out, err := a.try(name, args...)
	if err != nil {
		a.Fatal(err)
	}
	return out
}

// preload leads the umad calls of Debian's programs to the server; ibwarden
// needs no such thing.
func preload(tools *ibsimtest.Tools) string {
	if tools == nil {
		return "LD_PRELOAD="
	}
	return "LD_PRELOAD=" + tools.Umad2sim
}
