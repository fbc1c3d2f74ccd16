package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

func init() { children["sync"] = commitWithoutSync }

// forbidSync makes every fdatasync of this process fail with EIO, as a disk that is
// broken does.
func forbidSync() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FDATASYNC, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

func commitWithoutSync(s *Store) error {
	ctx := context.Background()
	epoch, err := s.Acquire(ctx, "child")
	if err != nil {
		return err
	}
	if err := forbidSync(); err != nil {
		fmt.Println("not possible:", err)
		return nil
	}
	if _, err := s.Commit(ctx, storetest.Step(epoch, 1)); !errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("a commit whose sync fails: %v", err)
	}
	if _, err := s.Commit(ctx, storetest.Step(epoch, 1)); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "restart") {
		return fmt.Errorf("a commit after it: %v", err)
	}
	fmt.Println("refused")
	return nil
}

// TestAcknowledgedIsSynced: without a sync that succeeds no commit is acknowledged.
func TestAcknowledgedIsSynced(t *testing.T) {
	dir, _ := filled(t, 0)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "IBWARDEN_STORE_CHILD=sync", "IBWARDEN_STORE_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if reason, not := strings.CutPrefix(string(out), "not possible: "); not {
		need.Need(t, fmt.Errorf("fdatasync cannot be made to fail here: %s", strings.TrimSpace(reason)))
	}
	if err != nil || string(out) != "refused\n" {
		t.Fatalf("%v: %s", err, out)
	}
	s := open(t, dir)
	defer s.Close()
	if now := storetest.CheckSteps(t, s, 0); now.Revision > 1 {
		t.Errorf("revision %d", now.Revision)
	}
}
