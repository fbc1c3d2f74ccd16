package service

import (
	"context"

	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// Parts are what a snapshot may have beyond what the manager reads for itself.
type Parts struct {
	QoS     bool // SLToVLMappingTables and VLArbitrationTables
	Aliases bool // GUIDInfo of end ports
	Audit   bool // what only an audit looks at: P_Key tables of all switch ports, SMInfo, GUIDInfo
}

// Has reports whether all of q are among p.
func (p Parts) Has(q Parts) bool {
	return (p.QoS || !q.QoS) && (p.Aliases || p.Audit || !q.Aliases) && (p.Audit || !q.Audit)
}

// Completer is a SubnetManager that reads on demand what it does not need itself.
type Completer interface {
	// Complete is Snapshot with these parts. What could not be read is among the faults.
	Complete(ctx context.Context, p Parts) (*snapshot.Snapshot, error)
}

// Complete is the fabric as the manager last read it, with these parts if it reads them on
// demand.
func (s *Service) Complete(ctx context.Context, p Parts) (*snapshot.Snapshot, error) {
	if c, can := s.config.Manager.(Completer); can {
		return c.Complete(ctx, p)
	}
	return s.config.Manager.Snapshot(ctx)
}
