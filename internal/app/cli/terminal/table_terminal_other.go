//go:build !linux

package terminal

import "golang.org/x/sys/unix"

// getTermios is the ioctl that only a terminal answers, as BSD and macOS name it.
const getTermios = unix.TIOCGETA
