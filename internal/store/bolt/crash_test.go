package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// child is what the test binary does as another process.
func child(what, dir string) {
	s, err := Open(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := children[what](s); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	s.Close()
}

// children are what another process does with a store.
var children = map[string]func(*Store) error{
	"hold": func(*Store) error {
		fmt.Println("open")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	},
	"commit": commitSteps,
}

// commitSteps commits without end, and prints what was asked and what acknowledged.
func commitSteps(s *Store) error {
	ctx := context.Background()
	epoch, err := s.Acquire(ctx, "child")
	if err != nil {
		return err
	}
	now, err := s.Load(ctx)
	if err != nil {
		return err
	}
	for n := now.Revision + 1; ; n++ {
		fmt.Println("asked", n)
		at, err := s.Commit(ctx, storetest.Step(epoch, n))
		if err != nil {
			return err
		}
		fmt.Println("done", n, at.Audit)
	}
}

// TestKilled kills a process that commits, again and again, at a random moment after a
// random request: nothing that it said was done is lost, and nothing is half done.
func TestKilled(t *testing.T) {
	points := 60
	if need.Soak() {
		points = 1000
	}
	r := rand.New(rand.NewPCG(need.Seed(t, 9), 0))
	dir := filepath.Join(t.TempDir(), "store")
	var acknowledged uint64
	var heads []store.Head
	lost, between := 0, 0
	for range points {
		if acknowledged > 100 { // a new store: reading it all each time takes long
			dir, acknowledged, heads = filepath.Join(t.TempDir(), "store"), 0, nil
		}
		asked, done := killOne(t, dir, r)
		if len(done) > 0 {
			acknowledged = asked - 1
			heads = append(heads, done...)
		}
		s := open(t, dir)
		now := storetest.CheckSteps(t, s, acknowledged, heads...)
		if now.Revision != acknowledged {
			between++ // done, and the process was killed before it could say so
		} else if asked > acknowledged {
			lost++ // never done
		}
		acknowledged = now.Revision
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills: %d requests had been done without an answer, %d had not", points, between, lost)
	if lost == 0 {
		t.Error("no kill came between a request and what it does")
	}
}

// killOne runs a process that commits, and kills it some time after it asked for a few
// commits. It returns the number of the last request after those that were acknowledged,
// and their heads.
func killOne(t *testing.T, dir string, r *rand.Rand) (asked uint64, heads []store.Head) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "IBWARDEN_STORE_CHILD=commit", "IBWARDEN_STORE_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait := 1 + r.IntN(4)
	pause := time.Duration(r.IntN(2500)) * time.Microsecond
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "asked":
			if _, err := fmt.Sscan(rest, &asked); err != nil {
				t.Fatal(err)
			}
			if wait--; wait == 0 {
				time.Sleep(pause)
				cmd.Process.Kill()
			}
		case "done":
			number, head, _ := strings.Cut(rest, " ")
			var n uint64
			if _, err := fmt.Sscan(number, &n); err != nil {
				t.Fatal(err)
			}
			h, err := store.ParseHead(head)
			if err != nil {
				t.Fatal(err)
			}
			heads = append(heads, h)
			asked = n + 1
		default:
			t.Fatalf("the process says %q", lines.Text())
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended by itself: %v", err)
	}
	return asked, heads
}

// TestSyncFails: when a sync failed, nothing more is written.
func TestSyncFails(t *testing.T) {
	dir, was := filled(t, 2)
	s := open(t, dir)
	defer s.Close()
	if err := s.failure(syscall.EIO); !errors.Is(err, store.ErrUnavailable) {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), storetest.Next(was.Epoch, 2)); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "restart") {
		t.Errorf("a commit after a sync that failed: %v", err)
	}
	if now := storetest.Verify(t, s); now.Revision != 2 {
		t.Errorf("reads after a sync that failed: revision %d", now.Revision)
	}
}
