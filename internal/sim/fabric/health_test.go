package fabric_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// says is DiagCode and PortState of a port of a node, asked by its port through.
func (b *bench) says(g ib.NodeGUID, through, num ib.PortNum) (code uint16, state smp.PortState) {
	b.t.Helper()
	b.manage(g, through, func(c *client) {
		p := directed(nil, mad.MethodGet, smp.AttrPortInfo, uint32(num))
		answer, _, ok := c.ask(p, ib.LIDPermissive)
		if !ok || answer.Status != mad.StatusOK {
			b.t.Fatalf("PortInfo of port %d of %v: %v, status %v", num, g, ok, answer.Status)
		}
		// DiagCode is at byte 24, PortState in the low bits of byte 32.
		code, state = uint16(answer.Data[24])<<8|uint16(answer.Data[25]), smp.PortState(answer.Data[32]&0x0F)
	})
	return code, state
}

// What DiagCode says is what a port does.
func TestDiagCode(t *testing.T) {
	// flows sends a datagram each way between hosts 1 and 3 and tells how many arrive.
	flows := func(b *bench) (n int) {
		q := [2]*endpoint.QP{b.qpAt(hostGUID(1), hostPort, 0, 7, 1), b.qpAt(hostGUID(3), hostPort, 0, 7, 1)}
		for i, lid := range []ib.LID{4, 2} {
			b.must(q[i].PostSend(endpoint.SendRequest{
				Data: make([]byte, 64), To: endpoint.Address{DLID: lid}, RemoteQP: q[1-i].Number(), RemoteQKey: 7,
			}))
		}
		b.run()
		return b.arrived(q[0]) + b.arrived(q[1])
	}
	up := func(b *bench) {
		for _, g := range []ib.NodeGUID{hostGUID(3), switchGUID(0)} {
			num := hostPort
			if g == switchGUID(0) {
				num = 5
			}
			for _, state := range []smp.PortState{smp.PortArmed, smp.PortActive} {
				b.change(g, num, func(p *smp.PortInfo) { p.PortState, p.NeighborMTU, p.OperationalVLs = state, ib.MTU2048, 4 })
			}
		}
	}
	for _, c := range []struct {
		id      string
		code    smp.DiagCode
		carries bool
	}{
		{"VD-04 ready", 0, true}, {"VD-06 self-test", 0x0001, false}, {"VD-07 initializing", 0x0002, false},
		{"VD-08 soft error", 0x0003, true}, {"VD-08 soft error with more to say", 0x8143, true},
		{"VD-09 hard failure", 0x0004, false}, {"VD-09 hard failure with more to say", 0x8014, false},
	} {
		t.Run(c.id, func(t *testing.T) {
			b := wide(t, nil)
			if n := flows(b); n != 2 {
				t.Fatalf("%d of 2 arrived before anything was wrong", n)
			}
			b.must(b.SetDiagCode(hostGUID(3), hostPort, c.code))
			up(b) // as far as the port lets itself be brought up
			code, state := b.says(hostGUID(3), hostPort, hostPort)
			if code != uint16(c.code) || (state == smp.PortActive) != c.carries || !c.carries && state != smp.PortInit {
				t.Errorf("reads DiagCode %#04x, %v", code, state)
			}
			want := 0
			if c.carries {
				want = 2
			}
			if n := flows(b); n != want {
				t.Errorf("DiagCode %#04x: %d of 2 datagrams arrived, want %d; %s", uint16(c.code), n, want, b.outcomes())
			}
			for _, num := range []ib.PortNum{1, 3} { // another port of the host is well
				if other, _ := b.says(hostGUID(3), hostPort, num); other != 0 {
					t.Errorf("port %d reads DiagCode %#04x", num, other)
				}
			}
			b.must(b.SetDiagCode(hostGUID(3), hostPort, 0))
			up(b)
			if n := flows(b); n != 2 {
				t.Errorf("well again: %d of 2 arrived; %s", n, b.outcomes())
			}
		})
	}
	t.Run("VD-09 port 0", func(t *testing.T) {
		for _, enhanced := range []bool{false, true} {
			b := wide(t, func(_ *topology.Node, d *sma.Config) {
				if d.Switch != nil {
					d.Switch.EnhancedPort0 = enhanced
				}
			})
			if enhanced {
				for _, state := range []smp.PortState{smp.PortArmed, smp.PortActive} {
					b.change(switchGUID(0), 0, func(p *smp.PortInfo) { p.PortState, p.NeighborMTU, p.OperationalVLs = state, ib.MTU2048, 4 })
				}
			}
			reach := func() int {
				from, to := b.qpAt(hostGUID(1), hostPort, 0, 7, 0), b.qpAt(switchGUID(0), 0, 0, 7, 1)
				b.datagram(from, to, 1, 7, 64)
				b.run()
				return b.arrived(to)
			}
			for code, want := range map[smp.DiagCode]int{0: 1, 3: 1} {
				b.must(b.SetDiagCode(switchGUID(0), 5, code))
				if n := reach(); n != want {
					t.Errorf("enhanced %v, DiagCode %d: %d arrived at port 0, want %d; %s", enhanced, code, n, want, b.outcomes())
				}
			}
			b.must(b.SetDiagCode(switchGUID(0), 0, 4))
			if code, _ := b.says(switchGUID(0), 0, 0); code != 4 || reach() != 0 {
				t.Errorf("enhanced %v: DiagCode reads %d, and port 0 receives", enhanced, code)
			}
			if n := flows(b); n != 2 {
				t.Errorf("enhanced %v: the switch relays %d of 2: its other ports have no DiagCode", enhanced, n)
			}
		}
	})
	t.Run("VD-06 VD-07 start-up", func(t *testing.T) {
		const test, train = 3 * time.Second, 2 * time.Second
		b := wide(t, nil)
		quick, err := fabric.New(b.l, fabric.Config{SelfTest: test, TrainDelay: train, Profile: func(*topology.Node, *sma.Config) {}})
		b.must(err)
		b.Fabric = quick
		g := hostGUID(3)
		want := func(when string, code uint16, state smp.PortState) {
			t.Helper()
			if got, is := b.says(g, 1, hostPort); got != code || is != state {
				t.Errorf("%s: reads DiagCode %d, %v; want %d, %v", when, got, is, code, state)
			}
		}
		want("before", 0, smp.PortInit) // links that are cabled from the start are up at once
		b.must(b.Reboot(g))
		start := b.Now()
		want("switched on", smp.DiagSelfTest, smp.PortDown)
		if got, _ := b.says(switchGUID(0), 0, 0); got != 0 {
			t.Errorf("the switch reads DiagCode %d", got)
		}
		b.AdvanceTo(start + test - time.Millisecond)
		want("nearly tested", smp.DiagSelfTest, smp.PortDown)
		b.AdvanceTo(start + test)
		want("tested", smp.DiagInitializing, smp.PortDown)
		if got, _ := b.says(g, 1, 1); got != 0 {
			t.Errorf("port 1, which has no cable, reads DiagCode %d", got)
		}
		b.AdvanceTo(start + test + train - time.Millisecond)
		want("nearly trained", smp.DiagInitializing, smp.PortDown)
		b.AdvanceTo(start + test + train)
		want("trained", 0, smp.PortInit)
		b.must(b.Unlink(g, hostPort))
		want("without a cable", 0, smp.PortDown)
		b.must(b.Link(g, hostPort, switchGUID(0), 5))
		want("a new cable", smp.DiagInitializing, smp.PortDown)
		b.must(b.PowerOff(switchGUID(0)))
		b.AdvanceTo(b.Now() + 2*train)
		want("the other end is off", 0, smp.PortDown)
	})
}

// Blocks of VendorDiag are those of one port, and others can be put there.
func TestVendorDiag(t *testing.T) {
	b := wide(t, nil)
	at := func(g ib.NodeGUID, num ib.PortNum, index uint32) (d smp.VendorDiag) {
		b.manage(g, num, func(c *client) { c.get(nil, index, &d) })
		return d
	}
	block := smp.VendorDiag{NextIndex: 7, DiagData: [62]byte{'a', 61: 'z'}}
	b.must(b.SetVendorDiag(hostGUID(3), 2, 1, block))
	b.must(b.SetVendorDiag(switchGUID(0), 5, 0xFFFF, block))
	for _, c := range []struct {
		g     ib.NodeGUID
		num   ib.PortNum
		index uint32
		want  smp.VendorDiag
	}{
		{hostGUID(3), 2, 1, block}, {hostGUID(3), 1, 1, smp.VendorDiag{}}, {hostGUID(3), 3, 1, smp.VendorDiag{}},
		{hostGUID(3), 2, 7, smp.VendorDiag{}}, {hostGUID(2), 2, 1, smp.VendorDiag{}}, {switchGUID(0), 0, 0xFFFF, block},
	} {
		if got := at(c.g, c.num, c.index); got != c.want {
			t.Errorf("block %d of port %d of %v: %+v, want %+v", c.index, c.num, c.g, got, c.want)
		}
	}
	if b.SetVendorDiag(hostGUID(3), 4, 1, block) == nil || b.SetDiagCode(hostGUID(3), 4, 1) == nil || b.SetDiagCode(0xFFFF, 1, 1) == nil {
		t.Error("no error for a port or node that is not there")
	}
	b.must(b.PowerOff(hostGUID(3)))
	if b.SetDiagCode(hostGUID(3), 2, 1) == nil {
		t.Error("no error for a node that is off")
	}
}
