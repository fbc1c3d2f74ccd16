package etcd

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// BenchmarkCommit: one commit after the other to three members of this machine.
func BenchmarkCommit(b *testing.B) {
	c := startCluster(b)
	s := c.open(b, DefaultPrefix)
	defer s.Close()
	epoch, err := s.Acquire(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	n := uint64(0)
	for b.Loop() {
		if _, err := s.Commit(b.Context(), storetest.Next(epoch, n, store.Object{Key: "member", Value: make([]byte, 300)})); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "commits/s")
}
