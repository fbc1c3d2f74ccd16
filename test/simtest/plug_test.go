package simtest

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// foreign is a device at a plug: its agent is one of ours, reached by packets alone.
type foreign struct {
	t      *testing.T
	w      *world
	plug   *fabric.Plug
	agent  *sma.Agent
	up     bool
	got    [][]byte // data packets
	heard  int      // answers to its own requests
	silent bool
}

// plugIn puts a foreign device in the place of a host.
func (w *world) plugIn(id string) *foreign {
	w.t.Helper()
	d := &foreign{t: w.t, w: w}
	var err error
	if d.agent, err = sma.New(fabric.DeviceProfile(w.node(id))); err != nil {
		w.t.Fatal(err)
	}
	if d.plug, err = w.fabric.Plug(w.node(id).GUID, d); err != nil {
		w.t.Fatal(err)
	}
	d.poll(true)
	return d
}

func (d *foreign) poll(on bool) {
	d.plug.Poll(on, smp.LinkWidth4X, smp.LinkSpeedSDR)
}

func (d *foreign) LinkUp(l sma.Link) {
	d.up = true
	d.agent.LinkUp(d.w.fabric.Now(), 1, l)
}

func (d *foreign) LinkDown() {
	d.up = false
	d.agent.LinkDown(d.w.fabric.Now(), 1)
}

func (d *foreign) Receive(bytes []byte) {
	v, err := packet.Parse(bytes)
	right, bad := packet.CheckICRC(bytes)
	if err != nil || bad != nil || !right || !packet.CheckVCRC(bytes) {
		d.t.Errorf("a packet that is not right: %v, %v, %v: %x", err, bad, right, bytes)
		return
	}
	if v.LRH.VL() != ib.VLManagement {
		d.got = append(d.got, append([]byte(nil), bytes...))
		return
	}
	m := [mad.Size]byte(v.Payload)
	if mad.Method(m[mad.OffsetMethod]).IsResponse() {
		if to := fabric.Direct(&m, fabric.DirectedLocation{Ports: 1, In: 1}); to.Action == fabric.TakeByManager {
			d.heard++
		}
		return
	}
	directed := mad.Class(m[mad.OffsetClass]) == mad.ClassSubnDirected
	if directed {
		if to := fabric.Direct(&m, fabric.DirectedLocation{Ports: 1, In: 1}); to.Action != fabric.Take {
			d.t.Errorf("a directed route that does not end here: %+v", to)
			return
		}
	}
	var p mad.SMP
	if p.UnmarshalBinary(m[:]) != nil || d.silent || d.agent.Handle(d.w.fabric.Now(), sma.Ingress{Port: 1, SLID: v.LRH.SLID()}, &p).Verdict != sma.Answered || p.Encode(&m) != nil {
		return
	}
	answer := packet.MADPacket{QP: ib.QP0, SLID: v.LRH.DLID(), DLID: v.LRH.SLID(), SL: v.LRH.SL(), MAD: m[:]}
	if directed {
		if to := fabric.Direct(&m, fabric.DirectedLocation{Ports: 1, In: 1, Origin: true}); to.Action != fabric.Leave {
			d.t.Errorf("an answer that does not leave: %+v", to)
			return
		}
		answer.MAD = m[:]
	}
	d.send(answer.AppendBinary(nil))
}

// send sends in a moment: the fabric is in the middle of something.
func (d *foreign) send(bytes []byte, err error) {
	if err != nil {
		d.t.Error(err)
		return
	}
	d.w.fabric.At(d.w.fabric.Now()+time.Microsecond, func() {
		if err := d.plug.Send(bytes); err != nil {
			d.t.Error(err)
		}
	})
}

// TestPlug: a device that is not simulated takes the place of a host. The manager brings it up by its
// packets, gives it what the policy gives the host, and its switch keeps it to that; when it goes, the
// host is back.
func TestPlug(t *testing.T) {
	w := toldWorld(t)
	keys := w.agent(w.host("red-1").node).PKeys(1)
	d := w.plugIn("red-1")
	if d.agent.Port(1).LID != 0 {
		t.Error("it has a LID before anybody gave it one")
	}
	w.calm()
	info := d.agent.Port(1)
	if !d.up || info.PortState != smp.PortActive || info.LID == 0 || info.LinkSpeedActive != smp.LinkSpeedSDR {
		t.Fatalf("up %v, PortInfo %v", d.up, info)
	}
	if got := d.agent.PKeys(1); len(got) < len(keys) || got[0] != keys[0] {
		t.Errorf("P_Keys %v, want those of the host: %v", got, keys)
	}

	// Data: to a host of its own partition and back, and to one of another.
	friend, stranger := w.host("red-2"), w.host("blue-1")
	qp := w.listens(friend)
	before := w.fabric.DataCounts()
	const red, blue = ib.PKey(0x8010), ib.PKey(0x8020)
	d.send(datagram(t, info.LID, w.lid("red-2"), w.agent(friend.node).PKeys(1)[0]|0x8000, qp, 7), nil)
	w.run(time.Millisecond)
	if now := w.fabric.DataCounts(); now[fabric.OutcomeRefused] != before[fabric.OutcomeRefused]+1 { // for want of a receive
		t.Errorf("a datagram within the partition did not arrive: %v after %v", now, before)
	}
	w.must(w.fabric.Inject(friend.node, 1, datagram(t, w.lid("red-2"), info.LID, red, 5, 7)))
	w.run(time.Millisecond)
	if len(d.got) != 1 {
		t.Errorf("%d datagrams came in, want 1", len(d.got))
	}
	before = w.fabric.DataCounts()
	w.must(w.fabric.Inject(stranger.node, 1, datagram(t, w.lid("blue-1"), info.LID, red, 5, 7)))
	d.send(datagram(t, info.LID, w.lid("blue-1"), blue, 5, 7), nil)
	w.run(time.Millisecond)
	if now := w.fabric.DataCounts(); len(d.got) != 1 || now[fabric.OutcomeEntryPKey] != before[fabric.OutcomeEntryPKey]+2 {
		t.Errorf("across: %d came in; %v after %v", len(d.got), now, before)
	}

	// The cable, and the device's own port.
	w.must(w.fabric.Flap(w.host("red-1").node, 1, time.Millisecond))
	if d.up {
		t.Error("it is not told that the link is down")
	}
	w.calm()
	if !d.up || d.agent.Port(1).PortState != smp.PortActive {
		t.Errorf("after the cable was back: %v", d.agent.Port(1).PortState)
	}
	d.poll(false)
	if peer, _ := w.peer(w.host("red-1")); d.up || w.info(peer).PortState != smp.PortDown {
		t.Error("the link of a device that does not look for a peer is up")
	}

	// What was attached to the host, or speaks for it, is refused; then the host comes back.
	if _, err := w.fabric.Device(w.host("red-1").node); err == nil {
		t.Error("there is an end node where the device is")
	}
	if err := w.fabric.Reboot(w.host("red-1").node); err == nil {
		t.Error("the simulator reboots a device that is not its own")
	}
	w.must(d.plug.Unplug())
	if err := d.plug.Send([]byte{1}); err == nil {
		t.Error("a device that was taken away sends")
	}
	w.calm()
	if got := w.agent(w.host("red-1").node).PKeys(1); len(got) == 0 || got[0] != keys[0] {
		t.Errorf("the host is back, with P_Keys %v", got)
	}
}

// TestPlugRefused: who can be replaced.
func TestPlugRefused(t *testing.T) {
	w := newWorld(t, setup{list: topology.Demo(), policy: halves(hosts(topology.Demo())).policy()})
	w.plugIn("red-1")
	for _, g := range []ib.NodeGUID{w.node("leaf-1").GUID, w.self.node, w.node("red-1").GUID, 0xdead} {
		if _, err := w.fabric.Plug(g, &foreign{}); err == nil {
			t.Errorf("a device takes the place of %v", g)
		}
	}
}

// TestPlugsTalk: a device outside asks another by directed route, as Linux's qib does: with the LID of
// its port as the source, and answers sent to the LID from which a request seems to come.
func TestPlugsTalk(t *testing.T) {
	w := toldWorld(t)
	d := w.plugIn("red-1") // at leaf-1:2
	w.plugIn("red-5")      // at leaf-1:3
	w.calm()
	m := mad.SMP{
		BaseVersion: 1, Class: mad.ClassSubnDirected, ClassVersion: 1, Method: mad.MethodGet, AttributeID: smp.AttrNodeInfo,
		MKey: 0x00C0FFEE00C0FFEE, HopCount: 2, HopPointer: 1, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
	}
	m.InitialPath[1], m.InitialPath[2] = 1, 3
	var bytes [mad.Size]byte
	w.must(m.Encode(&bytes))
	sent := packet.MADPacket{QP: ib.QP0, SLID: d.agent.Port(1).LID, DLID: ib.LIDPermissive, MAD: bytes[:]}
	d.send(sent.AppendBinary(nil))
	w.run(time.Millisecond)
	if d.heard != 1 {
		t.Errorf("%d answers, want 1", d.heard)
	}
}
