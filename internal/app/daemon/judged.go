package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/service"
)

// judged is what the last pass of the manager came to.
type judged struct {
	result *event.Result
	cables *cables.List // nil for none
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

// Checked is since when every table that isolates was read back, and was as it was proved; nil
// where that was not so yet.
func (s *Served) Checked(context.Context) *time.Time {
	at := s.checked.Load()
	if at == 0 {
		return nil
	}
	t := time.Unix(0, at).UTC()
	return &t
}

// Allowed are the partitions of the policy as they were resolved for the last pass.
func (s *Served) Allowed(context.Context) ([]observed.Partition, error) {
	j, err := s.judged()
	if err != nil {
		return nil, err
	}
	return j.result.Partitions, nil
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

// Past is how the verdict changed.
func (s *Served) Past(context.Context) ([]views.Change, error) { return s.past.List(), nil }

// audits are the last ones.
type audits struct {
	mu   sync.Mutex
	last map[auditKind]audited
}

// Audit holds the manager's snapshot against the catalogue of package audit. What the
// manager does not read is read first if that is asked for, and else counts as unread.
func (s *Served) Audit(ctx context.Context, p audit.Profile, read bool) (*audit.Report, time.Time, error) {
	j, err := s.judged()
	if err != nil {
		return nil, time.Time{}, err
	}
	parts := service.Parts{QoS: read, Aliases: read, Audit: read}
	snap, err := s.Complete(ctx, parts)
	if err != nil {
		return nil, time.Time{}, err
	}
	kind := auditKind{p, read}
	s.audits.mu.Lock() // while it is audited
	defer s.audits.mu.Unlock()
	if last := s.audits.last[kind]; last.report != nil && last.read.Equal(snap.ReadAt) && last.judged.Equal(j.at) && time.Since(last.at) < auditKept {
		return last.report, snap.ReadAt, nil
	}
	o := audit.Options{Profile: p, KeysConcealed: snap.Concealed, Age: time.Since(snap.ReadAt)}
	for _, x := range snap.Faults {
		o.Unread = append(o.Unread, audit.Unread{Where: x.Where, What: x.Why})
	}
	r := audit.Audit(snap.Fabric, audit.Intent{Partitions: j.result.Partitions}, o)
	if s.audits.last == nil {
		s.audits.last = map[auditKind]audited{}
	}
	s.audits.last[kind] = audited{snap.ReadAt, j.at, time.Now(), r}
	return r, snap.ReadAt, nil
}

// auditKept is how long the report of an audit answers further questions about the same
// snapshot: pages of one list, and lists that belong together. On 11,664 hosts an audit
// takes 2 s.
const auditKept = 10 * time.Second

// auditKind tells audits apart: by profile, and whether what only an audit looks at is read.
type auditKind struct {
	profile audit.Profile
	read    bool
}

// audited is an audit of the snapshot that was read at one time, under what the pass that
// ended at another came to: the times tell them apart, and hold nothing in memory.
type audited struct {
	read, judged, at time.Time
	report           *audit.Report
}
