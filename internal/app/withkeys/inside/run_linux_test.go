package inside

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// After Hide nobody of the same user reads this process's memory.
func TestHide(t *testing.T) {
	dumpable := func() int {
		n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if dumpable() != 1 {
		t.Skip("this process is hidden already")
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }() // for the tests after this one
	if err := Hide(); err != nil || dumpable() != 0 {
		t.Errorf("%v, dumpable %d", err, dumpable())
	}
}

// A thread that has given up tracing has lost the right to for good: what it executes too.
func TestGiveUpTracing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root, who alone has the right")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if err := giveUpTracing(); err != nil {
			t.Error(err)
			return
		}
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		if err := unix.Capget(&header, &caps[0]); err != nil {
			t.Error(err)
		}
		bounds, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_PTRACE, 0, 0, 0)
		if sets := caps[0].Effective | caps[0].Permitted | caps[0].Inheritable; err != nil || bounds != 0 || sets&(1<<unix.CAP_SYS_PTRACE) != 0 {
			t.Errorf("%v, may regain it %d, sets %x", err, bounds, sets)
		}
		if caps[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
			t.Error("it gave up more")
		}
	}()
	<-ended
}
