package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// Where says on what the service listens, and Listeners are open sockets.
type (
	Where     = listen.Where
	Listeners = listen.Listeners
)

// Listen opens what w names.
func Listen(w Where) (*Listeners, error) { return listen.Listen(w) }

// Serve serves handlers until ctx ends, and then ends the answers under way in
// ShutdownMost. It closes the listeners. log gets what clients do wrong, at debug level.
func Serve(ctx context.Context, l *Listeners, h http.Handler, log *slog.Logger) error {
	return serve(ctx, l, h, log, defaultLimits)
}

func serve(ctx context.Context, l *Listeners, h http.Handler, logger *slog.Logger, limit limits) error {
	defer l.Close()
	base, stop := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), limitsKey{}, limit))
	defer stop()
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	server := &http.Server{
		Handler: timed(h), BaseContext: func(net.Listener) context.Context { return base }, ConnContext: connected,
		ReadHeaderTimeout: limit.header, IdleTimeout: limit.idle, MaxHeaderBytes: HeaderMax,
		// What the server says of clients could be long, and said often.
		ErrorLog: log.New(clientFaults{logger}, "", 0), DisableGeneralOptionsHandler: true,
	}
	failed := make(chan error, len(l.All()))
	for _, x := range l.All() {
		go func() { failed <- server.Serve(x) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop() // streams end
	end, done := context.WithTimeout(context.WithoutCancel(ctx), ShutdownMost)
	defer done()
	if server.Shutdown(end) != nil {
		server.Close()
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("API: %w", err)
	}
	return nil
}

// clientFaults logs what the server says of clients.
type clientFaults struct{ log *slog.Logger }

func (c clientFaults) Write(b []byte) (int, error) {
	c.log.Debug("a client did wrong", "text", strings.TrimSpace(string(b)))
	return len(b), nil
}

var _ io.Writer = clientFaults{}

// connected is the context of a connection: with its peer, if the kernel knows it.
func connected(ctx context.Context, c net.Conn) context.Context {
	if p, known := listen.PeerOfConn(c); known {
		return WithPeer(ctx, p)
	}
	return ctx
}
