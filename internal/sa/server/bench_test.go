package server

import (
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// BenchmarkPathRecord asks for the path between two hosts of one tenant, as a
// host does: a Get by GIDs. One operation is one query answered.
func BenchmarkPathRecord(b *testing.B) {
	for _, size := range []struct {
		name                    string
		leaves, spines, perLeaf int
	}{{"648", 36, 18, 18}, {"3456", 144, 24, 24}} {
		b.Run(size.name, func(b *testing.B) {
			w := build(size.leaves, size.spines, size.perLeaf)
			w.tenants(8)
			s := w.serve(b, Config{})
			var hosts []*struct {
				lid ib.LID
				gid ib.GID
				key ib.PKey
			}
			for _, p := range s.view.Ports {
				if p.Node.Switch == nil {
					hosts = append(hosts, &struct {
						lid ib.LID
						gid ib.GID
						key ib.PKey
					}{p.LID, p.GID, p.Keys[0]})
				}
			}
			var out [mad.Size]byte
			queries := make([]*[mad.Size]byte, 4096)
			from := make([]ib.LID, len(queries))
			for i := range queries {
				a, c := hosts[i*7%len(hosts)], hosts[(i*7+8*(i%31))%len(hosts)]
				from[i] = a.lid
				queries[i] = ask(mad.MethodGet, sa.AttrPathRecord, sa.PathRecordSGID|sa.PathRecordDGID|sa.PathRecordNumbPath|sa.PathRecordReversible,
					&sa.PathRecord{SGID: a.gid, DGID: c.gid, PathProperties: sa.PathProperties{NumbPath: 1, Reversible: true}}, 0)
			}
			ok := 0
			cpu := used(b)
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				n := i % len(queries)
				s.Receive(time.Duration(i)*time.Microsecond, queries[n], mad.Address{LID: from[n], QP: 1})
				if _, got := s.Next(0, &out); got && out[4] == 0 && out[5] == 0 {
					ok++
				}
			}
			b.StopTimer()
			// On a machine with other work the wall clock says little.
			if cpu = used(b) - cpu; cpu > 0 {
				b.ReportMetric(float64(b.N)/cpu.Seconds(), "queries/CPU-s")
			}
			if ok != b.N {
				b.Fatalf("%d of %d queries found a path", ok, b.N)
			}
		})
	}
}

// used is the CPU time of this process.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
