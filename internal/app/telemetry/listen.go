package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// Limits of the listener.
const (
	// ConnectionsMax is how many connections there are at once; more wait.
	ConnectionsMax = 64
	// headerTime is the time for a request's headers, requestTime for all of it,
	// answerTime for the answer, and idleTime between two requests.
	headerTime  = 2 * time.Second
	requestTime = 10 * time.Second
	answerTime  = 60 * time.Second
	idleTime    = 30 * time.Second
	// HeadersMax is the most bytes of a request's headers (net/http adds 4 KiB).
	HeadersMax = 8 << 10
	// closeTime is how long answers under way may take when the service ends.
	closeTime = time.Second
)

// ErrNotLoopback says that an address can be reached from other machines.
var ErrNotLoopback = errors.New("not a loopback address: metrics are served without TLS, on loopback only (127.0.0.1:9316, [::1]:9316, localhost:9316)")

// Server is a running listener.
type Server struct {
	server   *http.Server
	listener net.Listener
}

// Listen serves the handler on a loopback address with a port.
func (t *Telemetry) Listen(address string) (*Server, error) { return Serve(address, t.handle) }

// Serve serves a handler on a loopback address with a port, to this machine only.
func Serve(address string, handler http.Handler) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address %q: want HOST:PORT, such as 127.0.0.1:9316", address)
	}
	if !isLoopback(host) {
		return nil, fmt.Errorf("address %q: %w", address, ErrNotLoopback)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() { // whatever localhost means here
		l.Close()
		return nil, fmt.Errorf("address %q is %s: %w", address, l.Addr(), ErrNotLoopback)
	}
	s := &Server{
		server: &http.Server{
			Handler: localOnly(handler), ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: answerTime,
			IdleTimeout: idleTime, MaxHeaderBytes: HeadersMax, ErrorLog: log.New(io.Discard, "", 0),
		},
		listener: netutil.LimitListener(l, ConnectionsMax),
	}
	go s.server.Serve(s.listener) // ends with Close
	return s, nil
}

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends the server.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	s.listener.Close() // Serve may not have begun
	if s.server.Shutdown(ctx) != nil {
		s.server.Close()
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// localOnly refuses requests for other hosts: a web page whose name was made to mean
// 127.0.0.1 must not read what this machine alone may.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !isLoopback(host) {
			http.Error(w, "the host in the request is not a loopback address", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
