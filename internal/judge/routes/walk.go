package routes

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// walk is where the packets for one LID get from each switch, found step by step.
type walk struct {
	state []uint8
	ends  []ending
	// steps are the links up to there, or up to the circle.
	steps []int32
	// stops reports whether packets which leave a switch end at the next one.
	stops    []bool
	anyStops bool
	path     []int32
	from     []int32 // order of a sweep
}

// States of a switch in a walk.
const (
	unseen uint8 = iota
	onPath
	seen
)

// ending is where packets end: at a switch, delivered or why not.
type ending struct {
	at   int32
	exit ib.PortNum // the exit of that switch, ib.PortNone for none
	why  Why
}

func newWalk(n int) walk {
	return walk{state: make([]uint8, n), ends: make([]ending, n), steps: make([]int32, n), stops: make([]bool, n)}
}

// trace follows the LID from every switch, and enters what becomes of the packets of all
// senders.
func (p *Part) trace() {
	j := p.j
	clear(p.state)
	clear(p.stops)
	p.before = lidBefore{} // arrivals will be of this LID
	loops := len(p.loops)
	for s := range j.switches {
		p.follow(int32(s))
	}
	p.count(len(p.loops) > loops)
	order := byDistance(p.from[:0], &p.counts, len(j.switches), func(s int) int {
		if p.ends[s].why == Loop {
			return 0
		}
		return int(p.steps[s]) + 1
	})
	p.from = order
	if j.flat {
		p.sweep(order)
	} else {
		p.sweepFlows(order)
	}
	p.anyStops = false
}

// follow follows the LID from a switch up to its end, or to a switch that was seen.
func (p *Part) follow(s int32) {
	p.path = p.path[:0]
	var end ending
	steps := int32(-1)
	at := s
	for p.state[at] != seen {
		if p.state[at] == onPath {
			end = ending{at, ib.PortNone, Loop}
			p.loop(at)
			break
		}
		p.state[at] = onPath
		p.path = append(p.path, at)
		next, here := p.step(at)
		if next < 0 {
			if end = here; p.stops[at] {
				steps = 0
			}
			break
		}
		at = next
	}
	if p.state[at] == seen {
		end, steps = p.ends[at], p.steps[at]
	}
	for i := len(p.path) - 1; i >= 0; i-- {
		steps++
		p.state[p.path[i]], p.ends[p.path[i]], p.steps[p.path[i]] = seen, end, steps
	}
}

// step is the switch after at; -1 and how the packets end that get no farther.
func (p *Part) step(at int32) (next int32, end ending) {
	j := p.j
	if slot := int(p.slots[at]); slot < j.degree {
		h := j.hops[int(at)*(j.degree+1)+slot]
		t := &j.in.Tables[j.switches[h.next].Index]
		if t.byDefault(p.lid) {
			if back, read := t.exit(p.lid); read && back == j.entry[h.link] {
				p.stops[at], p.anyStops = true, true
				return -1, ending{h.next, ib.PortNone, NoEntry}
			}
		}
		return h.next, ending{}
	}
	n := j.switches[at]
	out, read := j.in.Tables[n.Index].exit(p.lid)
	end = ending{at, out, NoEntry}
	switch {
	case !read:
		end.why = NotRead
		return -1, end
	case out == p.to.exit && at == p.to.at:
		end.why = Delivered
		return -1, end
	case int(out) >= len(n.Ports):
		return -1, end
	}
	switch x := &n.Ports[out]; {
	case out == 0:
		end.why = WrongPort
	case x.Peer == nil:
		end.why = NoCable
	case !x.IsTrained():
		end.why = LinkDown
	default:
		end.why = WrongPort
	}
	return -1, end
}

// loop enters the circle that ends the path at switch at.
func (p *Part) loop(at int32) {
	first := len(p.path) - 1
	for p.path[first] != at {
		first--
	}
	circle := make([]*observed.Port, 0, len(p.path)-first)
	for _, s := range p.path[first:] {
		out, _ := p.j.in.Tables[p.j.switches[s].Index].exit(p.lid)
		circle = append(circle, &p.j.switches[s].Ports[out])
	}
	p.addLoop(circle, p.lid, p.to.port)
}

// count counts the pairs of the LID by how their packets end, and keeps the distances as
// ranks when all arrive.
func (p *Part) count(looped bool) {
	j := p.j
	whole := p.to.at >= 0 && !looped
	island := int32(-1)
	if p.to.at >= 0 {
		island = j.island[p.to.at]
	}
	for s := range j.switches {
		end, n := p.ends[s], uint64(p.senders(int32(s)))
		if j.island[s] != island {
			whole = whole && int(p.slots[s]) == j.degree
			continue
		}
		if end.why != Delivered || p.steps[s] > rankMax {
			whole = false
		}
		switch {
		case n == 0:
		case end.why != Delivered:
			p.addFault(int32(s), end, n)
		default:
			p.Reached += n
			p.Links += n * uint64(p.steps[s])
			p.Longest = max(p.Longest, int(p.steps[s]))
		}
	}
	if whole && p.ranks[p.to.at] == nil {
		p.rank()
	}
}

// rank keeps the distances of the walk as the ranks of its destination switch.
func (p *Part) rank() {
	j, at := p.j, p.to.at
	ranks := make([]uint8, p.width)
	for s := range j.switches {
		if ranks[s] = rankForeign; j.island[s] == j.island[at] {
			ranks[s] = uint8(p.steps[s])
		}
	}
	ranks[p.width-1] = rankNone
	p.ranks[at] = ranks
	sums := &p.sums[at]
	*sums = sum{}
	for who := range sums.links {
		for s := range j.switches {
			if n := j.weights.at[who][s]; n > 0 && j.island[s] == j.island[at] && int32(s) != at {
				sums.links[who] += uint64(n) * uint64(p.steps[s])
				sums.longest[who] = max(sums.longest[who], int(p.steps[s]))
			}
		}
	}
}
