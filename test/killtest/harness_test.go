package killtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	_ "github.com/ibwarden/ibwarden/internal/app/cli" // the program that is built: go test keeps no result of another one
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// patience bounds every wait for something to become true.
const patience = 60 * time.Second

// quarantine of a manager that starts after one that was killed: on this fabric a packet
// is under way for some microseconds, and the simulator reads what waits in sockets at
// once.
const quarantine = "20ms"

// logged is how much of the log of a run is shown when a test fails, in bytes.
const logged = 4000

func TestMain(m *testing.M) {
	os.Exit(need.Main(m))
}

// binary is ibwarden, built once for all tests.
var binary = need.Ibwarden

// world is a fabric with the places of its managers.
type world struct {
	testing.TB
	server  *ibsimd.Server
	console *ibsimd.Console
	said    bytes.Buffer // by the console
	hosts   []*topology.Node
	sight   atomic.Pointer[func(fabric.Sighting)] // that is called with every packet, where not nil
}

var worlds atomic.Uint32

// newWorld serves the demonstration fabric until the test ends.
func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, topology.Demo())
}

// newWorldOf serves a fabric until the test ends.
func newWorldOf(t testing.TB, list *topology.Netlist) *world {
	t.Helper()
	w := &world{TB: t}
	config := ibsimd.Config{Socket: fmt.Sprintf("killtest-%d-%d", os.Getpid(), worlds.Add(1)), Fabric: fabric.DefaultConfig()}
	config.Fabric.Trace = func(s fabric.Sighting) {
		if f := w.sight.Load(); f != nil {
			(*f)(s)
		}
	}
	s, err := ibsimd.Listen(list, config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the simulator ended: %v", err)
		}
		s.Close()
	})
	w.server = s
	w.console = ibsimd.NewConsole(s, &w.said)
	for _, n := range s.Topology().Nodes {
		if n.Type == ib.NodeCA {
			w.hosts = append(w.hosts, n)
		}
	}
	return w
}

// keys are what the P_Key table of a host holds now, as the switch's copy of it does not
// count here.
func (w *world) keys() (all []map[ib.PKey]bool) {
	w.Helper()
	err := w.server.Do(func(f *fabric.Fabric) {
		for _, n := range w.hosts {
			d, err := f.Device(n.GUID)
			if err != nil {
				w.Fatal(err)
			}
			set := map[ib.PKey]bool{}
			for i := 0; ; i++ {
				k, err := d.QueryPKey(1, i)
				if err != nil {
					break
				}
				if k.IsValid() {
					set[k] = true
				}
			}
			all = append(all, set)
		}
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
}

var isClient = regexp.MustCompile(`(?m)^client (\d+): at (\S+)\[`)

// expel has the simulator forget the clients at a node, which are dead: by itself it would
// find that out within a second.
func (w *world) expel(node string) {
	w.Helper()
	w.said.Reset()
	if err := w.console.Execute("Attached"); err != nil {
		w.Fatal(err)
	}
	for _, m := range isClient.FindAllStringSubmatch(w.said.String(), -1) {
		if m[2] == node {
			_ = w.console.Execute("X " + m[1]) // the simulator may have done it meanwhile
		}
	}
}

// runner is a place for `ibwarden run`: a node of the fabric and a data directory.
type runner struct {
	*world
	host int // of the fabric's
	node *topology.Node
	dir  string
	// program is another version of ibwarden, or "".
	program string
	flags   []string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	err     error         // then, how
	log     *need.Log
	http    *http.Client
}

// place is a runner at a host, which does not run yet.
func (w *world) place(host int, flags ...string) *runner {
	w.Helper()
	// The name of a socket has to be short.
	dir, err := os.MkdirTemp("", "ibwkill-")
	if err != nil {
		w.Fatal(err)
	}
	r := &runner{world: w, host: host, node: w.hosts[host], dir: dir, flags: flags}
	r.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", r.socket())
		}, MaxIdleConnsPerHost: 16,
	}}
	w.Cleanup(func() {
		r.kill()
		if w.Failed() && r.log != nil {
			text := r.log.String()
			w.Logf("the last run at %s wrote:\n%s", r.node.ID, text[max(0, len(text)-logged):])
		}
		os.RemoveAll(dir)
	})
	return r
}

func (r *runner) socket() string { return filepath.Join(r.dir, "ibwarden.sock") }

// start starts the process, and waits until the API answers.
func (r *runner) start() {
	r.Helper()
	r.path() // the first one builds it, for minutes where nothing is built yet
	for late := time.Now().Add(patience); ; {
		r.startOnce()
		if r.answers(late) {
			return
		}
		// The simulator has not noticed that the one before is dead, or so.
		if time.Now().After(late) {
			r.Fatalf("ibwarden run does not start: %v\n%s", r.err, r.log)
		}
		time.Sleep(50 * time.Millisecond)
		r.expel(r.node.ID)
	}
}

// path is the program.
func (r *runner) path() string {
	r.Helper()
	if r.program != "" {
		return r.program
	}
	path, err := binary()
	if err != nil {
		r.Fatal(err)
	}
	return path
}

// startOnce starts the process.
func (r *runner) startOnce() {
	r.Helper()
	path := r.path()
	r.expel(r.node.ID)
	args := append([]string{"run", "--fabric", "ibsim:" + r.server.Name(), "--data", r.dir, "--quarantine", quarantine}, r.flags...)
	r.cmd = exec.Command(path, args...)
	r.cmd.Env = append(os.Environ(), "SIM_HOST="+r.node.ID, "GOMAXPROCS=2")
	r.cmd.Dir = r.dir
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it does not outlive a test that is killed
	r.log, r.ended = &need.Log{}, make(chan struct{})
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	if err := r.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	cmd, ended := r.cmd, r.ended
	go func() {
		r.err = cmd.Wait()
		close(ended)
	}()
}

// answers waits until the API answers; false when the process has ended.
func (r *runner) answers(late time.Time) bool {
	r.Helper()
	for {
		if _, err := r.try("GET", "/partitions?limit=1", nil, nil); err == nil {
			return true
		}
		select {
		case <-r.ended:
			return false
		case <-time.After(2 * time.Millisecond):
		}
		if time.Now().After(late) {
			r.Fatalf("the API does not answer\n%s", r.log)
		}
	}
}

// kill kills the process, if there is one.
func (r *runner) kill() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill() // one that has ended
	<-r.ended
	r.cmd = nil
	r.http.CloseIdleConnections()
}

// killed reports whether the process ended by SIGKILL and not by itself.
func (r *runner) killed() bool {
	var exit *exec.ExitError
	return errors.As(r.err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

type js = map[string]any

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   js
}

// try makes a request of the API, within patience. The error is that there was no answer.
func (r *runner) try(method, path string, body any, header map[string]string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var data io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			r.Fatal(err)
		}
		data = bytes.NewReader(raw)
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://ibwarden/api/v1"+path, data)
	if err != nil {
		r.Fatal(err)
	}
	q.GetBody = nil // the transport is not to send it twice by itself
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		q.Header.Set(k, v)
	}
	// Requests that are not to be sent twice go over connections of their own.
	q.Close = method != "GET"
	got, err := r.http.Do(q)
	if err != nil {
		return a, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(bufio.NewReader(got.Body))
	if err != nil {
		return a, err
	}
	a = answer{status: got.StatusCode, header: got.Header}
	if err := json.Unmarshal(text, &a.body); err != nil {
		return a, fmt.Errorf("answer %d to %s %s: %w", a.status, method, path, err)
	}
	return a, nil
}

// get reads what has to be there.
func (r *runner) get(path string) answer {
	r.Helper()
	a, err := r.try("GET", path, nil, nil)
	if err != nil || a.status != http.StatusOK {
		r.Fatalf("GET %s: %d %v, %v\n%s", path, a.status, a.body, err, r.log)
	}
	return a
}

// command runs ibwarden on the service, and returns what it prints.
func (r *runner) command(words ...string) (string, error) {
	r.Helper()
	path := r.path()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(words, "--server", "unix:"+r.socket())...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// eventually waits until something is so.
func (w *world) eventually(what string, is func() error) {
	w.Helper()
	late := time.Now().Add(patience)
	for {
		err := is()
		if err == nil {
			return
		}
		if time.Now().After(late) {
			w.Fatalf("not so after %v: %s: %v", patience, what, err)
		}
		time.Sleep(3 * time.Millisecond)
	}
}
