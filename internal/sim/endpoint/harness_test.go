package endpoint_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// testPort is a port whose agent is the test.
type testPort struct {
	info smp.PortInfo
	keys []ib.PKey
	size int
	gids []ib.GID
}

func (p *testPort) Info() *smp.PortInfo { return &p.info }
func (p *testPort) PKeys() []ib.PKey    { return p.keys }
func (p *testPort) PKeyTableLen() int   { return p.size }
func (p *testPort) GID(i int) (ib.GID, bool) {
	if i < 0 || i >= len(p.gids) {
		return ib.GID{}, false
	}
	return p.gids[i], true
}

const tableLen = 16

// newPort is an active port with a P_Key table of tableLen entries.
func newPort(lid ib.LID, keys ...ib.PKey) *testPort {
	return &testPort{
		info: smp.PortInfo{
			LID: lid, PortState: smp.PortActive, NeighborMTU: ib.MTU256, MTUCap: ib.MTU4096, GUIDCap: 8,
		},
		keys: keys, size: tableLen, gids: []ib.GID{ib.MakeGID(0xFE80_0000_0000_0001, ib.PortGUID(lid)+0x100)},
	}
}

// node is a device under test with its ports, numbered from 1.
type node struct {
	*endpoint.Device
	net   *net
	ports []*testPort
}

// arrival is what became of a packet.
type arrival struct {
	bytes  []byte
	v      packet.View
	to     *node
	port   ib.PortNum
	reason endpoint.Reason
	bad    endpoint.ViolationKind
	detail smp.BadKeyDetails
}

// net carries the packets of a few nodes to wherever their DLID says, at once.
type net struct {
	t        testing.TB
	now      time.Duration
	nodes    []*node
	sent     []packet.View // all that left a node
	by       []ib.PortNum  // the ports by which it left
	arrivals []arrival
	lose     func(v *packet.View) bool
	spoil    func(raw []byte)
}

func newNet(t testing.TB) *net { return &net{t: t} }

func (n *net) node(flags endpoint.DeviceFlags, ports ...*testPort) *node {
	n.t.Helper()
	c := endpoint.Config{Flags: flags, Ports: make([]endpoint.Port, 1+len(ports))}
	for i, p := range ports {
		c.Ports[i+1] = p
	}
	d, err := endpoint.New(c)
	if err != nil {
		n.t.Fatal(err)
	}
	out := &node{Device: d, net: n, ports: ports}
	n.nodes = append(n.nodes, out)
	return out
}

const counters = endpoint.BadPKeyCounter | endpoint.BadQKeyCounter

// carry moves packets until no node has one to send.
func (n *net) carry() {
	n.t.Helper()
	for range 100_000 {
		moved := false
		for _, from := range n.nodes {
			for i := range from.ports {
				b, ok := from.Send(n.now, ib.PortNum(i+1), endpoint.AllServiceLevels, nil)
				if ok {
					moved = true
					n.by = append(n.by, ib.PortNum(i+1))
					n.forward(b)
				}
			}
		}
		if !moved {
			return
		}
	}
	n.t.Fatal("packets without end")
}

// forward brings one packet to the ports that its DLID names.
func (n *net) forward(b []byte) {
	n.t.Helper()
	v, err := packet.Parse(b)
	if err != nil {
		n.t.Fatalf("a node sent %x: %v", b, err)
	}
	if !packet.CheckVCRC(b) {
		n.t.Fatalf("a node sent a wrong VCRC: %x", b)
	}
	if right, err := packet.CheckICRC(b); v.BTH != nil && (err != nil || !right) {
		n.t.Fatalf("a node sent a wrong ICRC: %x, %v", b, err)
	}
	n.sent = append(n.sent, v)
	if n.lose != nil && n.lose(&v) {
		return
	}
	if n.spoil != nil {
		n.spoil(b)
	}
	for _, to := range n.nodes {
		for i, p := range to.ports {
			lid := v.LRH.DLID()
			if lid == p.info.LID || lid.IsMulticast() && v.LRH.SLID() != p.info.LID {
				n.arrive(to, ib.PortNum(i+1), b)
			}
		}
	}
}

// arrive gives a node a packet and does with violations what an agent does.
func (n *net) arrive(to *node, port ib.PortNum, b []byte) arrival {
	n.t.Helper()
	before := bytes.Clone(b)
	r := to.Receive(n.now, port, b)
	if !bytes.Equal(b, before) {
		n.t.Fatalf("Receive changed %x to %x", before, b)
	}
	v, _ := packet.Parse(b)
	a := arrival{bytes: b, v: v, to: to, port: port, reason: r.Reason}
	if r.Violation != nil {
		a.bad, a.detail = r.Violation.Kind, r.Violation.Offence
		info := &to.ports[port-1].info
		switch r.Violation.Kind {
		case endpoint.BadPKey:
			info.PKeyViolations++
		case endpoint.BadQKey:
			info.QKeyViolations++
		}
	}
	n.arrivals = append(n.arrivals, a)
	return a
}

// pass lets time go by, from one deadline to the next, up to at.
func (n *net) pass(until time.Duration) {
	n.t.Helper()
	for range 10_000 {
		n.carry()
		next := until
		for _, d := range n.nodes {
			if at, ok := d.Deadline(); ok {
				next = min(next, at)
			}
		}
		if next == until {
			n.now = until
			return
		}
		n.now = max(n.now, next)
		for _, d := range n.nodes {
			d.Expire(n.now)
		}
	}
	n.t.Fatal("deadlines without end")
}

// last is what became of the packet that arrived last.
func (n *net) last() arrival {
	n.t.Helper()
	if len(n.arrivals) == 0 {
		n.t.Fatal("no packet arrived")
	}
	return n.arrivals[len(n.arrivals)-1]
}

func (n *net) clear() { n.sent, n.by, n.arrivals = nil, nil, nil }

const qkey ib.QKey = 0x1234

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *node) create(service endpoint.Service, port ib.PortNum) *endpoint.QP {
	d.net.t.Helper()
	q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: service, Port: port})
	must(d.net.t, err)
	return q
}

func modify(t testing.TB, q *endpoint.QP, to endpoint.State, mask endpoint.AttrMask, a endpoint.Attr) {
	t.Helper()
	must(t, q.Modify(endpoint.Kernel, to, mask, a))
}

const (
	udInit = endpoint.AttrPort | endpoint.AttrPKeyIndex | endpoint.AttrQKey
	rcInit = endpoint.AttrPort | endpoint.AttrPKeyIndex
	ucRTR  = endpoint.AttrPath | endpoint.AttrPathMTU | endpoint.AttrRemote | endpoint.AttrReceivePSN
	rcRTR  = ucRTR | endpoint.AttrMinRNRTimer
	ucRTS  = endpoint.AttrSendPSN
	rcRTS  = ucRTS | endpoint.AttrTimeout | endpoint.AttrRetryCount | endpoint.AttrRNRRetryCount
)

// ud is a UD QP in RTS.
func (d *node) ud(port ib.PortNum, index uint16) *endpoint.QP {
	d.net.t.Helper()
	q := d.create(endpoint.UD, 0)
	modify(d.net.t, q, endpoint.StateInit, udInit, endpoint.Attr{Port: port, PKeyIndex: index, QKey: qkey})
	modify(d.net.t, q, endpoint.StateRTR, 0, endpoint.Attr{})
	modify(d.net.t, q, endpoint.StateRTS, endpoint.AttrSendPSN, endpoint.Attr{SendPSN: 0xFFFFFF})
	return q
}

// management is a QP0 or QP1 in RTS.
func (d *node) management(service endpoint.Service, port ib.PortNum) *endpoint.QP {
	d.net.t.Helper()
	q := d.create(service, port)
	for _, s := range []endpoint.State{endpoint.StateInit, endpoint.StateRTR, endpoint.StateRTS} {
		modify(d.net.t, q, s, 0, endpoint.Attr{})
	}
	return q
}

// raw is a raw QP in RTS.
func (d *node) raw(service endpoint.Service, port ib.PortNum) *endpoint.QP {
	d.net.t.Helper()
	q := d.create(service, 0)
	modify(d.net.t, q, endpoint.StateInit, endpoint.AttrPort, endpoint.Attr{Port: port})
	modify(d.net.t, q, endpoint.StateRTR, 0, endpoint.Attr{})
	modify(d.net.t, q, endpoint.StateRTS, 0, endpoint.Attr{})
	return q
}

const ackTimeout ib.TimeValue = 1

// attr is one end of a connection to a port and QP or EE context.
func attr(port ib.PortNum, index uint16, to *testPort, remote uint32) endpoint.Attr {
	return endpoint.Attr{
		Port: port, PKeyIndex: index, Path: endpoint.Address{DLID: to.info.LID}, PathMTU: ib.MTU256, Remote: remote,
		ReceivePSN: 0xFFFFFE, SendPSN: 0xFFFFFE, MinRNRTimer: 1, Timeout: ackTimeout, RetryCount: 3, RNRRetryCount: 2,
	}
}

// connect takes two QPs of RC or UC, each by its node's port and P_Key index, to
// RTS.
func connect(t testing.TB, a, b *endpoint.QP, na, nb *node, port ib.PortNum, ia, ib uint16) {
	t.Helper()
	rtr, rts := rcRTR, rcRTS
	if a.Service() == endpoint.UC {
		rtr, rts = ucRTR, ucRTS
	}
	up := func(q *endpoint.QP, at endpoint.Attr) {
		t.Helper()
		modify(t, q, endpoint.StateInit, rcInit, at)
		modify(t, q, endpoint.StateRTR, rtr, at)
		modify(t, q, endpoint.StateRTS, rts, at)
	}
	up(a, attr(port, ia, nb.ports[port-1], uint32(b.Number())))
	up(b, attr(port, ib, na.ports[port-1], uint32(a.Number())))
}

// pair is two connected QPs on port 1 of two nodes.
func pair(t testing.TB, service endpoint.Service, na, nb *node, ia, ib uint16) (a, b *endpoint.QP) {
	t.Helper()
	a, b = na.create(service, 0), nb.create(service, 0)
	connect(t, a, b, na, nb, 1, ia, ib)
	return a, b
}

// rdNode is a node's part of an RD channel.
type rdNode struct {
	q  *endpoint.QP
	ee *endpoint.EEContext
}

// rdPair is two RD QPs over one channel between port 1 of two nodes.
func rdPair(t testing.TB, na, nb *node, ia, ib uint16) (a, b rdNode) {
	t.Helper()
	return rdPairAt(t, na, nb, 1, 1, ia, ib)
}

// rdPairAt is rdPair between other ports.
func rdPairAt(t testing.TB, na, nb *node, pa, pb ib.PortNum, ia, ib uint16) (a, b rdNode) {
	t.Helper()
	for _, x := range []struct {
		n *node
		r *rdNode
	}{{na, &a}, {nb, &b}} {
		var err error
		x.r.ee, err = x.n.CreateEEContext()
		must(t, err)
		x.r.q = x.n.rd()
	}
	up := func(e *endpoint.EEContext, at endpoint.Attr) {
		t.Helper()
		must(t, e.Modify(endpoint.StateInit, rcInit, at))
		must(t, e.Modify(endpoint.StateRTR, rcRTR, at))
		must(t, e.Modify(endpoint.StateRTS, rcRTS, at))
	}
	up(a.ee, attr(pa, ia, nb.ports[pb-1], b.ee.Number()))
	up(b.ee, attr(pb, ib, na.ports[pa-1], a.ee.Number()))
	return a, b
}

// rd is an RD QP in RTS.
func (d *node) rd() *endpoint.QP {
	d.net.t.Helper()
	q, err := d.CreateRDQP(endpoint.QPConfig{})
	must(d.net.t, err)
	modify(d.net.t, q, endpoint.StateInit, endpoint.AttrQKey, endpoint.Attr{QKey: qkey})
	modify(d.net.t, q, endpoint.StateRTR, 0, endpoint.Attr{})
	modify(d.net.t, q, endpoint.StateRTS, 0, endpoint.Attr{})
	return q
}

// room posts receive requests of 2048 bytes.
func room(t testing.TB, count int, qs ...*endpoint.QP) {
	t.Helper()
	for _, q := range qs {
		for i := range count {
			must(t, q.PostReceive(endpoint.ReceiveRequest{ID: uint64(1000 + i), Buffer: make([]byte, 2048)}))
		}
	}
}

// datagram is a request from a QP of UD to another.
func datagram(to *testPort, q *endpoint.QP, data string) endpoint.SendRequest {
	return endpoint.SendRequest{
		Data: []byte(data), To: endpoint.Address{DLID: to.info.LID}, RemoteQP: q.Number(), RemoteQKey: qkey,
	}
}

// poll takes all completions of a QP.
func poll(q *endpoint.QP) []endpoint.Completion {
	var out []endpoint.Completion
	var c [7]endpoint.Completion
	for {
		n := q.Poll(c[:])
		if n == 0 {
			return out
		}
		out = append(out, c[:n]...)
	}
}

// received takes what a QP has received, and drops the rest of its completions.
func received(q *endpoint.QP) []endpoint.Completion {
	var out []endpoint.Completion
	for _, c := range poll(q) {
		if c.Op >= endpoint.OpReceive {
			out = append(out, c)
		}
	}
	return out
}

// wantStatus checks how the one request of a QP ended.
func wantStatus(t testing.TB, q *endpoint.QP, want endpoint.Status) {
	t.Helper()
	got := poll(q)
	if len(got) != 1 || got[0].Status != want {
		t.Errorf("completions %+v, want one with %v", got, want)
	}
}

func wantState(t testing.TB, q *endpoint.QP, want endpoint.State) {
	t.Helper()
	if got, _ := q.Query(); got != want {
		t.Errorf("QP %d is in %v, want %v", q.Number(), got, want)
	}
}

// wantReason checks what became of the last packet.
func wantReason(t testing.TB, n *net, want endpoint.Reason) {
	t.Helper()
	if got := n.last().reason; got != want {
		t.Errorf("last packet: %v, want %v", got, want)
	}
}

// wantCounters checks the violations of a node's port 1.
func wantCounters(t testing.TB, d *node, pkey, qkey uint32) {
	t.Helper()
	a, err := d.QueryPort(1)
	must(t, err)
	if a.BadPKeyCounter != pkey || a.QKeyViolationCounter != qkey {
		t.Errorf("bad P_Keys %d, bad Q_Keys %d, want %d and %d", a.BadPKeyCounter, a.QKeyViolationCounter, pkey, qkey)
	}
}
