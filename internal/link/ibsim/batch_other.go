//go:build !linux

package ibsim

import (
	"errors"
	"fmt"
	"runtime"
)

// supported says that there is no link but on Linux: ibsim's local sockets are in
// Linux's abstract namespace, and packets move by recvmmsg and sendmmsg.
func supported() error {
	return fmt.Errorf("ibsim is reached from Linux only, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func yield() {}

// batch moves nothing here; Dial fails before there is one.
type batch struct {
	packets  [batchSize][packetSize + 1]byte
	messages [batchSize]struct{ bytes uint32 }
}

func newBatch() *batch { return &batch{} }

func (b *batch) receive(uintptr) (int, error) { return 0, supported() }

func (b *batch) send(uintptr, int) (int, error) { return 0, supported() }
