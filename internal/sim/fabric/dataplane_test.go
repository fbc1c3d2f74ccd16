package fabric_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

const (
	hostA, hostB ib.NodeGUID = 0x100, 0x200
	lidA, lidB   ib.LID      = 2, 3
	hop                      = 300 * time.Nanosecond
)

// world is two hosts with a cable between them, and the test in the place of the
// fabric around: it keeps the time and is told what concerns management.
type world struct {
	t     *testing.T
	plane *fabric.Plane
	queue fabric.TimelineQueue
	wires *fabric.Wiring
	seen  []fabric.DataSighting
	smps  [][mad.Size]byte
}

func (w *world) Follows(int32, []sma.Effect) {}

func (w *world) LaunchSMP(_ int32, _ ib.PortNum, _ ib.SL, _ ib.PKey, _, _ ib.LID, m *[mad.Size]byte) {
	w.smps = append(w.smps, *m)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	a, b := topology.NewNode(ib.NodeCA, "a", hostA, 1), topology.NewNode(ib.NodeCA, "b", hostB, 1)
	if err := topology.Connect(a, 1, b, 1); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	var err error
	w.wires, err = fabric.NewWiring(&topology.Netlist{Nodes: []*topology.Node{a, b}}, func(n *topology.Node) (*sma.Agent, error) {
		return sma.New(fabric.DeviceProfile(n))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.plane = fabric.NewPlane(fabric.DataplaneConfig{
		Wiring: w.wires, Queue: &w.queue, Random: rand.New(rand.NewPCG(1, 0)), Carrier: w, HopDelay: hop, WireTime: true,
		Trace: func(s fabric.DataSighting) {
			s.Bytes = append([]byte(nil), s.Bytes...)
			w.seen = append(w.seen, s)
		},
	})
	for i := range w.wires.Nodes {
		w.up(i)
	}
	return w
}

// port is the index of port 1 of node i.
func (w *world) port(i int) int32 { return w.wires.Nodes[i].First + 1 }

// up trains and activates port 1 of node i.
func (w *world) up(i int) {
	w.t.Helper()
	n := &w.wires.Nodes[i]
	n.Agent.LinkUp(w.queue.Now, 1, sma.Link{Width: smp.LinkWidth4X, Speed: smp.LinkSpeedQDR})
	w.wires.Ports[w.port(i)].Up = true
	for _, state := range []smp.PortState{smp.PortArmed, smp.PortActive} {
		info := *n.Agent.Port(1)
		info.LID, info.MasterSMLID, info.NeighborMTU, info.OperationalVLs = lidA+ib.LID(i), 1, ib.MTU2048, 1
		info.PortState, info.PortPhysicalState = state, smp.PhysNoChange
		p := mad.SMP{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion, Method: mad.MethodSet,
			AttributeID: smp.AttrPortInfo, AttributeModifier: 1,
		}
		if err := info.Encode(&p.Data); err != nil {
			w.t.Fatal(err)
		}
		if n.Agent.Handle(w.queue.Now, sma.Ingress{Port: 1}, &p); p.Status != mad.StatusOK {
			w.t.Fatalf("Set(PortInfo): status %v", p.Status)
		}
	}
	w.plane.Configure(w.port(i))
}

// run lets all happen.
func (w *world) run() {
	for e, ok := w.queue.Pop(time.Hour); ok; e, ok = w.queue.Pop(time.Hour) {
		w.plane.Event(e)
	}
}

func (w *world) qp(g ib.NodeGUID) *endpoint.QP {
	w.t.Helper()
	d, err := w.plane.Device(g)
	w.must(err)
	q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD})
	w.must(err)
	w.must(q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrPort|endpoint.AttrPKeyIndex|endpoint.AttrQKey, endpoint.Attr{Port: 1, QKey: 7}))
	w.must(q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, endpoint.Attr{}))
	w.must(q.Modify(endpoint.Kernel, endpoint.StateRTS, endpoint.AttrSendPSN, endpoint.Attr{}))
	return q
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// datagram is a sealed one from a to a QP of b.
func (w *world) datagram(qpn ib.QPN, size int) []byte {
	w.t.Helper()
	b, v, err := packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), false, make([]byte, size))
	w.must(err)
	v.LRH.SetSLID(lidA)
	v.LRH.SetDLID(lidB)
	v.BTH.SetPKey(0xFFFF)
	v.BTH.SetDestQP(qpn)
	v.DETH.SetQKey(7)
	w.must(packet.Seal(b))
	return b
}

// outcomes lists what was seen.
func (w *world) outcomes() (out []fabric.Outcome) {
	for _, s := range w.seen {
		out = append(out, s.Outcome)
	}
	return out
}

func (w *world) want(what string, want ...fabric.Outcome) {
	w.t.Helper()
	got := w.outcomes()
	if len(got) != len(want) {
		w.t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			w.t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
	if n, owed := w.plane.InFlight(), w.plane.CreditsOwed(); n != 0 || owed != 0 {
		w.t.Errorf("%s: %d packets are left, %d blocks of room are missing", what, n, owed)
	}
	w.seen = nil
}

// A datagram leaves and is taken, at the time that its bytes need, and both ends count it.
func TestDataplaneDatagram(t *testing.T) {
	w := newWorld(t)
	from, to := w.qp(hostA), w.qp(hostB)
	w.must(to.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 200)}))
	w.must(from.PostSend(endpoint.SendRequest{Data: make([]byte, 100), To: endpoint.Address{DLID: lidB}, RemoteQP: to.Number(), RemoteQKey: 7}))
	w.run()
	bytes := len(w.seen[0].Bytes)
	perThousand := fabric.PerThousand(w.wires.Nodes[0].Agent.Port(1))
	if took, want := w.seen[1].At-w.seen[0].At, hop+perThousand*time.Duration(bytes)/1000; took != want {
		t.Errorf("%d bytes took %v, want %v", bytes, took, want)
	}
	a, b := w.plane.Counters(hostA).Port(1), w.plane.Counters(hostB).Port(1)
	if words := uint64(bytes-packet.VCRCSize) / 4; a.PortXmitPkts != 1 || b.PortRcvPkts != 1 || a.PortXmitData != words || b.PortRcvData != words {
		t.Errorf("%d packets and %d words out, %d and %d in; want 1 and %d", a.PortXmitPkts, a.PortXmitData, b.PortRcvPkts, b.PortRcvData, words)
	}
	w.want("a datagram", fabric.OutcomeLeft, fabric.OutcomeTaken)
}

// What is altered on the wire is found by the VCRC, and by the ICRC when the VCRC
// was made to fit.
func TestAlteredBytes(t *testing.T) {
	w := newWorld(t)
	to := w.qp(hostB)
	w.must(to.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 200)}))
	good := w.datagram(to.Number(), 100)
	for at := range good {
		b := append([]byte(nil), good...)
		b[at] ^= 0x10
		w.must(w.plane.Inject(hostA, 1, b))
		w.run()
		w.want("an altered byte", fabric.OutcomeLeft, fabric.OutcomeVCRC)
		if at < packet.LRHSize || at >= len(b)-packet.VCRCSize {
			continue // the LRH says who may take it; the VCRC is made again
		}
		packet.SealVCRC(b)
		w.must(w.plane.Inject(hostA, 1, b))
		w.run()
		if w.seen[1].Outcome == fabric.OutcomeTaken && at != 12 {
			t.Fatalf("byte %d was altered behind the VCRC, and the packet was taken", at)
		}
		if at == 12 { // of the BTH, which switches may change
			w.want("a byte that the ICRC leaves out", fabric.OutcomeLeft, fabric.OutcomeTaken)
			continue
		}
		if r := w.seen[1].Reason; w.seen[1].Outcome == fabric.OutcomeRefused && r != endpoint.ReasonICRC && r != endpoint.ReasonMalformed {
			t.Errorf("byte %d: refused for %v, want the ICRC or a header that makes no sense", at, r)
		}
		w.seen = nil
	}
	w.must(to.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 200)}))
	w.must(w.plane.Inject(hostA, 1, good))
	w.run()
	w.want("the packet as it was", fabric.OutcomeLeft, fabric.OutcomeTaken)
}

// Flips happen on the wire: the sender's counters move, the receiver counts an error.
func TestFlips(t *testing.T) {
	w := newWorld(t)
	to := w.qp(hostB)
	w.must(w.plane.SetLinkFault(hostA, 1, fabric.LinkFault{Flips: 1}))
	for range 50 {
		w.must(w.plane.Inject(hostA, 1, w.datagram(to.Number(), 60)))
		w.run()
		flipped := 0
		good := w.datagram(to.Number(), 60)
		for i, x := range w.seen[1].Bytes {
			for d := x ^ good[i]; d != 0; d &= d - 1 {
				flipped++
			}
		}
		if flipped > fabric.MaxFlips || flipped%2 != fabric.MaxFlips%2 {
			t.Fatalf("%d bits were flipped, want %d, or less where one was hit twice", flipped, fabric.MaxFlips)
		}
		w.seen = nil
	}
	if c := w.plane.Counters(hostB).Port(1); c.PortRcvErrors < 45 || c.LocalPhysicalErrors < 45 {
		t.Errorf("%d errors counted, %d of them physical, of 50", c.PortRcvErrors, c.LocalPhysicalErrors)
	}
}

// A link that goes down takes with it what is on it and what waits for it.
func TestLinkLost(t *testing.T) {
	w := newWorld(t)
	to := w.qp(hostB)
	w.must(w.plane.Withhold(hostB, 1, true))
	for range 9 { // seven fill the virtual lane
		w.must(w.plane.Inject(hostA, 1, w.datagram(to.Number(), 2048)))
	}
	for range 3 { // some are on their way
		e, _ := w.queue.Pop(time.Hour)
		w.plane.Event(e)
	}
	w.plane.LinkFailed(w.port(0))
	for i := range 2 {
		w.wires.Ports[w.port(i)].Up = false
		w.plane.LinkLost(w.port(i))
		w.wires.Nodes[i].Agent.LinkDown(w.queue.Now, 1)
	}
	w.run()
	if n := w.plane.InFlight(); n != 0 {
		t.Errorf("%d packets are left", n)
	}
	down := w.plane.Counts()[fabric.OutcomeLinkDown]
	if down == 0 || w.plane.Counters(hostA).Port(1).LinkDownedCounter != 1 {
		t.Errorf("%d were lost with the link, %d times counted", down, w.plane.Counters(hostA).Port(1).LinkDownedCounter)
	}
	w.must(w.plane.Withhold(hostB, 1, false))
	for i := range 2 {
		w.up(i)
	}
	if owed := w.plane.CreditsOwed(); owed != 0 {
		t.Errorf("%d blocks of room are missing on the link that came up", owed)
	}
}

// Subnet management leaves the data path: to the carrier, and from it to QP0.
func TestSubnetManagement(t *testing.T) {
	w := newWorld(t)
	var m [mad.Size]byte
	m[0], m[1] = 1, byte(mad.ClassSubnLID)
	p := packet.MADPacket{QP: ib.QP0, SLID: lidA, DLID: lidB, MAD: m[:]}
	bytes, err := p.AppendBinary(nil)
	w.must(err)
	w.must(w.plane.Inject(hostA, 1, bytes))
	if len(w.smps) != 1 || w.smps[0] != m || w.plane.Counts()[fabric.OutcomeManagement] != 1 {
		t.Fatalf("%d packets came to the carrier, want the one", len(w.smps))
	}
	if w.plane.DeliverSMP(1, 1, 0, ib.PKeyDefaultFull, lidA, lidB, &m) {
		t.Error("a port without a QP0 took a packet for it")
	}
	d, err := w.plane.Device(hostB)
	w.must(err)
	q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.SMI, Port: 1})
	w.must(err)
	w.must(q.Modify(endpoint.Kernel, endpoint.StateInit, 0, endpoint.Attr{}))
	w.must(q.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}))
	w.must(q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, endpoint.Attr{}))
	if !w.plane.DeliverSMP(1, 1, 0, ib.PKeyDefaultFull, lidA, lidB, &m) {
		t.Error("QP0 did not take a packet")
	}
	var done [1]endpoint.Completion
	if q.Poll(done[:]) != 1 || done[0].SLID != lidA {
		t.Errorf("completion %+v", done[0])
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	bad := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err := w.plane.Device(0x999)
	bad(err, "no such node")
	bad(w.plane.Inject(0x999, 1, []byte{1}), "no such node")
	bad(w.plane.Inject(hostA, 2, []byte{1}), "want 1 to 1")
	bad(w.plane.Inject(hostA, 1, nil), "0 bytes")
	bad(w.plane.Inject(hostA, 1, make([]byte, packet.MaxSize+1)), "want 1 to")
	bad(w.plane.SetLinkFault(hostA, 1, fabric.LinkFault{Loss: 2}), "want probabilities")
	bad(w.plane.SetLinkFault(hostA, 1, fabric.LinkFault{Delay: -1}), "no delay below 0")
	bad(w.plane.Withhold(hostA, 0, true), "want 1 to 1")
	bad(w.plane.SetSpoiling(0x999, true), "no such node")
	w.wires.Nodes[0].Off = true
	w.plane.PowerOff(0)
	_, err = w.plane.Device(hostA)
	bad(err, "is off")
	w.must(w.plane.Inject(hostA, 1, []byte{1, 2, 3}))
	w.want("a node that is off", fabric.OutcomeLinkDown)
	if w.plane.Counters(0x999) != nil {
		t.Error("a node that there is not has counters")
	}
}
