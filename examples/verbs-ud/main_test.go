package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// nobody is a user who has no rights.
const nobody = 65534

func TestMain(m *testing.M) { os.Exit(need.Main(m)) }

// TestTwoHosts runs what the program's comment says: a simulator, a manager, and the
// program on two hosts, each a process. A host of another tenant gets nothing.
func TestTwoHosts(t *testing.T) {
	dir := t.TempDir()
	warden, err := need.Ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "verbs-ud")
	if err := need.Build(program, "."); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("verbs-ud-%d", os.Getpid())
	t.Setenv("IBSIM_SOCKNAME", name)
	sim := begin(t, warden, "sim", "--socket", name, "--verbs", "--no-console")
	if line := sim.line(t); !strings.HasPrefix(line, "ready") {
		t.Fatalf("ibwarden sim said %q", line)
	}
	manage := func(policy string) {
		t.Helper()
		if out, err := exec.Command(warden, "run", "--once", "--fabric", "ibsim:"+name, "--policy", policy, "--data", filepath.Join(dir, "data")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	manage("policy.yaml")
	if os.Geteuid() == 0 { // who else could be somebody else?
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		stranger := exec.Command(program, "red-1")
		stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if out, err := stranger.CombinedOutput(); err == nil || !strings.Contains(string(out), fmt.Sprintf("user %d may not use", nobody)) {
			t.Errorf("another user of this machine: %v: %s", err, out)
		}
	}
	red := hosts(t, "leaf-1", 2, "leaf-2", 2)
	blue := hosts(t, "leaf-3", 3)
	there := begin(t, program, red[1])
	lid, qp, ok := strings.Cut(there.line(t), " ")
	if !ok {
		t.Fatal("the receiver did not say where it is")
	}
	for _, from := range []string{blue[0], red[0]} {
		out, err := exec.Command(program, from, lid, qp).CombinedOutput()
		if err != nil || string(out) != "sent: IBV_WC_SUCCESS\n" {
			t.Fatalf("%s: %v: %s", from, err, out)
		}
	}
	d, err := verbs.Dial("", red[0])
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	port, err := d.QueryPort(1)
	if err != nil {
		t.Fatal(err)
	}
	if line := there.line(t); !strings.HasPrefix(line, `IBV_WC_SUCCESS: "hello" from QP `) || !strings.HasSuffix(line, fmt.Sprintf("at LID %v, P_Key 0x8010", port.LID)) {
		t.Errorf("%s heard %q first; it is told by %s, at LID %v, and by nobody else", red[1], line, red[0], port.LID)
	}

	// Another policy: the event comes to a program that waits for it, and the key has
	// moved.
	text, err := os.ReadFile("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for e, ok, err := d.NextEvent(); ok; e, ok, err = d.NextEvent() {
		t.Errorf("%v before anything changed, %v", e, err)
	}
	type told struct {
		event verbs.Event
		err   error
	}
	came := make(chan told, 1)
	go func() {
		e, _, err := d.WaitEvent(time.Minute)
		came <- told{e, err}
	}()
	other := filepath.Join(dir, "other.yaml")
	if err := os.WriteFile(other, bytes.ReplaceAll(text, []byte("0x0010"), []byte("0x0011")), 0o600); err != nil {
		t.Fatal(err)
	}
	manage(other)
	if got := <-came; got.err != nil || got.event.Type != verbs.EventPKeyChange || got.event.Port != 1 {
		t.Errorf("%v, %v; want that the P_Keys of port 1 changed", got.event, got.err)
	}
	port, err = d.QueryPort(1)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for i := range port.PKeyTableLen {
		key, err := d.QueryPKey(1, i)
		if err != nil {
			t.Fatal(err)
		}
		if key.IsValid() {
			keys = append(keys, key.String())
		}
	}
	if len(keys) != 1 || keys[0] != "0x8011" {
		t.Errorf("%s has the keys %v, want 0x8011", red[0], keys)
	}
}

// hosts are the nodes at ports of switches of the demonstration fabric.
func hosts(t *testing.T, at ...any) (names []string) {
	t.Helper()
	l := topology.Demo()
	for ; len(at) > 0; at = at[2:] {
		n, err := l.Find(at[0].(string))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, n.Ports[at[1].(int)].Peer.ID)
	}
	return names
}

// process is a program that goes on until the test ends.
type process struct {
	lines  *bufio.Scanner
	errors bytes.Buffer
}

func begin(t *testing.T, path string, args ...string) *process {
	t.Helper()
	p := &process{}
	c := exec.Command(path, args...)
	c.Stderr = &p.errors
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	stop := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() }) // so that a line that never comes fails the test
	t.Cleanup(func() {
		stop.Stop()
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	})
	return p
}

// line is the next line that the program says.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("it ended: %s", p.errors.String())
	}
	return p.lines.Text()
}
