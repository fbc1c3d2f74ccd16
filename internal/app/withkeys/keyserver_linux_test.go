package withkeys

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/test/need"
)

// recorder is a key server that records its requests.
type recorder struct {
	KeyServer
	socket string
	mu     sync.Mutex
	came   []Request
	refuse error
	fails  error
	log    bytes.Buffer
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	dir, err := os.MkdirTemp("", "door-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &recorder{socket: filepath.Join(dir, "ibwarden.sock")}
	d.Log = slog.New(slog.NewTextHandler(&d.log, nil))
	d.Record = func(_ context.Context, v Request) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.came = append(d.came, v)
		return d.refuse
	}
	d.Table = func(context.Context) (*Table, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return &Table{Ports: []Port{{Key: ib.MKey(len(d.came)) << 32, LID: 7, Cables: []Cable{{3, 0}}}}}, d.fails
	}
	if err := d.Open(d.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// A request is recorded once, before it gets anything, and gets as many tables as it wants.
func TestRequests(t *testing.T) {
	d := newRecorder(t)
	if !IsOpen(d.socket) || IsOpen(d.socket+"x") {
		t.Error("nobody serves it, or somebody another")
	}
	if info, err := os.Stat(SocketOf(d.socket)); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	v := NewClient(d.socket, Request{Words: []string{"ibnetdiscover", "-p"}, Write: true})
	defer v.Close()
	for range 5 {
		table, err := v.Table()
		if err != nil || len(table.Ports) != 1 || table.Ports[0].Key != 1<<32 || table.Ports[0].Cables[0].From != 3 {
			t.Fatalf("%+v, %v", table, err)
		}
	}
	if len(d.came) != 1 || d.came[0].String() != "reads and writes with M_Keys: ibnetdiscover -p" || int(d.came[0].UID) != os.Geteuid() {
		t.Errorf("recorded: %+v", d.came)
	}
	d.fails = errors.New("the fabric was not read")
	for range 2 {
		if table, err := v.Table(); table != nil || err == nil || err.Error() != "the fabric was not read" {
			t.Errorf("%v, %v", table, err)
		}
	}
	if d.fails = nil; len(d.came) != 1 {
		t.Errorf("a table that could not be had is %d requests", len(d.came))
	}
	v.c.Close() // the service was started again
	if _, err := v.Table(); err != nil || len(d.came) != 2 {
		t.Errorf("after a cut: %v, %d requests", err, len(d.came))
	}
	d.Close()
	if table, err := v.Table(); err == nil {
		t.Errorf("of a server that is closed: %v", table)
	}
}

// Who cannot be recorded gets nothing.
func TestRefusedRequest(t *testing.T) {
	d := newRecorder(t)
	d.refuse = errors.New("the store is full")
	v := NewClient(d.socket, Request{Words: []string{"ibnodes"}})
	defer v.Close()
	if table, err := v.Table(); table != nil || err == nil || err.Error() != "the store is full" {
		t.Errorf("%v, %v", table, err)
	}
}

// Another user of the machine gets nothing, whatever the modes of files say, and nothing of
// his is read or recorded.
func TestOthersAreTurnedAway(t *testing.T) {
	d := newRecorder(t)
	for path, mode := range map[string]os.FileMode{SocketOf(d.socket): 0o666, filepath.Dir(d.socket): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	need.AsUser(t, need.Nobody, func() {
		c, err := net.Dial("unix", SocketOf(d.socket))
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte(`{"version":1,"command":["ibnodes"],"uid":0}` + "\n")) // it may be closed
		var a answer
		if err := json.NewDecoder(c).Decode(&a); err != nil || a.Table != nil || !strings.Contains(a.Error, "uid 65534 is neither root nor the user of the service") {
			t.Errorf("%+v, %v", a, err)
		}
	})
	if len(d.came) != 0 {
		t.Errorf("recorded: %v", d.came)
	}
}

// What makes no sense gets nothing, and is no request; a uid that a client names is not its.
func TestNonsenseRequests(t *testing.T) {
	d := newRecorder(t)
	say := func(text string) (a answer) {
		t.Helper()
		c, err := net.Dial("unix", SocketOf(d.socket))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(2 * firstTime))
		go func() { _, _ = c.Write([]byte(text)) }() // it may be cut off
		if err := json.NewDecoder(c).Decode(&a); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
		return a
	}
	for _, text := range []string{
		"\n", "{}\n", "GET / HTTP/1.1\n", `{"version":2,"command":["x"]}` + "\n", `{"version":1,"command":[]}` + "\n", `{"version":1,"command":"x"}` + "\n",
		`{"version":1,"command":["` + strings.Repeat("x", askMax) + `"]}` + "\n",
	} {
		if a := say(text); a.Table != nil || a.Error == "" {
			t.Errorf("%.40q: %+v", text, a)
		}
	}
	if len(d.came) != 0 {
		t.Errorf("recorded: %v", d.came)
	}
	if a := say(`{"version":1,"command":["x"],"uid":12345}` + "\n"); a.Table == nil || len(d.came) != 1 || int(d.came[0].UID) != os.Geteuid() {
		t.Errorf("%+v, %v", a, d.came)
	}
}
