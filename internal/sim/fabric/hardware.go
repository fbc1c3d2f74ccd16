package fabric

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// Hardware are the delays of subnet management packets on real devices, where the managed
// time matters: how long does a bring-up take there? docs/dev/hardware.md says where each default
// is from. With it HopDelay, AgentDelay and Jitter count for data packets only.
//
// The management processor of a device takes one packet at a time: those that its agent
// answers, and those that a switch passes on by directed route. So does the program of a
// manager.
type Hardware struct {
	// Metres is the length of every cable, and Metre the time that a signal takes for one.
	Metres int
	Metre  time.Duration
	// Rate is that of every link, in Gbit/s: a packet is sent on when it has come in.
	Rate int
	// Switch is the time from port to port of a packet that is routed by LID.
	Switch time.Duration
	// Relay is the time of a switch's processor for a packet by directed route.
	Relay time.Duration
	// SwitchAgent and HostAgent are the times in which the agents of switches and of other
	// devices answer.
	SwitchAgent, HostAgent time.Duration
	// Send and Receive are the times of a manager's program for one packet.
	Send, Receive time.Duration
	// Waiting is how many packets may wait for a management processor, 0 for any number:
	// more are lost, as in a receive buffer of VL 15 that is full.
	Waiting int
}

// packetBytes is a subnet management packet on the wire: LRH 8, BTH 12, DETH 8, the MAD
// 256, ICRC 4, VCRC 2.
const packetBytes = 8 + 12 + 8 + 256 + 4 + 2

// DefaultHardware is a fabric of HDR switches with cables of 10 m.
func DefaultHardware() *Hardware {
	return &Hardware{
		Metres: 10, Metre: 5 * time.Nanosecond, Rate: 200,
		Switch: 130 * time.Nanosecond, Relay: time.Microsecond,
		SwitchAgent: 20 * time.Microsecond, HostAgent: 10 * time.Microsecond,
		Send: 2 * time.Microsecond, Receive: 2 * time.Microsecond,
	}
}

// Limits of Hardware.
const (
	metresMax = 100_000
	rateMax   = 10_000 // Gbit/s
	stepMax   = 10 * time.Second
)

func (h *Hardware) check() error {
	if h == nil {
		return nil
	}
	if h.Metres < 0 || h.Metres > metresMax {
		return fmt.Errorf("cables of %d m: want 0 to %d", h.Metres, metresMax)
	}
	if h.Rate < 1 || h.Rate > rateMax {
		return fmt.Errorf("links of %d Gbit/s: want 1 to %d", h.Rate, rateMax)
	}
	if h.Waiting < 0 || h.Waiting > MaxPackets {
		return fmt.Errorf("%d packets that may wait for a management processor: want 0 to %d", h.Waiting, MaxPackets)
	}
	for _, d := range []time.Duration{h.Metre, h.Switch, h.Relay, h.SwitchAgent, h.HostAgent, h.Send, h.Receive} {
		if d < 0 || d > stepMax {
			return fmt.Errorf("delay %v: want 0s to %v", d, stepMax)
		}
	}
	return nil
}

// link is the time from the begin of a packet at one end of a link to its end at the other.
func (h *Hardware) link() time.Duration {
	return time.Duration(h.Metres)*h.Metre + packetBytes*8*time.Nanosecond/time.Duration(h.Rate)
}

// processor is a management processor, or the program of a manager.
type processor struct {
	free    time.Duration // when it has done all that waits
	waiting int
}

// takes is when a packet is done that comes now.
func (p *processor) takes(now, work time.Duration) time.Duration {
	p.free = max(p.free, now) + work
	return p.free
}

// queues reports whether management packets have the delays of hardware.
func (f *Fabric) queues() bool { return f.config.Hardware != nil }

// Queues reports whether packets wait for each other at agents, so that an answer may take
// longer than RoundTrip.
func (f *Fabric) Queues() bool { return f.queues() }

// hop is how long a packet takes from a node to the next one.
func (f *Fabric) hop(p *carried) time.Duration {
	h := f.config.Hardware
	if h == nil {
		return f.config.HopDelay
	}
	delay := h.link()
	switch {
	case p.crossed == 0 || !f.nodes[p.node].IsSwitch:
	case p.isDirected() && p.dlid == ib.LIDPermissive:
		delay += f.processors[p.node].takes(f.queue.Now, h.Relay) - f.queue.Now
	default:
		delay += h.Switch
	}
	return delay
}

// think is how long an agent takes for a packet, from its arrival to the answer; false if
// there is no room for it to wait.
func (f *Fabric) think(p *carried) (time.Duration, bool) {
	h := f.config.Hardware
	if h == nil {
		delay := f.config.AgentDelay
		if f.config.Jitter > 0 {
			delay += time.Duration(f.random.Int64N(int64(f.config.Jitter) + 1))
		}
		return f.inTime(p, delay), true
	}
	at := &f.processors[p.node]
	if h.Waiting > 0 && at.waiting > h.Waiting {
		return 0, false
	}
	at.waiting++
	work := h.HostAgent
	if f.nodes[p.node].IsSwitch {
		work = h.SwitchAgent
	}
	return at.takes(f.queue.Now, work) - f.queue.Now, true
}

// depart lets a packet go that the program of a manager has written, once it has the time.
func (a *Attachment) depart(p *carried) {
	f := a.fabric
	if h := f.config.Hardware; h != nil && h.Send > 0 {
		f.queue.Push(NoLane, a.program.takes(f.queue.Now, h.Send), kindLaunch, p.index)
		return
	}
	f.launch(p, a.node, a.port)
}

// hand gives the program of a manager a packet, once it has the time for it.
func (a *Attachment) hand(p *carried) {
	f := a.fabric
	if h := f.config.Hardware; h != nil && h.Receive > 0 {
		f.queue.Push(NoLane, a.program.takes(f.queue.Now, h.Receive), kindHand, p.index)
		return
	}
	a.enter(p)
}

// enter puts a packet into the inbox.
func (a *Attachment) enter(p *carried) {
	f := a.fabric
	f.counts.Delivered++
	f.trace(p, SeenByManager, NotDiscarded)
	p.at = f.queue.Now
	a.inbox.push(p)
}

// handed ends the time of a manager's program for a packet.
func (f *Fabric) handed(p *carried) {
	n := &f.nodes[p.node]
	if a := f.attached[n.First+int32(n.EndPort(p.port))]; a != nil && a.inbox.count < MaxInbox {
		a.enter(p)
		return
	}
	f.discard(p, DiscardNobody)
}
