package api

import (
	"context"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// snapshotJudge judges the fabric of a service. It keeps each answer until the snapshot or the
// policy is another.
type snapshotJudge struct {
	service *service.Service
	cables  *cables.List

	mu       sync.Mutex
	snap     *snapshot.Snapshot // that the answers are about
	revision uint64
	allowed  []observed.Partition
	raw      isolation.Raw
	proof    *isolation.Proof
	spread   *isolation.Multicast
	audits   map[audit.Profile]*audit.Report
}

// newSnapshotJudge judges by the policy of a service. The list of cables says which cables between
// switches are meant to be; nil for none.
func newSnapshotJudge(s *service.Service, list *cables.List) *snapshotJudge {
	return &snapshotJudge{service: s, cables: list}
}

// fresh makes sure that the answers are about the present; mu is held.
func (s *snapshotJudge) fresh(ctx context.Context) error {
	snap, err := s.service.Manager().Snapshot(ctx)
	if err != nil {
		return err
	}
	revision, p := s.service.Policy()
	if snap == s.snap && revision == s.revision {
		return nil
	}
	var allocated map[string]ib.PKeyBase
	s.service.Read(func(r *resource.State) { allocated = r.Allocated })
	allowed, err := allows(p, snap.Fabric, allocated)
	if err != nil {
		return err
	}
	s.snap, s.revision, s.allowed = snap, revision, allowed
	s.raw = isolation.RawDenied
	if p.AllowRaw {
		s.raw = isolation.RawAllowed
	}
	s.proof, s.spread, s.audits = nil, nil, map[audit.Profile]*audit.Report{}
	return nil
}

// allows is what a policy allows on a fabric. Who claims to be somebody else too gets
// what a port that nobody knows gets.
func allows(p *policy.Policy, f *observed.Fabric, allocated map[string]ib.PKeyBase) ([]observed.Partition, error) {
	keys, err := policy.Allocate(p, allocated)
	if err != nil {
		return nil, err
	}
	master := f.Manager()
	var ports []policy.EndPort
	for _, port := range f.EndPorts() {
		if !port.Node.Contested {
			ports = append(ports, facts.Identity(port, port == master))
		}
	}
	r, err := p.Resolve(ports, keys)
	if err != nil {
		return nil, err
	}
	return r.Partitions, nil
}

// Proof is the verdict on the fabric as it was read last.
func (s *snapshotJudge) Proof(ctx context.Context) (*isolation.Proof, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fresh(ctx); err != nil {
		return nil, time.Time{}, err
	}
	if s.proof == nil {
		s.proof = isolation.Prove(s.snap.Fabric, s.allowed, s.raw)
		s.proof.Rest(isolation.Changeable(s.snap.Fabric, s.cables.Declares()))
	}
	return s.proof, s.snap.ReadAt, nil
}

// Checked is when the fabric was read.
func (s *snapshotJudge) Checked(ctx context.Context) *time.Time {
	_, at, err := s.Proof(ctx)
	if err != nil {
		return nil
	}
	return &at
}

// Allowed are the partitions that the proof was made with.
func (s *snapshotJudge) Allowed(ctx context.Context) ([]observed.Partition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fresh(ctx); err != nil {
		return nil, err
	}
	return s.allowed, nil
}

// Multicast is the verdict on the multicast forwarding tables.
func (s *snapshotJudge) Multicast(ctx context.Context) (*isolation.Multicast, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fresh(ctx); err != nil {
		return nil, time.Time{}, err
	}
	if s.spread == nil {
		s.spread = isolation.ProveMulticast(s.snap.Fabric, s.allowed, nil)
	}
	return s.spread, s.snap.ReadAt, nil
}

// Audit holds the fabric against the catalogue of weaknesses.
func (s *snapshotJudge) Audit(ctx context.Context, p audit.Profile, _ bool) (*audit.Report, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fresh(ctx); err != nil {
		return nil, time.Time{}, err
	}
	if s.audits[p] == nil {
		unread := make([]audit.Unread, 0, len(s.snap.Faults))
		for _, f := range s.snap.Faults {
			unread = append(unread, audit.Unread{Where: f.Where, What: f.Why})
		}
		s.audits[p] = audit.Audit(s.snap.Fabric, audit.Intent{Partitions: s.allowed}, audit.Options{Profile: p, Unread: unread})
	}
	return s.audits[p], s.snap.ReadAt, nil
}

// Past is the verdict on the fabric as it is now alone.
func (s *snapshotJudge) Past(ctx context.Context) ([]views.Change, error) {
	proof, at, err := s.Proof(ctx)
	if err != nil {
		return nil, err
	}
	var past views.Past
	past.Add(proof, at, 1)
	return past.List(), nil
}
