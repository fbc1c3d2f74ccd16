//go:build linux

package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/simserve/qib"
	"github.com/ibwarden/ibwarden/test/need"
)

// fakeHost is a host whose machine is a program that ends at once when it is stopped, and whose
// agent answers each script with its own text, and status 3.
func fakeHost(t *testing.T) (h *Host, at Client) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	m := &Machine{
		proxy: newProxy(qib.Settings{GUID: 0x0011750000000101}, nil), agent: newAgent(ours),
		done: make(chan struct{}), cmd: exec.Command("sleep", "600"),
	}
	started := make(chan error)
	go m.run(&Options{Name: "red-1", Memory: 128}, started, &bytes.Buffer{})
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	go func() {
		<-m.done
		ours.Close()
	}()
	go m.agent.read()
	go func() {
		in := bufio.NewReader(theirs)
		fmt.Fprintln(theirs, "ready")
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			var verb string
			var id, size int
			if n, _ := fmt.Sscan(line, &verb, &id, &size); n != 3 {
				return
			}
			body := make([]byte, size)
			if _, err := io.ReadFull(in, body); err != nil {
				return
			}
			if strings.Contains(string(body), "forever") {
				continue
			}
			fmt.Fprintf(theirs, "%d o %s\n%d e %s\n", id, base64.StdEncoding.EncodeToString(body), id, base64.StdEncoding.EncodeToString([]byte("no")))
			fmt.Fprintf(theirs, "%d x 3\n", id)
		}
	}()
	at = Client{Socket: fmt.Sprintf("guest-test-%d-%s", os.Getpid(), t.Name()), Node: "red-1"}
	l, err := Listen(at.Socket, at.Node)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(at.Socket, at.Node); err == nil || !strings.Contains(err.Error(), "a guest is there already") {
		t.Errorf("two guests in one place: %v", err)
	}
	h = &Host{Machine: m, Node: at.Node, GUID: 0x0011750000000101, Memory: 128}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	t.Cleanup(func() {
		m.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return h, at
}

// TestControl: programs and files in a machine, from another process.
func TestControl(t *testing.T) {
	_, at := fakeHost(t)
	var out, failed bytes.Buffer
	status, err := at.Exec(t.Context(), &out, &failed, "echo", "it's")
	if err != nil || status != 3 || !strings.Contains(out.String(), `'echo' 'it'\''s'`) || failed.String() != "no" {
		t.Errorf("exec: status %d, %v, %q, %q", status, err, out.String(), failed.String())
	}
	if _, err := at.Get(t.Context(), "/root/file"); err == nil || !strings.Contains(err.Error(), "/root/file") {
		t.Errorf("get, where cat fails: %v", err)
	}
	if err := at.Put(t.Context(), "file", nil); err == nil || !strings.Contains(err.Error(), "want an absolute path") {
		t.Errorf("put: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := at.Exec(ctx, io.Discard, io.Discard, "forever"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a program that goes on: %v", err)
	}
	list, err := List(t.Context(), at.Socket)
	if err != nil || len(list) != 1 || list[0].Node != "red-1" || !list[0].Booted || list[0].Memory != 128 || list[0].PID != os.Getpid() {
		t.Errorf("list: %+v, %v", list, err)
	}
	if err := at.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := at.Exec(t.Context(), io.Discard, io.Discard, "true"); err == nil || !strings.Contains(err.Error(), "there is no guest in the place of node red-1") && !strings.Contains(err.Error(), "ended") {
		t.Errorf("exec in one that has ended: %v", err)
	}
}

// TestControlRefuses: another user gets nothing, and what is no request is answered by what it is not.
func TestControlRefuses(t *testing.T) {
	h, at := fakeHost(t)
	need.AsUser(t, need.Nobody, func() {
		if _, err := at.Exec(t.Context(), io.Discard, io.Discard, "id"); err == nil || !strings.Contains(err.Error(), "may not use this") {
			t.Errorf("another user's program: %v", err)
		}
		if err := at.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "may not use this") {
			t.Errorf("another user stops it: %v", err)
		}
		if list, err := List(t.Context(), at.Socket); err != nil || len(list) != 0 {
			t.Errorf("another user's list: %v, %v", list, err)
		}
	})
	for what, sent := range map[string]string{"rubbish": "rubbish\n", "half of one": `{"exec":["tr`, "another type": `{"exec":7}`} {
		c, err := net.DialUnix("unix", nil, address(at.Socket, at.Node))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, sent); err != nil {
			t.Error(err)
		}
		c.CloseWrite()
		answer, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(answer), "a request to a guest: ") {
			t.Errorf("%s: answered by %q, %v", what, answer, err)
		}
		c.Close()
	}
	select {
	case <-h.Done():
		t.Error("the machine has ended")
	default:
	}
	// One who says nothing does not hold up the end of the machine.
	silent, err := net.DialUnix("unix", nil, address(at.Socket, at.Node))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	h.Stop()
	if _, err := io.ReadAll(silent); err != nil && !errors.Is(err, syscall.ECONNRESET) { // it may not have been accepted
		t.Error(err)
	}
}

// TestControlOfAnother: who has taken the name of a machine's socket, as another user, is told nothing
// and not believed.
func TestControlOfAnother(t *testing.T) {
	at := Client{Socket: fmt.Sprintf("guest-test-%d-%s", os.Getpid(), t.Name()), Node: "red-1"}
	told := make(chan int, 1)
	need.AsUser(t, need.Nobody, func() {
		l, err := Listen(at.Socket, at.Node)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			defer c.Close()
			fmt.Fprintln(c, `{"ended":true}`)
			n, _ := c.Read(make([]byte, 1))
			told <- n
		}()
	})
	if err := at.Put(t.Context(), "/root/secret", []byte("secret")); err == nil || !strings.Contains(err.Error(), "another user has taken") {
		t.Errorf("a file for a machine of another: %v", err)
	}
	if n := <-told; n != 0 {
		t.Error("it is told something")
	}
}

// TestQueue: a wire that takes nothing makes the port wait, and does not fill the memory.
func TestQueue(t *testing.T) {
	p := newProxy(qib.Settings{GUID: 0x0011750000000101}, nil)
	data, smp := make([]byte, 28), make([]byte, 28)
	smp[0] = 0xf0 // virtual lane 15
	for range queueMax {
		p.enqueue(qib.Event{Kind: qib.Packet, Packet: data})
	}
	if p.full {
		t.Errorf("the other end has no room after %d packets", len(p.queue))
	}
	for range 10 {
		p.enqueue(qib.Event{Kind: qib.Packet, Packet: smp})
	}
	if !p.full || len(p.queue) != queueMax {
		t.Errorf("%d packets wait, no room %v: want %d, true", len(p.queue), p.full, queueMax)
	}
	p.enqueue(qib.Event{Kind: qib.Link})
	if len(p.queue) != queueMax+1 {
		t.Error("the state of the link is lost")
	}
}

// TestUnbooted: a machine that ends before it has booted says how much memory it had, and why its kernel gave up.
func TestUnbooted(t *testing.T) {
	for printed, want := range map[string]string{
		"Out of memory\nKernel panic - not syncing: System is deadlocked on memory\nCall Trace:\n" + strings.Repeat(" at\n", 20): "its console: Kernel panic - not syncing: System is deadlocked on memory",
		"no disk\nno console\n": "its console: no disk\nno console",
	} {
		ours, theirs := net.Pipe()
		theirs.Close()
		m := &Machine{proxy: newProxy(qib.Settings{}, nil), agent: newAgent(ours), done: make(chan struct{}), silent: make(chan struct{}), cmd: exec.Command("true")}
		started := make(chan error, 1)
		go m.run(&Options{Name: "red-1", Memory: 97}, started, &bytes.Buffer{})
		m.last.Write([]byte(printed))
		close(m.silent)
		if err := m.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "red-1, with 97 MB of memory, ended before it had booted") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v: want it to end with %q", err, want)
		}
	}
}
