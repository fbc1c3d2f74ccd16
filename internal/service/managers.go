package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// NotHandedOver says why the subnet is not handed over to another manager.
type NotHandedOver struct{ Reason string }

// Error implements error.
func (n *NotHandedOver) Error() string { return n.Reason }

// Standing is what the service knows of who writes its store.
type Standing struct {
	// Shared reports whether other managers use the store, Leads that this one writes it.
	Shared, Leads bool
	// Epoch is that of the writer, and Owner who it is, for people; 0 and "" where the
	// store cannot be asked.
	Epoch store.Epoch
	Owner string
}

// Standing asks who writes the store.
func (s *Service) Standing(ctx context.Context) Standing {
	s.mu.RLock()
	lost, epoch := s.lost, s.epoch
	s.mu.RUnlock()
	out := Standing{Shared: s.config.Shared, Leads: !errors.Is(lost, ErrNotMaster) && !errors.Is(lost, store.ErrFenced)}
	if out.Leads {
		out.Epoch, out.Owner = epoch, s.config.Owner
	} else if c, err := s.config.Store.Load(ctx); err == nil {
		out.Epoch, out.Owner = c.Epoch, c.Owner
	}
	return out
}

// Note enters an action that changes no object into the audit log: refused for a reason,
// or accepted for nil. The error says that it could not be stored: then the action is not
// to be carried out.
func (s *Service) Note(ctx context.Context, r Request, action, object string, refused error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	entry := store.Entry{
		Time: s.config.Now(), Caller: r.By.Name, Tenant: r.By.Tenant, Action: action, Request: r.ID,
		Object: bounded(object), Decision: store.Accepted, Reason: bounded(r.Why),
	}
	if refused != nil {
		return s.refuse(ctx, r, entry, refused)
	}
	if err := s.put(ctx, store.Commit{Epoch: s.epoch, Audit: []store.Entry{entry}}); err != nil {
		return fmt.Errorf("it could not be recorded: %w", err)
	}
	return nil
}

var _ error = (*NotHandedOver)(nil)

// Proved is the last revision whose outcome is that it was proved, by whichever manager;
// false where the newest of the history, provedLook of them, have none.
func (s *Service) Proved(ctx context.Context) (revision uint64, some bool) {
	records, err := s.History(ctx, resource.Caller{Tenant: resource.Provider}, store.Range{Newest: true, Limit: provedLook, MayLack: true})
	if err != nil {
		return 0, false
	}
	for _, r := range records {
		if r.Outcome != nil && r.Outcome.State == Proved {
			return r.Number, true
		}
	}
	return 0, false
}

// provedLook is how many revisions are looked at for the last that was proved.
const provedLook = 64
