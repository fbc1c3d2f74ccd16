package fabric

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Link lays a cable between two ports that have none and lets it train.
func (f *Fabric) Link(a ib.NodeGUID, aPort ib.PortNum, b ib.NodeGUID, bPort ib.PortNum) error {
	x, err := f.wiring.External(a, aPort)
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	y, err := f.wiring.External(b, bPort)
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	if x == y {
		return fmt.Errorf("link: port %d of node %v cannot be cabled to itself", aPort, a)
	}
	for _, i := range []int32{x, y} {
		if p := &f.ports[i]; p.Peer != NoPort {
			return fmt.Errorf("link: port %d of node %v has a cable already", p.Num, f.nodes[p.Node].Source.GUID)
		}
	}
	f.ports[x].Peer, f.ports[y].Peer = y, x
	f.trainLater(x)
	return nil
}

// Unlink pulls the cable at a port.
func (f *Fabric) Unlink(g ib.NodeGUID, num ib.PortNum) error {
	i, err := f.wiring.External(g, num)
	if err != nil {
		return fmt.Errorf("unlink: %w", err)
	}
	peer := f.ports[i].Peer
	if peer == NoPort {
		return fmt.Errorf("unlink: port %d of node %v has no cable", num, g)
	}
	f.fail(i)
	f.training(i, false)
	f.ports[i].Peer, f.ports[peer].Peer = NoPort, NoPort
	return nil
}

// Peer is the other end of the cable at a port, false without a cable.
func (f *Fabric) Peer(g ib.NodeGUID, num ib.PortNum) (n ib.NodeGUID, at ib.PortNum, ok bool) {
	return f.wiring.Peer(g, num)
}

// PowerOff takes the power from a node. Its links go down at their other ends;
// what arrives at the node, or waits for its agent's time, is lost while it is
// off.
func (f *Fabric) PowerOff(g ib.NodeGUID) error {
	n, err := f.wiring.Node(g)
	if err != nil {
		return fmt.Errorf("power off: %w", err)
	}
	if err := f.plugged("power off", g); err != nil {
		return err
	}
	if n.Off {
		return fmt.Errorf("power off: node %v is off already", g)
	}
	n.Off = true
	for i := n.First; i <= n.First+int32(n.Last); i++ {
		f.fail(i)
		if a := f.attached[i]; a != nil {
			a.empty()
		}
	}
	f.data.PowerOff(f.ports[n.First].Node)
	return nil
}

// PowerOn gives the power back to a node that PowerOff took it from. It comes
// up as it was at first, without LIDs, but for the tables that it says to keep
// over a power failure, and its links train. A manager attached to it has to
// announce itself again.
func (f *Fabric) PowerOn(g ib.NodeGUID) error {
	n, err := f.wiring.Node(g)
	if err != nil {
		return fmt.Errorf("power on: %w", err)
	}
	if !n.Off {
		return fmt.Errorf("power on: node %v is on already", g)
	}
	agent, err := n.Agent.Restart(f.config.device(n.Source))
	if err != nil {
		return fmt.Errorf("power on: node %v: %w", g, err)
	}
	n.Agent, n.Off = agent, false
	f.behaviour[f.ports[n.First].Node].timer = noTimer
	f.testItself(f.ports[n.First].Node)
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
	if at.Peer == NoPort || at.Up {
		return
	}
	f.training(i, false)
	peer := &f.ports[at.Peer]
	n, m := &f.nodes[at.Node], &f.nodes[peer.Node]
	if n.Off || m.Off || n.Agent.TestsItself() || m.Agent.TestsItself() {
		return
	}
	link, ok := sma.Train(n.Agent.Port(at.Num), m.Agent.Port(peer.Num))
	if !ok {
		return
	}
	at.Up, peer.Up = true, true
	other := at.Peer
	f.follows(at.Node, n.Agent.LinkUp(f.queue.Now, at.Num, link))
	f.follows(peer.Node, m.Agent.LinkUp(f.queue.Now, peer.Num, link))
	f.data.Configure(i)
	f.data.Configure(other)
	for _, n := range []*WiredNode{n, m} {
		if n.plug != nil {
			n.plug.device.LinkUp(link)
		}
	}
}

// trainLater lets the link at a port train after the time that this takes.
func (f *Fabric) trainLater(i int32) {
	if f.config.TrainDelay == 0 {
		f.train(i)
		return
	}
	if !f.ports[i].Up {
		f.training(i, true)
	}
	f.queue.Push(NoLane, f.queue.Now+f.config.TrainDelay, kindTrain, i)
}

// fail takes down the link at a port, if it is up, as something that both ends count.
func (f *Fabric) fail(i int32) {
	if at := &f.ports[i]; at.Up {
		f.data.LinkFailed(i)
		f.data.LinkFailed(at.Peer)
	}
	f.lose(i)
}

// lose takes down the link at a port, if it is up, and tells both agents. One
// that knows already takes it well.
func (f *Fabric) lose(i int32) {
	at := &f.ports[i]
	if !at.Up {
		return
	}
	peer := &f.ports[at.Peer]
	at.Up, peer.Up = false, false
	f.data.LinkLost(i)
	f.data.LinkLost(at.Peer)
	for _, end := range []*WiredPort{at, peer} {
		n := &f.nodes[end.Node]
		if !n.Off {
			f.follows(end.Node, n.Agent.LinkDown(f.queue.Now, end.Num))
		}
		if n.plug != nil {
			n.plug.device.LinkDown()
		}
	}
}

// retrains reports whether effects of a Set take down a link that is up again in the same
// instant, and of which port. The answer then shows the new state of the link: from an
// answer that says Down OpenSM keeps only that.
func (f *Fabric) retrains(at int32, effects []sma.Effect) (moved ib.PortNum, ok bool) {
	if f.config.TrainDelay != 0 {
		return 0, false
	}
	n := &f.nodes[at]
	for _, e := range effects {
		if e.Kind != sma.LinkMoved {
			continue
		}
		end := &f.ports[n.First+int32(e.Port)]
		if end.Peer == NoPort || n.Off {
			return 0, false
		}
		peer := &f.ports[end.Peer]
		m := &f.nodes[peer.Node]
		if m.Off {
			return 0, false
		}
		there := *m.Agent.Port(peer.Num)
		if end.Up { // it will have lost the link
			there.PortPhysicalState = there.LinkDownDefaultState
		}
		_, ok = sma.Train(n.Agent.Port(e.Port), &there)
		return e.Port, ok // a Set moves one link
	}
	return 0, false
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
			f.data.Announce(at, &e)
		case sma.LinkMoved:
			f.settled = append(f.settled, n.First+int32(e.Port))
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
	own := &f.behaviour[at]
	due, ok := f.nodes[at].Agent.Deadline()
	if !ok || own.timer != noTimer && own.timer <= due {
		return
	}
	own.timer = max(due, f.queue.Now+1) // an agent that is never content does not stop time
	f.queue.Push(NoLane, own.timer, kindTimer, at)
}

// timer lets an agent do what is due. Events that another has overtaken find a
// different time in the node.
func (f *Fabric) timer(e TimelineEvent) {
	n, own := &f.nodes[e.Subject], &f.behaviour[e.Subject]
	if n.Off || own.timer != e.At {
		return
	}
	own.timer = noTimer
	f.follows(e.Subject, n.Agent.Expire(f.queue.Now))
}

func (f *Fabric) sendTrap(at int32, from ib.PortNum, t *sma.Trap) {
	if n := &f.nodes[at]; n.Off || f.behaviour[at].mute() {
		return
	}
	p := f.newCarried()
	if p == nil {
		f.counts.Discarded[DiscardBuffer]++
		return
	}
	p.slid, p.dlid, p.sl = orPermissive(t.SLID), t.DLID, t.SL
	if t.SMP.Encode(&p.mad) != nil {
		f.pool.Put(p.index)
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
