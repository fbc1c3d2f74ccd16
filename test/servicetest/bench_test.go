package servicetest

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// hosts waits until the manager has read the fabric and returns the ports of its hosts
// but the manager's.
func hosts(t testing.TB, served *daemon.Served) (list []ib.PortGUID) {
	t.Helper()
	snap := wasRead(t, served)
	self := snap.Fabric.Manager()
	for _, n := range snap.Fabric.Nodes {
		if n.Switch == nil && n != self.Node {
			list = append(list, n.Ports[1].GUID)
		}
	}
	return list
}

// BenchmarkMembership is the time from a request to add or remove one member, by a call
// of the service, to its proof on a fabric of 3,456 hosts where 1,000 partitions of
// 64 members stand: median, 99th percentile, and the processor time of each.
func BenchmarkMembership(b *testing.B) {
	s, served := start(b, "sim:fattree,radix=24,levels=3", b.TempDir())
	guids := hosts(b, served)
	began := time.Now()
	for k := range 1000 {
		c := resource.PutPartition{Partition: resource.Partition{PKey: ib.PKeyBase(k + 1), Name: fmt.Sprintf("p%d", k)}}
		for i := range 64 {
			c.Members = append(c.Members, resource.Member{Port: guids[(k*3+i*53)%len(guids)], Membership: policy.Full})
		}
		if _, err := s.Do(b.Context(), service.Request{Change: c, By: provider, Seen: resource.Unseen, Wait: k == 999}); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("1,000 partitions of 64 members made and proved in %.2f s", time.Since(began).Seconds())
	var took []time.Duration
	b.ResetTimer()
	spent := cpuTime(b)
	for i := range b.N {
		k := ib.PKeyBase(i/2%1000 + 1)
		g := guids[(int(k)*7+11)%len(guids)]
		var c resource.Change = resource.SetMembers{PKey: k, Members: []resource.Member{{Port: g, Membership: policy.Limited}}}
		if i%2 == 1 {
			c = resource.RemoveMembers{PKey: k, Ports: []ib.PortGUID{g}}
		}
		began := time.Now()
		do(b, s, provider, c)
		took = append(took, time.Since(began))
	}
	b.ReportMetric(float64((cpuTime(b)-spent).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// cpuTime is the processor time that this process has taken.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
