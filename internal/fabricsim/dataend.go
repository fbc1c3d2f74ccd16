package fabricsim

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/endpoint"
	"github.com/ibwarden/ibwarden/internal/fabricsim/endnode"
	"github.com/ibwarden/ibwarden/internal/fabricsim/fate"
	"github.com/ibwarden/ibwarden/internal/fabricsim/timeline"
	"github.com/ibwarden/ibwarden/internal/relay"
	"github.com/ibwarden/ibwarden/internal/sma"
)

// Device is the end node of a CA, router or switch: its queue pairs, whose
// packets the fabric carries. It is another after the node was off, and what was
// made on the earlier one is cut off from the fabric.
func (f *Fabric) Device(g ib.NodeGUID) (*endpoint.Device, error) {
	i, ok := f.byGUID[g]
	switch {
	case !ok:
		return nil, fmt.Errorf("device: node %v: no such node in this fabric", g)
	case f.nodes[i].off:
		return nil, fmt.Errorf("device: node %v is off", g)
	}
	return f.device(i), nil
}

// device makes sure of the end node of node i.
func (f *Fabric) device(i int32) *endpoint.Device {
	n, data := &f.nodes[i], f.dataOf(i)
	if data.device != nil {
		return data.device
	}
	ports := make([]endpoint.Port, int(n.last)+1)
	for num := range ports {
		if n.endPort(ib.PortNum(num)) == ib.PortNum(num) && n.agent.Port(ib.PortNum(num)) != nil {
			ports[num] = f.endPortAt(i, ib.PortNum(num))
		}
	}
	if n.isSwitch {
		ports = ports[:1]
	}
	var device *endpoint.Device
	wake := func(num ib.PortNum) {
		if n := &f.nodes[i]; n.data.device == device && !n.off {
			f.sendAt(n.first+int32(num), max(f.now, f.dataAt(n.first+int32(num)).busy))
		}
	}
	device, err := endpoint.New(endpoint.Config{
		Flags: endpoint.BadPKeyCounter | endpoint.BadQKeyCounter, Ports: ports, Wake: wake,
	})
	if err != nil {
		return nil // every node has an end port
	}
	data.device = device
	for num, p := range ports {
		if p != nil {
			f.dataAt(n.first + int32(num)).seen = f.endPortAt(i, ib.PortNum(num)).Look()
		}
	}
	return device
}

// announce tells the consumer of an end node what an effect means for him.
func (f *Fabric) announce(at int32, e *sma.Effect) {
	n := &f.nodes[at]
	if n.endPort(e.Port) != e.Port {
		return
	}
	device, p := n.data.device, f.dataAt(n.first+int32(e.Port))
	switch e.Kind {
	case sma.PKeysChanged:
		device.Announce(endpoint.EventPKeyChange, e.Port)
	case sma.Reregister:
		device.Announce(endpoint.EventClientReregister, e.Port)
	case sma.StateChanged:
		active := n.agent.Port(e.Port).PortState == smp.PortActive
		switch {
		case active && !p.seen.Active:
			device.Announce(endpoint.EventPortActive, e.Port)
		case !active && p.seen.Active:
			device.Announce(endpoint.EventPortError, e.Port)
		}
		p.seen.Active = active
		f.sendAt(n.first+int32(e.Port), max(f.now, p.busy))
	}
}

// afterSet brings what a manager has written into the data path of a node.
func (f *Fabric) afterSet(at int32) {
	n := &f.nodes[at]
	for i := n.first; i <= n.first+int32(n.last); i++ {
		p := f.ports[i].data
		if p == nil {
			continue
		}
		f.configure(i)
		num := f.ports[i].num
		if n.data.device == nil || n.endPort(num) != num || n.agent.Port(num) == nil {
			continue
		}
		now := f.endPortAt(at, num).Look()
		now.Tell(n.data.device, num, &p.seen)
		p.seen = now
	}
}

// fill takes packets from an end node for those lanes of its port i in which
// none waits.
func (f *Fabric) fill(i int32) {
	at := &f.ports[i]
	n := &f.nodes[at.node]
	device := n.data.device
	for device == n.data.device && device.Ready(at.num) {
		levels := endpoint.AllServiceLevels
		if at.data.out.Len() > 0 {
			levels = 0
			for sl := range ib.SL(smp.SLCount) {
				if at.data.out.Waiting(n.agent.VL(0, at.num, sl)) == 0 {
					levels |= 1 << sl
				}
			}
		}
		if !f.originate(at.node, at.num, levels) {
			return
		}
	}
}

// sendOwn lets the end node behind port 0 of a switch, which is port i, send
// one packet.
func (f *Fabric) sendOwn(i int32) {
	at := &f.ports[i]
	device := f.nodes[at.node].data.device
	if device == nil || !device.Ready(0) || !f.originate(at.node, 0, endpoint.AllServiceLevels) {
		return
	}
	if device.Ready(0) {
		f.sendAt(i, f.now+ownPace)
	}
}

// ownPace is the time between two packets from port 0 of a switch.
const ownPace = 100 * time.Nanosecond

// originate takes the next packet from an end node, and reports whether there
// was one.
func (f *Fabric) originate(at int32, num ib.PortNum, levels endpoint.ServiceLevels) bool {
	n := &f.nodes[at]
	device := n.data.device
	buf, ok := device.Send(f.now, num, levels, f.data.buf[:0])
	f.data.buf = buf
	f.armDevice(at)
	if !ok {
		return false
	}
	if (*packet.LRH)(buf).VL() == ib.VLManagement {
		f.launchSMP(buf, at, num)
		return true
	}
	d := f.data.take()
	if d == nil {
		f.fates[FateBuffer]++
		return true
	}
	// The buffers change places, so that nothing is copied.
	d.octets, f.data.buf = buf, d.octets
	d.sound = true
	f.start(d, at, num)
	return true
}

// start sends a node's own packet, which came from port num of it.
func (f *Fabric) start(d *datum, at int32, num ib.PortNum) {
	n := &f.nodes[at]
	d.firstBit, d.port = f.now, n.first+int32(num)
	h, v := relay.Read(d.octets)
	switch {
	case v != relay.Pass:
		f.end(d, FateMalformed, at, num)
	case n.isSwitch:
		f.relayData(d, at, 0, &h)
	case n.agent.HasLID(num, h.LRH.DLID()):
		f.reachEnd(d, at, num)
	default:
		vl, v := relay.Leave(n.agent, 0, num, &h)
		if v != relay.Pass {
			f.end(d, fate.OfVerdict(v), at, num)
			return
		}
		p := f.ports[d.port].data
		ok, why := p.out.Enqueue(f.now, handle(d), vl, blocksOf(len(d.octets)), f.now)
		if !ok {
			f.end(d, fate.OfReason(why), at, num)
		}
	}
}

// arriveAtEnd takes a packet that came in by the link of a CA or router port.
func (f *Fabric) arriveAtEnd(d *datum, at int32, num ib.PortNum, h *relay.Headers) {
	n := &f.nodes[at]
	if h.GRH != nil && n.source.Type == ib.NodeRouter && n.agent.HasLID(num, h.LRH.DLID()) && !f.endPortAt(at, num).OwnsGID(h.GRH.DGID()) {
		f.route(d, at, num, h)
		return
	}
	if d.spoiled {
		f.end(d, FateEntryPKey, at, num)
		return
	}
	f.reachEnd(d, at, num)
}

// route passes a packet on to another subnet. The router knows the LIDs there
// by the GUIDs, as if it had asked the subnet's administration.
func (f *Fabric) route(d *datum, at int32, in ib.PortNum, h *relay.Headers) {
	n := &f.nodes[at]
	exit, v := relay.Cross(n.agent, in, h)
	if v != relay.Pass {
		f.end(d, fate.OfVerdict(v), at, in)
		return
	}
	g, num, ok := f.EndPort(h.GRH.DGID().PortGUID())
	if !ok || f.Agent(g).Port(num).LID == 0 {
		f.end(d, FateNoRoute, at, in)
		return
	}
	h.Readdress(n.agent.Port(exit).LID, f.Agent(g).Port(num).LID)
	f.leave(d, at, in, exit, h)
}

// reachEnd gives a packet to the performance agent or the end node of a node.
func (f *Fabric) reachEnd(d *datum, at int32, num ib.PortNum) {
	n := &f.nodes[at]
	if f.perform(d, at, num) {
		return
	}
	device := f.device(at)
	r := device.Receive(f.now, num, d.octets)
	switch {
	case r.Reason == endpoint.Taken:
		f.see(d, FateTaken, at, num, r.Reason)
	default:
		f.see(d, FateRefused, at, num, r.Reason)
		f.countRefusal(d, at, num, r.Reason)
	}
	f.release(d)
	f.data.put(d.index)
	if r.Violation != nil {
		if r.Violation.Kind == endpoint.BadPKey {
			f.follows(at, n.agent.BadPKey(f.now, num, r.Violation.Offence))
		} else {
			f.follows(at, n.agent.BadQKey(f.now, num, r.Violation.Offence))
		}
	}
	f.armDevice(at)
}

// countRefusal moves the counters of an end port that refused a packet.
func (f *Fabric) countRefusal(d *datum, at int32, num ib.PortNum, why endpoint.Reason) {
	p := f.nodes[at].data.counters.Port(num)
	switch why {
	case endpoint.ReasonPKeyBase, endpoint.ReasonMembership:
		p.PortRcvConstraintErrors++
	case endpoint.ReasonMalformed, endpoint.ReasonICRC:
		p.PortRcvErrors++
		p.MalformedPacketErrors++
	case endpoint.ReasonNoReceive:
		if v, err := packet.Parse(d.octets); err == nil && v.BTH != nil && v.BTH.DestQP() == ib.QP1 {
			p.QP1Dropped++
		}
	}
}

// perform answers a request to the node's performance agent, which stands behind
// QP1 whoever else does. It reports false for all else, and for what QP1 would
// refuse, so that the end node refuses it.
func (f *Fabric) perform(d *datum, at int32, num ib.PortNum) bool {
	if h, _ := relay.Read(d.octets); h.BTH == nil || h.BTH.DestQP() != ib.QP1 {
		return false // most packets
	}
	octets, ok := f.endPortAt(at, num).Perform(f.dataOf(at).counters, d.octets)
	if !ok {
		return false
	}
	f.see(d, FateTaken, at, num, endpoint.Taken)
	f.release(d)
	d.octets, d.sound, d.spoiled, d.raw, d.crossed = append(d.octets[:0], octets...), true, false, false, 0
	f.start(d, at, num)
	i := f.nodes[at].first + int32(num)
	f.sendAt(i, max(f.now, f.dataAt(i).busy))
	return true
}

// endPortAt is port num of node at, an end port, as it is at any time.
func (f *Fabric) endPortAt(at int32, num ib.PortNum) *endnode.Port {
	return &endnode.Port{Agent: func() *sma.Agent { return f.nodes[at].agent }, Number: num}
}

// armDevice makes sure of an event at the deadline of an end node.
func (f *Fabric) armDevice(at int32) {
	data := f.nodes[at].data
	due, ok := data.device.Deadline()
	if !ok || data.timer != noTimer && data.timer <= due {
		return
	}
	data.timer = max(due, f.now)
	f.queue.Push(timeline.NoLane, data.timer, kindDevice, at)
}

// deviceTimer lets an end node do what is due.
func (f *Fabric) deviceTimer(e timeline.Event) {
	data := f.nodes[e.Subject].data
	if data == nil || data.device == nil || data.timer != e.At {
		return
	}
	data.timer = noTimer
	data.device.Expire(f.now)
	f.armDevice(e.Subject)
}

// launchSMP carries on a packet of lane 15 as a subnet-management packet.
func (f *Fabric) launchSMP(octets []byte, at int32, num ib.PortNum) {
	v, err := packet.Parse(octets)
	if err != nil || v.DETH == nil || v.BTH.DestQP() != ib.QP0 || len(v.Payload) != mad.Size {
		f.dataOf(at).counters.Port(num).VL15Dropped++
		f.fates[FateMalformed]++
		return
	}
	f.counts.Sent++
	p := f.newCarried()
	if p == nil {
		f.counts.Discarded[DiscardBuffer]++
		return
	}
	p.mad = [mad.Size]byte(v.Payload)
	p.node, p.port, p.sl, p.slid, p.dlid = at, num, v.LRH.SL(), v.LRH.SLID(), v.LRH.DLID()
	f.fates[FateManagement]++
	class := mad.Class(p.mad[offClass])
	if class != mad.ClassSubnLID && class != mad.ClassSubnDirected {
		f.discard(p, DiscardClass)
		return
	}
	f.launch(p, at, num)
}

// deliverToDevice gives a subnet-management packet to the QP0 of an end node.
func (f *Fabric) deliverToDevice(p *carried, at int32, num ib.PortNum) bool {
	data := f.nodes[at].data
	if data == nil || data.device == nil || !data.device.HasSMI(num) {
		return false
	}
	m := packet.MADPacket{QP: ib.QP0, SLID: p.slid, DLID: p.dlid, SL: p.sl, MAD: p.mad[:]}
	octets, err := m.AppendBinary(nil)
	if err != nil {
		return false
	}
	taken := data.device.Receive(f.now, num, octets).Reason == endpoint.Taken
	f.armDevice(at)
	return taken
}

// Inject puts octets on the wire at an end port, as a host could whose adapter
// obeys nobody: whatever stands in them, CRCs included, they go out unchanged. A
// packet of lane 15 that holds a datagram for QP0 is carried on as such; all
// else that names a lane waits its turn there if the port has it.
func (f *Fabric) Inject(g ib.NodeGUID, num ib.PortNum, octets []byte) error {
	i, err := f.external(g, num)
	switch {
	case err != nil:
		return fmt.Errorf("inject: %w", err)
	case f.nodes[f.ports[i].node].isSwitch:
		return fmt.Errorf("inject: node %v is a switch: want an end port", g)
	case len(octets) == 0 || len(octets) > packet.MaxSize:
		return fmt.Errorf("inject: %d octets: want 1 to %d", len(octets), packet.MaxSize)
	}
	f.inject(i, octets)
	return nil
}

func (f *Fabric) inject(i int32, octets []byte) {
	at := &f.ports[i]
	p := f.dataAt(i)
	d := f.data.take()
	if d == nil {
		f.fates[FateBuffer]++
		return
	}
	d.octets = append(d.octets, octets...)
	d.firstBit, d.port, d.raw = f.now, i, true
	if !at.up || f.nodes[at.node].off {
		f.end(d, FateLinkDown, at.node, at.num)
		return
	}
	vl := ib.VLManagement
	if len(octets) >= packet.LRHSize {
		vl = (*packet.LRH)(octets).VL()
	}
	right, err := packet.CheckICRC(octets)
	if vl == ib.VLManagement && packet.CheckVCRC(octets) && err == nil && right {
		f.launchSMP(octets, at.node, at.num)
		f.data.put(d.index)
		return
	}
	if ok, _ := p.out.Enqueue(f.now, handle(d), vl, blocksOf(len(octets)), f.now); ok {
		f.send(i)
		return
	}
	f.transmit(i, d, ib.VLManagement) // on a lane that the port has not: nobody keeps room for it
}
