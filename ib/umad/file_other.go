//go:build !linux

package umad

import (
	"errors"
	"fmt"
	"io"
	"runtime"
)

// errPlatform is what a machine without Linux says: the devices are the Linux
// kernel's.
var errPlatform = fmt.Errorf("adapters are reached through Linux's /dev/infiniband/umadN, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)

// OpenFile opens a file of /dev/infiniband: there is none but on Linux.
func OpenFile(_, _ string) (File, error) { return nil, errPlatform }

// OpenIsSM opens an issm file: there is none but on Linux.
func OpenIsSM(_, _ string) (io.Closer, error) { return nil, errPlatform }
