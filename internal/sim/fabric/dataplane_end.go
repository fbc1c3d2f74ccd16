// dataplane*.go: moves data packets in a simulated fabric: end nodes send
// and receive, switches and routers forward, links lose and corrupt packets.
// It works on the devices and cables of package wiring and on an event queue
// of package timeline. Subnet management belongs to package fabric, which executes
// events (Event), reports faults of devices and links,
// and answers for agents and subnet management (Carrier).
//
//	New, Event                    a data plane, and its events
//	Device, Inject                end nodes, and hosts that follow no rules
//	Configure, AfterSet, Announce changes by an agent
//	PowerOff, LinkLost, LinkFailed   what went down
//	SetLinkFault, Withhold, SetReckless, SetSpoiling, SetLoss   faults of links and devices
//	Counts, InFlight, Waiting, Counters, Config.Trace   the outcomes
//
// Package relay decides for switches and routers, package
// egress for virtual lanes, credits and lifetimes, package endpoint for end nodes;
// package outcome lists the results.
//
// The headers of a packet are parsed once and its VCRC is computed once, as long as
// its bytes do not change. A link that flips a bit, a host that injects bytes,
// and a relay that changes the virtual lane or the address cause them to be parsed or
// checked again at the next port. The receiver always checks the ICRC.

package fabric

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/relay"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Device is the end node of a CA, router or switch: its queue pairs, whose
// packets the fabric carries. It is another after the node was off, and what was
// made on the earlier one is cut off from the fabric.
func (pl *Plane) Device(g ib.NodeGUID) (*endpoint.Device, error) {
	i, ok := pl.wiring.Index(g)
	switch {
	case !ok:
		return nil, fmt.Errorf("device: node %v: no such node in this fabric", g)
	case pl.nodes[i].Off:
		return nil, fmt.Errorf("device: node %v is off", g)
	}
	return pl.device(i), nil
}

// PowerOff takes away the end node of node at: what was made on it is cut off. Its
// performance counters begin again.
func (pl *Plane) PowerOff(at int32) {
	data := pl.ends[at]
	if data == nil {
		return
	}
	data.device, data.timer = nil, dataplaneNoTimer
	for num := range pl.nodes[at].Last + 1 {
		if p := data.counters.Port(num); p != nil {
			*p = pma.Port{}
		}
	}
}

// device makes sure of the end node of node i.
func (pl *Plane) device(i int32) *endpoint.Device {
	n, data := &pl.nodes[i], pl.end(i)
	if data.device != nil {
		return data.device
	}
	ports := make([]endpoint.Port, int(n.Last)+1)
	for num := range ports {
		if n.EndPort(ib.PortNum(num)) == ib.PortNum(num) && n.Agent.Port(ib.PortNum(num)) != nil {
			ports[num] = pl.endPortAt(i, ib.PortNum(num))
		}
	}
	if n.IsSwitch {
		ports = ports[:1]
	}
	var device *endpoint.Device
	wake := func(num ib.PortNum) {
		n := &pl.nodes[i]
		if p := pl.side(n.First + int32(num)); data.device == device && !n.Off && !p.filling {
			pl.sendAt(n.First+int32(num), max(pl.queue.Now, p.busy))
		}
	}
	device, err := endpoint.New(endpoint.Config{
		Flags: flagsOf(n.Agent.Options()), Ports: ports, Wake: wake,
	})
	if err != nil {
		return nil // every node has an end port
	}
	data.device = device
	for num, p := range ports {
		if p != nil {
			pl.side(n.First + int32(num)).seen = pl.endPortAt(i, ib.PortNum(num)).Look()
		}
	}
	return device
}

// flagsOf is what a device shows its consumers.
func flagsOf(o sma.Options) endpoint.DeviceFlags {
	flags := endpoint.BadPKeyCounter | endpoint.BadQKeyCounter
	if o.NoBadPKeyCounter {
		flags &^= endpoint.BadPKeyCounter
	}
	if o.NoBadQKeyCounter {
		flags &^= endpoint.BadQKeyCounter
	}
	return flags
}

// Announce tells the consumer of the end node at node at, if there is one, what an
// effect means for him.
func (pl *Plane) Announce(at int32, e *sma.Effect) {
	n, data := &pl.nodes[at], pl.ends[at]
	if data == nil || data.device == nil || n.EndPort(e.Port) != e.Port {
		return
	}
	device, p := data.device, pl.side(n.First+int32(e.Port))
	switch e.Kind {
	case sma.PKeysChanged:
		device.Announce(endpoint.EventPKeyChange, e.Port)
	case sma.Reregister:
		device.Announce(endpoint.EventClientReregister, e.Port)
	case sma.StateChanged:
		active := n.Agent.Port(e.Port).PortState == smp.PortActive
		switch {
		case active && !p.seen.Active:
			device.Announce(endpoint.EventPortActive, e.Port)
		case !active && p.seen.Active:
			device.Announce(endpoint.EventPortError, e.Port)
		}
		p.seen.Active = active
		pl.sendAt(n.First+int32(e.Port), max(pl.queue.Now, p.busy))
	}
}

// AfterSet brings what a manager has written into the data path of a node.
func (pl *Plane) AfterSet(at int32) {
	n, data := &pl.nodes[at], pl.ends[at]
	if data == nil {
		return
	}
	for i := n.First; i <= n.First+int32(n.Last); i++ {
		p := pl.sides[i]
		if p == nil {
			continue
		}
		pl.Configure(i)
		if p.out.Len() > 0 { // what no virtual lane had a turn for may go now
			pl.sendAt(i, max(pl.queue.Now, p.busy))
		}
		num := pl.ports[i].Num
		if data.device == nil || n.EndPort(num) != num || n.Agent.Port(num) == nil {
			continue
		}
		now := pl.endPortAt(at, num).Look()
		now.Tell(data.device, num, &p.seen)
		p.seen = now
	}
}

// fill takes packets from an end node for those virtual lanes of its port i in which
// none waits, until one has gone out on the wire, which was idle.
func (pl *Plane) fill(i int32, device *endpoint.Device) {
	at, p := &pl.ports[i], pl.sides[i]
	data := pl.ends[at.Node]
	p.filling = true
	defer func() { p.filling = false }()
	for data.device == device && device.Ready(at.Num) && !p.passed {
		levels := endpoint.AllServiceLevels
		for waiting := p.out.WaitingLanes(); waiting != 0; waiting &= waiting - 1 {
			levels &^= p.levels[bits.TrailingZeros16(waiting)]
		}
		if levels == 0 && !device.HasSMI(at.Num) { // only QP0 needs no level
			return
		}
		if !pl.originate(at.Node, at.Num, levels) {
			return
		}
	}
}

// sendOwn lets the end node behind port 0 of a switch, which is port i, send
// one packet.
func (pl *Plane) sendOwn(i int32) {
	at := &pl.ports[i]
	device := pl.ends[at.Node].device
	if device == nil || !device.Ready(0) || !pl.originate(at.Node, 0, endpoint.AllServiceLevels) {
		return
	}
	if device.Ready(0) {
		pl.sendAt(i, pl.queue.Now+ownPace)
	}
}

// ownPace is the time between two packets from port 0 of a switch.
const ownPace = 100 * time.Nanosecond

// originate takes the next packet from an end node, and reports whether there
// was one.
func (pl *Plane) originate(at int32, num ib.PortNum, levels endpoint.ServiceLevels) bool {
	device := pl.ends[at].device
	buf, ok := device.Send(pl.queue.Now, num, levels, pl.packets.buf[:0])
	pl.packets.buf = buf
	pl.armDevice(at)
	if !ok {
		return false
	}
	if (*packet.LRH)(buf).VL() == ib.VLManagement {
		pl.launchSMP(buf, at, num)
		return true
	}
	d := pl.packets.take()
	if d == nil {
		pl.outcomes[OutcomeBuffer]++
		return true
	}
	// The buffers change places, so that nothing is copied.
	d.bytes, pl.packets.buf = buf, d.bytes
	d.sound = true
	pl.start(d, at, num)
	return true
}

// start sends a node's own packet, which came from port num of it.
func (pl *Plane) start(d *datum, at int32, num ib.PortNum) {
	n := &pl.nodes[at]
	d.firstBit, d.port = pl.queue.Now, n.First+int32(num)
	v, h := d.read(), &d.headers
	switch {
	case v != relay.Pass:
		pl.finish(d, OutcomeMalformed, at, num)
	case n.IsSwitch:
		pl.relay(d, at, 0)
	case n.Agent.HasLID(num, h.LRH.DLID()):
		pl.reachEnd(d, at, num)
	default:
		vl, v := relay.Leave(n.Agent, 0, num, h)
		if v != relay.Pass {
			pl.finish(d, OfVerdict(v), at, num)
			return
		}
		p := pl.sides[d.port]
		// With one virtual lane for all levels nothing else could go before it.
		if p.filling && p.levels[vl] == endpoint.AllServiceLevels && p.out.Pass(pl.queue.Now, vl, blocksOf(len(d.bytes)), pl.queue.Now) {
			p.passed = true
			pl.transmit(d.port, d, vl)
			return
		}
		ok, why := p.out.Enqueue(pl.queue.Now, handle(d), vl, blocksOf(len(d.bytes)), pl.queue.Now)
		if !ok {
			pl.finish(d, OfReason(why), at, num)
		}
	}
}

// arriveAtEnd takes a packet that came in by the link of a CA or router port.
func (pl *Plane) arriveAtEnd(d *datum, at int32, num ib.PortNum) {
	n, h := &pl.nodes[at], &d.headers
	if h.GRH != nil && n.Source.Type == ib.NodeRouter && n.Agent.HasLID(num, h.LRH.DLID()) && !pl.endPortAt(at, num).OwnsGID(h.GRH.DGID()) {
		pl.route(d, at, num)
		return
	}
	if d.spoiled {
		pl.finish(d, OutcomeEntryPKey, at, num)
		return
	}
	pl.reachEnd(d, at, num)
}

// route passes a packet on to another subnet. The router knows the LIDs there
// by the GUIDs, as if it had asked the subnet's administration.
func (pl *Plane) route(d *datum, at int32, in ib.PortNum) {
	n, h := &pl.nodes[at], &d.headers
	exit, v := relay.Cross(n.Agent, in, h)
	if v != relay.Pass {
		pl.finish(d, OfVerdict(v), at, in)
		return
	}
	g, num, ok := pl.wiring.EndPort(h.GRH.DGID().PortGUID())
	if !ok {
		pl.finish(d, OutcomeNoRoute, at, in)
		return
	}
	to, _ := pl.wiring.Index(g)
	lid := pl.nodes[to].Agent.Port(num).LID
	if lid == 0 {
		pl.finish(d, OutcomeNoRoute, at, in)
		return
	}
	h.Readdress(n.Agent.Port(exit).LID, lid)
	pl.leave(d, at, in, exit)
}

// reachEnd gives a packet to the performance agent or the end node of a node.
func (pl *Plane) reachEnd(d *datum, at int32, num ib.PortNum) {
	n := &pl.nodes[at]
	if pl.perform(d, at, num) {
		return
	}
	device := pl.device(at)
	r := device.Receive(pl.queue.Now, num, d.bytes)
	switch {
	case r.Reason == endpoint.Taken:
		pl.see(d, OutcomeTaken, at, num, r.Reason)
	default:
		pl.see(d, OutcomeRefused, at, num, r.Reason)
		pl.countRefusal(d, at, num, r.Reason)
	}
	pl.release(d)
	pl.packets.Put(d.index)
	if r.Violation != nil {
		if r.Violation.Kind == endpoint.BadPKey {
			pl.config.Carrier.Follows(at, n.Agent.BadPKey(pl.queue.Now, num, r.Violation.Offence))
		} else {
			pl.config.Carrier.Follows(at, n.Agent.BadQKey(pl.queue.Now, num, r.Violation.Offence))
		}
	}
	pl.armDevice(at)
}

// countRefusal moves the counters of an end port that refused a packet.
func (pl *Plane) countRefusal(d *datum, at int32, num ib.PortNum, why endpoint.Reason) {
	p := pl.ends[at].counters.Port(num)
	switch why {
	case endpoint.ReasonPKeyBase, endpoint.ReasonMembership:
		p.PortRcvConstraintErrors++
	case endpoint.ReasonMalformed, endpoint.ReasonICRC:
		p.PortRcvErrors++
		p.MalformedPacketErrors++
	case endpoint.ReasonNoReceive:
		if v, err := packet.Parse(d.bytes); err == nil && v.BTH != nil && v.BTH.DestQP() == ib.QP1 {
			p.QP1Dropped++
		}
	}
}

// perform answers a request to the node's performance agent, which is behind QP1 whatever
// else uses QP1. It reports false for all else, and for what QP1 would refuse, so that
// the end node refuses it.
func (pl *Plane) perform(d *datum, at int32, num ib.PortNum) bool {
	if h := &d.headers; h.BTH == nil || h.BTH.DestQP() != ib.QP1 {
		return false // most packets
	}
	bytes, ok := pl.endPortAt(at, num).Perform(pl.end(at).counters, d.bytes)
	if !ok {
		return false
	}
	pl.see(d, OutcomeTaken, at, num, endpoint.Taken)
	pl.release(d)
	d.bytes, d.known, d.sound, d.spoiled, d.raw, d.crossed = append(d.bytes[:0], bytes...), false, true, false, false, 0
	pl.start(d, at, num)
	i := pl.nodes[at].First + int32(num)
	pl.sendAt(i, max(pl.queue.Now, pl.side(i).busy))
	return true
}

// endPortAt is port num of node at, an end port, as it is at any time.
func (pl *Plane) endPortAt(at int32, num ib.PortNum) *EndPort {
	return &EndPort{Node: &pl.nodes[at], Number: num}
}

// armDevice makes sure of an event at the deadline of an end node.
func (pl *Plane) armDevice(at int32) {
	data := pl.ends[at]
	due, ok := data.device.Deadline()
	if !ok || data.timer != dataplaneNoTimer && data.timer <= due {
		return
	}
	data.timer = max(due, pl.queue.Now)
	pl.queue.Push(NoLane, data.timer, kindDevice, at)
}

// deviceTimer lets an end node do what is due.
func (pl *Plane) deviceTimer(e TimelineEvent) {
	data := pl.ends[e.Subject]
	if data == nil || data.device == nil || data.timer != e.At {
		return
	}
	data.timer = dataplaneNoTimer
	data.device.Expire(pl.queue.Now)
	pl.armDevice(e.Subject)
}

// launchSMP carries on a packet of virtual lane 15 as a subnet-management packet.
func (pl *Plane) launchSMP(bytes []byte, at int32, num ib.PortNum) {
	v, err := packet.Parse(bytes)
	if err != nil || v.DETH == nil || v.BTH.DestQP() != ib.QP0 || len(v.Payload) != mad.Size {
		pl.end(at).counters.Port(num).VL15Dropped++
		pl.outcomes[OutcomeMalformed]++
		return
	}
	pl.outcomes[OutcomeManagement]++
	m := [mad.Size]byte(v.Payload)
	pl.config.Carrier.LaunchSMP(at, num, v.LRH.SL(), v.BTH.PKey(), v.LRH.SLID(), v.LRH.DLID(), &m)
}

// DeliverSMP gives a subnet-management packet to the QP0 of the end node at port
// num of node at, and reports whether that took it.
func (pl *Plane) DeliverSMP(at int32, num ib.PortNum, sl ib.SL, pkey ib.PKey, slid, dlid ib.LID, m *[mad.Size]byte) bool {
	data := pl.ends[at]
	if data == nil || data.device == nil || !data.device.HasSMI(num) {
		return false
	}
	p := packet.MADPacket{QP: ib.QP0, SLID: slid, DLID: dlid, SL: sl, QP0PKey: pkey, MAD: m[:]}
	bytes, err := p.AppendBinary(nil)
	if err != nil {
		return false
	}
	taken := data.device.Receive(pl.queue.Now, num, bytes).Reason == endpoint.Taken
	pl.armDevice(at)
	return taken
}

// Inject puts bytes on the wire at an end port, as a host could whose adapter
// obeys nobody: whatever stands in them, CRCs included, they go out unchanged. A
// packet of virtual lane 15 that holds a datagram for QP0 is carried on as such; all
// else that names a virtual lane waits its turn there if the port has it.
func (pl *Plane) Inject(g ib.NodeGUID, num ib.PortNum, bytes []byte) error {
	i, err := pl.wiring.External(g, num)
	switch {
	case err != nil:
		return fmt.Errorf("inject: %w", err)
	case len(bytes) == 0 || len(bytes) > packet.MaxSize:
		return fmt.Errorf("inject: %d bytes: want 1 to %d", len(bytes), packet.MaxSize)
	}
	pl.inject(i, bytes)
	return nil
}

func (pl *Plane) inject(i int32, bytes []byte) {
	at := &pl.ports[i]
	p := pl.side(i)
	d := pl.packets.take()
	if d == nil {
		pl.outcomes[OutcomeBuffer]++
		return
	}
	d.bytes = append(d.bytes, bytes...)
	d.firstBit, d.port, d.raw = pl.queue.Now, i, true
	if !at.Up || pl.nodes[at.Node].Off {
		pl.finish(d, OutcomeLinkDown, at.Node, at.Num)
		return
	}
	vl := ib.VLManagement
	if len(bytes) >= packet.LRHSize {
		vl = (*packet.LRH)(bytes).VL()
	}
	right, err := packet.CheckICRC(bytes)
	if vl == ib.VLManagement && packet.CheckVCRC(bytes) && err == nil && right {
		pl.launchSMP(bytes, at.Node, at.Num)
		pl.packets.Put(d.index)
		return
	}
	if ok, _ := p.out.Enqueue(pl.queue.Now, handle(d), vl, blocksOf(len(bytes)), pl.queue.Now); ok {
		pl.send(i)
		return
	}
	pl.transmit(i, d, ib.VLManagement) // on a virtual lane that the port has not: nobody keeps room for it
}
