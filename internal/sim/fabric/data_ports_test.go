package fabric_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// wideCap is the size of the P_Key tables of wide: more than a block, and no
// multiple of one.
const wideCap = 45

// hostPort is the port by which the hosts of wide are cabled.
const hostPort ib.PortNum = 2

// widePorts are where the hosts of wide are at its switch, host 1 first.
var widePorts = []ib.PortNum{2, 3, 5, 9}

// wide is a switch of nine ports with four hosts of three ports, each cabled by
// hostPort, where port and block numbers cannot be taken for each other. The
// switch has LID 1, the cabled port of host i LID i+1, its first port LID i+21.
func wide(t *testing.T, profile func(n *topology.Node, d *sma.Config)) *bench {
	t.Helper()
	l := &topology.Netlist{Nodes: []*topology.Node{topology.NewNode(ib.NodeSwitch, "s", switchGUID(0), 9)}}
	for i, at := range widePorts {
		h := topology.NewNode(ib.NodeCA, fmt.Sprint("h", i+1), hostGUID(i+1), 3)
		if err := topology.Connect(l.Nodes[0], at, h, hostPort); err != nil {
			t.Fatal(err)
		}
		l.Nodes = append(l.Nodes, h)
	}
	c := fabric.DefaultConfig()
	c.Profile = func(n *topology.Node, d *sma.Config) {
		d.TrapSends, d.PartitionCap = 1, wideCap // nobody represses traps
		if d.Switch != nil {
			d.Switch.PartitionEnforcementCap = wideCap
		}
		if profile != nil {
			profile(n, d)
		}
	}
	b := newBench(t, l, c)
	for i := range widePorts {
		b.change(hostGUID(i+1), 1, func(p *smp.PortInfo) { p.LID = ib.LID(i + 22) })
		b.change(hostGUID(i+1), hostPort, func(p *smp.PortInfo) { p.LID, p.MasterSMLID = ib.LID(i+2), 1 })
	}
	return b
}

// table writes every block of the P_Key table of a port.
func (b *bench) table(g ib.NodeGUID, num ib.PortNum, keys []ib.PKey) {
	b.t.Helper()
	b.manage(g, num, func(c *client) {
		for block := 0; block*smp.PKeysPerBlock < wideCap; block++ {
			var t smp.PKeyTable
			if first := block * smp.PKeysPerBlock; first < len(keys) {
				copy(t.Keys[:], keys[first:])
			}
			c.set(nil, smp.PKeyModifier(num, uint16(block)), &t)
		}
	})
}

// with is a full P_Key table of keys that nobody sends, but for one entry.
func with(at int, key ib.PKey) []ib.PKey {
	keys := make([]ib.PKey, wideCap)
	for i := range keys {
		keys[i] = ib.PKey(0x8100 + i)
	}
	if at >= 0 {
		keys[at] = key
	}
	return keys
}

// wantAt injects a packet at a host and compares its outcome.
func (b *bench) wantAt(id string, host int, bytes []byte, want fabric.Outcome) {
	b.t.Helper()
	b.dropped, b.left = nil, nil
	b.must(b.Inject(hostGUID(host), hostPort, bytes))
	b.idle()
	got := fabric.OutcomeTaken
	if len(b.dropped) > 0 {
		got = b.dropped[0].Outcome
	}
	if got != want {
		b.t.Errorf("%s: %v, want %v", id, got, want)
	}
}

// Which table of a switch decides, for every setting of the bits of two ports.
func TestEnforcementTables(t *testing.T) {
	const key = ib.PKey(0x8005)
	sw := switchGUID(0)
	open := func(t *testing.T, profile func(*topology.Node, *sma.Config)) (*bench, func(key ib.PKey, host int) []byte) {
		b := wide(t, profile)
		qpns := make([]ib.QPN, len(widePorts))
		for i := range widePorts {
			b.table(hostGUID(i+1), hostPort, with(wideCap-1, key))
			qpns[i] = b.qpAt(hostGUID(i+1), hostPort, wideCap-1, 7, 1000).Number()
		}
		return b, func(key ib.PKey, host int) []byte { return bytesOf(t, ib.LID(host+1), qpns[host-1], key, 7, 64) }
	}
	enforce := func(b *bench, num ib.PortNum, in, out bool) {
		b.enforce(num, in, out)
		if p := b.Agent(sw).Port(num); p.PartitionEnforcementInbound != in || p.PartitionEnforcementOutbound != out {
			b.t.Fatalf("port %d checks in %v, out %v; want %v and %v", num, p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound, in, out)
		}
	}
	// From host 2, at port 3, to host 3, at port 5.
	t.Run("SW-02 SW-03 the table that lacks the key stops it, whatever else is checked", func(t *testing.T) {
		b, p := open(t, nil)
		for bits := range 64 {
			bit := func(n int) bool { return bits>>n&1 != 0 }
			in, out, entryHas, exitHas := bit(0), bit(1), bit(2), bit(3)
			for num, has := range map[ib.PortNum]bool{3: entryHas, 5: exitHas} {
				at := -1
				if has {
					at = 7 * int(num) // in another block of each
				}
				b.table(sw, num, with(at, key))
			}
			enforce(b, 3, in, bit(4)) // bits 4 and 5 are for the other way
			enforce(b, 5, bit(5), out)
			want := fabric.OutcomeTaken
			switch {
			case in && !entryHas:
				want = fabric.OutcomeEntryPKey
			case out && !exitHas:
				want = fabric.OutcomeExitPKey
			}
			b.wantAt(fmt.Sprintf("in %v, out %v, entry has it %v, exit has it %v", in, out, entryHas, exitHas), 2, p(key, 3), want)
		}
	})
	t.Run("SW-01 SW-08 a switch without tables passes every key", func(t *testing.T) {
		b, p := open(t, func(_ *topology.Node, d *sma.Config) {
			if d.Switch != nil {
				d.Switch.PartitionEnforcementCap = 0
			}
		})
		for _, num := range widePorts {
			b.enforce(num, true, true)
		}
		for _, key := range []ib.PKey{key, 0x0005} {
			b.wantAt("cap 0", 1, p(key, 4), fabric.OutcomeTaken)
		}
		b.wantAt("cap 0, foreign at the host", 1, p(0x8006, 4), fabric.OutcomeRefused)
	})
	t.Run("SW-06 a table for each port", func(t *testing.T) {
		b, p := open(t, nil)
		for i, num := range widePorts {
			b.table(sw, num, with(11*i+3, key+ib.PKey(16*i)))
			enforce(b, num, true, false)
		}
		for host := range widePorts {
			for i := range widePorts {
				to := (host+1)%len(widePorts) + 1
				want := fabric.OutcomeEntryPKey
				switch {
				case host == i && i == 0: // the key that the receivers have
					want = fabric.OutcomeTaken
				case host == i:
					want = fabric.OutcomeRefused
				}
				b.wantAt(fmt.Sprintf("key of port %d by port %d", widePorts[i], widePorts[host]), host+1, p(key+ib.PKey(16*i), to), want)
			}
		}
	})
	t.Run("SW-09 SW-07 entry cap-1 is checked, and there is no more", func(t *testing.T) {
		b, p := open(t, nil)
		enforce(b, 9, true, false)
		enforce(b, 2, false, true)
		for _, at := range []int{0, 31, 32, wideCap - 1} {
			for _, num := range []ib.PortNum{9, 2} {
				b.table(sw, num, with(at, key))
			}
			b.wantAt(fmt.Sprint("entry ", at), 4, p(key, 1), fabric.OutcomeTaken)
			b.table(sw, 2, with(-1, 0))
			b.wantAt(fmt.Sprint("not in entry ", at, " of the exit"), 4, p(key, 1), fabric.OutcomeExitPKey)
			b.table(sw, 9, with(-1, 0))
			b.wantAt(fmt.Sprint("not in entry ", at, " of the entry"), 4, p(key, 1), fabric.OutcomeEntryPKey)
		}
		b.table(sw, 9, append(with(-1, 0), key)) // behind the end
		b.wantAt("entry cap", 4, p(key, 1), fabric.OutcomeEntryPKey)
		if got := b.Agent(sw).PKeys(9); len(got) != wideCap || slices.Contains(got, key) {
			t.Errorf("the table of port 9 has %d entries, want %d without %v", len(got), wideCap, key)
		}
		b.manage(sw, 0, func(c *client) {
			answer, _, _ := c.ask(directed(nil, mad.MethodSet, smp.AttrPKeyTable, smp.PKeyModifier(9, 2)), ib.LIDPermissive)
			if answer.Status != mad.StatusInvalidField {
				t.Errorf("block 2 of a table of %d entries: status %v", wideCap, answer.Status)
			}
		})
	})
}

// A router's ports check where the device has the option, each by its own table.
func TestRouterEnforcement(t *testing.T) {
	const key, prefix = ib.PKey(0x8005), 0xFEC0_0000_0000_0001
	router := hostGUID(9)
	for _, option := range []bool{false, true} {
		l := &topology.Netlist{Nodes: []*topology.Node{topology.NewNode(ib.NodeRouter, "r", router, 5)}}
		c := fabric.DefaultConfig()
		c.Profile = func(_ *topology.Node, d *sma.Config) {
			d.TrapSends, d.PartitionCap, d.RouterEnforcement = 1, wideCap, option
		}
		for i, at := range []ib.PortNum{2, 5} {
			h := topology.NewNode(ib.NodeCA, fmt.Sprint("h", i+1), hostGUID(i+1), 1)
			if err := topology.Connect(h, 1, l.Nodes[0], at); err != nil {
				t.Fatal(err)
			}
			l.Nodes = append(l.Nodes, h)
		}
		b := newBench(t, l, c)
		for i, at := range []ib.PortNum{2, 5} {
			b.change(router, at, func(p *smp.PortInfo) { p.GIDPrefix, p.LID = prefix+uint64(at), 9 })
			b.change(hostGUID(i+1), 1, func(p *smp.PortInfo) { p.GIDPrefix, p.LID = prefix+uint64(at), 5 })
			b.table(hostGUID(i+1), 1, with(wideCap-1, key))
		}
		from, to := b.qp(hostGUID(1), wideCap-1, 7, 0), b.qp(hostGUID(2), wideCap-1, 7, 99)
		for bits := range 16 {
			in, out, entryHas, exitHas := bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0
			for num, has := range map[ib.PortNum]bool{2: entryHas, 5: exitHas} {
				at := -1
				if has {
					at = wideCap - int(num)
				}
				b.table(router, num, with(at, key))
			}
			b.change(router, 2, func(p *smp.PortInfo) { p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound = in, !in })
			b.change(router, 5, func(p *smp.PortInfo) { p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound = !out, out })
			b.must(from.PostSend(endpoint.SendRequest{
				Data: []byte("hello"), RemoteQP: to.Number(), RemoteQKey: 7,
				To: endpoint.Address{DLID: 9, Global: true, HopLimit: 4, DGID: ib.MakeGID(prefix+5, b.l.Nodes[2].Ports[1].GUID)},
			}))
			b.idle()
			want := 1
			if option && (in && !entryHas || out && !exitHas) {
				want = 0
			}
			if got := b.arrived(to); got != want {
				t.Errorf("SW-01, SW-06: option %v, in %v, out %v, entry has the key %v, exit has it %v: %d arrived, want %d; %s",
					option, in, out, entryHas, exitHas, got, want, b.outcomes())
			}
		}
	}
}

// PI-104: the agent of the port that a datagram came to counts a wrong Q_Key, of
// UD and of RD, and shows the count at bytes 48 and 49.
func TestQKeyViolations(t *testing.T) {
	counts := func(b *bench) (out []uint16) {
		b.manage(hostGUID(3), hostPort, func(c *client) {
			for num := range uint32(3) {
				p := directed(nil, mad.MethodGet, smp.AttrPortInfo, num+1)
				answer, _, ok := c.ask(p, ib.LIDPermissive)
				if !ok || answer.Status != mad.StatusOK {
					b.t.Fatalf("PortInfo of port %d: status %v", num+1, answer.Status)
				}
				out = append(out, binary.BigEndian.Uint16(answer.Data[48:]))
			}
		})
		return out
	}
	t.Run("PI-104 UD", func(t *testing.T) {
		b := wide(t, nil)
		from, to := b.qpAt(hostGUID(1), hostPort, 0, 7, 0), b.qpAt(hostGUID(3), hostPort, 0, 7, 9)
		for i, wrong := range []ib.QKey{8, 7, 0, 0x8001_0000} { // the last is sent as the QP's own, which is right
			b.datagram(from, to, 4, wrong, 64)
			b.idle()
			if got, want := counts(b), []uint16{0, []uint16{1, 1, 2, 2}[i], 0}; !slices.Equal(got, want) {
				t.Errorf("after Q_Key %v: %v, want %v", wrong, got, want)
			}
		}
		if n := b.arrived(to); n != 2 {
			t.Errorf("%d arrived, want 2", n)
		}
	})
	t.Run("PI-104 RD", func(t *testing.T) {
		b := wide(t, nil)
		type side struct {
			q  *endpoint.QP
			ee *endpoint.EEContext
		}
		var ends [2]side
		for i, g := range []ib.NodeGUID{hostGUID(1), hostGUID(3)} {
			var err error
			ends[i].q, err = b.device(g).CreateRDQP(endpoint.QPConfig{})
			b.must(err)
			ends[i].ee, err = b.device(g).CreateEEContext()
			b.must(err)
		}
		for i, e := range ends {
			at := endpoint.Attr{
				Port: hostPort, QKey: 7, Path: endpoint.Address{DLID: []ib.LID{4, 2}[i]}, PathMTU: ib.MTU256, Remote: ends[1-i].ee.Number(),
				MinRNRTimer: 1, Timeout: 10, RetryCount: 3, RNRRetryCount: 2,
			}
			b.must(e.q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrQKey, at))
			b.must(e.q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, at))
			b.must(e.q.Modify(endpoint.Kernel, endpoint.StateRTS, 0, at))
			b.must(e.ee.Modify(endpoint.StateInit, endpoint.AttrPort|endpoint.AttrPKeyIndex, at))
			b.must(e.ee.Modify(endpoint.StateRTR, endpoint.AttrPath|endpoint.AttrPathMTU|endpoint.AttrRemote|endpoint.AttrReceivePSN|endpoint.AttrMinRNRTimer, at))
			b.must(e.ee.Modify(endpoint.StateRTS, endpoint.AttrSendPSN|endpoint.AttrTimeout|endpoint.AttrRetryCount|endpoint.AttrRNRRetryCount, at))
		}
		b.must(ends[1].q.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}))
		for i, key := range []ib.QKey{7, 8} {
			b.must(ends[0].q.PostSend(endpoint.SendRequest{
				Data: []byte("rd"), RemoteQP: ends[1].q.Number(), RemoteQKey: key, EEContext: ends[0].ee.Number(),
			}))
			b.idle()
			if got, want := counts(b), []uint16{0, uint16(i), 0}; !slices.Equal(got, want) {
				t.Errorf("after Q_Key %v: %v, want %v; %s", key, got, want, b.outcomes())
			}
		}
		if n := b.arrived(ends[1].q); n != 1 {
			t.Errorf("%d arrived, want 1", n)
		}
	})
}

// PI-51: a port takes what is for any LID of its range, and nothing beside it,
// be it data or management.
func TestLIDRange(t *testing.T) {
	const base, lmc = ib.LID(40), ib.LMC(2)
	b := wide(t, nil)
	b.change(hostGUID(3), hostPort, func(p *smp.PortInfo) { p.LID, p.LMC = base, lmc })
	b.manage(switchGUID(0), 0, func(c *client) {
		exits := map[ib.LID]ib.PortNum{1: 0, 2: 2}
		for lid := base - 4; lid < base+8; lid++ {
			exits[lid] = 5
		}
		c.route(nil, exits)
	})
	to := b.qpAt(hostGUID(3), hostPort, 0, 7, 99)
	for lid := base - 4; lid < base+8; lid++ {
		own := lid >= base && lid < base+4
		from := b.qpAt(hostGUID(1), hostPort, 0, 7, 0)
		b.datagram(from, to, lid, 7, 64)
		b.idle()
		if got := b.arrived(to); got != 0 != own {
			t.Errorf("LID %v: %d datagrams arrived", lid, got)
		}
		b.manage(hostGUID(1), hostPort, func(c *client) {
			answer, slid, ok := c.ask(byLID(mad.MethodGet, smp.AttrPortInfo, 0), lid)
			if ok != own || ok && (slid != lid || answer.Data[34]&7 != byte(lmc) || binary.BigEndian.Uint16(answer.Data[16:]) != uint16(base)) {
				t.Errorf("LID %v: answered %v, from %v, with %x", lid, ok, slid, answer.Data[:36])
			}
		})
	}
}

// VB-01: pkey_tbl_len is NodeInfo.PartitionCap of the device, on every kind of end
// port, whatever the ports between have.
func TestPKeyTableLen(t *testing.T) {
	caps := map[ib.NodeGUID]uint16{switchGUID(0): 1, hostGUID(1): 33, hostGUID(2): 45, hostGUID(3): 64, hostGUID(4): 1000}
	b := wide(t, func(n *topology.Node, d *sma.Config) {
		d.PartitionCap = caps[n.GUID]
	})
	for g, size := range caps {
		ports := []ib.PortNum{1, 2, 3}
		if g == switchGUID(0) {
			ports = []ib.PortNum{0}
		}
		for _, num := range ports {
			b.manage(g, num, func(c *client) {
				var info smp.NodeInfo
				c.get(nil, 0, &info)
				at, err := b.device(g).QueryPort(num)
				if err != nil || at.PKeyTableLen != int(size) || info.PartitionCap != size {
					t.Errorf("port %d of %v: pkey_tbl_len %d, PartitionCap %d, %v; want %d", num, g, at.PKeyTableLen, info.PartitionCap, err, size)
				}
				if _, err := b.device(g).QueryPKey(num, int(size)-1); err != nil {
					t.Errorf("port %d of %v: the last entry: %v", num, g, err)
				}
				if _, err := b.device(g).QueryPKey(num, int(size)); err == nil {
					t.Errorf("port %d of %v: an entry behind the end", num, g)
				}
			})
		}
	}
}

// SI-16: what an SMP does to the state of a port leaves PortStateChange alone, at the
// port itself and whatever happens to the link by it; what a cable does sets it, and
// so does the other end.
func TestStatesBySMP(t *testing.T) {
	b := wide(t, nil)
	sw := switchGUID(0)
	changed := func() (out bool) {
		b.manage(sw, 0, func(c *client) {
			var info smp.SwitchInfo
			c.get(nil, 0, &info)
			out = info.PortStateChange
		})
		return out
	}
	clear := func() {
		b.manage(sw, 0, func(c *client) {
			var info smp.SwitchInfo
			c.get(nil, 0, &info) // a Set with the bit clears it
			c.set(nil, 0, &info)
		})
		if changed() {
			t.Fatal("PortStateChange was not cleared")
		}
	}
	state := func(g ib.NodeGUID, num ib.PortNum, state smp.PortState) {
		b.change(g, num, func(p *smp.PortInfo) { p.PortState = state })
	}
	for i, num := range widePorts {
		b.must(b.Flap(sw, num, 0))
		if !changed() {
			t.Errorf("port %d: a link that failed did not set PortStateChange", num)
		}
		clear()
		for _, to := range []smp.PortState{smp.PortArmed, smp.PortActive} {
			if state(sw, num, to); changed() || b.Agent(sw).Port(num).PortState != to {
				t.Errorf("port %d: Set to %v: PortStateChange %v, state %v", num, to, changed(), b.Agent(sw).Port(num).PortState)
			}
		}
		// A port that stays down, so that the state after it is the Set's too.
		b.change(sw, num, func(p *smp.PortInfo) { p.PortPhysicalState = smp.PhysDisabled })
		if changed() || b.Agent(sw).Port(num).PortState != smp.PortDown {
			t.Errorf("port %d: Set to Disabled: PortStateChange %v, state %v", num, changed(), b.Agent(sw).Port(num).PortState)
		}
		b.change(sw, num, func(p *smp.PortInfo) { p.PortPhysicalState = smp.PhysPolling })
		clear()
		state(sw, num, smp.PortArmed)
		b.change(sw, num, func(p *smp.PortInfo) { p.LinkDownDefaultState = smp.PhysSleep })
		if state(sw, num, smp.PortDown); changed() || b.Agent(sw).Port(num).PortState != smp.PortDown {
			t.Errorf("port %d: Set to Down: PortStateChange %v, state %v", num, changed(), b.Agent(sw).Port(num).PortState)
		}
		b.change(sw, num, func(p *smp.PortInfo) { p.PortPhysicalState = smp.PhysPolling })
		clear()
		state(hostGUID(i+1), hostPort, smp.PortDown)
		if !changed() {
			t.Errorf("port %d: the other end went down, and PortStateChange is not set", num)
		}
		clear()
	}
}
