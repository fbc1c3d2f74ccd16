//go:build linux

package ibsimtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// CommandTime bounds every program that a test waits for, BackgroundTime those that run
// beside it, as long as the longest soak, Patience every wait for something to become true.
const (
	CommandTime    = 2 * time.Minute
	BackgroundTime = 30 * time.Minute
	Patience       = 5 * time.Minute

	lookPeriod = 20 * time.Millisecond // of Within
)

// ground is what `sim exec` needs of the machine, nil when it is there.
var ground = sync.OnceValue(func() error {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("no FUSE: %w", err)
	}
	f.Close()
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := probe.Run(); err != nil {
		return fmt.Errorf("no mount namespaces: %w", err)
	}
	return nil
})

// debians says which package has a program that infiniband-diags does not have.
var debians = map[string]string{"opensm": "opensm", "ibdiagnet": "ibutils", "tshark": "tshark"}

// Need skips a test, or fails it in CI, where the machine or a program is not there.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	err := ground()
	for _, p := range programs {
		if _, missing := Program(p); missing != nil && err == nil {
			err = missing
		}
	}
	need.Need(t, err)
}

// Program also looks where the path of an ordinary user does not lead.
func Program(name string) (string, error) {
	if path, err := need.Find(name); err == nil {
		return path, nil
	}
	from := debians[name]
	if from == "" {
		from = "infiniband-diags"
	}
	return "", fmt.Errorf("%s is not installed (Debian package %s)", name, from)
}

// Dir is a directory of the test that is removed at its end. t.TempDir has the
// test's name in it, and a socket's path holds 107 bytes: the names of these tests are
// so long that it was the digits of a random number that decided whether one fitted.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(need.Memory(), "umad-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Tame makes a process run in dir and end with this one.
func Tame(cmd *exec.Cmd, dir string) {
	cmd.Dir = dir
	cmd.WaitDelay = 2 * time.Second
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir,
		"OSM_TMP_DIR=" + dir, "OSM_CACHE_DIR=" + dir,
		"IBWARDEN_DATA=" + filepath.Join(dir, "data"), // not what this machine's own manager keeps
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Limited are the words of a command, with a limit for the log if it is InsideOpenSM.
func Limited(words []string) []string {
	if words[0] == "opensm" {
		return slices.Insert(slices.Clone(words), 1, LogLimit)
	}
	return slices.Clone(words)
}

// Command prepares a program inside the fabric of a simulator, at a node; "" is the first
// CA. The program ibwarden is the one that need.Ibwarden built.
func Command(ctx context.Context, simulator, dir, node string, words ...string) (*exec.Cmd, error) {
	path, err := need.Ibwarden()
	if err != nil {
		return nil, err
	}
	if words = Limited(words); words[0] == "ibwarden" {
		words[0] = path
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"sim", "exec", "--socket", simulator, "--node", node, "--"}, words...)...)
	Tame(cmd, dir)
	return cmd, nil
}

// Output is what a program left behind.
type Output struct {
	Stdout, Stderr string
	Status         int
}

// Finish runs a command to its end.
func Finish(t testing.TB, words []string, prepare func(context.Context) *exec.Cmd) Output {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), CommandTime)
	defer cancel()
	cmd := prepare(ctx)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%v: %v, %v\n%s%s", words, err, ctx.Err(), stdout.String(), stderr.String())
	}
	return Output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Background runs a command until stop is called, which interrupts it and waits for
// its end.
func Background(t testing.TB, words []string, prepare func(context.Context) *exec.Cmd) (cmd *exec.Cmd, stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), BackgroundTime)
	cmd = prepare(ctx)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is interrupted, or killed
		close(ended)
	}()
	stopped := false
	stop = sync.OnceFunc(func() {
		stopped = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(Patience):
			t.Errorf("%v: it does not end\n%s", words, out.String())
		}
		cancel()
	})
	t.Cleanup(stop)
	t.Cleanup(func() {
		select {
		case <-ended:
			if t.Failed() && !stopped {
				t.Logf("%v ended by itself: %v\n%s", words, cmd.ProcessState, out.String())
			}
		default:
		}
	})
	return cmd, stop
}

// Within reports whether something became true in a time.
func Within(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); !is(); time.Sleep(lookPeriod) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
