package server

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// wire is the link behind a port.
type wire struct {
	node     int32 // behind it, -1 for none that works
	port     ib.PortNum
	mtu      ib.MTU
	rate     ib.Rate
	isSwitch bool // the node is one
}

// near is what a path takes from the ports at its ends. It lies beside the rest of a Port:
// of what two ports out of thousands have, next to nothing is in the processor's cache.
type near struct {
	wire wire
	mtu  ib.MTU // as mtuOf
}

// slower is the slower of two rates, whose codes are in no order.
func slower(a, b ib.Rate) ib.Rate {
	if tenths[b&63] < tenths[a&63] {
		return b
	}
	return a
}

// Within is the rate of a path of which no more than a limit is to be used, 0 for no limit.
func Within(r, limit ib.Rate) ib.Rate {
	if limit == 0 {
		return r
	}
	return slower(r, limit)
}

// tenths are those of every code of 6 bits.
var tenths = func() (out [64]uint16) {
	for r := range out {
		out[r] = uint16(ib.Rate(r).Tenths())
	}
	return out
}()

// Path is what the forwarding tables do with packets between two ports.
type Path struct {
	MTU  ib.MTU
	Rate ib.Rate
	Hops int // links crossed on the way there
	// Reversible reports whether the way back works too.
	Reversible bool
}

// rest is the path of packets from a switch to a LID: the links in between and the port
// at the end.
type rest struct {
	state restState
	mtu   ib.MTU
	rate  ib.Rate
	hops  uint8
}

// restBlock are the rests of LIDs in a row at a switch. It is made when one of them is asked
// for first: most pairs of ports never speak.
type restBlock [restsPerBlock]rest

// restsPerBlock is a number of LIDs.
const restsPerBlock = 64

func (v *View) rest(node int32, dlid ib.LID) rest {
	if b := v.rests[node][dlid/restsPerBlock]; b != nil {
		return b[dlid%restsPerBlock]
	}
	return rest{}
}

func (v *View) keepRest(node int32, dlid ib.LID, r rest) {
	at := &v.rests[node][dlid/restsPerBlock]
	if *at == nil {
		*at = new(restBlock)
	}
	(*at)[dlid%restsPerBlock] = r
}

type restState uint8

const (
	restUnknown restState = iota
	restLost              // they do not arrive
	restFinite            // they do
)

// infinite is the rate of no link at all.
const infinite = ib.Rate(24)

func (v *View) enterRoutes() {
	v.exits = make([][]ib.PortNum, len(v.Fabric.Nodes))
	v.wires = make([][]wire, len(v.Fabric.Nodes))
	v.rests = make([][]*restBlock, len(v.Fabric.Nodes))
	for i, n := range v.Fabric.Nodes {
		v.wires[i] = make([]wire, len(n.Ports))
		for num := range n.Ports {
			v.wires[i][num] = wireOf(&n.Ports[num])
		}
		if n.Switch != nil {
			v.exits[i] = v.exitsOf(n.Switch)
			v.rests[i] = make([]*restBlock, (len(v.byLID)+restsPerBlock-1)/restsPerBlock)
		}
	}
	for _, p := range v.Ports {
		p.near = near{v.wires[p.Node.Index][p.Num], mtuOf(p.Port)}
	}
}

func wireOf(p *observed.Port) wire {
	w := wire{node: -1, mtu: mtuOf(p), rate: p.Info.Rate()}
	q := p.Peer
	if q == nil || !isActive(p) || !isActive(q) {
		return w
	}
	w.node, w.port, w.isSwitch = int32(q.Node.Index), q.Num, q.Node.Switch != nil
	w.mtu = min(w.mtu, mtuOf(q))
	return w
}

func isActive(p *observed.Port) bool { return p.InfoRead && p.Info.PortState == smp.PortActive }

// mtuOf is the MTU that a port uses: what it can do where no neighbour counts.
func mtuOf(p *observed.Port) ib.MTU {
	if p.Info.NeighborMTU.IsValid() && p.Num != 0 {
		return p.Info.NeighborMTU
	}
	return p.Info.MTUCap
}

// exitsOf is the exit port of every LID of an end port: ib.PortNone where a packet is
// dropped, and where the table was not read. It is the table itself where that says so: once
// it changes there is another view.
func (v *View) exitsOf(s *observed.Switch) []ib.PortNum {
	n := len(v.byLID)
	blocks := (n + smp.LIDsPerLinearBlock - 1) / smp.LIDsPerLinearBlock
	if s.InfoRead && s.Info.LinearFDBCap != 0 && int(s.Info.LinearFDBTop) >= n-1 && len(s.LFT) >= n &&
		len(s.LFTRead) >= blocks && !slices.Contains(s.LFTRead[:blocks], false) {
		return s.LFT[:n:n]
	}
	out := make([]ib.PortNum, len(v.byLID))
	for lid := range out {
		out[lid], _ = s.Exit(ib.LID(lid), observed.AnyPort)
	}
	return out
}

// Step is one device on a route.
type Step struct {
	Node        *observed.Node
	Entry, Exit ib.PortNum // 0 for the end of the route
}

// from is the path of packets from a port to a LID; its state is never unknown.
func (v *View) from(p, to *Port, dlid ib.LID) rest {
	if p.Num == 0 { // of a switch
		return v.onward(int32(p.Node.Index), to, dlid)
	}
	w := &p.near.wire
	switch {
	case w.node < 0:
		return rest{state: restLost}
	case !w.isSwitch: // two hosts back to back
		if v.Fabric.Nodes[w.node] != to.Node || w.port != to.Num {
			return rest{state: restLost}
		}
		return rest{restFinite, w.mtu, w.rate, 1}
	}
	r := v.onward(w.node, to, dlid)
	r.mtu, r.rate, r.hops = min(r.mtu, w.mtu), slower(r.rate, w.rate), r.hops+1
	return r
}

// onward is the path of packets from a switch to a LID of a port. Results are kept for
// the next packet.
func (v *View) onward(node int32, to *Port, dlid ib.LID) rest {
	var visited [mad.MaxHops + 1]int32
	depth := 0
	r := rest{state: restLost}
	for {
		if known := v.rest(node, dlid); known.state != restUnknown {
			r = known
			break
		}
		if depth == len(visited) {
			break // a loop
		}
		visited[depth] = node
		depth++
		exit := v.exits[node][dlid]
		if exit == 0 {
			if v.Fabric.Nodes[node] == to.Node {
				r = rest{state: restFinite, mtu: mtuOf(to.Port), rate: infinite}
				v.keepRest(node, dlid, r)
				depth--
			}
			break
		}
		if int(exit) >= len(v.wires[node]) || v.wires[node][exit].node < 0 {
			break
		}
		w := &v.wires[node][exit]
		if v.exits[w.node] == nil {
			if v.Fabric.Nodes[w.node] == to.Node && w.port == to.Num {
				r = rest{restFinite, w.mtu, w.rate, 1}
				v.keepRest(node, dlid, r)
				depth--
			}
			break
		}
		node = w.node
	}
	for depth--; depth >= 0; depth-- {
		at := visited[depth]
		if r.state == restFinite {
			w := &v.wires[at][v.exits[at][dlid]]
			r.mtu, r.rate, r.hops = min(r.mtu, w.mtu), slower(r.rate, w.rate), r.hops+1
		}
		v.keepRest(at, dlid, r)
	}
	return r
}

func (v *View) exitAt(node int32, dlid ib.LID) ib.PortNum {
	if exits := v.exits[node]; int(dlid) < len(exits) {
		return exits[dlid]
	}
	return ib.PortNone
}

// Path finds the path from one port to another, to the LID dlid there and back
// to slid; ok is false when packets do not arrive.
func (v *View) Path(from, to *Port, slid, dlid ib.LID) (p Path, ok bool) {
	if from == to {
		return Path{MTU: mtuOf(from.Port), Rate: from.Info.Rate(), Reversible: true}, isActive(from.Port)
	}
	there := v.from(from, to, dlid)
	if there.state == restLost {
		return Path{}, false
	}
	mtu := min(from.near.mtu, to.near.mtu)
	p = Path{MTU: min(there.mtu, mtu), Rate: there.rate, Hops: int(there.hops)}
	if back := v.from(to, from, slid); back.state == restFinite {
		p.MTU, p.Rate, p.Reversible = min(p.MTU, back.mtu), slower(p.Rate, back.rate), true
	}
	return p, true
}

// Route lists the devices that a packet passes, both ends included; ok is false
// when it does not arrive, and the list ends where it is lost.
func (v *View) Route(from, to *Port, dlid ib.LID) (steps []Step, ok bool) {
	at, entry, exit := int32(from.Node.Index), ib.PortNum(0), from.Num
	if from == to {
		return []Step{{from.Node, from.Num, from.Num}}, isActive(from.Port)
	}
	for range mad.MaxHops + 1 {
		node := v.Fabric.Nodes[at]
		if v.exits[at] != nil {
			exit = v.exitAt(at, dlid)
		} else if len(steps) > 0 {
			exit = 0
		}
		if int(exit) >= len(v.wires[at]) {
			exit = 0
		}
		steps = append(steps, Step{node, entry, exit})
		if exit == 0 {
			return steps, node == to.Node && (node.Switch != nil || entry == to.Num)
		}
		w := &v.wires[at][exit]
		if w.node < 0 {
			return steps, false
		}
		at, entry = w.node, w.port
	}
	return steps, false
}
