package consoletest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/ibwarden/ibwarden/internal/app/cli" // the program that is built: go test keeps no result of another one
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// logged is how much of the log of `ibwarden run` is shown when a test fails, in bytes.
const logged = 4000

// site is a simulated fabric with the `ibwarden run` that manages it and serves the console.
type site struct {
	testing.TB
	fabric  string          // what --fabric says
	server  *ibsimd.Server  // nil where the fabric is in the program
	devices *ibsimd.Console // its commands
	dir     string          // of the data
	address string          // where the console is: 127.0.0.1:PORT
	flags   []string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	err     error         // then, how
	log     *need.Log
	http    *http.Client // over the Unix socket, as the provider
}

var fabrics atomic.Uint32

// newSite serves a fabric to a manager and waits for its first verdict.
func newSite(t testing.TB, netlist *topology.Netlist, flags ...string) *site {
	t.Helper()
	config := ibsimd.Config{Socket: fmt.Sprintf("consoletest-%d-%d", os.Getpid(), fabrics.Add(1)), Fabric: fabric.DefaultConfig()}
	server, err := ibsimd.Listen(netlist, config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the simulator ended: %v", err)
		}
		server.Close()
	})
	s := newSiteOn(t, "ibsim:"+server.Name(), flags...)
	s.server, s.devices = server, ibsimd.NewConsole(server, io.Discard)
	s.start()
	s.verdict("isolated.*")
	return s
}

// newSiteOn is a site on what --fabric names, which does not run yet.
func newSiteOn(t testing.TB, fabric string, flags ...string) *site {
	t.Helper()
	need.Program(t, "chromium")             // before much is done
	dir, err := os.MkdirTemp("", "ibwcon-") // the name of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	s := &site{TB: t, fabric: fabric, dir: dir, address: freeAddress(t), flags: flags}
	s.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket())
	}}}
	t.Cleanup(func() {
		s.stop()
		if t.Failed() && s.log != nil {
			text := s.log.String()
			t.Logf("ibwarden run wrote:\n%s", text[max(0, len(text)-logged):])
		}
		os.RemoveAll(dir)
	})
	return s
}

func (s *site) socket() string { return filepath.Join(s.dir, "ibwarden.sock") }

// base is the address of the console without its path.
func (s *site) base() string { return "http://" + s.address }

// freeAddress is a loopback address where nobody listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts `ibwarden run`, and waits until its API answers.
func (s *site) start() {
	s.Helper()
	path, err := need.Ibwarden()
	if err != nil {
		s.Fatal(err)
	}
	args := append([]string{"run", "--fabric", s.fabric, "--data", s.dir, "--listen", s.address, "--quarantine", "0s", "--metrics", freeAddress(s), "--counters-period", "1s"}, s.flags...)
	s.cmd = exec.Command(path, args...)
	s.cmd.Dir = s.dir
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it does not outlive a test that is killed
	s.log, s.ended = &need.Log{}, make(chan struct{})
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	cmd, ended := s.cmd, s.ended
	go func() {
		s.err = cmd.Wait()
		close(ended)
	}()
	s.eventually("the API answers", func() error {
		select {
		case <-ended:
			s.Fatalf("ibwarden run has ended: %v\n%s", s.err, s.log)
		default:
		}
		_, err := s.call("GET", "/status", nil)
		return err
	})
}

// stop ends the process, if there is one, as a person does.
func (s *site) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(os.Interrupt) // one that has ended
	select {
	case <-s.ended:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill() // as above
		<-s.ended
	}
	s.cmd = nil
	s.http.CloseIdleConnections()
}

type js = map[string]any

// call makes a request of the API as the provider; a pair of strings after the body is a
// header. An answer that is an error is one here too.
func (s *site) call(method, path string, body any, header ...string) (answer js, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var data io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		data = bytes.NewReader(raw)
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://ibwarden/api/v1"+path, data)
	if err != nil {
		return nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	got, err := s.http.Do(q)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, err
	}
	if got.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, got.Status, text)
	}
	return answer, json.Unmarshal(text, &answer)
}

// do is call of what has to succeed.
func (s *site) do(method, path string, body any, header ...string) js {
	s.Helper()
	a, err := s.call(method, path, body, header...)
	if err != nil {
		s.Fatal(err)
	}
	return a
}

// items is a whole list.
func (s *site) items(path string) (list []js) {
	s.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for next := ""; ; {
		a := s.do("GET", path+separator+"limit=1000"+next, nil)
		for _, item := range a["items"].([]any) {
			list = append(list, item.(js))
		}
		cursor, more := a["next"].(string)
		if !more {
			return list
		}
		next = "&cursor=" + url.QueryEscape(cursor)
	}
}

// item is the object that a path leads to.
func (s *site) item(path string) js {
	s.Helper()
	return s.do("GET", path, nil)["item"].(js)
}

// eventually waits until something is so.
func (s *site) eventually(what string, is func() error) {
	s.Helper()
	eventually(s, what, is)
}

// command runs ibwarden on the service and returns what it prints.
func (s *site) command(words ...string) string {
	s.Helper()
	out, err := s.try(words...)
	if err != nil {
		s.Fatalf("ibwarden %s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return out
}

// try is command of what may end with another status than 0: what it prints, errors too.
func (s *site) try(words ...string) (string, error) {
	s.Helper()
	path, err := need.Ibwarden()
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, words...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "IBWARDEN_SERVER=unix:"+s.socket())
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// verdict waits until the verdict is one that a pattern matches.
func (s *site) verdict(pattern string) {
	s.Helper()
	s.eventually("the verdict is "+pattern, func() error {
		status := s.item("/status")
		if v := fmt.Sprint(status["verdict"]); !matches(pattern, v) {
			return fmt.Errorf("it is %s", v)
		}
		return nil
	})
}

// node is a device of the fabric by its name in the topology.
func (s *site) node(name string) *topology.Node {
	s.Helper()
	n, err := s.server.Topology().Find(name)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// on does something to the fabric itself.
func (s *site) on(f func(*fabric.Fabric) error) {
	s.Helper()
	var err error
	if e := s.server.Do(func(x *fabric.Fabric) { err = f(x) }); e != nil || err != nil {
		s.Fatal(e, err)
	}
}

// guid is the GUID of a host's first port, as the API writes it.
func (s *site) guid(name string) string {
	s.Helper()
	return s.node(name).Ports[1].GUID.String()
}
