package daemon

import (
	"context"
	"time"

	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/service"
)

// judged is what the last pass of the manager came to.
type judged struct {
	result *event.Result
	at     time.Time
}

func (s *Served) judged() (judged, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.result == nil {
		return judged{}, service.ErrNotRead
	}
	return s.last, nil
}

// Proof is the verdict of the last pass, and when it was made.
func (s *Served) Proof(context.Context) (*isolation.Proof, time.Time, error) {
	j, err := s.judged()
	if err != nil {
		return nil, time.Time{}, err
	}
	return j.result.Proof, j.at, nil
}

// Multicast is the verdict on multicast forwarding tables; nil where they are left
// alone and were not read.
func (s *Served) Multicast(context.Context) (*isolation.Multicast, time.Time, error) {
	j, err := s.judged()
	if err != nil {
		return nil, time.Time{}, err
	}
	return j.result.Multicast, j.at, nil
}

// Audit holds the manager's snapshot against the catalogue of package audit. What the
// manager does not read counts as unread.
func (s *Served) Audit(ctx context.Context, p audit.Profile) (*audit.Report, time.Time, error) {
	j, err := s.judged()
	if err != nil {
		return nil, time.Time{}, err
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	o := audit.Options{Profile: p, KeysConcealed: snap.Concealed, Age: time.Since(snap.ReadAt)}
	for _, x := range snap.Faults {
		o.Unread = append(o.Unread, audit.Unread{Where: x.Where, What: x.Why})
	}
	return audit.Audit(snap.Fabric, audit.Intent{Partitions: j.result.Partitions}, o), snap.ReadAt, nil
}
