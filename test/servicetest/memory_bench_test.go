package servicetest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// revisions is how many BenchmarkRevisions makes.
const revisions = 100_000

// BenchmarkRevisions is the memory of the whole service (API, store, manager and the
// simulated fabric of the demonstration, all in one process) after 100,000 revisions, and
// what these revisions add to it. The store is on a file system in memory, where there
// is one, which this process is not charged for.
func BenchmarkRevisions(b *testing.B) {
	for range b.N {
		dir, err := os.MkdirTemp("/dev/shm", "ibwarden-bench-")
		if err != nil {
			dir = b.TempDir()
		}
		defer os.RemoveAll(dir)
		b.Setenv("TMPDIR", dir)
		s := serveAPI(b, "sim")
		guids := hosts(b, s.manager)
		for k := range 10 {
			do(b, s.Service, provider, resource.PutPartition{Partition: resource.Partition{PKey: ib.PKeyBase(k + 1), Name: "p" + strconv.Itoa(k)}})
		}
		before := heap()
		began := time.Now()
		for i := range revisions {
			k, g := ib.PKeyBase(i/2%10+1), guids[i/20%len(guids)]
			var c resource.Change = resource.SetMembers{PKey: k, Members: []resource.Member{{Port: g, Membership: policy.Limited}}}
			if i%2 == 1 {
				c = resource.RemoveMembers{PKey: k, Ports: []ib.PortGUID{g}}
			}
			r, err := s.Do(b.Context(), service.Request{Change: c, By: provider, Seen: resource.Unseen, Wait: i == revisions-1})
			if err != nil {
				b.Fatal(err)
			}
			if want := uint64(10 + i + 1); r.Revision != want {
				b.Fatalf("change %d made revision %d: want %d", i, r.Revision, want)
			}
		}
		b.ReportMetric(revisions/time.Since(began).Seconds(), "revisions/s")
		after := heap()
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(mega(after), "heap-MB")
		b.ReportMetric(mega(after)-mega(before), "added-MB")
		b.ReportMetric(residentMB(b), "rss-MB")
		b.ReportMetric(sizeMB(b, dir), "store-MB")
	}
}

// heap is what is in use on the heap, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one finalized
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func mega(raw uint64) float64 { return float64(raw) / 1e6 }

// residentMB is the memory of this process as the kernel has it; 0 where it does not say.
func residentMB(b *testing.B) float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(data, []byte("VmRSS:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kB, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kB / 1000
}

// sizeMB is the size of the files in a directory.
func sizeMB(b *testing.B, dir string) (sum float64) {
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			sum += float64(info.Size()) / 1e6
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}
