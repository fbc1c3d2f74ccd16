package bolt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
)

// ordinary is a commit as one membership makes it: a revision of 400 bytes, an object of
// 300, an audit entry and the outcome of the revision before.
func ordinary(epoch store.Epoch, n uint64) store.Commit {
	c := store.Commit{
		Epoch: epoch, After: n - 1, Revision: bytes.Repeat([]byte("r"), 400),
		Puts: []store.Object{{Key: fmt.Sprintf("member/%05d", n%64000), Value: bytes.Repeat([]byte("o"), 300)}},
		Audit: []store.Entry{{
			Time: time.Date(2026, 11, 22, 12, 0, 0, 1, time.UTC), Caller: "token:0123456789abcdef", Tenant: "blue", Action: "member.put", Object: "blue/p7/0x0002c903000e0b72",
			Decision: store.Accepted, Request: "01890a5d-ac96-774b-bcce-b302099a8057", Revision: n,
		}},
	}
	if n > 1 {
		c.Outcomes = []store.Outcome{{Revision: n - 1, Data: bytes.Repeat([]byte("p"), 200)}}
	}
	return c
}

// BenchmarkCommit: each one is synced.
func BenchmarkCommit(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "store"))
	defer s.Close()
	epoch, err := s.Acquire(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	n := uint64(0)
	for b.Loop() {
		n++
		if _, err := s.Commit(b.Context(), ordinary(epoch, n)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkRefusals: audit entries alone, from 16 callers at once.
func BenchmarkRefusals(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "store"))
	defer s.Close()
	epoch, err := s.Acquire(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	c := store.Commit{Epoch: epoch, Audit: ordinary(epoch, 1).Audit}
	b.SetParallelism(16 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Commit(b.Context(), c); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkHistory makes a store of 100,000 revisions without syncs, and says what it
// takes: bytes of the file for each revision, memory of the process, and times.
func BenchmarkHistory(b *testing.B) {
	const revisions = 100_000
	dir := filepath.Join(b.TempDir(), "store")
	s := open(b, dir)
	epoch, err := s.Acquire(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	s.db.NoSync, s.db.NoGrowSync = true, true
	for n := range uint64(revisions) {
		if _, err := s.Commit(b.Context(), ordinary(epoch, n+1)); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.db.Sync(); err != nil {
		b.Fatal(err)
	}
	s.Close()
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s = open(b, dir)
		if _, _, err := store.VerifyStore(b.Context(), s, nil); err != nil {
			b.Fatal(err)
		}
		var heap runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&heap)
		b.ReportMetric(float64(heap.HeapAlloc)/1e6, "heap-MB")
		b.ReportMetric(residentMB(b), "resident-MB")
		s.Close()
	}
	b.ReportMetric(float64(info.Size())/revisions, "bytes/revision")
}

// residentMB is how much memory of the process is resident, the mapped file included.
func residentMB(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0 // not Linux
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kb float64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		b.Fatal(err)
	}
	return kb / 1e3
}
