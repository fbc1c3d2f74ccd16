package fabricsim_test

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/endpoint"
	"github.com/ibwarden/ibwarden/internal/fabricsim"
)

// BenchmarkDatagram sends UD datagrams from host to host through a switch that
// enforces partitions at both ports: P_Key at two ports and the receiver, ICRC,
// VCRC, Q_Key.
func BenchmarkDatagram(b *testing.B) {
	for _, size := range []int{0, 64, 2048} {
		for _, c := range []struct {
			name  string
			entry ib.PKey
			keys  int
		}{{"open", 0, 0}, {"enforced", 0xFFFF, 32}} {
			b.Run(fmt.Sprintf("octets=%d/%s", size, c.name), func(b *testing.B) {
				f := newQuietBench(b, chain(b, 1), fabricsim.DefaultConfig())
				if c.keys > 0 {
					keys := make([]ib.PKey, c.keys)
					for i := range keys {
						keys[i] = ib.PKey(0x8001 + i)
					}
					keys[c.keys-1] = c.entry
					for num := range ib.PortNum(2) {
						f.keys(switchGUID(1), num+1, keys...)
						f.change(switchGUID(1), num+1, func(p *smp.PortInfo) {
							p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound = true, true
						})
					}
				}
				from, to := f.qp(hostGUID(1), 0, 7, 0), f.qp(hostGUID(2), 0, 7, 0)
				data, buffer := make([]byte, size), make([]byte, size+endpoint.GRHSize)
				var done [64]endpoint.Completion
				b.ReportAllocs()
				b.ResetTimer()
				sent, got := 0, 0
				for got < b.N {
					for n := min(64, b.N-sent); n > 0; n-- {
						err := to.PostReceive(endpoint.ReceiveRequest{Buffer: buffer})
						if err == nil {
							err = from.PostSend(endpoint.SendRequest{
								Data: data, To: endpoint.Address{DLID: 3}, RemoteQP: to.Number(), RemoteQKey: 7,
							})
						}
						if err != nil {
							b.Fatal(err)
						}
						sent++
					}
					for f.Step() {
					}
					from.Poll(done[:])
					for n := len(done); n == len(done); {
						n = to.Poll(done[:])
						got += n
					}
					if got != sent {
						b.Fatalf("%d of %d arrived; %s", got, sent, f.fates())
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
			})
		}
	}
}
