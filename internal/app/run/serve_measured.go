package run

import (
	"context"
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// measured is a store whose transactions are counted.
type measured struct {
	store.Store
	counts *metrics.Store
}

// Load implements store.Store.
func (m *measured) Load(ctx context.Context) (*store.Contents, error) {
	c, err := m.Store.Load(ctx)
	if err == nil {
		m.counts.SetRevision(c.Revision)
	}
	return c, err
}

// Acquire implements store.Store.
func (m *measured) Acquire(ctx context.Context, owner string) (store.Epoch, error) {
	epoch, err := m.Store.Acquire(ctx, owner)
	if err == nil {
		m.counts.SetEpoch(uint64(epoch))
	}
	return epoch, err
}

// Commit implements store.Store.
func (m *measured) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	begun := time.Now()
	done, err := m.Store.Commit(ctx, c)
	m.counts.Committed(time.Since(begun), failureOf(err))
	if err == nil {
		m.counts.SetRevision(done.Revision)
	}
	return done, err
}

// failures are the kinds of failures that are counted each; the rest are other.
var failures = []struct {
	err  error
	kind string
}{
	{store.ErrUnavailable, "unavailable"}, {store.ErrFull, "full"}, {store.ErrFenced, "fenced"}, {store.ErrStale, "stale"},
	{store.ErrInvalid, "invalid"}, {store.ErrTooLarge, "invalid"}, {context.Canceled, "canceled"}, {context.DeadlineExceeded, "canceled"},
}

// failureOf is the kind of an error of a commit; "" for none.
func failureOf(err error) string {
	if err == nil {
		return ""
	}
	for _, f := range failures {
		if errors.Is(err, f.err) {
			return f.kind
		}
	}
	return "other"
}

// leads reports whether this manager is the one that writes the store. One that cannot
// reach it still is.
func (s *Service) leads() bool {
	lost := s.Read(func(*resource.State) {})
	return !errors.Is(lost, service.ErrNotMaster) && !errors.Is(lost, store.ErrFenced)
}

// reaches reports whether the store is there for this manager: to write it, or to follow
// it while another does.
func (s *Service) reaches() bool { return there(s.Read(func(*resource.State) {})) }

// there reports whether the store is, by why reads are old.
func there(old error) bool {
	return old == nil || !errors.Is(old, store.ErrUnavailable) && (errors.Is(old, service.ErrNotMaster) || errors.Is(old, store.ErrFenced))
}
