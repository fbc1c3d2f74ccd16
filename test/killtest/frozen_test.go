package killtest

import (
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// Rounds in CI, and all of them.
const frozenRounds, frozenRoundsLong = 1, 10

// TestFrozenFollower stops each member of the store in turn, when it does not lead, while changes
// are made: the other members answer in its place. It logs how long the slowest change took.
func TestFrozenFollower(t *testing.T) {
	need.Long(t, "a cluster of etcd whose members hang")
	t.Parallel()
	s := newSite(t, need.Seed(t, 21), nil)
	b := s.standby(t)
	slowest := time.Duration(0)
	for range need.Rounds(frozenRounds, frozenRoundsLong) {
		for i := range storetest.Members {
			s.cluster.Follow(i)
			s.cluster.Signal(i, syscall.SIGSTOP)
			for range 5 {
				began := time.Now()
				s.changed(1)
				slowest = max(slowest, time.Since(began))
			}
			s.cluster.Signal(i, syscall.SIGCONT)
			s.cluster.Healthy()
		}
	}
	s.whole()
	if state, err := b.ownState(); err != nil || state != "standby" {
		t.Errorf("the standby is %s, %v", state, err)
	}
	t.Logf("%d changes, %d of which were sent again; the slowest took %v", s.acked, s.unanswered, slowest)
}
