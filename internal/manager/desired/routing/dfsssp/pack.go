package dfsssp

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// packer finds layers for the pairs of switches whose shortest paths no order allows: a
// layer other than home only has to be free of circles among the turns that its pairs take,
// and often has room for more turns than its order.
type packer struct {
	*cabling
	linear [][]ib.PortNum
	lids   [][]ib.LID
	sets   []*acyclic
	added  []int32
}

// pack gives layers to pairs that have none, and makes more layers up to limit where bound
// ones need them. How many of those are left is open.
func (h *chooser) pack(lids [][]ib.LID, limit int) {
	open, others := h.missing()
	if h.open = len(open); h.open == 0 {
		return
	}
	p := &packer{cabling: h.cabling, linear: h.linear, lids: lids}
	p.refill(h)
	for k := home + 1; len(open) > 0 && k < limit; k++ {
		if k == len(p.sets) {
			p.sets = append(p.sets, newAcyclic(p.cabling, p.linkOrder(home)))
		}
		open = p.fill(h, k, open)
	}
	h.open = len(open)
	h.sets = make([]turnSet, len(p.sets))
	for k := home + 1; k < len(p.sets); k++ {
		others = p.fill(h, k, others)
		h.sets[k] = p.sets[k].set
	}
}

// fill gives a layer to the pairs that it has room for, and returns the others.
func (p *packer) fill(h *chooser, layer int, pairs [][2]uint16) [][2]uint16 {
	rest := pairs[:0]
	for _, pair := range pairs {
		if s, r := pair[0], pair[1]; p.try(p.sets[layer], s, r) {
			h.left[s][r], h.left[r][s] = 1<<layer, 1<<layer
		} else {
			rest = append(rest, pair)
		}
	}
	return rest
}

// missing lists the pairs of switches whose paths are free in no layer together: those that
// are bound, and the others.
func (h *chooser) missing() (bound, others [][2]uint16) {
	for s := range h.left {
		for r, free := range h.left[s][:s] {
			switch pair := [2]uint16{uint16(s), uint16(r)}; {
			case free != 0:
			case h.bound[s][r]:
				bound = append(bound, pair)
			default:
				others = append(others, pair)
			}
		}
	}
	return bound, others
}

// refill makes the layers that have orders, but for home, of the turns that their pairs
// take: each pair is in the first of the layers that it has left.
func (p *packer) refill(h *chooser) {
	p.sets = make([]*acyclic, len(p.orders))
	for k := home + 1; k < len(p.sets); k++ {
		p.sets[k] = newAcyclic(p.cabling, p.linkOrder(k))
	}
	for s := range h.left {
		for r, free := range h.left[s][:s] {
			if free != 0 && free.lowest() != home {
				p.try(p.sets[free.lowest()], uint16(s), uint16(r))
			}
		}
	}
}

// linkOrder orders the links so that the turns of a layer's order lead on: those up first,
// from the lowest switches, then those down.
func (p *packer) linkOrder(layer int) []int32 {
	height := p.orders[layer]
	order := make([]int32, len(p.To))
	key := make([]int32, len(p.To))
	for l, to := range p.To {
		order[l] = int32(l)
		key[l] = int32(height[p.from[l]])
		if height[to] < height[p.from[l]] {
			key[l] = -key[l]
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(key[a], key[b]), cmp.Compare(a, b)) })
	at := make([]int32, len(order))
	for i, l := range order {
		at[l] = int32(i)
	}
	return at
}

// try enters the turns of the paths between two switches into a set: all, or none where
// one of them does not fit.
func (p *packer) try(a *acyclic, s, r uint16) bool {
	p.added = p.added[:0]
	if p.enter(a, s, r) && p.enter(a, r, s) {
		return true
	}
	for _, turn := range p.added {
		a.set.remove(turn)
	}
	return false
}

// enter enters the turns of the paths from s to the LIDs behind r, and notes which were new.
func (p *packer) enter(a *acyclic, s, r uint16) bool {
	for _, lid := range p.lids[r] {
		l := p.exitOf(s, lid)
		for at := p.To[l]; at != r; at = p.To[l] {
			next := p.exitOf(at, lid)
			turn := p.turnOf(l, next)
			if !a.set.has(turn) {
				if !a.add(turn, len(p.added) == 0) {
					return false
				}
				p.added = append(p.added, turn)
			}
			l = next
		}
	}
	return true
}

// exitOf is the link by which a switch sends to a LID.
func (p *packer) exitOf(s uint16, lid ib.LID) int32 {
	return p.First[s] + int32(p.place[s][p.linear[p.Nodes[s].Index][lid]])
}
