//go:build unix

package look

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// access is why this user cannot read and write a file; nil where he can. The file is
// not opened.
func access(path string) error {
	err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		return fs.ErrPermission
	}
	return err
}
