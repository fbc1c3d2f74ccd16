package fuse

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// depositPatience is how long Deposit waits for the reader to block: it has sent its
// request and is about to.
const depositPatience = 100 * time.Millisecond

var errNotReading = errors.New("the program is not in read(2)")

// Deposit writes bytes to the beginning of the program's buffer while it waits,
// to be followed by Reply with an error. Drivers can answer a read with data and
// an error; FUSE has no message for that. It needs the right to trace the
// program; without it the buffer stays as it was.
func (r *Reading) Deposit(bytes []byte) error {
	if r.answered {
		return errNotReading
	}
	if len(bytes) > r.Size {
		bytes = bytes[:r.Size]
	}
	buffer, err := r.buffer()
	if err != nil {
		return err
	}
	local := []unix.Iovec{{Base: &bytes[0]}}
	local[0].SetLen(len(bytes))
	n, err := unix.ProcessVMWritev(r.thread, local, []unix.RemoteIovec{{Base: buffer, Len: len(bytes)}}, 0)
	if err != nil {
		return fmt.Errorf("writing to the buffer of thread %d: %w", r.thread, err)
	}
	if n != len(bytes) {
		return fmt.Errorf("writing to the buffer of thread %d: %d of %d bytes", r.thread, n, len(bytes))
	}
	return nil
}

// buffer is where the thread that waits wants its bytes: the second argument
// of the system call that it is in.
func (r *Reading) buffer() (uintptr, error) {
	for begin := time.Now(); ; time.Sleep(50 * time.Microsecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", r.thread))
		if err != nil {
			return 0, err
		}
		var number int
		var fd, buffer, size uintptr
		if n, _ := fmt.Sscanf(string(text), "%d 0x%x 0x%x 0x%x", &number, &fd, &buffer, &size); n == 4 {
			if number != unix.SYS_READ || int(size) != r.Size {
				return 0, errNotReading
			}
			return buffer, nil
		}
		if time.Since(begin) > depositPatience {
			return 0, errNotReading
		}
	}
}
