package routes

import (
	"math/bits"

	"github.com/ibwarden/ibwarden/ib"
)

// flows are the packets for the LID at hand, where lanes depend on the ports.
type flows struct {
	// sets has by switch and lane the levels of those that leave the switch.
	sets []SLs
	// arrivals are those that came to the switch of the LID, by entry port.
	arrivals []arrival
}

type arrival struct {
	in  ib.PortNum
	set SLs
}

// sweepFlows is sweep where lanes depend on the ports. No packet of a switch in the order gets
// to a switch behind whose exit is another link and which is not in the order.
func (p *Part) sweepFlows(order []int32) {
	j := p.j
	p.arrivals = p.arrivals[:0]
	for _, s := range order {
		h := j.hops[int(s)*(j.degree+1)+int(p.slots[s])]
		p.start(s, h)
		p.pass(s, h)
	}
}

// start enters the packets for the LID that start at a switch.
func (p *Part) start(s int32, h hop) {
	j := p.j
	if p.senders(s) == 0 {
		return
	}
	layer := uint8(0)
	if p.layers != nil {
		layer = p.layers[s]
	}
	out, between := p.exitPort(s, h), int(h.link) < len(j.links)
	for g := range j.groups[s] {
		set := p.levelsIn(s, g, layer)
		if set == 0 || out == 0 {
			continue
		}
		m := j.mapping(s, j.groups[s][g].in, out)
		for ; set != 0; set &= set - 1 {
			sl := bits.TrailingZeros16(uint16(set))
			switch lane := m[sl]; {
			case lane != dropped && between:
				p.sets[int(s)*len(j.vls)+int(lane)] |= 1 << sl
			case lane == dropped && p.connected(s):
				p.dropFirst(s, g, out, ib.SL(sl))
			}
		}
	}
}

// levelsIn are the levels of the packets for the LID from the senders of a group.
func (p *Part) levelsIn(s int32, g int, layer uint8) (set SLs) {
	j := p.j
	for _, i := range j.groups[s][g].members {
		e := &j.ends[i]
		if e == p.to || !j.sends(p.who, e) {
			continue
		}
		if j.in.Levels.Each == nil { // all have the same
			p.noteLayer(s, layer)
			return j.in.Levels.of(layer)
		}
		set |= p.levelsOf(i)
	}
	return set
}

// pass hands the packets that leave a switch over to the next one, once all of them are known.
func (p *Part) pass(s int32, h hop) {
	j := p.j
	if int(h.link) >= len(j.links) {
		return
	}
	lanes, slot := len(j.vls), int(p.slots[h.next])
	after := j.hops[int(h.next)*(j.degree+1)+slot]
	in, out := j.entry[h.link], p.exitPort(h.next, after)
	stops := p.anyStops && p.stops[s] || out == 0
	between := int(after.link) < len(j.links)
	var m *mapping
	if !stops {
		m = j.mapping(h.next, in, out)
	}
	sets := p.sets[int(s)*lanes : (int(s)+1)*lanes]
	for lane, set := range sets {
		if set == 0 {
			continue
		}
		sets[lane] = 0
		p.used |= 1 << lane
		switch {
		case stops:
		case between:
			p.change(s, h, uint8(lane), after, m, set)
		default:
			p.arrivals = append(p.arrivals, arrival{in, set})
			p.dropAt(h.next, in, out, set)
		}
	}
}

// change lets packets that came over one link, by one lane, leave by the next.
func (p *Part) change(s int32, h hop, lane uint8, after hop, m *mapping, set SLs) {
	j := p.j
	lanes, slot := len(j.vls), int(p.slots[h.next])
	row, bit := p.row(h.link, lane, 0)+slot/64, uint64(1)<<(slot%64)
	for ; set != 0; set &= set - 1 {
		sl := bits.TrailingZeros16(uint16(set))
		next := int(m[sl])
		if next == dropped {
			p.dropAt(h.next, j.entry[h.link], j.exit[after.link], SL(ib.SL(sl)))
			continue
		}
		p.bits[row+next*j.words] |= bit
		p.sets[int(h.next)*lanes+next] |= 1 << sl
	}
}

// dropAt enters those of some levels that a switch drops between two ports.
func (p *Part) dropAt(s int32, in, out ib.PortNum, set SLs) {
	j := p.j
	if out == 0 || set&j.dropping[j.pairs[s][int(in)*len(j.switches[s].Ports)+int(out)]] == 0 || !p.connected(s) {
		return
	}
	m := j.mapping(s, in, out)
	for ; set != 0; set &= set - 1 {
		if sl := bits.TrailingZeros16(uint16(set)); m[sl] == dropped {
			p.addDrop(dropKey{s, in, out, ib.SL(sl)}, p.lid)
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
		return j.exit[h.link]
	}
	n := j.switches[s]
	out, read := j.in.Tables[n.Index].exit(p.lid)
	if !read || int(out) >= len(n.Ports) || out == 0 || !n.Ports[out].IsTrained() {
		return 0
	}
	return out
}
