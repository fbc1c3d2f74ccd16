// Repair: KeptRoutes keep routes as they are where the graph has lost links, and replace
// only the exits whose way leads over what is gone.
//
// In: the routes of an engine for a graph (KeepRoutes), and later graphs that lack some of its
// links, switches or end ports, or have them back (KeptRoutes.On). Out: routes for the later graph.
// An exit that was replaced comes back with what was missing: on the first graph they are
// those of the engine again. What is new to the first graph, and ways that cannot be
// replaced, are for the engine.
//
// Deadlock: the engine tells the order of switches in which none of its ways goes up after
// it went down (Routes.Order), and the replaced exits keep to it where they can. The
// highest switch of all cannot where it has lost a way down: it may go down and up again, and
// so may those that are left after that. The judge of routes says whether that is right.
//
// The exits for a LID lead to it as a tree. What is to be replaced is a part of it that is
// closed: every switch whose way leads over a missing link, and nothing else. Its switches
// are led, nearest first, to others whose ways stand, so that no circle can come about.
//
// The cost is in what is to be replaced: for each LID the switches of that part times their
// links, after one look at the tables of the switches that have lost a link.

package graph

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// repairing replaces exits.
type repairing struct {
	*laterGraph
	rows [][]ib.PortNum
	own  []bool // by place: whether the row is this repairing's own
	// moved is that of the result.
	moved map[ib.LID][]keptExit
	// uses counts, by place, the LIDs that leave by each port; nil where it was not counted.
	uses [][]int32

	// home has, by place, the engine's exit for a LID, where homed is round.
	home  []ib.PortNum
	homed []int32

	// Of the LID at hand.
	lid  ib.LID
	end  End
	part []uint16 // the switches to be led again
	// anyOrder reports whether those which are left may go up after they went down.
	anyOrder bool
	// in has, by place, the state of a switch; it holds where seen is round.
	in    []repairState
	seen  []int32
	round int32
	path  []uint16
	near  []repairCandidate
}

// repairState is how a switch stands to the LID at hand.
type repairState struct {
	again bool // it is to be led again, and is not yet
	hops  int32
	// down reports whether its way never goes up.
	down bool
}

// repairCandidate is a link by which a switch may be led.
type repairCandidate struct {
	port ib.PortNum
	down bool
}

// repair replaces what leads over missing links, and puts back what it may.
func (m *repairing) repair() bool {
	n := len(m.rows)
	m.in, m.seen, m.uses = make([]repairState, n), make([]int32, n), make([][]int32, n)
	m.home, m.homed = make([]ib.PortNum, n), make([]int32, n)
	m.restore()
	for lid, roots := range m.cut() {
		if !m.lead(lid, roots) {
			return false
		}
	}
	return true
}

// endOf is the end port of this graph that has a LID.
func (m *repairing) endOf(lid ib.LID) (End, bool) {
	i, found := slices.BinarySearchFunc(m.ends, lid, func(e End, l ib.LID) int { return int(e.LID) - int(l) })
	if !found {
		i--
	}
	if i < 0 || int(lid) >= int(m.ends[i].LID)+m.ends[i].LMC.Count() {
		return End{}, false
	}
	return m.ends[i], true
}

// restore puts the engine's exits back whose ways are whole again.
func (m *repairing) restore() {
	for lid, all := range m.k.moved {
		m.round++
		for _, x := range all {
			m.home[x.at], m.homed[x.at] = x.port, m.round
		}
		engine := func(at uint16) ib.PortNum {
			if m.homed[at] == m.round {
				return m.home[at]
			}
			return m.k.rows[at][lid]
		}
		end, some := m.endOf(lid)
		var stay []keptExit
		for _, x := range all {
			if some && m.whole(x.at, end, engine) {
				m.set(x.at, lid, x.port)
			} else {
				stay = append(stay, x)
			}
		}
		if stay != nil {
			m.moved[lid] = stay
		}
	}
}

// whole reports whether the way from a switch leads to an end port over links that there are.
func (m *repairing) whole(at uint16, end End, exit func(at uint16) ib.PortNum) bool {
	for range m.rows {
		port := exit(at)
		if at == end.At {
			return port == end.Port
		}
		link := m.k.links[at][port]
		if link < 0 || !m.alive[link] {
			return false
		}
		at = m.k.to[link]
	}
	return false
}

func (m *repairing) set(at uint16, lid ib.LID, port ib.PortNum) {
	if !m.own[at] {
		m.rows[at], m.own[at] = slices.Clone(m.rows[at]), true
	}
	if uses := m.uses[at]; uses != nil {
		uses[m.rows[at][lid]]--
		uses[port]++
	}
	m.rows[at][lid] = port
}

// cut calls yield with the LIDs, in order, for which an exit leads over a missing link, and
// the switches where it does.
func (m *repairing) cut() func(yield func(ib.LID, []uint16) bool) {
	roots := map[ib.LID][]uint16{}
	var missing [256]bool
	for i := 0; i < len(m.lost); {
		first := i
		link := m.lost[i]
		at, _ := slices.BinarySearch(m.k.firstLink, link+1)
		s := uint16(at - 1)
		for ; i < len(m.lost) && m.lost[i] < m.k.firstLink[s+1]; i++ {
			missing[m.k.port[m.lost[i]]] = true
		}
		for _, e := range m.ends {
			for lid := e.LID; lid < e.LID+ib.LID(e.LMC.Count()); lid++ {
				if missing[m.rows[s][lid]] {
					roots[lid] = append(roots[lid], s)
				}
			}
		}
		for _, link := range m.lost[first:i] {
			missing[m.k.port[link]] = false
		}
	}
	return func(yield func(ib.LID, []uint16) bool) {
		for _, e := range m.ends {
			for lid := e.LID; lid < e.LID+ib.LID(e.LMC.Count()); lid++ {
				if at := roots[lid]; at != nil && !yield(lid, at) {
					return
				}
			}
		}
	}
}

// lead leads the switches whose ways to a LID begin with a missing link at one of the roots.
func (m *repairing) lead(lid ib.LID, roots []uint16) bool {
	m.lid, m.round, m.anyOrder = lid, m.round+1, false
	m.end, _ = m.endOf(lid)
	m.spread(roots)
	for hops := int32(1); len(m.part) > 0; {
		next := m.part[:0]
		var led []uint16
		nearest := int32(-1)
		for _, s := range m.part {
			port, down, least := m.choose(s, hops)
			switch {
			case port != 0:
				m.replace(s, port)
				m.in[s] = repairState{again: true, hops: hops, down: down} // counts from the next round on
				led = append(led, s)
			default:
				next = append(next, s)
				if least >= 0 && (nearest < 0 || least < nearest) {
					nearest = least
				}
			}
		}
		for _, s := range led {
			m.in[s].again = false
		}
		m.part = next
		if hops++; len(led) == 0 {
			switch {
			case len(m.part) == 0 || nearest >= hops:
				hops = nearest
			case m.anyOrder:
				return false
			default: // the highest switch of all has no way up and down again
				m.anyOrder, hops = true, 1
			}
		}
	}
	return true
}

// spread finds the part of the tree to be led again: the roots and every switch whose way
// leads over them. A switch that is not in the graph any more has no way.
func (m *repairing) spread(roots []uint16) {
	m.part = m.part[:0]
	add := func(s uint16) {
		if m.seen[s] != m.round {
			m.seen[s], m.in[s] = m.round, repairState{again: true}
			m.part = append(m.part, s)
		}
	}
	for _, s := range roots {
		if m.isThere(s) {
			add(s)
		}
	}
	f := m.k.firstRoutes
	for i := 0; i < len(m.part); i++ {
		s := m.part[i]
		for l := f.firstLink[s]; l < f.firstLink[s+1]; l++ {
			if m.alive[l] && m.rows[f.to[l]][m.lid] == f.back[l] {
				add(f.to[l])
			}
		}
	}
}

// isThere reports whether a switch is in the later graph.
func (m *repairing) isThere(s uint16) bool {
	_, found := slices.BinarySearch(m.place, s)
	return found
}

// choose is the exit by which a switch gets to the LID in so many hops and in order, the one
// that it has where that is among them; 0 for none, with the least number of hops in which it
// may.
func (m *repairing) choose(s uint16, hops int32) (port ib.PortNum, down bool, least int32) {
	f := m.k.firstRoutes
	m.near, least = m.near[:0], -1
	for l := f.firstLink[s]; l < f.firstLink[s+1]; l++ {
		if !m.alive[l] {
			continue
		}
		to := f.to[l]
		way, stands := m.way(to)
		falls := f.order[to] > f.order[s]
		if !stands || falls && !way.down && !m.anyOrder {
			continue
		}
		switch {
		case way.hops+1 < hops:
			// It has come into reach by a switch that was led later.
			fallthrough
		case way.hops+1 == hops:
			m.near = append(m.near, repairCandidate{f.port[l], falls && way.down})
		case least < 0 || way.hops+1 < least:
			least = way.hops + 1
		}
	}
	if len(m.near) == 0 {
		return 0, false, least
	}
	best := m.best(s)
	return best.port, best.down, least
}

// best is the candidate to take: one whose way only goes down, which more may follow, then
// the exit that there is, then one that no other LID of the end port leaves by, then the
// one that the fewest LIDs leave by where much has to move, else by the LID.
func (m *repairing) best(s uint16) repairCandidate {
	had := m.rows[s][m.lid]
	siblings := m.rows[s][m.end.LID:][:m.end.LMC.Count()]
	rank := func(c repairCandidate) (r [4]int64) {
		if !c.down {
			r[0] = 1
		}
		if c.port != had {
			r[1] = 1
		}
		if len(siblings) > 1 && c.port != had && slices.Contains(siblings, c.port) {
			r[2] = 1
		}
		if m.anyOrder {
			r[3] = int64(c.port) // all the same way: the fewer turns, the better
		} else if uses := m.usesOf(s); uses != nil {
			r[3] = int64(uses[c.port])<<32 | int64(mixed(uint32(m.lid)<<8|uint32(c.port)))
		} else {
			r[3] = int64(mixed(uint32(m.lid)<<8 | uint32(c.port)))
		}
		return r
	}
	return slices.MinFunc(m.near, func(a, b repairCandidate) int {
		x, y := rank(a), rank(b)
		return slices.Compare(x[:], y[:])
	})
}

// usesOf counts the exits of a switch that has lost a link; nil for others, which have few
// to move.
func (m *repairing) usesOf(s uint16) []int32 {
	if m.uses[s] != nil {
		return m.uses[s]
	}
	f := m.k.firstRoutes
	whole := true
	for l := f.firstLink[s]; l < f.firstLink[s+1]; l++ {
		whole = whole && m.alive[l]
	}
	if whole {
		return nil
	}
	uses := make([]int32, 256)
	for _, e := range m.ends {
		for lid := e.LID; lid < e.LID+ib.LID(e.LMC.Count()); lid++ {
			uses[m.rows[s][lid]]++
		}
	}
	m.uses[s] = uses
	return uses
}

// way is how a switch stands to the LID at hand; stands is false while it is to be led again.
func (m *repairing) way(s uint16) (way repairState, stands bool) {
	f := m.k.firstRoutes
	m.path = m.path[:0]
	at := s
	for m.seen[at] != m.round {
		m.seen[at], m.in[at] = m.round, repairState{again: true} // in a circle nothing stands
		m.path = append(m.path, at)
		if at == m.end.At {
			m.in[at] = repairState{down: true}
			m.path = m.path[:len(m.path)-1]
			break
		}
		link := f.links[at][m.rows[at][m.lid]]
		if link < 0 || !m.alive[link] {
			break
		}
		at = f.to[link]
	}
	for _, before := range slices.Backward(m.path) {
		after := m.in[at]
		if at != before && !after.again {
			m.in[before] = repairState{hops: after.hops + 1, down: after.down && f.order[at] > f.order[before]}
		}
		at = before
	}
	return m.in[s], !m.in[s].again
}

// replace gives a switch another exit for the LID at hand.
func (m *repairing) replace(s uint16, port ib.PortNum) {
	had := m.rows[s][m.lid]
	if port == had {
		return
	}
	all := m.moved[m.lid]
	i := slices.IndexFunc(all, func(x keptExit) bool { return x.at == s })
	switch {
	case i < 0:
		m.moved[m.lid] = append(slices.Clip(all), keptExit{s, had})
	case all[i].port == port: // the engine's again
		if all = slices.Concat(all[:i], all[i+1:]); len(all) > 0 {
			m.moved[m.lid] = all
		} else {
			delete(m.moved, m.lid)
		}
	}
	m.set(s, m.lid, port)
}

// mixed is a number whose bits all depend on those of x.
func mixed(x uint32) uint32 {
	x = (x ^ x>>16) * 0x7feb352d
	x = (x ^ x>>15) * 0x846ca68b
	return x ^ x>>16
}
