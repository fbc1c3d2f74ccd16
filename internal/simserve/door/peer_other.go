//go:build !linux

package door

import (
	"errors"
	"fmt"
	"net"
	"runtime"
)

// Peer is an error: without Linux nobody says which user is at the other end, and nobody is
// served.
func Peer(*net.UnixConn) (uid int, err error) {
	return Unknown, fmt.Errorf("who opened this socket is known on Linux only, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
