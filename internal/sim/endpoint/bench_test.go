package endpoint_test

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// checked is a UD packet and a QP that takes it, at the end of a P_Key table of
// a hundred entries.
func checked(b testing.TB, size int, key ib.PKey) (*node, *endpoint.QP, []byte) {
	n := newNet(b)
	keys := make([]ib.PKey, 100)
	for i := range keys {
		keys[i] = ib.PKey(0x8001 + i)
	}
	p1, p2 := newPort(1, keys...), newPort(2, keys...)
	p1.size, p2.size = 128, 128
	p1.info.NeighborMTU, p2.info.NeighborMTU = ib.MTU4096, ib.MTU4096
	a, d := n.node(counters, p1), n.node(counters, p2)
	from, to := a.ud(1, 99), d.ud(1, 99)
	r := datagram(p2, to, string(make([]byte, size)))
	p1.keys = append([]ib.PKey{}, keys...)
	p1.keys[99] = key
	must(b, from.PostSend(r))
	p, _ := a.Send(0, 1, endpoint.AllServiceLevels, nil)
	return d, to, p
}

// BenchmarkReceiveUD: a datagram received and its completion polled, ICRC, P_Key
// and Q_Key checked.
func BenchmarkReceiveUD(b *testing.B) {
	for _, size := range []int{64, 256, 2048} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			d, to, p := checked(b, size, 0x8064)
			r := endpoint.ReceiveRequest{Buffer: make([]byte, 4096)}
			var c [1]endpoint.Completion
			b.ReportAllocs()
			for b.Loop() {
				if err := to.PostReceive(r); err != nil {
					b.Fatal(err)
				}
				if got := d.Receive(0, 1, p); got.Reason != endpoint.Taken {
					b.Fatal(got.Reason)
				}
				to.Poll(c[:])
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}

// BenchmarkReceiveBadPKey: a datagram refused for its P_Key.
func BenchmarkReceiveBadPKey(b *testing.B) {
	d, _, p := checked(b, 256, 0x9000)
	b.ReportAllocs()
	for b.Loop() {
		if got := d.Receive(0, 1, p); got.Reason != endpoint.ReasonPKeyBase {
			b.Fatal(got.Reason)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}

// BenchmarkSendUD: a datagram posted, stamped, sealed and polled.
func BenchmarkSendUD(b *testing.B) {
	n := newNet(b)
	a, d := n.node(0, newPort(1, 0xFFFF)), n.node(0, newPort(2, 0xFFFF))
	from := a.ud(1, 0)
	r := datagram(d.ports[0], d.ud(1, 0), string(make([]byte, 256)))
	var c [1]endpoint.Completion
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		if err := from.PostSend(r); err != nil {
			b.Fatal(err)
		}
		buf, _ = a.Send(0, 1, endpoint.AllServiceLevels, buf[:0])
		from.Poll(c[:])
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}

// TestReceiveAllocatesNothing holds for every packet that is checked, taken or
// not.
func TestReceiveAllocatesNothing(t *testing.T) {
	d, to, good := checked(t, 256, 0x8064)
	r := endpoint.ReceiveRequest{Buffer: make([]byte, 4096)}
	var c [1]endpoint.Completion
	if n := testing.AllocsPerRun(100, func() {
		must(t, to.PostReceive(r))
		d.Receive(0, 1, good)
		to.Poll(c[:])
	}); n != 0 {
		t.Errorf("%v allocations for a datagram that is taken", n)
	}
	d, _, bad := checked(t, 256, 0x9000)
	if n := testing.AllocsPerRun(100, func() { d.Receive(0, 1, bad) }); n != 0 {
		t.Errorf("%v allocations for a datagram that is refused", n)
	}
}
