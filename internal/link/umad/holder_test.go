package umad

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/umad"
)

// Who holds a port is named by its process, and what to do depends on who it is; what
// a program calls itself does not reach a terminal as it is.
func TestHolder(t *testing.T) {
	root := t.TempDir()
	dev := filepath.Join(root, "dev/infiniband")
	if err := os.MkdirAll(dev, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc", filepath.Join(root, "proc")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"umad0", "umad1"} {
		if err := os.WriteFile(filepath.Join(dev, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := NewMachine(root)
	held, err := os.Open(filepath.Join(dev, "umad0"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if h, some := m.Holder(&umad.Port{Device: "mlx5_0", Num: 1}, "umad0"); some {
		t.Errorf("%+v holds what only this process has open", h)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, shown, advice string }{
		{"opensm", "opensm", "stop it first"},
		{"/usr/sbin/ibwarden", "ibwarden", "kill -HUP"},
		{"\x1b[31mopensm", "?[31mopensm", "stop it first"},
		{strings.Repeat("x", 4*nameMax), strings.Repeat("x", nameMax), "stop it first"},
	} {
		p := exec.Command(sleep, "60")
		p.Args[0], p.ExtraFiles = c.name, []*os.File{held}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		for { // the kernel lets Start return a moment before the new program has its arguments
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			if len(line) > 0 {
				break
			}
		}
		h, some := m.Holder(&umad.Port{Device: "mlx5_0", Num: 1}, "umad0")
		if want := c.shown; !some || h.PID != p.Process.Pid || h.Name != want && h.Name != want+" 60" {
			t.Errorf("%q: %+v (%v), want process %d", c.name, h, some, p.Process.Pid)
		}
		if text := h.what(); !strings.Contains(text, c.advice) {
			t.Errorf("%q: %q, want %q", c.name, text, c.advice)
		}
		if h, some := m.Holder(&umad.Port{Device: "mlx5_0", Num: 1}, "umad1", "umad2"); some {
			t.Errorf("%+v holds what nobody has open", h)
		}
		_ = p.Process.Kill()
		_ = p.Wait() // it was killed
	}
}

// TestNameOf: a process is named by its command line, and by the kernel's name of it while it has none:
// one that is being started, or has ended.
func TestNameOf(t *testing.T) {
	for _, x := range []struct{ cmdline, comm, want string }{
		{"/usr/sbin/opensm\x00-B\x00", "opensm\n", "opensm"},
		{"", "opensm\n", "opensm"},
		{"\x00\x00", "opensm\n", "opensm"},
		{"", "", "a program that cannot be named"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"cmdline": x.cmdline, "comm": x.comm} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := nameOf(dir); got != x.want {
			t.Errorf("%q, %q: %q, want %q", x.cmdline, x.comm, got, x.want)
		}
	}
	if got, want := nameOf(t.TempDir()), "a program that cannot be named"; got != want {
		t.Errorf("nothing to read: %q, want %q", got, want)
	}
}
