package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/service"
)

// completedFor is how long a reading on demand serves those who ask for the same.
const completedFor = 10 * time.Second

// completed is a reading on demand.
type completed struct {
	*snapshot.Snapshot
	parts service.Parts
	pass  uint64 // the pass that it is a copy of
	at    time.Time
}

// Complete implements service.Completer. What it returns stays as it is; for completedFor,
// or until the engine has completed another pass, it is the same.
func (s *Served) Complete(ctx context.Context, parts service.Parts) (*snapshot.Snapshot, error) {
	snap, err := s.Snapshot(ctx)
	if err != nil || has(snap, parts) {
		return snap, err
	}
	return inTurn(ctx, s.completing, time.Now, func(ctx context.Context) (*snapshot.Snapshot, error) { return s.complete(ctx, parts) })
}

// complete reads, or returns what was read just now. Its caller holds completing.
func (s *Served) complete(ctx context.Context, parts service.Parts) (*snapshot.Snapshot, error) {
	s.mu.Lock()
	pass := s.passes
	s.mu.Unlock()
	if c := &s.completed; c.Snapshot != nil && c.pass == pass && time.Since(c.at) < completedFor && c.parts.Has(parts) {
		return c.Snapshot, nil
	}
	snap, reads, err := s.copied(ctx)
	if err != nil {
		return nil, err
	}
	o := sweep.Options{Keys: reads.Keys, MKey: reads.MKey, QoS: parts.QoS && !reads.QoS, Audit: parts.Audit, Aliases: parts.Aliases && !reads.Aliases}
	faults, err := s.runner.Complete(ctx, o, snap.Fabric)
	if err != nil {
		return nil, err
	}
	snap.Faults = append(snap.Faults, faultsIn(faults)...)
	reads.QoS, reads.Audit = reads.QoS || o.QoS, reads.Audit || o.Audit
	snap.Asked = askedIn(reads)
	snap.Conceal(Secret())
	s.completed = completed{snap, parts, pass, time.Now()}
	return snap, nil
}

// has reports whether a snapshot has parts.
func has(snap *snapshot.Snapshot, parts service.Parts) bool {
	asked := func(name string) bool { return slices.Contains(snap.Asked, name) }
	// Aliases are not named, and part of what an audit asks for.
	return (!parts.QoS || asked(snapshot.AskedQoS)) && (!parts.Audit && !parts.Aliases || asked(snapshot.AskedAudit))
}
