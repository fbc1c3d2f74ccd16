package fabric_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// The same seed gives the same packets at the same times, byte by byte.
func TestDataRepeats(t *testing.T) {
	trace := func(seed uint64) string {
		var text strings.Builder
		c := fabric.DefaultConfig()
		c.Seed = seed
		c.Profile = func(_ *topology.Node, d *sma.Config) { d.TrapSends = 2 } // nobody represses those of soft errors
		c.DataTrace = func(s fabric.DataSighting) { fmt.Fprintf(&text, "%+v\n", s) }
		b := newBench(t, star(t), c)
		b.must(b.SetLinkFault(hostGUID(1), 1, fabric.LinkFault{Loss: 0.3, Flips: 0.3}))
		q, to := b.qp(hostGUID(1), 0, 7, 0), b.qp(hostGUID(2), 0, 7, 64)
		for range 64 {
			b.datagram(q, to, 3, 7, 100)
		}
		b.idle()
		return text.String()
	}
	if a, b := trace(3), trace(3); a != b || a == "" {
		t.Error("two runs of one seed differ")
	}
	if trace(3) == trace(4) {
		t.Error("two seeds give the same losses")
	}
}

// A performance agent answers at QP1 through the switch, and its counters have
// moved by what passed.
func TestPerformanceOverTheWire(t *testing.T) {
	b := newBench(t, star(t), fabric.DefaultConfig())
	p := b.connect(endpoint.GSI, 0, 1, 0, 0, 0)
	b.must(p.from.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}))
	m := pm.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion,
		Method: mad.MethodGet, AttributeID: pm.AttrPortCounters,
	}}
	m.Data[1] = 1 // PortSelect
	bytes, err := m.AppendBinary(nil)
	b.must(err)
	for _, lid := range []ib.LID{3, 1} { // a host, and the switch
		b.must(p.from.PostSend(endpoint.SendRequest{
			Data: bytes, To: endpoint.Address{DLID: lid}, RemoteQP: ib.QP1, RemoteQKey: ib.QKeyGSI,
		}))
		b.idle()
		if n := b.arrived(p.from); n != 1 {
			t.Fatalf("LID %v: %d answers; %s", lid, n, b.outcomes())
		}
		b.must(p.from.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}))
	}
	c := b.Counters(switchGUID(0)).Port(1)
	if c.PortRcvPkts != 2 || c.PortXmitPkts != 2 || c.PortRcvData != 2*72 || c.PortXmitData != 2*72 {
		t.Errorf("port 1 of the switch counted %d packets in, %d out, %d and %d words; want 2, 2, 144, 144",
			c.PortRcvPkts, c.PortXmitPkts, c.PortRcvData, c.PortXmitData)
	}
}

// Both ends count a link that failed, not one that a manager took down; and a node
// that was off has forgotten what it counted.
func TestLinkDowned(t *testing.T) {
	config := fabric.DefaultConfig()
	config.Profile = func(_ *topology.Node, d *sma.Config) { d.TrapSends = 1 }
	b := newBench(t, star(t), config)
	sw, h := switchGUID(0), hostGUID(1)
	want := func(what string, atSwitch, atHost uint64) {
		t.Helper()
		got := [2]uint64{b.Counters(sw).Port(1).LinkDownedCounter, b.Counters(h).Port(1).LinkDownedCounter}
		if got != [2]uint64{atSwitch, atHost} {
			t.Errorf("%s: counted %d at the switch, %d at the host; want %d and %d", what, got[0], got[1], atSwitch, atHost)
		}
	}
	b.change(sw, 1, func(p *smp.PortInfo) { p.PortState = smp.PortDown })
	b.idle()
	want("taken down by a Set", 0, 0)
	b.must(b.Flap(sw, 1, 0))
	b.idle()
	want("a flap", 1, 1)
	b.must(b.Reboot(h))
	b.idle()
	want("a reboot of the host", 2, 0)
	b.must(b.Unlink(sw, 1))
	want("the cable is pulled", 3, 1)
}

// What a switch's own packets meet is no error of receiving; what comes in by a port is.
func TestRelayErrorsOfPorts(t *testing.T) {
	b := newBench(t, star(t), fabric.DefaultConfig())
	b.want("to nowhere", bytesOf(t, 40, 2, 0xFFFF, 7, 0), fabric.OutcomeNoRoute)
	own := b.qp(switchGUID(0), 0, 7, 0)
	b.datagram(own, own, 40, 7, 8)
	b.idle()
	if n := len(b.dropped); n != 2 || b.dropped[1].Port != 0 || b.dropped[1].Outcome != fabric.OutcomeNoRoute {
		t.Fatalf("%d packets were dropped: %s", n, b.outcomes())
	}
	c := b.Counters(switchGUID(0))
	if one, zero := c.Port(1), c.Port(0); one.PortRcvSwitchRelayErrors != 1 || one.DLIDMappingErrors != 1 || *zero != (pma.Port{}) {
		t.Errorf("port 1 counts %d and %d, port 0 %+v; want 1, 1 and nothing", one.PortRcvSwitchRelayErrors, one.DLIDMappingErrors, *zero)
	}
}

// Nothing that a host puts on the wire is more than a packet that ends somewhere.
func FuzzInject(f *testing.F) {
	f.Add(bytesOf(f, 3, 2, 0xFFFF, 7, 64))
	f.Add(bytesOf(f, 3, 0, 0, 0, 64))
	f.Add([]byte{0xF0})
	b := newQuietBench(f, star(f), fabric.DefaultConfig())
	b.qp(hostGUID(2), 0, 7, 4)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		b.t = t
		for host := range 3 {
			for range 2 { // as it is, and sealed
				_ = b.Inject(hostGUID(host+1), 1, bytes)
				b.AdvanceTo(b.Now() + patience)
				if b.DataInFlight() != 0 || b.CreditsMissing() != 0 {
					t.Fatalf("%d packets left, %d blocks missing", b.DataInFlight(), b.CreditsMissing())
				}
				bytes = sealed(bytes)
			}
		}
	})
}

// TestInjectNoise is a share of FuzzInject.
func TestInjectNoise(t *testing.T) {
	b := newQuietBench(t, star(t), fabric.DefaultConfig())
	r := rand.New(rand.NewPCG(11, 0))
	for range 3000 {
		bytes := make([]byte, 1+r.IntN(200))
		for i := range bytes {
			bytes[i] = byte(r.Uint32())
		}
		b.must(b.Inject(hostGUID(1+r.IntN(3)), 1, sealed(bytes)))
		b.AdvanceTo(b.Now() + patience)
		if b.DataInFlight() != 0 || b.CreditsMissing() != 0 {
			t.Fatalf("seed 11: %d packets left, %d blocks missing after %x", b.DataInFlight(), b.CreditsMissing(), bytes)
		}
	}
}

// sealed gives bytes a length and checksums that are right, where there is room.
func sealed(bytes []byte) []byte {
	b := append([]byte(nil), bytes...)
	for len(b)%4 != 2 {
		b = append(b, 0)
	}
	if h, err := packet.ParseLRH(b); err == nil {
		h.SetLVer(0)
		h.SetPktLen(uint16((len(b) - 2) / 4))
		_ = packet.Seal(b)
	}
	return b
}
