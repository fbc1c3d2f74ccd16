package fabric_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// A datagram goes from host to host through a switch, if every key fits.
func TestDatagram(t *testing.T) {
	b := newBench(t, chain(t, 1), fabric.DefaultConfig())
	from, to := b.qp(hostGUID(1), 0, 7, 0), b.qp(hostGUID(2), 0, 7, 8)
	b.datagram(from, to, 3, 7, 100)
	b.idle()
	if n := b.arrived(to); n != 1 {
		t.Fatalf("%d arrived; %s", n, b.outcomes())
	}
	b.keys(switchGUID(1), 1, 0x8001)
	b.change(switchGUID(1), 1, func(p *smp.PortInfo) { p.PartitionEnforcementInbound = true })
	b.datagram(from, to, 3, 7, 100)
	b.idle()
	if n := b.arrived(to); n != 0 || len(b.dropped) != 1 || b.dropped[0].Outcome != fabric.OutcomeEntryPKey {
		t.Fatalf("%d arrived; %s", n, b.outcomes())
	}
	if n := b.Agent(switchGUID(1)).Port(1).PKeyViolations; n != 1 {
		t.Errorf("PKeyViolations %d, want 1", n)
	}
	b.keys(switchGUID(1), 1, 0x8001, 0xFFFF)
	b.datagram(from, to, 3, 7, 100)
	b.idle()
	if n := b.arrived(to); n != 1 {
		t.Fatalf("%d arrived; %s", n, b.outcomes())
	}
	for range 5 { // at once: each leaves when the wire is idle again
		b.must(from.PostSend(endpoint.SendRequest{
			Data: make([]byte, 100), To: endpoint.Address{DLID: 3}, RemoteQP: to.Number(), RemoteQKey: 7,
		}))
	}
	b.idle()
	if n := b.arrived(to); n != 5 {
		t.Fatalf("%d of five arrived; %s", n, b.outcomes())
	}
}
