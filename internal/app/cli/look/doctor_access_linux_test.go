package look

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user without powers.
const nobody = 65534

// TestAccess: what a user may do is asked for, not what root may.
func TestAccess(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // nobody has to get there
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "umad0")
	if err := os.WriteFile(path, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	got := make(chan [2]error)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine, as nobody
		if os.Geteuid() == 0 {
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
				got <- [2]error{e, e}
				return
			}
		}
		got <- [2]error{access(path), access(path + "x")}
	}()
	if errs := <-got; !errors.Is(errs[0], fs.ErrPermission) || !errors.Is(errs[1], fs.ErrNotExist) {
		t.Errorf("%v and %v", errs[0], errs[1])
	}
}
