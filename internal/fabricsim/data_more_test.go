package fabricsim_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/internal/endpoint"
	"github.com/ibwarden/ibwarden/internal/fabricsim"
)

// The same seed gives the same packets at the same times, octet by octet.
func TestDataRepeats(t *testing.T) {
	trace := func(seed uint64) string {
		var text strings.Builder
		c := fabricsim.DefaultConfig()
		c.Seed = seed
		c.DataTrace = func(s fabricsim.DataSighting) { fmt.Fprintf(&text, "%+v\n", s) }
		b := newBench(t, star(t), c)
		b.must(b.SetLinkFault(hostGUID(1), 1, fabricsim.LinkFault{Loss: 0.3, Flips: 0.3}))
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
	b := newBench(t, star(t), fabricsim.DefaultConfig())
	p := b.connect(endpoint.GSI, 0, 1, 0, 0, 0)
	b.must(p.from.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}))
	m := pm.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion,
		Method: mad.MethodGet, AttributeID: pm.AttrPortCounters,
	}}
	m.Data[1] = 1 // PortSelect
	octets, err := m.AppendBinary(nil)
	b.must(err)
	for _, lid := range []ib.LID{3, 1} { // a host, and the switch
		b.must(p.from.PostSend(endpoint.SendRequest{
			Data: octets, To: endpoint.Address{DLID: lid}, RemoteQP: ib.QP1, RemoteQKey: ib.QKeyGSI,
		}))
		b.idle()
		if n := b.arrived(p.from); n != 1 {
			t.Fatalf("LID %v: %d answers; %s", lid, n, b.fates())
		}
		b.must(p.from.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}))
	}
	c := b.Counters(switchGUID(0)).Port(1)
	if c.PortRcvPkts != 2 || c.PortXmitPkts != 2 || c.PortRcvData != 2*72 || c.PortXmitData != 2*72 {
		t.Errorf("port 1 of the switch counted %d packets in, %d out, %d and %d words; want 2, 2, 144, 144",
			c.PortRcvPkts, c.PortXmitPkts, c.PortRcvData, c.PortXmitData)
	}
}

// Nothing that a host puts on the wire is more than a packet that ends somewhere.
func FuzzInject(f *testing.F) {
	f.Add(octetsOf(f, 3, 2, 0xFFFF, 7, 64))
	f.Add(octetsOf(f, 3, 0, 0, 0, 64))
	f.Add([]byte{0xF0})
	b := newQuietBench(f, star(f), fabricsim.DefaultConfig())
	b.qp(hostGUID(2), 0, 7, 4)
	f.Fuzz(func(t *testing.T, octets []byte) {
		b.t = t
		for host := range 3 {
			for range 2 { // as it is, and sealed
				_ = b.Inject(hostGUID(host+1), 1, octets)
				b.AdvanceTo(b.Now() + patience)
				if b.DataInFlight() != 0 || b.CreditsMissing() != 0 {
					t.Fatalf("%d packets left, %d blocks missing", b.DataInFlight(), b.CreditsMissing())
				}
				octets = sealed(octets)
			}
		}
	})
}

// TestInjectNoise is a share of FuzzInject.
func TestInjectNoise(t *testing.T) {
	b := newQuietBench(t, star(t), fabricsim.DefaultConfig())
	r := rand.New(rand.NewPCG(11, 0))
	for range 3000 {
		octets := make([]byte, 1+r.IntN(200))
		for i := range octets {
			octets[i] = byte(r.Uint32())
		}
		b.must(b.Inject(hostGUID(1+r.IntN(3)), 1, sealed(octets)))
		b.AdvanceTo(b.Now() + patience)
		if b.DataInFlight() != 0 || b.CreditsMissing() != 0 {
			t.Fatalf("seed 11: %d packets left, %d blocks missing after %x", b.DataInFlight(), b.CreditsMissing(), octets)
		}
	}
}

// sealed gives octets a length and checksums that are right, where there is room.
func sealed(octets []byte) []byte {
	b := append([]byte(nil), octets...)
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
