package routes

import (
	"math/bits"

	"github.com/ibwarden/ibwarden/ib"
)

// state are packets for the LID at hand that came into a switch by a port and a lane.
type state struct {
	next int32 // the next state of the switch, -1 for none
	link int32 // by which they came; -1 where they start
	in   ib.PortNum
	lane uint8 // where they start: their group
	set  SLs
}

// states are those of all switches.
type states struct {
	head []int32 // by switch
	all  []state
}

func newStates(n int) states {
	s := states{head: make([]int32, n)}
	for i := range s.head {
		s.head[i] = -1
	}
	return s
}

func (x *states) push(at int32, s state) {
	s.next = x.head[at]
	x.head[at] = int32(len(x.all))
	x.all = append(x.all, s)
}

func (x *states) clear() {
	x.all = x.all[:0]
	for i := range x.head {
		x.head[i] = -1
	}
}

// sweepStates is sweep where lanes depend on the ports. It leaves the packets that get to a
// switch which is not in the order.
func (p *Part) sweepStates(order []int32) {
	j := p.j
	for _, s := range order {
		p.start(s)
		p.leave(s, j.hops[int(s)*(j.degree+1)+int(p.slots[s])])
	}
}

// start enters the packets for the LID that start at a switch.
func (p *Part) start(s int32) {
	j := p.j
	if p.senders(s) == 0 {
		return
	}
	layer := uint8(0)
	if p.layers != nil {
		layer = p.layers[s]
	}
	for g := range j.groups[s] {
		set := SLs(0)
		for _, i := range j.groups[s][g].members {
			e := &j.ends[i]
			if e == p.to || !j.sends(p.who, e) {
				continue
			}
			if j.in.Levels.Each != nil {
				set |= p.levelsOf(i)
				continue
			}
			p.noteLayer(s, layer)
			set = j.in.Levels.of(layer)
			break // all have the same
		}
		if set != 0 {
			p.states.push(s, state{link: -1, in: j.groups[s][g].in, lane: uint8(g), set: set})
		}
	}
}

// leave lets the packets of a switch leave it.
func (p *Part) leave(s int32, h hop) {
	j := p.j
	between := int(h.link) < len(j.links)
	out := p.exitPort(s, h)
	if out == 0 {
		return
	}
	var sets [16]SLs // of lanes
	for i := p.states.head[s]; i >= 0; i = p.states.all[i].next {
		from := &p.states.all[i]
		m := j.mapping(s, from.in, out)
		for set := from.set; set != 0; set &= set - 1 {
			sl := bits.TrailingZeros16(uint16(set))
			lane := m[sl]
			switch {
			case lane == dropped && !p.connected(s):
				continue
			case lane == dropped && from.link < 0:
				p.dropFirst(s, int(from.lane), out, ib.SL(sl))
				continue
			case lane == dropped:
				p.addDrop(dropKey{s, from.in, out, ib.SL(sl)}, p.lid)
				continue
			}
			if between && from.link >= 0 {
				p.add(from.link, from.lane, h.link, lane)
			}
			sets[lane] |= 1 << sl
		}
	}
	if !between {
		return
	}
	for lane, set := range sets {
		if set == 0 {
			continue
		}
		p.used |= 1 << lane
		if !p.anyStops || !p.stops[s] {
			p.states.push(h.next, state{link: h.link, in: j.links[h.link].in(), lane: uint8(lane), set: set})
		}
	}
}

// dropFirst enters that a switch drops packets of a level that start there, of all members of
// a group that send them.
func (p *Part) dropFirst(s int32, g int, out ib.PortNum, sl ib.SL) {
	j := p.j
	for _, i := range j.groups[s][g].members {
		e := &j.ends[i]
		if e != p.to && j.sends(p.who, e) && j.levelsBetween(e, &p.dest)&SL(sl) != 0 {
			p.addDrop(dropKey{s, e.exit, out, sl}, p.lid)
		}
	}
}

// exitPort is the port by which packets for the LID leave a switch for a link that carries
// them; 0 where there is none.
func (p *Part) exitPort(s int32, h hop) ib.PortNum {
	j := p.j
	if int(h.link) < len(j.links) {
		return j.links[h.link].out.Num
	}
	n := j.switches[s]
	out, read := j.in.Tables[n.Index].exit(p.lid)
	if !read || int(out) >= len(n.Ports) || out == 0 || !n.Ports[out].IsTrained() {
		return 0
	}
	return out
}
