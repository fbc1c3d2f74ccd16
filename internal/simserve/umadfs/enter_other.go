//go:build !linux

package umadfs

import (
	"errors"
	"fmt"
	"runtime"
)

// supported says that there are no devices but on Linux: they need mount namespaces,
// FUSE and /sys.
func supported() error {
	return fmt.Errorf("programs get devices of a simulated host on Linux only, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Exec is an error.
func Exec(name, node string, command []string, environment func(Place) ([]string, error)) error {
	return supported()
}
