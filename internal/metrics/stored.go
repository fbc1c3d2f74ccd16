package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the store.
var (
	storeCommits  = service("counter", "ibwarden_store_commits_total", "", "Transactions committed to the store: changes, refusals for the audit log, and outcomes.")
	storeFailures = service("counter", "ibwarden_store_failures_total", "", "Transactions that failed or whose outcome is unknown: unavailable, full, fenced (another manager writes now), stale, invalid, canceled or other.", "kind")
	storeTime     = service("histogram", "ibwarden_store_commit_seconds", "seconds", "Time until a transaction is on disk or has failed.")
	storeRevision = service("gauge", "ibwarden_store_revision", "", "The last revision in the store that this manager knows.")
	storeEpoch    = service("gauge", "ibwarden_store_epoch", "", "Epoch of this manager's last takeover of the store.")
	storeUp       = service("gauge", "ibwarden_store_up", "", "1 if this manager can write the store, or follow it as standby; 0 while the store is lost.")
	storeMissing  = service("gauge", "ibwarden_store_missing_revisions", "", "Revisions that this manager has seen and that a store that was rolled back lacks, until that is accepted.")
	storeLeads    = service("gauge", "ibwarden_store_leader", "", "1 if this manager writes the store, 0 for a standby or a fenced manager.")
)

// Store counts what a store does. It may be used in any goroutine.
type Store struct {
	// Leads reports whether this manager is the one that writes the store.
	Leads func() bool
	// Up reports whether the store is there.
	Up func() bool
	// Missing is how many revisions that were seen are missing in it.
	Missing func() int

	mu              sync.Mutex
	commits         uint64
	failures        map[string]uint64
	times           Times
	revision, epoch uint64
}

var _ prometheus.Collector = (*Store)(nil)

// StoreFailures are the kinds of failed transactions.
var StoreFailures = []string{"unavailable", "full", "fenced", "stale", "invalid", "canceled", "other"}

// Committed counts a transaction: how long it took, and how it failed, one of
// StoreFailures; "" if it did not.
func (s *Store) Committed(took time.Duration, failure string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times.observe(took)
	if failure == "" {
		s.commits++
		return
	}
	if s.failures == nil {
		s.failures = make(map[string]uint64)
	}
	s.failures[failure]++
}

// SetRevision notes the last revision.
func (s *Store) SetRevision(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision = n
}

// SetEpoch notes the epoch with which the store was taken over.
func (s *Store) SetEpoch(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch = n
}

// Describe tells of every metric.
func (s *Store) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range []*Metric{storeCommits, storeFailures, storeTime, storeRevision, storeEpoch, storeUp, storeMissing, storeLeads} {
		ch <- m.desc
	}
}

// Collect makes the samples.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	out := sink{ch}
	out.put(storeLeads, one(s.Leads()))
	out.put(storeUp, one(s.Up()))
	out.put(storeMissing, float64(s.Missing()))
	s.mu.Lock()
	commits, failures, times, revision, epoch := s.commits, maps.Clone(s.failures), s.times, s.revision, s.epoch
	s.mu.Unlock()
	out.put(storeCommits, float64(commits))
	for _, kind := range StoreFailures { // all, so that the first of a kind is an increase
		out.put(storeFailures, float64(failures[kind]), kind)
	}
	out.times(storeTime, &times)
	out.put(storeRevision, float64(revision))
	if epoch > 0 {
		out.put(storeEpoch, float64(epoch))
	}
}
