package fuse

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Mount opens a connection to the kernel and mounts it at an existing directory, in the
// mount namespace of the calling thread; source is what /proc/mounts calls it. Another process may serve the connection. The
// mount ends with the namespace, or by unmounting; the files in it fail once no process
// holds the connection.
func Mount(directory, source string) (*os.File, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d,allow_other,default_permissions", fd, unix.S_IFDIR, os.Geteuid(), os.Getegid())
	if err := unix.Mount(source, directory, "fuse.ibwarden", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, options); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("mounting at %s: %w", directory, err)
	}
	return os.NewFile(uintptr(fd), "/dev/fuse"), nil
}
