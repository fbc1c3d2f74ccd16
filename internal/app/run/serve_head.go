package run

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/store"
)

// headEvery is the least time between two heads of the audit log in the log of run, save
// for the first and the last.
const headEvery = time.Hour

// headed is a store that knows the head of its audit log, as it was last read or written.
type headed struct {
	store.Store
	mu   sync.Mutex
	head store.Head
	told store.Head // the last one in the log
}

// Load implements store.Store.
func (h *headed) Load(ctx context.Context) (*store.Contents, error) {
	c, err := h.Store.Load(ctx)
	if err == nil {
		h.note(c.Audit)
	}
	return c, err
}

// Commit implements store.Store.
func (h *headed) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	done, err := h.Store.Commit(ctx, c)
	if err == nil {
		h.note(done.Audit)
	}
	return done, err
}

// note keeps the later of two heads: a reader may come after the writer of the next one.
func (h *headed) note(head store.Head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if head.Sequence > h.head.Sequence {
		h.head = head
	}
}

// tell writes the head to the log, if it is another than the last one there. The head of
// an empty audit log says nothing.
func (h *headed) tell(log *slog.Logger) {
	h.mu.Lock()
	head := h.head
	news := head != h.told
	h.told = head
	h.mu.Unlock()
	if news {
		log.Info("head of the audit log: "+head.String(), "event", telemetry.AuditHead, "head", head.String())
	}
}

// tellHeads writes the head to the log now, then whenever tick says so, and once more when
// done is closed.
func (h *headed) tellHeads(log *slog.Logger, tick <-chan time.Time, done <-chan struct{}) {
	for {
		h.tell(log)
		select {
		case <-tick:
		case <-done:
			h.tell(log)
			return
		}
	}
}

// writeHeads writes the head of the audit log to the log of run until Close. That of a
// store which is removed at the end is an anchor of nothing.
func (s *Service) writeHeads(log *slog.Logger) {
	if s.scratch != "" {
		return
	}
	s.heads, s.told = make(chan struct{}), make(chan struct{})
	tick := time.NewTicker(headEvery)
	go func() {
		defer close(s.told)
		defer tick.Stop()
		s.store.tellHeads(log, tick.C, s.heads)
	}()
}
