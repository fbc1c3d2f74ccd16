package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// Limits of clients.
const (
	HeaderMax     = 16 << 10          // bytes of the header of a request
	BodyMax       = 1 << 20           // bytes of the body of a request
	HeaderTimeout = 10 * time.Second  // from the connection, or the first byte, to the end of the header
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

// timed gives every request the time for its body and for its answer, before anything is known
// of the caller: the server reads what a refused request leaves of its body before it answers.
func timed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := limitsOf(r.Context())
		control := http.NewResponseController(w)
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(time.Now().Add(limit.body))
		}
		_ = control.SetWriteDeadline(time.Now().Add(limit.body + limit.reply))
		h.ServeHTTP(w, r)
	})
}

// bounded reads the body of a request up to its size, within the time that timed gave it.
func bounded(w http.ResponseWriter, r *http.Request) *Problem {
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
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a writer that has no deadlines is one of a test
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Header.Get("Idempotency-Key") != "" {
		requestOf(r.Context()).digest = listen.Digest(r, body)
	}
	return nil
}
