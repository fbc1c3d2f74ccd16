package fabric_test

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// bench is a fabric whose every node the test manages from the node itself.
type bench struct {
	t testing.TB
	*fabric.Fabric
	l *topology.Netlist
	// dropped are the sightings of packets that ended without getting anywhere.
	dropped []fabric.DataSighting
	left    []fabric.DataSighting
}

// newBench makes the fabric and gives LID i+1 to the first end port of node i,
// routes that lead there, and brings up every link.
func newBench(t testing.TB, l *topology.Netlist, c fabric.Config) *bench {
	t.Helper()
	b := &bench{t: t, l: l}
	watch := c.DataTrace
	c.DataTrace = func(s fabric.DataSighting) {
		if watch != nil {
			watch(s)
		}
		s.Bytes = append([]byte(nil), s.Bytes...)
		switch {
		case s.Outcome.IsDrop():
			b.dropped = append(b.dropped, s)
		case s.Outcome == fabric.OutcomeLeft:
			b.left = append(b.left, s)
		}
	}
	b.Fabric = newFabric(t, l, c)
	b.bringUp()
	return b
}

// newQuietBench is newBench without the trace.
func newQuietBench(t testing.TB, l *topology.Netlist, c fabric.Config) *bench {
	t.Helper()
	b := &bench{t: t, l: l, Fabric: newFabric(t, l, c)}
	b.bringUp()
	return b
}

func (b *bench) bringUp() {
	b.t.Helper()
	for i, n := range b.l.Nodes {
		num := ib.PortNum(1)
		if n.Type == ib.NodeSwitch {
			num = 0
		}
		b.change(n.GUID, num, func(p *smp.PortInfo) { p.LID, p.MasterSMLID = ib.LID(i+1), 1 })
		if n.Type == ib.NodeSwitch {
			b.route(n)
		}
	}
	for _, n := range b.l.Nodes {
		for num := 1; num <= n.NumPorts(); num++ {
			b.activate(n.GUID, ib.PortNum(num))
		}
	}
}

// manage lets do with a client at end port num of a node.
func (b *bench) manage(g ib.NodeGUID, num ib.PortNum, do func(c *client)) {
	b.t.Helper()
	if b.Agent(g).SwitchInfo() != nil {
		num = 0
	}
	c := attach(b.t, b.Fabric, g, num)
	do(c)
	c.a.Detach()
}

// change reads PortInfo of a port, lets edit change it and writes it back.
func (b *bench) change(g ib.NodeGUID, num ib.PortNum, edit func(p *smp.PortInfo)) {
	b.t.Helper()
	b.manage(g, num, func(c *client) {
		var info smp.PortInfo
		c.get(nil, uint32(num), &info)
		info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
		if info.MasterSMLID == 0 {
			info.MasterSMLID = 1
		}
		if info.NeighborMTU == 0 {
			info.NeighborMTU = ib.MTU256
		}
		if info.LID == 0 {
			info.LID = 1
		}
		edit(&info)
		p := directed(nil, mad.MethodSet, info.ID(), uint32(num))
		if err := info.Encode(&p.Data); err != nil {
			b.t.Fatal(err)
		}
		if _, _, ok := c.ask(p, ib.LIDPermissive); !ok {
			b.t.Fatalf("no answer to Set(PortInfo) of port %d of %v", num, g)
		}
	})
}

// What the project's own manager writes before end ports, and to switches:
// packets wait no longer here than they do under it.
const managersHOQLife, managersLifeTime = 13, 18

// activate brings a port up from Initialize.
func (b *bench) activate(g ib.NodeGUID, num ib.PortNum) {
	b.t.Helper()
	if b.Agent(g).Port(num).PortState != smp.PortInit {
		return
	}
	b.change(g, num, func(p *smp.PortInfo) {
		p.PortState, p.NeighborMTU, p.OperationalVLs = smp.PortArmed, ib.MTU2048, 4
		p.HOQLife = managersHOQLife
	})
	b.change(g, num, func(p *smp.PortInfo) { p.PortState = smp.PortActive })
}

// route fills the linear table of a switch with shortest ways to all LIDs.
func (b *bench) route(sw *topology.Node) {
	b.t.Helper()
	var table smp.LinearForwardingTable
	for i := range table.Ports {
		table.Ports[i] = ib.PortNone
	}
	exit := map[*topology.Node]ib.PortNum{sw: 0}
	for next := []*topology.Node{sw}; len(next) > 0; next = next[1:] {
		if next[0].Type != ib.NodeSwitch {
			continue
		}
		for num := 1; num <= next[0].NumPorts(); num++ {
			peer := next[0].Ports[num].Peer
			if peer == nil {
				continue
			}
			if _, known := exit[peer]; known {
				continue
			}
			exit[peer] = exit[next[0]]
			if next[0] == sw {
				exit[peer] = ib.PortNum(num)
			}
			next = append(next, peer)
		}
	}
	for i, n := range b.l.Nodes {
		if e, ok := exit[n]; ok {
			table.Ports[i+1] = e
		}
	}
	b.manage(sw.GUID, 0, func(c *client) {
		c.set(nil, 0, &table)
		var info smp.SwitchInfo
		c.get(nil, 0, &info)
		info.LinearFDBTop, info.LifeTimeValue = 63, managersLifeTime
		c.set(nil, 0, &info)
	})
}

// keys writes the P_Key table of a port, zeros behind what is given.
func (b *bench) keys(g ib.NodeGUID, num ib.PortNum, keys ...ib.PKey) {
	b.t.Helper()
	var table smp.PKeyTable
	copy(table.Keys[:], keys)
	b.manage(g, num, func(c *client) { c.set(nil, smp.PKeyModifier(num, 0), &table) })
}

// run lets happen what happens by itself, and checks that no packet is left
// over that does not wait for good reason.
func (b *bench) run() {
	b.t.Helper()
	for range 50_000_000 {
		if !b.Step() {
			waiting := 0
			for _, n := range b.l.Nodes {
				for num := 1; num <= n.NumPorts(); num++ {
					waiting += b.DataWaiting(n.GUID, ib.PortNum(num))
				}
			}
			if b.DataInFlight() != waiting {
				b.t.Fatalf("%d packets are left, %d of them wait at a port", b.DataInFlight(), waiting)
			}
			return
		}
	}
	b.t.Fatal("events without end")
}

// idle is run, and no packet may be left at all.
func (b *bench) idle() {
	b.t.Helper()
	b.run()
	if n := b.DataInFlight(); n != 0 {
		b.t.Fatalf("%d packets are left", n)
	}
}

func (b *bench) device(g ib.NodeGUID) *endpoint.Device {
	b.t.Helper()
	d, err := b.Device(g)
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// qp makes a UD QP at a node's first end port that is ready to send, with room for
// n messages.
func (b *bench) qp(g ib.NodeGUID, index uint16, key ib.QKey, n int) *endpoint.QP {
	b.t.Helper()
	num := ib.PortNum(1)
	if b.Agent(g).SwitchInfo() != nil {
		num = 0
	}
	return b.qpAt(g, num, index, key, n)
}

// qpAt is qp at another end port.
func (b *bench) qpAt(g ib.NodeGUID, num ib.PortNum, index uint16, key ib.QKey, n int) *endpoint.QP {
	b.t.Helper()
	q, err := b.device(g).CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD, SendDepth: 1024, ReceiveDepth: 1024})
	if err != nil {
		b.t.Fatal(err)
	}
	b.must(q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrPort|endpoint.AttrPKeyIndex|endpoint.AttrQKey,
		endpoint.Attr{Port: num, PKeyIndex: index, QKey: key}))
	b.must(q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, endpoint.Attr{}))
	b.must(q.Modify(endpoint.Kernel, endpoint.StateRTS, endpoint.AttrSendPSN, endpoint.Attr{}))
	for range n {
		b.must(q.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 4096+endpoint.GRHSize)}))
	}
	return q
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// datagram sends one from q to another QP.
func (b *bench) datagram(q, to *endpoint.QP, dlid ib.LID, key ib.QKey, size int) {
	b.t.Helper()
	b.must(q.PostSend(endpoint.SendRequest{
		Data: make([]byte, size), To: endpoint.Address{DLID: dlid}, RemoteQP: to.Number(), RemoteQKey: key,
	}))
	b.arrived(q)
}

// arrived is how many messages have come in at q, which are polled.
func (b *bench) arrived(q *endpoint.QP) (n int) {
	b.t.Helper()
	for {
		var done [16]endpoint.Completion
		polled := q.Poll(done[:])
		for _, c := range done[:polled] {
			if c.Op == endpoint.OpReceive && c.Status == endpoint.Success {
				n++
			}
		}
		if polled < len(done) {
			return n
		}
	}
}

// outcomes lists what packets were dropped for, for failure messages.
func (b *bench) outcomes() string {
	text := ""
	for outcome, n := range b.DataCounts() {
		if n != 0 {
			text += fmt.Sprintf("%d %v; ", n, fabric.Outcome(outcome))
		}
	}
	return text
}
