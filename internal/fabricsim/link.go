package fabricsim

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/fabricsim/timeline"
	"github.com/ibwarden/ibwarden/internal/sma"
)

// Link lays a cable between two ports that have none and lets it train.
func (f *Fabric) Link(a ib.NodeGUID, aPort ib.PortNum, b ib.NodeGUID, bPort ib.PortNum) error {
	x, err := f.external(a, aPort)
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	y, err := f.external(b, bPort)
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	if x == y {
		return fmt.Errorf("link: port %d of node %v cannot be cabled to itself", aPort, a)
	}
	for _, i := range []int32{x, y} {
		if p := &f.ports[i]; p.peer != none {
			return fmt.Errorf("link: port %d of node %v has a cable already", p.num, f.nodes[p.node].source.GUID)
		}
	}
	f.ports[x].peer, f.ports[y].peer = y, x
	f.trainLater(x)
	return nil
}

// Unlink pulls the cable at a port.
func (f *Fabric) Unlink(g ib.NodeGUID, num ib.PortNum) error {
	i, err := f.external(g, num)
	if err != nil {
		return fmt.Errorf("unlink: %w", err)
	}
	peer := f.ports[i].peer
	if peer == none {
		return fmt.Errorf("unlink: port %d of node %v has no cable", num, g)
	}
	f.lose(i)
	f.ports[i].peer, f.ports[peer].peer = none, none
	return nil
}

// Peer is the other end of the cable at a port, false without a cable.
func (f *Fabric) Peer(g ib.NodeGUID, num ib.PortNum) (n ib.NodeGUID, at ib.PortNum, ok bool) {
	i, err := f.external(g, num)
	if err != nil || f.ports[i].peer == none {
		return 0, 0, false
	}
	peer := &f.ports[f.ports[i].peer]
	return f.nodes[peer.node].source.GUID, peer.num, true
}

// PowerOff takes the power from a node. Its links go down at their other ends;
// what arrives at the node, or waits for its agent's time, is lost while it is
// off.
func (f *Fabric) PowerOff(g ib.NodeGUID) error {
	n, err := f.node(g)
	if err != nil {
		return fmt.Errorf("power off: %w", err)
	}
	if n.off {
		return fmt.Errorf("power off: node %v is off already", g)
	}
	n.off = true
	if n.data != nil {
		n.data.device, n.data.timer = nil, noTimer
	}
	for i := n.first; i <= n.first+int32(n.last); i++ {
		f.lose(i)
		if a := f.ports[i].attached; a != nil {
			a.empty()
		}
	}
	return nil
}

// PowerOn gives the power back to a node that PowerOff took it from. It comes
// up as it was at first, without LIDs, but for the tables that it says to keep
// over a power failure, and its links train. A manager attached to it has to
// announce itself again.
func (f *Fabric) PowerOn(g ib.NodeGUID) error {
	n, err := f.node(g)
	if err != nil {
		return fmt.Errorf("power on: %w", err)
	}
	if !n.off {
		return fmt.Errorf("power on: node %v is on already", g)
	}
	agent, err := n.agent.Restart(f.config.device(n.source))
	if err != nil {
		return fmt.Errorf("power on: node %v: %w", g, err)
	}
	n.agent, n.off, n.timer = agent, false, noTimer
	for i := n.first; i <= n.first+int32(n.last); i++ {
		f.trainLater(i)
	}
	return nil
}

// Reboot takes the power from a node and gives it back at once.
func (f *Fabric) Reboot(g ib.NodeGUID) error {
	if err := f.PowerOff(g); err != nil {
		return err
	}
	return f.PowerOn(g)
}

// train brings up the link at a port if both its ends look for a peer and
// agree on a width and a speed.
func (f *Fabric) train(i int32) {
	at := &f.ports[i]
	if at.peer == none || at.up {
		return
	}
	peer := &f.ports[at.peer]
	n, m := &f.nodes[at.node], &f.nodes[peer.node]
	if n.off || m.off {
		return
	}
	link, ok := sma.Train(n.agent.Port(at.num), m.agent.Port(peer.num))
	if !ok {
		return
	}
	at.up, peer.up = true, true
	other := at.peer
	f.follows(at.node, n.agent.LinkUp(f.now, at.num, link))
	f.follows(peer.node, m.agent.LinkUp(f.now, peer.num, link))
	f.configure(i)
	f.configure(other)
}

// trainLater lets the link at a port train after the time that this takes.
func (f *Fabric) trainLater(i int32) {
	if f.config.TrainDelay == 0 {
		f.train(i)
		return
	}
	f.queue.Push(timeline.NoLane, f.now+f.config.TrainDelay, kindTrain, i)
}

// lose takes down the link at a port, if it is up, and tells both agents. One
// that knows already takes it well.
func (f *Fabric) lose(i int32) {
	at := &f.ports[i]
	if !at.up {
		return
	}
	peer := &f.ports[at.peer]
	at.up, peer.up = false, false
	f.linkLost(i)
	f.linkLost(at.peer)
	for _, end := range []*port{at, peer} {
		if n := &f.nodes[end.node]; !n.off {
			f.follows(end.node, n.agent.LinkDown(f.now, end.num))
		}
	}
}

// follows carries out the effects of a call of a node's agent. Those on links
// come last, since they call agents again.
func (f *Fabric) follows(at int32, effects []sma.Effect) {
	n := &f.nodes[at]
	for _, e := range effects {
		switch e.Kind {
		case sma.TrapSent:
			f.sendTrap(at, e.Port, e.Trap)
		case sma.PKeysChanged, sma.StateChanged, sma.Reregister:
			if n.data != nil && n.data.device != nil {
				f.announce(at, &e)
			}
		case sma.LinkMoved:
			f.settled = append(f.settled, n.first+int32(e.Port))
		}
	}
	f.arm(at)
	for len(f.settled) > 0 {
		last := len(f.settled) - 1
		i := f.settled[last]
		f.settled = f.settled[:last]
		f.lose(i)
		f.trainLater(i)
	}
}

// arm makes sure of an event at the agent's deadline, if it has one.
func (f *Fabric) arm(at int32) {
	n := &f.nodes[at]
	due, ok := n.agent.Deadline()
	if !ok || n.timer != noTimer && n.timer <= due {
		return
	}
	n.timer = max(due, f.now+1) // an agent that is never content does not stop time
	f.queue.Push(timeline.NoLane, n.timer, kindTimer, at)
}

// timer lets an agent do what is due. Events that another has overtaken find a
// different time in the node.
func (f *Fabric) timer(e timeline.Event) {
	n := &f.nodes[e.Subject]
	if n.off || n.timer != e.At {
		return
	}
	n.timer = noTimer
	f.follows(e.Subject, n.agent.Expire(f.now))
}

func (f *Fabric) sendTrap(at int32, from ib.PortNum, t *sma.Trap) {
	n := &f.nodes[at]
	if n.off || n.fault != nil && n.fault.Mute {
		return
	}
	p := f.newCarried()
	if p == nil {
		f.counts.Discarded[DiscardBuffer]++
		return
	}
	p.slid, p.dlid, p.sl = orPermissive(t.SLID), t.DLID, t.SL
	if t.SMP.Encode(&p.mad) != nil {
		f.pool.put(p.index)
		return
	}
	f.launch(p, at, from)
}

// presetLID gives an end port the address that a topology file says it has, the
// way a manager of an earlier day would have: by a Set of PortInfo that leaves
// the rest as it is. (The missing MasterSMLID in it earns a status that nobody
// reads.)
func presetLID(agent *sma.Agent, num ib.PortNum, lid ib.LID, lmc ib.LMC) {
	info := *agent.Port(num)
	info.LID, info.LMC = lid, lmc
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
	set := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion,
		Method: mad.MethodSet, AttributeID: smp.AttrPortInfo, AttributeModifier: uint32(num),
	}
	if info.Encode(&set.Data) == nil {
		agent.Handle(time.Duration(0), sma.Ingress{Port: num}, &set)
	}
}
