package need

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Nobody is a user without rights.
const Nobody = 65534

// AsUser runs call as another user of this machine, on a thread of its own, which is then
// given up. Only root can: for another user the test is skipped.
func AsUser(t testing.TB, uid int, call func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root, who alone can act as another user")
	}
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		defer close(ended)
		id := uintptr(uid)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); errno != 0 {
			ended <- errno
			return
		}
		call()
	}()
	if err := <-ended; err != nil {
		t.Fatalf("becoming user %d: %v", uid, err)
	}
}
