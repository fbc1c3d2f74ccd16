package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

func init() { children["limit"] = commitUntilFull }

// fileLimit is how large files may become in a process whose disk is full.
const fileLimit = 1 << 20

// commitUntilFull commits until files may not grow any more, and goes on when they may.
func commitUntilFull(s *Store) error {
	limit := func(n uint64) error {
		var was unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
			return err
		}
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: was.Max})
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if err := limit(fileLimit); err != nil {
		return err
	}
	return fullAndOn(s, func() error { return limit(was.Max) })
}

// fullAndOn commits until the store is full, looks that it still has what it had, and
// goes on when there is space again.
func fullAndOn(s *Store, space func() error) error {
	ctx := context.Background()
	epoch, err := s.Acquire(ctx, "test")
	if err != nil {
		return err
	}
	n := uint64(1)
	for again := false; ; { // until one fails twice: the first failure may make pages free
		_, err = s.Commit(ctx, storetest.Step(epoch, n))
		switch {
		case err == nil:
			n++
			again = false
			continue
		case !errors.Is(err, store.ErrFull):
			return fmt.Errorf("commit %d: %w, want %w", n, err, store.ErrFull)
		case !again:
			again = true
			continue
		}
		break
	}
	now, _, err := store.VerifyStore(ctx, s, nil)
	if err != nil || now.Revision != n-1 {
		return fmt.Errorf("revision %d after commit %d failed: %v", now.Revision, n, err)
	}
	if err := space(); err != nil {
		return err
	}
	for end := n + 5; n < end; n++ {
		if _, err := s.Commit(ctx, storetest.Step(epoch, n)); err != nil {
			return fmt.Errorf("commit %d when there is space again: %w", n, err)
		}
	}
	return nil
}

func TestFullByLimit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "IBWARDEN_STORE_CHILD=limit", "IBWARDEN_STORE_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := open(t, dir)
	defer s.Close()
	storetest.CheckSteps(t, s, 6)
}

// TestFullDisk fills a small file system.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m,mode=0700"); err != nil {
		need.Need(t, fmt.Errorf("a small file system cannot be mounted: %w", err))
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(disk, "store")
	s := open(t, dir)
	if err := fullAndOn(s, func() error { return os.Remove(ballast) }); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, dir)
	defer s.Close()
	storetest.CheckSteps(t, s, 6)
}
