package packagetest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// rootVersion is the version of the Debian that scripts/install-root makes.
const rootVersion = "1"

// host is a Debian that runs under systemd in a directory, without a network.
type host struct {
	root string
	// leader is its first process.
	leader string
}

// bootTime is how long a host may take to start.
const bootTime = 2 * time.Minute

// boot starts a new host, in which the directory packages is /packages.
func boot(t *testing.T, packages string) *host {
	t.Helper()
	if os.Getuid() != 0 {
		need.Need(t, fmt.Errorf("not root: no host of its own to install packages on"))
	}
	needPrograms(t, "systemd-nspawn", "nsenter", "tar")
	cache, err := os.UserCacheDir()
	need.Need(t, err)
	archive := filepath.Join(cache, "ibwarden", "root-"+rootVersion+".tar")
	if _, err := os.Stat(archive); err != nil {
		need.Need(t, fmt.Errorf("%s is not there: make tools makes it", archive))
	}
	dir, err := os.MkdirTemp(need.Memory(), "ibwarden-host-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	h := &host{root: filepath.Join(dir, "root")}
	if err := os.Mkdir(h.root, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "tar", "-xf", archive, "-C", h.root)
	name := "ibw-" + strconv.Itoa(os.Getpid()) + "-" + filepath.Base(t.TempDir())
	c := exec.Command("systemd-nspawn", "--quiet", "-D", h.root, "--boot", "--private-network", "--register=no", "--keep-unit", "--machine="+name, "--bind-ro="+packages+":/packages")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it is ended already where a test failed early
		_ = c.Wait()
	})
	for end := time.Now().Add(bootTime); ; time.Sleep(100 * time.Millisecond) {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.Process.Pid))
		if fields := strings.Fields(string(children)); len(fields) > 0 {
			h.leader = fields[0]
			if state, _ := h.try("systemctl", "is-system-running"); state == "running\n" || state == "degraded\n" {
				return h
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the host did not start within %v", bootTime)
		}
	}
}

// try runs a command on the host, and returns what it prints.
func (h *host) try(command ...string) (string, error) {
	c := exec.Command("nsenter", append([]string{"-t", h.leader, "-m", "-u", "-i", "-n", "-p", "--"}, command...)...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	out, err := c.CombinedOutput()
	return string(out), err
}

func (h *host) run(t *testing.T, command ...string) string {
	t.Helper()
	out, err := h.try(command...)
	if err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
	return out
}

// write writes a file of the host, as root alone may read it.
func (h *host) write(t *testing.T, path, text string) {
	t.Helper()
	to := filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fabric serves the demonstration, which the configuration names; the program that
// serves it is not the package's.
func (h *host) fabric(t *testing.T) {
	t.Helper()
	program, err := need.Ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.root, "var/tmp/fabric"), text, 0o755); err != nil {
		t.Fatal(err)
	}
	h.run(t, "systemd-run", "--quiet", "--unit=fabric", "/var/tmp/fabric", "sim", "--socket", "demo")
	h.run(t, "sh", "-c", "i=0; until journalctl -u fabric | grep -q ready:; do i=$((i+1)); [ $i -lt 300 ]; sleep 0.1; done")
}

// status is what the service tells systemd, once it runs with what is wanted.
func (h *host) status(t *testing.T, want string) {
	t.Helper()
	const look = `i=0; until systemctl show ibwarden -p ActiveState -p StatusText | tr '\n' ' ' | grep -q "ActiveState=active .*StatusText=.*$0\|StatusText=.*$0.*ActiveState=active"; do i=$((i+1)); [ $i -lt 600 ] || exit 1; sleep 0.1; done`
	if out, err := h.try("sh", "-c", look, want); err != nil {
		log, _ := h.try("journalctl", "-u", "ibwarden", "--no-pager", "-n", "30")
		now, _ := h.try("systemctl", "show", "ibwarden", "-p", "ActiveState", "-p", "StatusText")
		t.Fatalf("the service does not say %q: %v %s\n%s\n%s", want, err, out, now, log)
	}
}

// passing are places in which a system writes as it runs, or a package manager keeps what
// it knows.
var passing = []string{"proc", "sys", "dev", "run", "tmp", "packages", "var/log", "var/cache", "var/tmp", "var/lib/dpkg", "var/lib/rpm", "var/lib/systemd/timers", "var/lib/systemd/random-seed", "var/lib/systemd/catalog", "etc/machine-id", "var/lib/private"}

// files are all files of the host but those.
func (h *host) files(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(h.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(h.root, path)
		if err != nil {
			return err
		}
		if slices.Contains(passing, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		out = append(out, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// left are the files that were not there before.
func (h *host) left(t *testing.T, before []string) []string {
	t.Helper()
	return slices.DeleteFunc(h.files(t), func(f string) bool { _, there := slices.BinarySearch(before, f); return there })
}
