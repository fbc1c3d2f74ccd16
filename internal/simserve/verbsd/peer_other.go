//go:build !linux

package verbsd

import (
	"errors"
	"fmt"
	"net"
	"runtime"
)

// peer is an error: without Linux nobody says which user is at the other end, and
// nobody is served.
func peer(*net.UnixConn) (uid int, err error) {
	return 0, fmt.Errorf("who opened this socket is known on Linux only, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
