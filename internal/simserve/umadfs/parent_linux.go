package umadfs

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// parent is who started this process, and the signal that it is to get when the
// parent dies (PR_SET_PDEATHSIG): 0 is none. Both are read before main, on the
// first thread: the kernel keeps the signal with a thread, and the one that becomes
// the command need not be the first.
var parent, deathSignal = os.Getppid(), readDeathSignal()

func readDeathSignal() int {
	var signal int32
	if unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&signal)), 0, 0, 0) != nil {
		return 0
	}
	return int(signal)
}

// KeepDeathSignal gives this thread the parent death signal with which the process was
// started, so that the command ends with its parent.
func KeepDeathSignal() error {
	if deathSignal == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(deathSignal), 0, 0, 0); err != nil {
		return fmt.Errorf("ending with the parent: %w", err)
	}
	if os.Getppid() != parent { // it died before
		return unix.Kill(os.Getpid(), unix.Signal(deathSignal))
	}
	return nil
}
