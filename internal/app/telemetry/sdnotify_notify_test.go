package telemetry

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// manager is a service manager that notes what it is told.
func manager(t *testing.T, path string) func() []string {
	t.Helper()
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return func() (out []string) {
		b := make([]byte, 4096)
		for {
			_ = l.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			n, err := l.Read(b)
			if err != nil {
				return out
			}
			out = append(out, strings.Split(string(b[:n]), "\n")...)
		}
	}
}

func environment(e map[string]string) func(string) string {
	return func(name string) string { return e[name] }
}

func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	told := manager(t, path)
	n, err := NewNotifier(environment(map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "8000000", "WATCHDOG_PID": strconv.Itoa(os.Getpid())}))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	want := func(lines ...string) {
		t.Helper()
		if got := told(); !slices.Equal(got, lines) {
			t.Errorf("told %q, want %q", got, lines)
		}
	}
	n.Turn(now, "discover")
	want("READY=1", "STATUS=discover", "WATCHDOG=1")
	n.Turn(now.Add(time.Second), "discover") // nothing new
	want()
	n.Turn(now.Add(1900*time.Millisecond), "a\nMAINPID=1\x00b")
	want("STATUS=a MAINPID=1 b")
	n.Turn(now.Add(2*time.Second), "a\nMAINPID=1\x00b")
	want("WATCHDOG=1")
	want() // a loop that does not turn gives no sign of life
	n.Turn(now.Add(time.Hour), strings.Repeat("ü", 500))
	if got := told(); len(got) != 2 || len(got[0]) > statusMax+len("STATUS=") || got[1] != "WATCHDOG=1" {
		t.Errorf("told %q", got)
	}
	n.Stop()
	want("STOPPING=1")
	n.Turn(now.Add(2*time.Hour), "x")
	n.Stop()
	want()
}

func TestWithout(t *testing.T) {
	n, err := NewNotifier(environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	n.Turn(time.Unix(1, 0), "x")
	n.Stop()
	var none *Notifier
	none.Turn(time.Unix(1, 0), "x")
	none.Stop()
	if _, err := NewNotifier(environment(map[string]string{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "nobody")})); err == nil {
		t.Error("a socket that is not there is taken")
	}
	// The watchdog of another process.
	path := filepath.Join(t.TempDir(), "notify")
	told := manager(t, path)
	n, err = NewNotifier(environment(map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	n.Turn(time.Unix(1, 0), "x")
	if got := told(); slices.Contains(got, "WATCHDOG=1") {
		t.Errorf("told %q", got)
	}
	// An abstract name, and a service manager that reads nothing: nobody waits.
	abstract := "@ibwarden-test-" + strconv.Itoa(os.Getpid())
	manager(t, abstract)
	n, err = NewNotifier(environment(map[string]string{"NOTIFY_SOCKET": abstract, "WATCHDOG_USEC": "4"}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 { // more than the socket takes
		n.Turn(time.Unix(int64(i), 0), strconv.Itoa(i))
	}
	n.Stop()
}
