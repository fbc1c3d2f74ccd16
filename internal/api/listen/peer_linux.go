package listen

import (
	"net"

	"golang.org/x/sys/unix"
)

// PeerOf is the user who made the connection, as the kernel noted it then.
func PeerOf(c *net.UnixConn) (p Peer, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return p, err
	}
	var cred *unix.Ucred
	e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if e != nil {
		return p, e
	}
	if err != nil {
		return p, err
	}
	return Peer{UID: cred.Uid}, nil
}
