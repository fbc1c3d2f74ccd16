package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// Limits of clients.
const (
	HeaderMax     = 16 << 10          // octets of the header of a request
	BodyMax       = 1 << 20           // octets of the body of a request
	pathMax       = 1024              // octets of the path of a request
	queryMax      = 8 << 10           // octets of its query
	HeaderTimeout = 10 * time.Second  // from the connection, or the first octet, to the end of the header
	BodyTimeout   = 20 * time.Second  // for the body
	ReplyTimeout  = 120 * time.Second // from the end of the body to the end of the answer
	IdleTimeout   = 120 * time.Second // between two requests
	WaitMost      = 60 * time.Second  // how long a write waits for its proof
	StreamTimeout = 10 * time.Second  // for one event to be taken by the reader of a stream
	StreamAlive   = 15 * time.Second  // between two signs of life in a stream
	StreamsMax    = 512               // streams open at once
	ShutdownMost  = 5 * time.Second   // for answers under way when the service ends
)

// limits are the limits in time, which tests shorten.
type limits struct{ header, body, reply, idle, stream, alive, wait time.Duration }

var defaultLimits = limits{HeaderTimeout, BodyTimeout, ReplyTimeout, IdleTimeout, StreamTimeout, StreamAlive, WaitMost}

type limitsKey struct{}

func limitsOf(ctx context.Context) limits {
	if l, given := ctx.Value(limitsKey{}).(limits); given {
		return l
	}
	return defaultLimits
}

// plain refuses requests that two programs could read differently.
func plain(r *http.Request) *Problem {
	p := r.URL.Path
	clean := path.Clean(p)
	switch {
	case len(r.URL.EscapedPath()) > pathMax || len(r.URL.RawQuery) > queryMax:
		return problem(http.StatusRequestURITooLong, reasonTooLarge, "the path or the query is too long")
	case r.Method == http.MethodConnect, p == "" || p[0] != '/':
		return problem(http.StatusBadRequest, reasonMalformed, "want a path")
	case p != clean || !utf8.ValidString(p) || strings.ContainsAny(p, "\x00\\"):
		return problem(http.StatusNotFound, "not-found", "want a path without //, . or .., and without a slash at its end")
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem(http.StatusBadRequest, reasonMalformed, "the query cannot be read")
	}
	for name, values := range query {
		if len(values) > 1 {
			return fault(http.StatusBadRequest, reasonMalformed, "query."+name, "is there twice")
		}
		if values[0] == "" || !utf8.ValidString(values[0]) {
			return fault(http.StatusBadRequest, reasonMalformed, "query."+name, "want a value, in UTF-8")
		}
	}
	for _, name := range []string{"If-Match", "If-None-Match", "Idempotency-Key", "Why", "Last-Event-Id", "Content-Type"} {
		if len(r.Header.Values(name)) > 1 {
			return fault(http.StatusBadRequest, reasonMalformed, "header."+name, "is there twice")
		}
		if !utf8.ValidString(r.Header.Get(name)) {
			return fault(http.StatusBadRequest, reasonMalformed, "header."+name, "want UTF-8")
		}
	}
	return nil
}

// bounded reads the body of a request, in its time and up to its size, and gives the
// answer its time.
func bounded(w http.ResponseWriter, r *http.Request) *Problem {
	limit := limitsOf(r.Context())
	control := http.NewResponseController(w)
	// A writer that has no deadlines is one of a test.
	_ = control.SetReadDeadline(time.Now().Add(limit.body))
	_ = control.SetWriteDeadline(time.Now().Add(limit.body + limit.reply))
	body, err := io.ReadAll(http.MaxBytesReader(listen.ServerWriter(w), r.Body, BodyMax))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem(http.StatusRequestEntityTooLarge, reasonTooLarge, "the body is longer than 1 MiB")
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return problem(http.StatusRequestTimeout, reasonTimeout, "the body did not come in time")
	case err != nil:
		return problem(http.StatusBadRequest, reasonMalformed, "the body cannot be read")
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}
