package fabric

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Attachment is a manager's place in the fabric: the management queue pair of
// one end port.
type Attachment struct {
	fabric *Fabric
	node   int32
	port   ib.PortNum
	inbox  inbox
	// program is the manager, which takes its time with Config.Hardware.
	program processor
}

// Delivery is a packet that came in.
type Delivery struct {
	At   time.Duration
	SLID ib.LID // the permissive LID for a directed route
	MAD  [mad.Size]byte
}

// Attach gives a manager the end port num of a node: any port of a CA or
// router, port 0 of a switch. A port has room for one.
func (f *Fabric) Attach(g ib.NodeGUID, num ib.PortNum) (*Attachment, error) {
	i, ok := f.wiring.Index(g)
	if !ok {
		return nil, fmt.Errorf("attach: node %v: no such node in this fabric", g)
	}
	n := &f.nodes[i]
	if err := f.plugged("attach", g); err != nil {
		return nil, err
	}
	switch {
	case n.IsSwitch && num != 0:
		return nil, fmt.Errorf("attach: port %d of node %v: want 0, since it is a switch", num, g)
	case !n.IsSwitch && (num == 0 || num > n.Last):
		return nil, fmt.Errorf("attach: port %d of node %v: want 1 to %d", num, g, n.Last)
	}
	p := &f.attached[n.First+int32(num)]
	if *p != nil {
		return nil, fmt.Errorf("attach: port %d of node %v: another manager is attached", num, g)
	}
	*p = &Attachment{fabric: f, node: i, port: num}
	return *p, nil
}

// Detach leaves the fabric. What was not received is lost.
func (a *Attachment) Detach() {
	f := a.fabric
	at := &f.attached[f.nodes[a.node].First+int32(a.port)]
	if *at != a {
		return
	}
	a.SetIsSM(false)
	a.empty()
	*at = nil
}

// SetIsSM says whether a subnet manager runs here. The port's CapabilityMask
// shows it, and SMInfo and traps are delivered while it does.
func (a *Attachment) SetIsSM(on bool) {
	n := &a.fabric.nodes[a.node]
	if !n.Off {
		a.fabric.follows(a.node, n.Agent.SetIsSM(a.fabric.queue.Now, a.port, on))
	}
}

// Send sends a packet to the port with the LID dlid, or by the directed route
// in it, for which dlid is the permissive LID unless the route begins with a
// LID-routed part. The hop pointer is 0 in a request: the first step is taken
// here. Nothing is reported: what cannot be sent is discarded and counted.
func (a *Attachment) Send(m *[mad.Size]byte, dlid ib.LID) {
	f := a.fabric
	f.counts.Sent++
	p := f.newCarried()
	if p == nil {
		f.counts.Discarded[DiscardBuffer]++
		return
	}
	p.mad, p.node, p.port, p.sl = *m, a.node, a.port, f.levelTo(a.node, a.port, dlid, 0)
	p.slid, p.dlid = ib.LIDPermissive, dlid
	class := mad.Class(m[mad.OffsetClass])
	n := &f.nodes[a.node]
	switch {
	case n.Off:
		f.discard(p, DiscardOff)
		return
	case class != mad.ClassSubnLID && class != mad.ClassSubnDirected:
		f.discard(p, DiscardClass)
		return
	case dlid != ib.LIDPermissive || class == mad.ClassSubnLID:
		p.slid = orPermissive(n.Agent.Port(a.port).LID)
	}
	a.depart(p)
}

// Local gives the node's own agent a request that does not leave the node, as a kernel does: at once. If the
// agent answers, m is the answer.
func (a *Attachment) Local(m *[mad.Size]byte) sma.Verdict {
	f := a.fabric
	if f.nodes[a.node].Off || f.behaviour[a.node].mute() {
		return sma.Absorbed
	}
	var p mad.SMP
	if p.UnmarshalBinary(m[:]) != nil {
		return sma.Unwanted
	}
	f.receive(m)
	verdict := f.own(a.node, sma.Ingress{Port: a.port, SLID: ib.LIDPermissive}, &p)
	if verdict != sma.Answered {
		return verdict
	}
	if p.Encode(m) != nil {
		return sma.Absorbed
	}
	if fault := f.behaviour[a.node].fault; fault != nil && fault.Alter != nil {
		fault.Alter(f.queue.Now, m)
	}
	return verdict
}

// Receive takes the packet that came in first, and reports whether there was
// one.
func (a *Attachment) Receive(d *Delivery) bool {
	if a.inbox.count == 0 {
		return false
	}
	p := a.inbox.pop()
	d.At, d.SLID, d.MAD = p.at, p.slid, p.mad
	a.fabric.pool.Put(p.index)
	return true
}

// AdvanceTo is Fabric.AdvanceTo for a manager that waits for what comes in: it ends earlier
// when something has, or when anything happens but that packets of subnet management travel
// and agents act, once all else of that moment has happened too.
func (a *Attachment) AdvanceTo(t time.Duration) {
	f := a.fabric
	limit := t
	for {
		e, ok := f.queue.Pop(limit)
		if !ok {
			break
		}
		f.happen(e)
		if a.inbox.count > 0 || e.Kind != kindArrive && e.Kind != kindServe && e.Kind != kindTimer {
			limit = f.queue.Now
		}
	}
	f.queue.Now = max(f.queue.Now, limit)
}

// Waiting is the number of packets that have come in and were not received.
func (a *Attachment) Waiting() int { return a.inbox.count }

func (a *Attachment) empty() {
	for a.inbox.count > 0 {
		a.fabric.pool.Put(a.inbox.pop().index)
	}
}

// inbox is a first-in first-out list of packets, linked by carried.next.
type inbox struct {
	first, last *carried
	count       int
}

func (b *inbox) push(p *carried) {
	p.next = nil
	if b.count == 0 {
		b.first = p
	} else {
		b.last.next = p
	}
	b.last = p
	b.count++
}

// pop must not be called on an empty inbox.
func (b *inbox) pop() *carried {
	p := b.first
	b.first = p.next
	b.count--
	return p
}
