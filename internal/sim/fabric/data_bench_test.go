//go:build unix

package fabric_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// BenchmarkDatagram sends checked data packets: UD datagrams from host to host
// through one switch. A checked data packet is one that was
//
//   - posted as a send request at a QP, whose P_Key entry, Q_Key, addresses and
//     sequence number are stamped into its headers, byte by byte;
//   - given its ICRC and its VCRC, computed over all its bytes;
//   - queued by virtual lane and arbitration at the host's port, carried over a link for as
//     long as its bytes take, against credits;
//   - checked by the switch for port state, virtual lane, MTU and, in "enforced", for its
//     P_Key against the table of the entry and against the table of the exit (32
//     entries each, the matching one last); forwarded by the LFT; queued again,
//     sent over the second link against credits;
//   - checked by the receiving port and QP for port state, LID, lengths, versions,
//     opcode, virtual lane, ICRC (computed again over all bytes), service, QP state, P_Key
//     and Q_Key;
//   - copied into the buffer of a receive request, with both completions polled,
//     and counted by the performance counters of all four ports.
//
// The VCRC is not computed a second time at a hop where nobody has touched the
// bytes since (see dataplane_end.go); where a bit was flipped, a virtual lane changed or a
// host injected its own bytes, it is.
//
// Metrics: packets/s by the clock; packets/cpu-s, by the processor time that the
// whole process took, which is what one core does and what other work on the
// machine disturbs least; and crc-ratio, the processor time of a packet as a
// multiple of what computing its ICRC twice and its VCRC once takes alone, in the
// same run, which compares across machines.
func BenchmarkDatagram(b *testing.B) {
	for _, size := range []int{0, 64, 256, 2048} {
		crc := crcTime(b, size)
		for _, c := range []struct {
			name string
			keys int
		}{{"open", 0}, {"enforced", 32}} {
			b.Run(fmt.Sprintf("bytes=%d/%s", size, c.name), func(b *testing.B) {
				f := newQuietBench(b, chain(b, 1), fabric.DefaultConfig())
				if c.keys > 0 {
					f.enforceLast(c.keys)
				}
				s := newStream(f, size)
				b.ReportAllocs()
				b.ResetTimer()
				before := processorTime(b)
				for left := b.N; left > 0; left -= streamWindow {
					s.send(min(left, streamWindow))
				}
				took := processorTime(b) - before
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
				b.ReportMetric(float64(b.N)/took.Seconds(), "packets/cpu-s")
				b.ReportMetric(float64(took)/float64(b.N)/crc, "crc-ratio")
			})
		}
	}
}

// enforceLast lets the switch of a chain of one enforce partitions both ways at
// both ports, by tables whose last entry is the one that matches.
func (b *bench) enforceLast(entries int) {
	keys := make([]ib.PKey, entries)
	for i := range keys {
		keys[i] = ib.PKey(0x8001 + i)
	}
	keys[entries-1] = 0xFFFF
	for num := range ib.PortNum(2) {
		b.keys(switchGUID(1), num+1, keys...)
		b.change(switchGUID(1), num+1, func(p *smp.PortInfo) {
			p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound = true, true
		})
	}
}

// stream is datagrams from the first host of a chain to the last.
type stream struct {
	b            *bench
	from, to     *endpoint.QP
	data, buffer []byte
	done         [streamWindow]endpoint.Completion
}

// streamWindow is how many are on their way at once.
const streamWindow = 64

func newStream(b *bench, size int) *stream {
	return &stream{
		b: b, from: b.qp(hostGUID(1), 0, 7, 0), to: b.qp(hostGUID(2), 0, 7, 0),
		data: make([]byte, size), buffer: make([]byte, size+endpoint.GRHSize),
	}
}

// send sends n datagrams, at most streamWindow, and checks that all arrive.
func (s *stream) send(n int) {
	for range n {
		err := s.to.PostReceive(endpoint.ReceiveRequest{Buffer: s.buffer})
		if err == nil {
			err = s.from.PostSend(endpoint.SendRequest{
				Data: s.data, To: endpoint.Address{DLID: 3}, RemoteQP: s.to.Number(), RemoteQKey: 7,
			})
		}
		if err != nil {
			s.b.t.Fatal(err)
		}
	}
	for s.b.Step() {
	}
	sent, got := s.from.Poll(s.done[:]), s.to.Poll(s.done[:])
	if sent != n || got != n {
		s.b.t.Fatalf("%d of %d left, %d arrived; %s", sent, n, got, s.b.outcomes())
	}
}

// crcTime is the processor time in ns that the CRCs of a datagram of so many bytes take,
// made at one end and checked at the other.
func crcTime(b *testing.B, size int) float64 {
	b.Helper()
	bytes, _, err := packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), false, make([]byte, size))
	if err != nil {
		b.Fatal(err)
	}
	const rounds = 200_000
	before := processorTime(b)
	for range rounds {
		if err := packet.Seal(bytes); err != nil {
			b.Fatal(err)
		}
		if right, err := packet.CheckICRC(bytes); err != nil || !right {
			b.Fatal("a sealed packet has a wrong ICRC")
		}
	}
	return float64(processorTime(b)-before) / rounds
}

// processorTime is what the process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
