package routes

import (
	"bytes"
	"math/bits"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Part is a share of the work of a Job: some blocks of LIDs. Parts may be worked on at the
// same time.
type Part struct {
	j *Job
	dependencies
	found

	// slot has the slot of each switch for each LID of the block at hand.
	slot  []uint8
	width int // of a row: the switches and one more, which is no switch
	// ranks are, by destination switch, the links from each switch to it, where all of its
	// LIDs so far were that far away; nil where that is not known.
	ranks [][]uint8
	sums  []sum // by destination switch, of ranks

	// Of the LID at hand.
	dest
	to    *sender
	who   audience
	slots []uint8 // row of slot
	// layers are those of packets from each switch to that of the LID, which is layersTo.
	layers   []uint8
	layersTo int32
	mask     []uint16 // by switch: the lanes of packets that leave it
	walk

	// order is that of the ranks of orderOf, the farthest first; farthest counts.
	order   []int32
	orderOf int32
	counts  []int32
	flows

	before lidBefore
}

// lidBefore is the last LID of the block at hand that was as ranked; none without slots.
type lidBefore struct {
	slots []uint8 // row of Part.slot
	at    int32
	who   audience
}

// sum is what the packets of an audience to a LID pass, by audience.
type sum struct {
	links   [4]uint64
	longest [4]int
}

// Marks in ranks.
const (
	rankNone    = 0xFE // of what is no switch
	rankForeign = 0xFF // of a switch of another island: one more than rankNone
	rankMax     = 0xFC // a longer way has no rank
)

// Part begins a share of the work.
func (j *Job) Part() *Part {
	n := len(j.switches)
	p := &Part{j: j, width: n + 1, ranks: make([][]uint8, n), sums: make([]sum, n), orderOf: -1}
	p.slot = make([]uint8, blockLIDs*p.width)
	if j.in.Levels.Layer != nil {
		p.layers, p.layersTo = make([]uint8, n), -1
	}
	p.mask = make([]uint16, p.width)
	p.dependencies = newDependencies(j)
	p.found = newFound(j)
	p.walk = newWalk(n)
	if !j.flat {
		p.sets = make([]SLs, p.width*len(j.vls))
	}
	return p
}

// Do looks at the LIDs of blocks first to last-1.
func (p *Part) Do(first, last int) {
	at := 0
	for at < len(p.j.dests) && int(p.j.dests[at].lid) < first*blockLIDs {
		at++
	}
	for block := first; block < last; block++ {
		end := at
		for end < len(p.j.dests) && int(p.j.dests[end].lid) < (block+1)*blockLIDs {
			end++
		}
		if end == at {
			continue
		}
		p.fill(block)
		for _, d := range p.j.dests[at:end] {
			row := (int(d.lid) - block*blockLIDs) * p.width
			p.slots = p.slot[row : row+p.width]
			p.look(d)
		}
		at = end
	}
}

// fill reads a block of all forwarding tables.
func (p *Part) fill(block int) {
	p.before = lidBefore{}
	none := uint8(p.j.degree)
	first := block * blockLIDs
	for s, n := range p.j.switches {
		t, slots := &p.j.in.Tables[n.Index], p.j.slots[s]
		var row []ib.PortNum
		if first < len(t.Exits) && (block >= len(t.Unread) || !t.Unread[block]) {
			row = t.Exits[first:min(first+blockLIDs, len(t.Exits))]
		}
		for i, out := range row {
			p.slot[i*p.width+s] = slots[out]
		}
		for i := len(row); i < blockLIDs; i++ {
			p.slot[i*p.width+s] = none
		}
	}
	for i := range blockLIDs {
		p.slot[i*p.width+p.width-1] = none
	}
}

// look looks at one LID.
func (p *Part) look(d dest) {
	j := p.j
	p.dest, p.to = d, &j.ends[d.end]
	if p.who = j.audienceOf(p.to); p.who == fromNobody {
		return
	}
	all := j.weights.all[p.who]
	if j.sends(p.who, p.to) {
		all-- // not to itself
	}
	at := p.to.at
	p.readLayers()
	if at < 0 {
		p.Apart += all
		p.trace()
		return
	}
	connected := j.weights.island[p.who][j.island[at]]
	if j.sends(p.who, p.to) {
		connected--
	}
	p.Pairs += connected
	p.Apart += all - connected
	switch {
	case p.ranks[at] == nil || !p.delivers():
		p.trace()
		return
	case p.asBefore():
		p.again()
	case p.asRanked():
		p.depend()
		p.before = lidBefore{p.slots, at, p.who}
	default:
		p.trace()
		return
	}
	p.Reached += connected
	p.Links += p.sums[at].links[p.who]
	p.Longest = max(p.Longest, p.sums[at].longest[p.who])
}

// asBefore reports whether packets for the LID take the same ways, with the same levels, as
// those for the one before, up to the switch of both.
func (p *Part) asBefore() bool {
	b := &p.before
	return b.slots != nil && b.at == p.to.at && b.who == p.who && p.j.in.Levels.Each == nil && bytes.Equal(b.slots, p.slots)
}

// readLayers reads the layers of packets to the switch of the LID at hand.
func (p *Part) readLayers() {
	if p.layers == nil || p.layersTo == p.to.at {
		return
	}
	p.layersTo = p.to.at
	if p.to.at < 0 {
		clear(p.layers)
		return
	}
	to := p.j.switches[p.to.at]
	for s, n := range p.j.switches {
		p.layers[s] = p.j.in.Levels.layer(n, to)
	}
}

// delivers reports whether the switch of the LID at hand sends it to the port that has it.
func (p *Part) delivers() bool {
	out, read := p.j.in.Tables[p.j.switches[p.to.at].Index].exit(p.lid)
	return read && out == p.to.exit
}

// asRanked reports whether every switch of the island is as far from the LID as its ranks
// say, and all others have no exit for it over a link: then all packets arrive, since each
// switch is one nearer than the one before.
func (p *Part) asRanked() bool {
	rank, slots, hops, stride := p.ranks[p.to.at], p.slots, p.j.hops, p.j.degree+1
	wrong := 0
	for s, slot := range slots[:len(slots)-1] {
		if rank[hops[s*stride+int(slot)].next]+1 != rank[s] {
			wrong++
		}
	}
	return wrong == 1 // that is the switch of the LID, which leads to no switch
}

// depend enters the dependencies of the packets for a LID that is as ranked.
func (p *Part) depend() {
	if p.everywhere() {
		p.all()
		return
	}
	p.sort(p.to.at)
	if p.j.flat {
		p.sweep(p.order)
		p.own(p.to.at)
		return
	}
	p.sweepFlows(p.order)
	p.start(p.to.at, p.j.none())
}

// again enters what a LID whose packets take the same ways as those for the one before does
// not have in common with it: what happens at its own switch.
func (p *Part) again() {
	at := p.to.at
	switch {
	case p.everywhere():
		return
	case p.j.flat:
		p.own(at)
		return
	}
	p.start(at, p.j.none())
	out := p.exitPort(at, p.j.none())
	for _, a := range p.arrivals {
		p.dropAt(at, a.in, out, a.set)
	}
}

// everywhere reports whether packets for the LID start at every switch, and take one lane.
func (p *Part) everywhere() bool {
	return p.j.flat && len(p.j.vls) == 1 && p.who == fromAll && p.j.everywhere
}

// all is sweep for one lane and packets that start at every switch: then nothing has to be
// passed on, and the order does not matter.
func (p *Part) all() {
	j := p.j
	slots, stride, hops, bits, words := p.slots, j.degree+1, j.hops, p.bits, j.words
	if words == 1 {
		for s, slot := range slots[:len(slots)-1] {
			h := hops[s*stride+int(slot)]
			bits[h.link] |= 1 << slots[h.next]
		}
	} else {
		for s, slot := range slots[:len(slots)-1] {
			h := hops[s*stride+int(slot)]
			if slot := int(slots[h.next]); slot < j.degree {
				bits[int(h.link)*words+slot/64] |= 1 << (slot % 64)
			}
		}
	}
	if p.sums[p.to.at].longest[p.who] > 0 {
		p.used |= 1
	}
}

// own are the lanes of the packets for the LID that start at a switch.
func (p *Part) own(s int32) (set uint16) {
	j := p.j
	if p.senders(s) == 0 {
		return 0
	}
	if j.in.Levels.Each != nil {
		for _, i := range j.at[s] {
			if e := &j.ends[i]; e != p.to && j.sends(p.who, e) {
				set |= j.lanesOf(p.levelsOf(i))
			}
		}
		return set
	}
	layer := uint8(0)
	if p.layers != nil {
		layer = p.layers[s]
	}
	p.noteLayer(s, layer)
	if int(layer) >= len(j.laneSets) {
		return 0
	}
	return j.laneSets[layer]
}

// senders is the number of those at a switch that send to the LID at hand.
func (p *Part) senders(s int32) int32 {
	n := p.j.weights.at[p.who][s]
	if s == p.to.at && p.j.sends(p.who, p.to) {
		n-- // not to itself
	}
	return n
}

// connected reports whether cables connect a switch with the LID at hand.
func (p *Part) connected(s int32) bool { return p.to.at >= 0 && p.j.island[s] == p.j.island[p.to.at] }

// levelsOf are the levels of packets of an end port for the LID at hand.
func (p *Part) levelsOf(end int32) SLs {
	e := &p.j.ends[end]
	set := p.j.in.Levels.Each(e.port, p.lid)
	if p.connected(e.at) {
		p.levels[end] |= set
	}
	return set
}

// noteLayer enters that packets which start at a switch have a layer.
func (p *Part) noteLayer(s int32, layer uint8) {
	if !p.connected(s) {
		return
	}
	p.layersOf[s] |= 1 << min(layer, maxLayer)
	if p.j.in.Levels.of(layer) == 0 {
		p.addUnleveled(s, p.lid)
	}
}

// sweep enters the dependencies of the packets for the LID, by switches in an order in which
// each comes before the next one of its packets.
func (p *Part) sweep(order []int32) {
	j := p.j
	slots, stride, lanes, words := p.slots, j.degree+1, len(j.vls), j.words
	mask := p.mask
	for _, s := range order {
		h := j.hops[int(s)*stride+int(slots[s])]
		m := mask[s] | p.own(s)
		mask[s] = 0
		if int(h.link) == len(j.links) {
			continue
		}
		p.used |= m
		if p.anyStops && p.stops[s] {
			continue
		}
		if slot := int(slots[h.next]); slot < j.degree {
			at := int(h.link)*lanes*words + slot/64
			bit := uint64(1) << (slot % 64)
			for x := m; x != 0; x &= x - 1 {
				p.bits[at+bits.TrailingZeros16(x)*words] |= bit
			}
		}
		mask[h.next] |= m
	}
	clear(mask)
}

// sort orders the switches of an island by their ranks, the farthest first, without the
// destination.
func (p *Part) sort(to int32) {
	if p.orderOf == to {
		return
	}
	p.orderOf = to
	p.order = byDistance(p.order[:0], &p.counts, len(p.j.switches), func(s int) int {
		if r := p.ranks[to][s]; r != rankForeign && r != 0 {
			return int(r)
		}
		return 0
	})
}

// byDistance appends the switches whose distance is not 0, the farthest first.
func byDistance(order []int32, counts *[]int32, switches int, distance func(s int) int) []int32 {
	c := (*counts)[:0]
	all := 0
	for s := range switches {
		d := distance(s)
		for len(c) <= d {
			c = append(c, 0)
		}
		c[d]++
		if d > 0 {
			all++
		}
	}
	at := int32(0)
	for d := len(c) - 1; d > 0; d-- {
		c[d], at = at, at+c[d]
	}
	if cap(order) < all {
		order = make([]int32, all)
	}
	order = order[:all]
	for s := range switches {
		if d := distance(s); d > 0 {
			order[c[d]] = int32(s)
			c[d]++
		}
	}
	*counts = c
	return order
}

// anySender is an end port at a switch that sends to an audience's member, CA and router
// ports first; nil when there is none.
func (j *Job) anySender(s int32, who audience, to *sender) *observed.Port {
	var found *observed.Port
	for _, i := range j.at[s] {
		if e := &j.ends[i]; e != to && j.sends(who, e) && (found == nil || !e.isSwitch()) {
			if found = e.port; !e.isSwitch() {
				break
			}
		}
	}
	return found
}
