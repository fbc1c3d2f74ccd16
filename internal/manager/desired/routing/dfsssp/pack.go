package dfsssp

import (
	"github.com/ibwarden/ibwarden/ib"
)

// packer finds layers for the pairs of switches whose shortest paths the home layer does not
// take all: another layer only has to be free of circles among the turns that its paths take.
type packer struct {
	*cabling
	linear [][]ib.PortNum
	lids   [][]ib.LID
	sets   []*acyclic
	taken  []int32
}

// pack gives each pair a layer: home, or the first with room for it, and makes more layers
// up to limit where bound pairs need them. It returns the bound pairs and the others that
// have none, and gives them home.
func (h *chooser) pack(lids [][]ib.LID, limit int) (bound, others [][2]uint16) {
	h.layer = make([][]uint8, len(h.Nodes))
	for s := range h.layer {
		h.layer[s] = make([]uint8, len(h.Nodes))
	}
	order := h.linkOrder()
	h.ranks = [][]int32{order}
	bound, others = h.missing()
	p := &packer{cabling: h.cabling, linear: h.linear, lids: lids}
	for k := home + 1; len(bound) > 0 && k < limit; k++ {
		p.sets = append(p.sets, newAcyclic(p.cabling, order))
		bound = p.fill(h, k, bound)
	}
	for i, set := range p.sets {
		others = p.fill(h, home+1+i, others)
		h.ranks = append(h.ranks, set.at)
	}
	return bound, others
}

// fill gives a layer to the pairs that it has room for, and returns the others.
func (p *packer) fill(h *chooser, layer int, pairs [][2]uint16) [][2]uint16 {
	rest := pairs[:0]
	for _, pair := range pairs {
		if s, r := pair[0], pair[1]; p.try(p.sets[layer-home-1], s, r) {
			h.layer[s][r], h.layer[r][s] = uint8(layer), uint8(layer)
		} else {
			rest = append(rest, pair)
		}
	}
	return rest
}

// missing lists the pairs of switches whose paths are not free in the home layer: those that
// are bound, and the others.
func (h *chooser) missing() (bound, others [][2]uint16) {
	for s := range h.left {
		for r, free := range h.left[s][:s] {
			switch pair := [2]uint16{uint16(s), uint16(r)}; {
			case free:
			case h.bound[s][r]:
				bound = append(bound, pair)
			default:
				others = append(others, pair)
			}
		}
	}
	return bound, others
}

// try enters the turns of the paths between two switches into a set: all, or none where
// one of them does not fit.
func (p *packer) try(a *acyclic, s, r uint16) bool {
	p.taken = p.taken[:0]
	if p.enter(a, s, r) && p.enter(a, r, s) {
		return true
	}
	for _, turn := range p.taken {
		a.drop(turn)
	}
	return false
}

// enter enters the turns of the paths from s to the LIDs behind r, and notes them.
func (p *packer) enter(a *acyclic, s, r uint16) bool {
	for _, lid := range p.lids[r] {
		l := p.exitOf(p.linear, s, lid)
		for at := p.To[l]; at != r; at = p.To[l] {
			next := p.exitOf(p.linear, at, lid)
			turn := p.turnOf(l, next)
			if !a.take(turn, len(p.taken) == 0) {
				return false
			}
			p.taken = append(p.taken, turn)
			l = next
		}
	}
	return true
}
