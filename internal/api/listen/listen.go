// Package listen opens the sockets of the service: a Unix socket that knows who is at the
// other end, and TCP with TLS. It bounds the connections.
//
// It has what requests of the API have in common, whatever they are about: JSON that
// can be read in one way only, merge patches (RFC 7396), preconditions (If-Match and
// If-None-Match), and errors (RFC 9457).
package listen

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Where says on what the service listens.
type Where struct {
	Socket string // path of the Unix socket; "" for none
	Listen string // ADDRESS:PORT; "" for none
	// Certificate and Key are PEM; without them Listen has to be a loopback address.
	Certificate, Key []byte
	// ClientCA are the CAs of client certificates, PEM; nil takes none.
	ClientCA []byte
}

// Listeners are open sockets.
type Listeners struct {
	list     []net.Listener
	counter  *counter
	socket   string
	lock     *os.File // of the socket
	Describe []string // each as a client names it: unix:PATH, https://ADDRESS
	// URL is where a browser finds the service: that of TCP without a path, with a host
	// that the certificate has; "" for nowhere.
	URL string
}

// Listen opens what w names. A socket that a process which is gone left behind is
// replaced; one that somebody serves is an error.
//
// Everybody may connect to the socket (mode 0666) whom its directory lets: who he is,
// the kernel says, and what he may do, the handlers decide. A mode would be one more list
// of users in addition to theirs, and would shut out tenants' programs that come with a token.
func Listen(w Where) (_ *Listeners, err error) {
	shared := &counter{peers: map[string]int{}}
	out := &Listeners{counter: shared}
	defer func() {
		if err != nil {
			out.Close()
		}
	}()
	if w.Socket != "" {
		if err := out.listenUnix(w.Socket, shared); err != nil {
			return nil, err
		}
	}
	if w.Listen == "" {
		return out, nil
	}
	if err := CheckListen(w.Listen, len(w.Certificate) > 0); err != nil {
		return nil, err
	}
	config, err := w.tls()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", w.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen %q: %w", w.Listen, err)
	}
	scheme := "http://"
	var counted net.Listener = &countedListener{Listener: l, counter: shared}
	if config != nil {
		scheme, counted = "https://", tls.NewListener(counted, config)
	}
	out.list = append(out.list, counted)
	out.Describe = append(out.Describe, scheme+l.Addr().String())
	if out.URL = out.Describe[len(out.Describe)-1]; config != nil {
		out.URL = scheme + named(config, l.Addr())
	}
	return out, nil
}

// named is the host and port of a listener as its certificate has it: the address, if it is
// there, else the first name. A certificate of neither leaves the address.
func named(c *tls.Config, a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	leaf := c.Certificates[0].Leaf
	if err != nil || leaf == nil || leaf.VerifyHostname(host) == nil {
		return a.String()
	}
	for _, name := range leaf.DNSNames {
		if !strings.HasPrefix(name, "*") {
			return net.JoinHostPort(name, port)
		}
	}
	for _, ip := range leaf.IPAddresses {
		if address, is := a.(*net.TCPAddr); is && address.IP.IsUnspecified() {
			return net.JoinHostPort(ip.String(), port)
		}
	}
	return a.String()
}

// tls is the configuration of TLS; nil for plain HTTP.
func (w *Where) tls() (*tls.Config, error) {
	if len(w.Certificate) == 0 {
		if len(w.ClientCA) > 0 {
			return nil, errors.New("client certificates need TLS: give --tls-cert and --tls-key")
		}
		return nil, nil
	}
	pair, err := tls.X509KeyPair(w.Certificate, w.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate and key: %w", err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if len(w.ClientCA) > 0 {
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(w.ClientCA) {
			return nil, errors.New("client CA: want certificates in PEM")
		}
		// A client without a certificate may have a token.
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return c, nil
}

// socketMode lets everybody connect; the directory narrows that. directoryMode is that
// of a directory which is made for the socket.
const (
	socketMode    = 0o666
	directoryMode = 0o755
)

func (l *Listeners) listenUnix(path string, shared *counter) error {
	if err := CheckSocket(path); err != nil {
		return err
	}
	if err := socketDirectory(filepath.Dir(path)); err != nil {
		return err
	}
	// Two that start at once must not both find the socket of a process that is gone,
	// and one remove what the other has just made: the lock is for both.
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return fmt.Errorf("socket %s: another ibwarden serves it: stop that one, or choose another path with --socket", path)
	}
	l.lock = lock
	if err := clearSocket(path); err != nil {
		return err
	}
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	u.SetUnlinkOnClose(false)
	l.socket = path
	if err := os.Chmod(path, socketMode); err != nil {
		u.Close()
		return fmt.Errorf("socket: %w", err)
	}
	l.list = append(l.list, &countedListener{Listener: u, counter: shared})
	l.Describe = append(l.Describe, "unix:"+path)
	return nil
}

// socketDirectory makes the directory of a socket. In one that belongs to another user he
// could put his own socket in the place of ours, and have what clients send.
func socketDirectory(dir string) error {
	if err := os.MkdirAll(dir, directoryMode); err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if sys, is := info.Sys().(*syscall.Stat_t); is && sys.Uid != 0 && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("socket: the directory %s belongs to user %d: want one of root or of your own", dir, sys.Uid)
	}
	return nil
}

// clearSocket removes a socket that nobody serves. Anything but a socket stays.
func clearSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("socket %s: there is something else than a socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("socket %s: another process serves it: stop that one, or choose another path with --socket", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	return os.Remove(path)
}

// Close closes the sockets.
func (l *Listeners) Close() {
	for _, x := range l.list {
		x.Close()
	}
	if l.socket != "" {
		os.Remove(l.socket)
	}
	if l.lock != nil {
		l.lock.Close()
	}
}

// counter counts connections.
type counter struct {
	mu    sync.Mutex
	all   int
	peers map[string]int
	// refused counts connections that were too many, refusedPeer those that were too many
	// of one peer.
	refused, refusedPeer uint64
}

// enter reports whether one more connection of a peer may be open. Those that are
// privileged have some that others cannot take.
func (c *counter) enter(peer string, privileged bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.all >= ConnectionsMax, !privileged && c.all >= ConnectionsMax-ConnectionsReserved:
		c.refused++
		return false
	case !privileged && c.peers[peer] >= ConnectionsPerPeer:
		c.refusedPeer++
		return false
	}
	c.all++
	c.peers[peer]++
	return true
}

func (c *counter) leave(peer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.peers[peer]--; c.peers[peer] == 0 {
		delete(c.peers, peer)
	}
}

// Connections are how many connections are open now, and how many were refused so far: as
// too many, and as too many of one user or address.
func (l *Listeners) Connections() (open int, refused, refusedPeer uint64) {
	l.counter.mu.Lock()
	defer l.counter.mu.Unlock()
	return l.counter.all, l.counter.refused, l.counter.refusedPeer
}

// countedListener closes connections that are too many.
type countedListener struct {
	net.Listener
	counter *counter
}

// Accept implements net.Listener.
func (l *countedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		out := &countedConn{Conn: c, counter: l.counter}
		name := ""
		if u, is := c.(*net.UnixConn); is {
			if out.peer, err = PeerOf(u); err != nil {
				c.Close()
				continue
			}
			out.local = true
			name = fmt.Sprint("uid ", out.peer.UID)
		} else if host, _, err := net.SplitHostPort(c.RemoteAddr().String()); err == nil {
			name = host
		}
		privileged := out.local && (out.peer.UID == 0 || int(out.peer.UID) == os.Geteuid())
		if !l.counter.enter(name, privileged) {
			c.Close()
			continue
		}
		out.name = name
		return out, nil
	}
}

// countedConn is a connection that is counted until it is closed.
type countedConn struct {
	net.Conn
	counter *counter
	name    string
	peer    Peer
	local   bool
	once    sync.Once
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.counter.leave(c.name) })
	return c.Conn.Close()
}

// Limits of connections.
const (
	ConnectionsMax = 1024 // open at once
	// ConnectionsReserved of them are for root and the owner of the service, over
	// the Unix socket.
	ConnectionsReserved = 64
	// ConnectionsPerPeer bounds those of one user of the Unix socket, or one address.
	ConnectionsPerPeer = 256
)

// Peer is who is at the other end of a Unix socket, as the kernel says.
type Peer struct{ UID uint32 }

// PeerOfConn is the peer of a connection that a listener accepted; false for one that
// came over the network.
func PeerOfConn(c net.Conn) (p Peer, known bool) {
	if t, is := c.(*tls.Conn); is {
		c = t.NetConn()
	}
	counted, is := c.(*countedConn)
	if !is || !counted.local {
		return Peer{}, false
	}
	return counted.peer, true
}

// ServerWriter is the writer of net/http under those that wrap it: a body that is too long
// closes the connection through it alone.
func ServerWriter(w http.ResponseWriter) http.ResponseWriter {
	for {
		u, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return w
		}
		w = u.Unwrap()
	}
}

// Socket is the path of the Unix socket; "" for none.
func (l *Listeners) Socket() string { return l.socket }

// All are the open sockets.
func (l *Listeners) All() []net.Listener { return l.list }
