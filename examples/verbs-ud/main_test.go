package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// TestTwoHosts runs what the program's comment says: a simulator, a manager, and the
// program on two hosts, each a process. A host of another tenant gets nothing.
func TestTwoHosts(t *testing.T) {
	dir := t.TempDir()
	warden := filepath.Join(dir, "ibwarden")
	program := filepath.Join(dir, "verbs-ud")
	for path, pkg := range map[string]string{warden: "../../cmd/ibwarden", program: "."} {
		if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	name := fmt.Sprintf("verbs-ud-%d", os.Getpid())
	t.Setenv("IBSIM_SOCKNAME", name)
	sim := begin(t, warden, "sim", "--socket", name, "--verbs", "--no-console")
	if line := sim.line(t); !strings.HasPrefix(line, "ready") {
		t.Fatalf("ibwarden sim said %q", line)
	}
	if out, err := exec.Command(warden, "run", "--once", "--fabric", "ibsim:"+name, "--policy", "policy.yaml", "--data", filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
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
