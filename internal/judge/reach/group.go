package reach

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// MaxCopies bounds the copies of a packet that FollowGroup follows: tables that
// lead in circles make copies without end.
const MaxCopies = 4096

// FollowGroup follows a packet for a multicast LID from an end port: a trace for
// each copy, from the sender to where the copy ends, in the order of the ports
// that it leaves by. A copy is delivered when the port takes the key; whether
// anybody behind it has joined the group is not to be read.
func FollowGroup(from *observed.Port, mlid ib.LID, p Packet) []Trace {
	w := walker{packet: p, from: from, dlid: mlid}
	w.trace = Trace{From: from.GUID, DLID: mlid, SL: p.SL, Service: p.Service, PKey: &p.PKey, Hops: []Hop{}}
	w.enterNode(from.Node, 0)
	var g copies
	if !w.send() {
		g.add(&w)
		return g.done
	}
	if from.Node.Switch != nil {
		g.spread(&w, from)
	} else {
		g.leave(&w, from, 0)
	}
	return g.done
}

// copies are those of one packet.
type copies struct{ done []Trace }

func (g *copies) add(w *walker) { g.done = append(g.done, w.trace) }

// leave takes a copy out by a port, and over its cable.
func (g *copies) leave(w *walker, out *observed.Port, in ib.PortNum) {
	if !w.depart(out, in) {
		g.add(w)
		return
	}
	next := w.cross(out)
	switch {
	case next == nil:
	case w.wasAt(next):
		w.end(Loop, "LID %s leads back to %s", w.dlid, next)
	default:
		w.enterNode(next.Node, next.Num)
		if w.arrive(next) {
			g.spread(w, next)
			return
		}
	}
	g.add(w)
}

// spread goes on from a port by which the packet has come in.
func (g *copies) spread(w *walker, in *observed.Port) {
	n, rule := in.Node, "multicast forwarding"
	if n.Switch == nil {
		g.take(w, in)
		return
	}
	exits, entry, known := groupExits(n, w.dlid, in.Num)
	switch {
	case !known:
		w.settle(in, rule, unknown, entry, NoRoute)
	case len(exits) == 0:
		w.settle(in, rule, stop, entry, NoRoute)
	case len(g.done)+len(exits) > MaxCopies:
		w.settle(in, rule, unknown, fmt.Sprintf("more than %d copies", MaxCopies), Unknown)
	default:
		w.check(in.Num, rule, pass, entry)
		for _, num := range exits {
			c := w.clone()
			if num == 0 {
				g.take(c, &n.Ports[0])
			} else {
				g.leave(c, &n.Ports[num], in.Num)
			}
		}
		return
	}
	g.add(w)
}

// take asks the port where a copy ends.
func (g *copies) take(w *walker, p *observed.Port) {
	w.trace.To = p.GUID
	if w.match(p, "P_Key of the receiver", DestinationKey) {
		w.end(Delivered, "%s takes it when it has joined the group", p)
	}
	g.add(w)
}

// clone is w with a trace of its own.
func (w *walker) clone() *walker {
	c := *w
	c.trace.Hops = slices.Clone(w.trace.Hops)
	for i := range c.trace.Hops {
		c.trace.Hops[i].Checks = slices.Clone(c.trace.Hops[i].Checks)
	}
	return &c
}

// groupExits are the ports by which a switch sends copies of a packet for a
// multicast LID that came in by port in, in order, and what says so. A table
// without an entry leaves it to the default ports.
func groupExits(n *observed.Node, mlid ib.LID, in ib.PortNum) (exits []ib.PortNum, entry string, known bool) {
	info := &n.Switch.Info
	if !n.Switch.InfoRead || !n.Ports[0].InfoRead {
		return nil, "SwitchInfo or PortInfo was not read", false
	}
	block, index := smp.MFTPlace(mlid)
	var all []ib.PortNum
	if int(block) < n.MFTBlocks() && int(mlid-ib.LIDMulticastMin) < int(info.MulticastFDBCap) && !aboveTop(n, mlid) {
		for position := range n.MFTPositions() {
			t, read := n.Switch.MFT[smp.MFTModifier(block, uint8(position))]
			if !read {
				return nil, fmt.Sprintf("MulticastForwardingTable was not read for LID %s", mlid), false
			}
			for bit := range smp.PortsPerPosition {
				if t.Masks[index]>>bit&1 != 0 {
					all = append(all, ib.PortNum(position*smp.PortsPerPosition+bit))
				}
			}
		}
	}
	if len(all) > 0 {
		for _, num := range all {
			if num != in && int(num) < len(n.Ports) {
				exits = append(exits, num)
			}
		}
		return exits, fmt.Sprintf("LID %s to ports %v", mlid, all), true
	}
	exit, which := info.DefaultMulticastPrimaryPort, "DefaultMulticastPrimaryPort"
	if in == exit {
		exit, which = info.DefaultMulticastNotPrimaryPort, "DefaultMulticastNotPrimaryPort"
	}
	entry = fmt.Sprintf("LID %s has no entry, %s is %d", mlid, which, exit)
	if exit == in || !n.LeadsSomewhere(exit) {
		return nil, entry, true
	}
	return []ib.PortNum{exit}, entry, true
}

// aboveTop reports whether a switch bounds its table below a multicast LID.
func aboveTop(n *observed.Node, mlid ib.LID) bool {
	return n.Ports[0].Info.CapabilityMask.Has(smp.CapMulticastFDBTop) && mlid > n.Switch.Info.MulticastFDBTop
}
