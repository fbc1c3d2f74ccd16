package graph

import (
	"github.com/ibwarden/ibwarden/ib"
)

// The load of a link is the number of routes from a CA to a LID that cross it.
// Above these bits stands the number of LIDs of the End port at hand, so that
// a second LID of one port is dearer than any load.
const (
	turnOne  = uint64(1) << 56
	loadMask = turnOne - 1
)

// balance chooses among exits of equal length and writes the tables. All
// slices go by link or by switch of the graph.
type balance struct {
	g     *heights
	from  *Senders
	table [][]ib.PortNum // by switch
	load  []uint64       // by link
	lids  []uint16       // by link: LIDs of CAs and routers
	owned []uint16       // by link: LIDs of switches
	// For the LID at hand:
	flow []uint32 // by switch: CAs whose packets pass it
	path []uint64 // by switch: load of the chosen way
	exit []int32  // by switch: the chosen link
}

func newBalance(g *heights, from *Senders, linear [][]ib.PortNum) *balance {
	links, n := len(g.To), len(g.Nodes)
	b := &balance{
		g: g, from: from,
		load: make([]uint64, links), lids: make([]uint16, links), owned: make([]uint16, links),
		flow: make([]uint32, n), path: make([]uint64, n), exit: make([]int32, n),
	}
	for _, node := range g.Nodes {
		b.table = append(b.table, linear[node.Index])
	}
	return b
}

// route enters the LIDs of e, to whose switch the paths lead, everywhere.
func (b *balance) route(p *paths, e End) {
	lids, turn := b.lids, uint64(0)
	if e.Port == 0 {
		lids = b.owned
	}
	if e.LMC > 0 {
		turn = turnOne
	}
	for i := range e.LMC.Count() {
		lid := e.LID + ib.LID(i)
		b.table[e.At][lid] = e.Port
		// What CAs send to a switch itself weighs nothing.
		clear(b.flow)
		if e.Port != 0 {
			b.from.Flow(b.g.Graph, e, b.flow)
			b.choose(p, e.At)
		}
		b.enter(p, lid, lids, turn)
	}
	if turn != 0 {
		for l := range b.load {
			b.load[l] &= loadMask
		}
	}
}

// again routes e, which has one LID, once more, now that the load of all others is known.
func (b *balance) again(p *paths, e End) {
	b.from.Flow(b.g.Graph, e, b.flow)
	for i, s := range p.order {
		for _, l := range p.exits[p.exitFirst[i]:p.exitFirst[i+1]] {
			if b.g.Port[l] == b.table[s][e.LID] {
				b.load[l] -= uint64(b.flow[s])
				b.lids[l]--
				b.flow[b.g.To[l]] += b.flow[s]
			}
		}
	}
	b.route(p, e)
}

// isEven reports whether no link is much fuller than all that are used.
func (b *balance) isEven() bool {
	sum, used, worst := uint64(0), uint64(0), uint64(0)
	for _, load := range b.load {
		if load > 0 {
			used++
		}
		sum, worst = sum+load, max(worst, load)
	}
	return worst*used*evenShare <= sum*(evenShare+1)
}

// choose finds the least loaded of the paths to switch d.
func (b *balance) choose(p *paths, d uint16) {
	load, path, to := b.load, b.path, b.g.To
	path[d] = 0
	for i := len(p.order) - 1; i >= 0; i-- {
		best, least := int32(0), ^uint64(0)
		for _, l := range p.exits[p.exitFirst[i]:p.exitFirst[i+1]] {
			if sum := load[l] + path[to[l]]; sum < least {
				least, best = sum, l
			}
		}
		s := p.order[i]
		b.exit[s], path[s] = best, least&loadMask
	}
}

// enter writes the chosen exits into the tables and adds their load. Where no
// CA's packets pass, the exit with the fewest LIDs is taken instead.
func (b *balance) enter(p *paths, lid ib.LID, lids []uint16, turn uint64) {
	for i, s := range p.order {
		flow, best := b.flow[s], b.exit[s]
		if flow == 0 {
			best = b.idlest(p.exits[p.exitFirst[i]:p.exitFirst[i+1]], lids)
		}
		b.load[best] += turn + uint64(flow)
		lids[best]++
		b.flow[b.g.To[best]] += flow
		b.table[s][lid] = b.g.Port[best]
	}
}

// idlest is the exit with the fewest LIDs.
func (b *balance) idlest(exits []int32, lids []uint16) int32 {
	best, least := exits[0], ^uint64(0)
	for _, l := range exits {
		if n := b.load[l]&^loadMask | uint64(lids[l]); n < least {
			best, least = l, n
		}
	}
	return best
}
