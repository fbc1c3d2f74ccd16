//go:build !linux

package fuse

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// errLinuxOnly is what Mount says on a system other than Linux: mount namespaces
// and /dev/fuse are Linux's.
var errLinuxOnly = fmt.Errorf("programs get devices of a simulated host on Linux only, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)

// Mount is an error.
func Mount(string, string) (*os.File, error) { return nil, errLinuxOnly }

// Deposit is an error; nothing is mounted, so there is nothing to read.
func (r *Reading) Deposit([]byte) error { return errLinuxOnly }
