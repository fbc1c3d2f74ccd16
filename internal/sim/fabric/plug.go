package fabric

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Outside is a device that is not simulated here: an adapter that a Linux kernel drives, or a script of a
// test. It has the place, the GUID and the cable of a CA of the fabric. Its methods are called while
// the fabric is, must not call it back, and may keep nothing that they are given.
type Outside interface {
	// LinkUp says that the cable has trained, LinkDown that the other end is lost.
	LinkUp(sma.Link)
	LinkDown()
	// Receive takes a packet from the cable, LRH to VCRC, whether or not it is right: subnet management on
	// virtual lane 15, as it crosses a cable, and everything else.
	Receive(bytes []byte)
}

// Plug is the port of the fabric at which a device is that is not simulated here.
type Plug struct {
	fabric *Fabric
	node   int32
	port   int32 // of the fabric's ports
	device Outside
}

// Plug puts a device in the place of a CA that has one port and is on. To the fabric this is a power
// cycle: the link goes down, what the CA held is gone, and it trains again when the device polls.
func (f *Fabric) Plug(g ib.NodeGUID, device Outside) (*Plug, error) {
	i, ok := f.wiring.Index(g)
	if !ok {
		return nil, fmt.Errorf("plug: node %v: no such node in this fabric", g)
	}
	n := &f.nodes[i]
	switch {
	case n.IsSwitch || n.Source.Type != ib.NodeCA || n.Last != 1:
		return nil, fmt.Errorf("plug: node %v: want a CA with one port", g)
	case n.plug != nil:
		return nil, fmt.Errorf("plug: node %v: a device is there already", g)
	case f.attached[n.First+1] != nil:
		return nil, fmt.Errorf("plug: node %v: a manager is attached to its port", g)
	}
	if err := f.PowerOff(g); err != nil {
		return nil, fmt.Errorf("plug: %w", err)
	}
	p := &Plug{fabric: f, node: i, port: n.First + 1, device: device}
	agent, err := n.Agent.Restart(f.config.device(n.Source))
	if err != nil {
		return nil, fmt.Errorf("plug: node %v: %w", g, err)
	}
	n.Agent, n.Off, n.plug = agent, false, p
	n.Agent.Port(1).PortPhysicalState = smp.PhysSleep // until it polls
	return p, nil
}

// plugged returns an error for a node whose device is outside.
func (f *Fabric) plugged(what string, g ib.NodeGUID) error {
	if i, ok := f.wiring.Index(g); ok && f.nodes[i].plug != nil {
		return fmt.Errorf("%s: node %v: its device is not of this simulator", what, g)
	}
	return nil
}

// Unplug takes the device away, and puts the simulated CA back, switched on again.
func (p *Plug) Unplug() error {
	n := &p.fabric.nodes[p.node]
	if n.plug != p {
		return nil
	}
	p.device = gone{}
	p.fabric.fail(p.port)
	n.plug, n.Off = nil, true
	p.fabric.data.PowerOff(p.node)
	return p.fabric.PowerOn(n.Source.GUID)
}

// gone is the device of a plug that was pulled.
type gone struct{}

func (gone) LinkUp(sma.Link) {}
func (gone) LinkDown()       {}
func (gone) Receive([]byte)  {}

// Poll says whether the device looks for a peer, and with which widths and speeds. When it stops, or
// comes back with others, the link goes down.
func (p *Plug) Poll(on bool, width smp.LinkWidth, speed smp.LinkSpeed) {
	n := &p.fabric.nodes[p.node]
	if n.plug != p {
		return
	}
	info := n.Agent.Port(1)
	if on && p.fabric.ports[p.port].Up && info.LinkWidthEnabled == width && info.LinkSpeedEnabled == speed {
		return
	}
	p.fabric.lose(p.port)
	info.LinkWidthSupported, info.LinkWidthEnabled, info.LinkSpeedSupported, info.LinkSpeedEnabled = width, width, speed, speed
	info.LinkSpeedExtSupported, info.LinkSpeedExtEnabled, info.LinkSpeedExtSupported2, info.LinkSpeedExtEnabled2 = 0, 0, 0, 0
	info.PortPhysicalState = smp.PhysSleep
	if on {
		info.PortPhysicalState = smp.PhysPolling
		p.fabric.trainLater(p.port)
	}
}

// Send puts a packet of the device, LRH to VCRC, on the cable: unchanged, whatever stands in it, as
// Inject does. A datagram for QP0 on virtual lane 15 goes on from here as one that has been sent: its
// hop pointer is that of the next node.
func (p *Plug) Send(bytes []byte) error {
	f := p.fabric
	n := &f.nodes[p.node]
	if n.plug != p {
		return fmt.Errorf("plug: node %v: the device was taken away", n.Source.GUID)
	}
	if len(bytes) == 0 || len(bytes) > packet.MaxSize {
		return fmt.Errorf("plug: %d bytes: want 1 to %d", len(bytes), packet.MaxSize)
	}
	f.data.inject(p.port, bytes)
	return nil
}

// Waiting is how many packets of the device wait for credits, or for the cable.
func (p *Plug) Waiting() int { return p.fabric.DataWaiting(p.fabric.nodes[p.node].Source.GUID, 1) }

// launchFromPlug sends a subnet-management packet of a device on over its cable.
func (f *Fabric) launchFromPlug(p *carried) {
	p.crossed = 0
	f.depart(p, p.port)
}

// toPlug gives a subnet-management packet that has crossed the cable to the device.
func (f *Fabric) toPlug(p *carried) {
	m := packet.MADPacket{QP: ib.QP0, SLID: p.slid, DLID: p.dlid, SL: p.sl, QP0PKey: p.pkey, MAD: p.mad[:]}
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		f.discard(p, DiscardClass)
		return
	}
	f.trace(p, SeenByAgent, NotDiscarded)
	if mad.Method(p.mad[mad.OffsetMethod]).IsResponse() {
		f.counts.Delivered++
	}
	plug := f.nodes[p.node].plug
	f.pool.Put(p.index)
	plug.device.Receive(bytes)
}

// toPlug gives a data packet that has crossed the cable to the device, which checks it itself. Its
// room is free at once: what the device has no buffer for, it drops.
func (pl *Plane) toPlug(d *datum, at *WiredPort) {
	pl.see(d, OutcomeTaken, at.Node, at.Num, endpoint.Taken)
	pl.release(d)
	pl.nodes[at.Node].plug.device.Receive(d.bytes)
	pl.packets.Put(d.index)
}
