package reach

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ways is where packets for one LID end from each switch.
type ways struct {
	switches []*observed.Node
	number   map[*observed.Node]int
	hops     [][]hop        // by switch and exit port
	rows     [][]ib.PortNum // by switch: a linear table read whole, else nil
	exits    []exit         // by switch, for the LID at hand
	of       []way          // by switch
	done     []bool
	path     []int // scratch
	onPath   []bool
}

// exit is what a forwarding table says.
type exit struct {
	port  ib.PortNum
	known bool
}

// hop is where packets arrive that leave a switch by a port, whatever their LID: the
// switch with number next, by its port in, or an end when next is noSwitch.
type hop struct {
	next int
	in   ib.PortNum
	end  way
}

const noSwitch = -1

// way is where packets end that do not pass from switch to switch any more: at
// last, a switch port that leads to no switch or port 0 of a switch; or before,
// as end says, when last is nil.
type way struct {
	last *observed.Port
	end  Disposition
}

func newWays(f *observed.Fabric) ways {
	w := ways{switches: f.Switches(), number: make(map[*observed.Node]int)}
	for i, n := range w.switches {
		w.number[n] = i
	}
	n := len(w.switches)
	w.hops, w.rows, w.exits = make([][]hop, n), make([][]ib.PortNum, n), make([]exit, n)
	w.of, w.done, w.onPath = make([]way, n), make([]bool, n), make([]bool, n)
	for i, n := range w.switches {
		w.hops[i] = make([]hop, len(n.Ports))
		for num := range n.Ports {
			w.hops[i][num] = w.hopBy(&n.Ports[num])
		}
		w.rows[i] = rowOf(n.Switch)
	}
	return w
}

// rowOf is the part of a linear table that is in force, when all of it was read.
func rowOf(s *observed.Switch) []ib.PortNum {
	length := min(len(s.LFT), int(s.Info.LinearFDBTop)+1)
	blocks := (length + smp.LIDsPerLinearBlock - 1) / smp.LIDsPerLinearBlock
	if !s.InfoRead || s.Info.LinearFDBCap == 0 || blocks > len(s.LFTRead) || slices.Contains(s.LFTRead[:blocks], false) {
		return nil
	}
	return s.LFT[:length]
}

// hopBy is where packets arrive that leave a switch by out.
func (w *ways) hopBy(out *observed.Port) hop {
	in := out.Peer
	if out.Num == 0 || in == nil || in.Node.Switch == nil {
		return hop{next: noSwitch, end: way{last: out}}
	}
	d := stateOf(out, smp.PortActive)
	if d == Delivered {
		d = stateOf(in, smp.PortArmed, smp.PortActive)
	}
	if d == Delivered && !in.Node.Switch.InfoRead {
		d = Unknown
	}
	if d != Delivered {
		return hop{next: noSwitch, end: way{end: d}}
	}
	return hop{next: w.number[in.Node], in: in.Num}
}

// find fills of for one LID.
func (w *ways) find(lid ib.LID) {
	clear(w.done)
	for s, row := range w.rows {
		if int(lid) < len(row) {
			w.exits[s] = exit{row[lid], true}
		} else {
			w.exits[s].port, w.exits[s].known = w.switches[s].Switch.Exit(lid, observed.AnyPort)
		}
	}
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
			next, end := w.step(at, lid)
			if next == noSwitch {
				got = end
				break
			}
			at = next
		}
		for _, at := range w.path {
			w.of[at], w.done[at], w.onPath[at] = got, true, false
		}
	}
}

// step is the switch after at, or noSwitch and where packets end.
func (w *ways) step(at int, lid ib.LID) (next int, end way) {
	x := w.exits[at]
	switch {
	case !x.known:
		return noSwitch, way{end: Unknown}
	case int(x.port) >= len(w.hops[at]):
		return noSwitch, way{end: NoRoute}
	}
	h := &w.hops[at][x.port]
	if h.next != noSwitch && w.exits[h.next] == (exit{h.in, true}) {
		if isBack, d := back(&w.switches[h.next].Ports[h.in], lid); isBack {
			return noSwitch, way{end: d}
		}
	}
	return h.next, h.end
}

// back reports whether a switch would send a packet that arrived by port in back, and
// with which disposition.
func back(in *observed.Port, lid ib.LID) (is bool, d Disposition) {
	s := in.Node.Switch
	always, known := s.Exit(lid, observed.AnyPort)
	if !known || always != in.Num {
		return false, Delivered
	}
	if num, _ := s.Exit(lid, in.Num); num != in.Num {
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

// deliver is the disposition of a packet with key k, for the base LID of to, that leaves
// by w.last for the port behind it.
func (w way) deliver(to, behind *observed.Port, k ib.PKey) Disposition {
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
func stateOf(p *observed.Port, good ...smp.PortState) Disposition {
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
func passes(p *observed.Port, k ib.PKey, d direction) Disposition {
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
func holds(p *observed.Port, k ib.PKey, refused Disposition) Disposition {
	for _, e := range p.ReadPKeys() {
		if k.Matches(e) {
			return Delivered
		}
	}
	if !wholeTable(p) {
		return Unknown
	}
	return refused
}
