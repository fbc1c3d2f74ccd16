package fuse

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func ioctl(fd int, command uint32, argument *uint32) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(command), uintptr(unsafe.Pointer(argument)))
	return errno
}
