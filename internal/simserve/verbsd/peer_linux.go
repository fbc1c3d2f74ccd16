package verbsd

import (
	"net"

	"golang.org/x/sys/unix"
)

// peer is the user at the other end: an abstract socket has no permissions of its
// own.
func peer(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var who *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { who, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return int(who.Uid), nil
}
