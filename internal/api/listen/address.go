// This file names where the service is reached: a Unix socket or a URL.

package listen

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// ServerVariable names the service for commands that are not told of one.
const ServerVariable = "IBWARDEN_SERVER"

// socketName is the name of the socket in its directory.
const socketName = "ibwarden.sock"

// NoSocket in place of a service says that none is to be asked.
const NoSocket = "none"

// SystemSocket is the socket of a service that root runs without a data directory.
const SystemSocket = "/run/ibwarden/" + socketName

// pathMax is the longest path of a Unix socket, in bytes: what a sockaddr_un holds.
const pathMax = 107

// SocketIn is the path of the socket of a service with a data directory; of one without
// for "". It is the user's own place unless root runs the service.
func SocketIn(data string) string {
	if data != "" {
		return filepath.Join(data, socketName)
	}
	if os.Geteuid() == 0 {
		return SystemSocket
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ibwarden", socketName)
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("ibwarden-%d", os.Getuid()), socketName)
}

// Server is where the service is: the path of a socket, or a URL without a path.
type Server struct {
	Socket string
	URL    string // https://HOST:PORT, or http://HOST:PORT with a loopback address
}

// String is the server as Parse reads it.
func (s Server) String() string {
	if s.Socket != "" {
		return "unix:" + s.Socket
	}
	return s.URL
}

// ParseServer reads unix:PATH, https://HOST:PORT or http://HOST:PORT, the last for loopback
// addresses only: what is sent in the clear, a token too, stays on this machine.
func ParseServer(text string) (Server, error) {
	if path, is := strings.CutPrefix(text, "unix:"); is {
		return Server{Socket: path}, CheckSocket(path)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return Server{}, fmt.Errorf("server %q: want unix:PATH, https://HOST:PORT, or http://ADDRESS:PORT with a loopback address", text)
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && IsLoopback(u.Hostname()):
	case u.Scheme == "http":
		return Server{}, fmt.Errorf("server %q: plain HTTP goes to loopback addresses only (127.0.0.1, ::1): want https", text)
	default:
		return Server{}, fmt.Errorf("server %q: want unix:PATH, https://HOST:PORT, or http://ADDRESS:PORT with a loopback address", text)
	}
	return Server{URL: u.Scheme + "://" + u.Host}, nil
}

// CheckSocket says what is wrong with the path of a socket.
func CheckSocket(path string) error {
	switch {
	case path == "":
		return errors.New("socket: want a path")
	case path[0] == '@' || path[0] == 0:
		return fmt.Errorf("socket %q: want the path of a file: abstract names have no owner", path)
	case len(path) > pathMax:
		return fmt.Errorf("socket %s: the path has %d bytes, at most %d fit: choose a shorter one", path, len(path), pathMax)
	}
	return nil
}

// IsLoopback reports whether a host is an address of this machine that nobody else
// reaches. A name is not taken, localhost neither: somebody else says what it stands for.
func IsLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// CheckListen says what is wrong with the address of a listener.
func CheckListen(listen string, tls bool) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "" {
		return fmt.Errorf("listen %q: want ADDRESS:PORT", listen)
	}
	if !tls && !IsLoopback(host) {
		return fmt.Errorf("listen %q: plain HTTP is served on loopback addresses only (127.0.0.1, ::1): give --tls-cert and --tls-key", listen)
	}
	return nil
}
