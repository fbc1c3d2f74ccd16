package dfsssp

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

const (
	// evenShift says what is even: the fullest link carries no more than the mean of those
	// that carry anything, and its share by evenShift in powers of 2.
	evenShift = 3
	// moreShift says by what share of its load a layer more has to make the fullest link emptier.
	moreShift = 4
	// fullShift says which links are full: those that carry what the fullest does less its
	// share by fullShift.
	fullShift = 4
	// evenRounds is how often all routes are looked at.
	evenRounds = 12
	// spreadRounds is how often after that LIDs behind a switch are spread over the exits.
	spreadRounds = 3
	// evenWork is the number of turns and links that all that may look at, some 20 ns each.
	evenWork = 1 << 25
)

// evener moves routes from full links to others that are as short, where the paths of a
// layer close no circle by it.
type evener struct {
	*repairer
	room int // layers that there can be
	// alike reports whether LIDs behind a switch had the same paths, so that they are to be spread.
	alike bool
	sets  []*acyclic
	flow  []uint32
	uses  []uint8 // by link: LIDs behind the root whose packets leave a switch by it
	// When a round begins: the load of the fullest link, and what full links carry more than.
	fullest, full uint64
	// refused reports whether a route could not move since it closed a circle.
	refused bool

	// For the switch that is to be moved:
	subs  []uint16 // it and those that send by it, nearest first
	in    []int32  // by switch: the link by which its path enters the one to be moved
	below []bool
	log   []step
	moves []change
}

func newEvener(m *repairer, room int, alike bool) *evener {
	n := len(m.Nodes)
	return &evener{repairer: m, room: room, alike: alike, flow: make([]uint32, n), uses: make([]uint8, len(m.To)), below: make([]bool, n), in: make([]int32, n)}
}

// run evens the load where it is not even, with more layers where these help much.
func (v *evener) run() {
	if v.isEven() {
		return
	}
	v.fill(nil)
	v.rounds()
	for v.refused && len(v.sets) < v.room && !v.isEven() {
		last, fullest := v.state(), slices.Max(v.load)
		v.sets = append(v.sets, newAcyclic(v.cabling, v.ranks[home]))
		v.rounds()
		if slices.Max(v.load) > fullest-fullest>>moreShift {
			v.restore(last)
			return
		}
	}
	v.ranks = v.ranks[:0]
	for _, set := range v.sets {
		v.ranks = append(v.ranks, set.at)
	}
}

// isEven reports whether no link carries much more than others.
func (v *evener) isEven() bool {
	sum, used := uint64(0), uint64(0)
	for _, load := range v.load {
		if load > 0 {
			sum, used = sum+load, used+1
		}
	}
	return used == 0 || slices.Max(v.load) <= (sum+sum>>evenShift)/used
}

// state is all that moves of routes change, as it is now.
type state struct {
	linear [][]ib.PortNum
	layer  [][]uint8
	ranks  [][]int32
}

func (v *evener) state() *state {
	x := &state{linear: make([][]ib.PortNum, len(v.linear))}
	for i, row := range v.linear {
		x.linear[i] = slices.Clone(row)
	}
	for _, row := range v.layer {
		x.layer = append(x.layer, slices.Clone(row))
	}
	for _, set := range v.sets {
		x.ranks = append(x.ranks, slices.Clone(set.at))
	}
	return x
}

func (v *evener) restore(x *state) {
	for i, row := range x.linear {
		copy(v.linear[i], row)
	}
	for i, row := range x.layer {
		copy(v.layer[i], row)
	}
	v.ranks = x.ranks
}

// fill counts what is routed, apart from the turns of some pairs of switches.
func (v *evener) fill(without [][]bool) {
	v.sets = v.sets[:0]
	for _, rank := range v.ranks {
		v.sets = append(v.sets, newAcyclic(v.cabling, rank))
	}
	v.sets[home].fixed = true // no path of it goes up in the order of the switches after it went down
	clear(v.load)
	count := make([][]int32, len(v.sets))
	for k := range count {
		count[k] = make([]int32, len(v.Nodes))
	}
	for r, lids := range v.lids {
		for _, lid := range lids {
			v.read(uint16(r), lid)
			for k := range count {
				clear(count[k])
			}
			for _, s := range slices.Backward(v.t.order) {
				x := v.t.exit[s]
				p := v.To[x]
				v.load[x] += uint64(v.flow[s])
				if without == nil || !without[s][r] {
					count[v.layer[s][r]][s]++
				}
				if p == v.t.root {
					continue
				}
				turn := v.turnOf(x, v.t.exit[p])
				for k, n := range count {
					n[p] += n[s]
					v.sets[k].paths[turn] += n[s]
				}
			}
		}
	}
}

// read takes the tree of a LID from the tables, and what passes each switch.
func (v *evener) read(r uint16, lid ib.LID) {
	t := v.t
	t.read(v.linear, r, lid)
	t.byHops()
	if v.Hosts[r] == 0 {
		clear(v.flow) // what CAs send to a switch itself weighs nothing
		return
	}
	copy(v.flow, v.Hosts)
	for _, s := range slices.Backward(t.order) {
		v.flow[v.To[t.exit[s]]] += v.flow[s]
	}
}

// rounds moves routes until none can, or it was enough work.
func (v *evener) rounds() {
	for range evenRounds {
		v.refused = false
		if v.round(v.emptier) == 0 || v.work() > evenWork {
			break
		}
	}
	for i := 0; (v.alike || len(v.sets) > 1) && i < spreadRounds; i++ {
		v.round(v.rarer)
		v.round(v.emptier)
	}
}

// work is the work that was done.
func (v *evener) work() (sum int) {
	for _, set := range v.sets {
		sum += set.work
	}
	return sum
}

// round looks at all routes of CAs once, and moves those for which pick finds an exit.
func (v *evener) round(pick func(e graph.End, s uint16) int32) (moved int) {
	v.fullest = slices.Max(v.load)
	v.full = v.fullest - v.fullest>>fullShift
	for r := range v.Nodes {
		if v.Hosts[r] == 0 {
			continue
		}
		v.countUses(uint16(r))
		for _, e := range v.EndsOf(uint16(r)) {
			if e.Port == 0 {
				continue
			}
			for i := range e.LMC.Count() {
				v.read(e.At, e.LID+ib.LID(i))
				for i, s := range v.t.order {
					if v.flow[s] == 0 {
						continue
					}
					was := v.t.exit[s]
					l := pick(e, s)
					switch {
					case l == noLink:
					case v.fits(i, l):
						moved++
						v.uses[was]--
						v.uses[l]++
					default:
						v.refused = true
					}
				}
			}
		}
		if v.work() > evenWork {
			break
		}
	}
	return moved
}

// countUses counts the LIDs of CAs behind r by exit.
func (v *evener) countUses(r uint16) {
	clear(v.uses)
	for _, lid := range v.lids[r] {
		for s := range v.Nodes {
			if e := v.place[s][v.linear[v.Nodes[s].Index][lid]]; e != noExit && s != int(r) {
				v.uses[v.First[s]+int32(e)]++
			}
		}
	}
}

// emptier is, where a link on the way of s is full, the exit by which the fullest link of its
// way is the emptiest, and emptier than that of the way it takes now; noLink where there is none.
func (v *evener) emptier(e graph.End, s uint16) int32 {
	t := v.t
	for at := s; v.load[t.exit[at]] <= v.full; {
		if at = v.To[t.exit[at]]; at == t.root {
			return noLink
		}
	}
	best, least := noLink, ^uint64(0)
	for l := v.First[s]; l < v.First[s+1]; l++ {
		if !v.leads(s, l) {
			continue
		}
		if was, then := v.compare(s, l); then < was && then < least && !v.shared(e, s, l) {
			best, least = l, then
		}
	}
	return best
}

// rarer is the exit of s by which the fewest LIDs behind the root are reached, if it has at
// least two fewer than the one that s takes now, and no link of its way becomes the fullest.
func (v *evener) rarer(e graph.End, s uint16) int32 {
	best, least := noLink, v.uses[v.t.exit[s]]-1
	for l := v.First[s]; l < v.First[s+1]; l++ {
		if v.uses[l] >= least || !v.leads(s, l) {
			continue
		}
		if _, then := v.compare(s, l); then <= v.fullest && !v.shared(e, s, l) {
			best, least = l, v.uses[l]
		}
	}
	return best
}

// leads reports whether a link other than its exit leads s to the root by as many hops.
func (v *evener) leads(s uint16, l int32) bool {
	t, p := v.t, v.To[l]
	return l != t.exit[s] && (p == t.root || t.exit[p] != noLink) && t.hops[p]+1 == t.hops[s]
}

// compare is what the fullest link carries of the way that s takes, and then of the way by
// another exit, up to where they meet.
func (v *evener) compare(s uint16, l int32) (was, then uint64) {
	t, f := v.t, uint64(v.flow[s])
	for a, b := t.exit[s], l; ; a, b = t.exit[v.To[a]], t.exit[v.To[b]] {
		was, then = max(was, v.load[a]), max(then, v.load[b]+f)
		if v.To[a] == v.To[b] {
			return was, then
		}
	}
}

// shared reports whether another LID of the same port takes an exit.
func (v *evener) shared(e graph.End, s uint16, l int32) bool {
	for i := range e.LMC.Count() {
		if v.linear[v.Nodes[s].Index][e.LID+ib.LID(i)] == v.Port[l] {
			return true
		}
	}
	return false
}
