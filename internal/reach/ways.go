package reach

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/subnet"
)

// ways is where packets for one LID come to from each switch.
type ways struct {
	switches []*subnet.Node
	number   map[*subnet.Node]int
	of       []way // by switch
	done     []bool
	path     []int // scratch
	onPath   []bool
}

// way is where packets end that do not pass from switch to switch any more: at
// last, a switch port that leads to no switch or port 0 of a switch; or before,
// as end says, when last is nil.
type way struct {
	last *subnet.Port
	end  Disposition
}

func newWays(f *subnet.Fabric) ways {
	w := ways{switches: f.Switches(), number: make(map[*subnet.Node]int)}
	for i, n := range w.switches {
		w.number[n] = i
	}
	w.of, w.done, w.onPath = make([]way, len(w.switches)), make([]bool, len(w.switches)), make([]bool, len(w.switches))
	return w
}

// find fills of for one LID.
func (w *ways) find(lid ib.LID) {
	clear(w.done)
	for s := range w.switches {
		w.path = w.path[:0]
		var got way
		for at := s; ; {
			if w.done[at] {
				got = w.of[at]
				break
			}
			if w.onPath[at] {
				got = way{end: Loop}
				break
			}
			w.path, w.onPath[at] = append(w.path, at), true
			next, end := w.step(w.switches[at], lid)
			if next == nil {
				got = end
				break
			}
			at = w.number[next]
		}
		for _, at := range w.path {
			w.of[at], w.done[at], w.onPath[at] = got, true, false
		}
	}
}

// step is the switch that comes after n, or nil and where packets come to.
func (w *ways) step(n *subnet.Node, lid ib.LID) (next *subnet.Node, end way) {
	num, known := exitOf(n.Switch, lid, anyPort)
	switch {
	case !known:
		return nil, way{end: Unknown}
	case int(num) >= len(n.Ports):
		return nil, way{end: NoRoute}
	}
	out := &n.Ports[num]
	if num == 0 || out.Peer == nil || out.Peer.Node.Switch == nil {
		return nil, way{last: out}
	}
	if d := stateOf(out, smp.PortActive); d != Delivered {
		return nil, way{end: d}
	}
	in := out.Peer
	if d := stateOf(in, smp.PortArmed, smp.PortActive); d != Delivered {
		return nil, way{end: d}
	}
	if !in.Node.Switch.InfoRead {
		return nil, way{end: Unknown}
	}
	if isBack, d := back(in, lid); isBack {
		return nil, way{end: d}
	}
	return in.Node, way{}
}

// back reports whether a switch would send a packet that came in by port in
// back, and what becomes of it then.
func back(in *subnet.Port, lid ib.LID) (is bool, d Disposition) {
	s := in.Node.Switch
	always, known := exitOf(s, lid, anyPort)
	if !known || always != in.Num {
		return false, Delivered
	}
	if num, _ := exitOf(s, lid, in.Num); num != in.Num {
		return true, NoRoute
	}
	return true, Loop
}

// most is the way that most switches have, or any when there is no such way.
func (w *ways) most() way {
	var most way
	votes := 0
	for _, x := range w.of {
		switch {
		case votes == 0:
			most, votes = x, 1
		case x == most:
			votes++
		default:
			votes--
		}
	}
	return most
}

// deliver is what becomes of a packet with key k, for the base LID of to, that
// leaves by w.last for the port behind it.
func (w way) deliver(to, behind *subnet.Port, k ib.PKey) Disposition {
	if w.last.Num != 0 {
		if d := stateOf(w.last, smp.PortActive); d != Delivered {
			return d
		}
		if d := passes(w.last, k, outbound); d != Delivered {
			return d
		}
		if behind == nil {
			return DeadEnd
		}
		if d := stateOf(behind, smp.PortArmed, smp.PortActive); d != Delivered {
			return d
		}
	}
	switch {
	case !behind.InfoRead:
		return Unknown
	case behind != to:
		return WrongDestination
	}
	return holds(behind, k, DestinationKey)
}

// stateOf is Delivered when p's link is in one of the states.
func stateOf(p *subnet.Port, good ...smp.PortState) Disposition {
	switch {
	case !p.InfoRead:
		return Unknown
	case !slices.Contains(good, p.Info.PortState):
		return LinkState
	}
	return Delivered
}

type direction bool

const (
	inbound  direction = false
	outbound direction = true
)

// passes is Delivered when p, an external switch port whose SwitchInfo and
// PortInfo were read, lets a packet with key k pass.
func passes(p *subnet.Port, k ib.PKey, d direction) Disposition {
	info := &p.Node.Switch.Info
	can, on, refused := info.InboundEnforcementCap, p.Info.PartitionEnforcementInbound, InboundKey
	if d == outbound {
		can, on, refused = info.OutboundEnforcementCap, p.Info.PartitionEnforcementOutbound, OutboundKey
	}
	if info.PartitionEnforcementCap == 0 || !can || !on {
		return Delivered
	}
	return holds(p, k, refused)
}

// holds is Delivered when an entry of p's table matches k.
func holds(p *subnet.Port, k ib.PKey, refused Disposition) Disposition {
	for i, e := range p.PKeys {
		if k.Matches(e) && i/smp.PKeysPerBlock < len(p.PKeysRead) && p.PKeysRead[i/smp.PKeysPerBlock] {
			return Delivered
		}
	}
	if !wholeTable(p) {
		return Unknown
	}
	return refused
}
