package terminal

import "golang.org/x/sys/unix"

// getTermios is the ioctl that only a terminal answers.
const getTermios = unix.TCGETS
