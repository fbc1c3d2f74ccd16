package door

import (
	"net"

	"golang.org/x/sys/unix"
)

// Peer is the user at the other end of a connection, as the kernel noted him when it was
// made.
func Peer(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Unknown, err
	}
	var who *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { who, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return Unknown, err
	}
	if credErr != nil {
		return Unknown, credErr
	}
	return int(who.Uid), nil
}
