package routes

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Load is what flows of a pattern do to the links between switches, each direction of a
// cable being a link.
type Load struct {
	// Rounds is how often the pattern was tried, each time with other partners; 1 where
	// there are no others.
	Rounds int
	// Flows are those that arrive, of all rounds, Lost the others.
	Flows, Lost uint64
	// Links is the number of links between switches, Used that of those with a flow.
	Links, Used int
	// Worst is the most flows that share a link in a round, WorstAt the port that sends
	// over it, nil where no flow passes a link. MeanWorst is the mean of the worst of all
	// rounds.
	Worst     uint64
	WorstAt   *observed.Port
	MeanWorst float64
	// Mean is the mean number of flows of a link in a round, over the links of Links.
	Mean float64
	// Passed is the number of links that all flows pass together, Longest that of the flow
	// with most.
	Passed  uint64
	Longest int
}

// MeanPath is the mean number of links between switches that a flow passes.
func (l *Load) MeanPath() float64 {
	if l.Flows == 0 {
		return 0
	}
	return float64(l.Passed) / float64(l.Flows)
}

// Tenant is ports that talk to each other: full members to all, limited ones to full ones.
type Tenant struct{ Full, Limited []*observed.Port }

// loads counts flows by link.
type loads struct {
	j     *Job
	links []uint64 // of this round
	used  []bool
	out   Load
	worst uint64 // sum over rounds
}

func (j *Job) newLoads() *loads {
	return &loads{j: j, links: make([]uint64, len(j.links)), used: make([]bool, len(j.links)), out: Load{Links: len(j.links)}}
}

// round ends a round.
func (l *loads) round() {
	worst := uint64(0)
	for i, n := range l.links {
		worst = max(worst, n)
		if n > l.out.Worst {
			l.out.Worst, l.out.WorstAt = n, l.j.links[i].out
		}
		l.used[i] = l.used[i] || n > 0
	}
	l.worst += worst
	l.out.Rounds++
	clear(l.links)
}

func (l *loads) done() Load {
	out := l.out
	for _, used := range l.used {
		if used {
			out.Used++
		}
	}
	if out.Rounds > 0 {
		out.MeanWorst = float64(l.worst) / float64(out.Rounds)
		if out.Links > 0 {
			out.Mean = float64(out.Passed) / float64(out.Rounds) / float64(out.Links)
		}
	}
	return out
}

// AllToAll has a flow from every CA and router port to every LID of every other.
func (j *Job) AllToAll() Load {
	all := Tenant{}
	for i := range j.ends {
		if e := &j.ends[i]; !e.isSwitch() && e.at >= 0 {
			all.Full = append(all.Full, e.port)
		}
	}
	return j.Tenants([]Tenant{all})
}

// Tenants has a flow from every port of a tenant to every LID of every other that it may
// talk to, of all tenants at once.
func (j *Job) Tenants(tenants []Tenant) Load {
	l := j.newLoads()
	p := j.Part()
	place := make(map[*observed.Port]int32, len(j.ends))
	for i := range j.ends {
		place[j.ends[i].port] = int32(i)
	}
	weight := make([]uint64, len(j.switches))
	byLID := map[int32][]int{} // by end: the tenants that it is of, limited ones as -1 less
	for t, x := range tenants {
		for _, q := range x.Full {
			byLID[place[q]] = append(byLID[place[q]], t)
		}
		for _, q := range x.Limited {
			if !slices.Contains(x.Full, q) {
				byLID[place[q]] = append(byLID[place[q]], -1-t)
			}
		}
	}
	block := -1
	for _, d := range j.dests {
		if len(byLID[d.end]) == 0 {
			continue
		}
		clear(weight)
		for _, t := range byLID[d.end] {
			members := [][]*observed.Port{tenants[max(t, -1-t)].Full}
			if t >= 0 {
				members = append(members, tenants[t].Limited)
			}
			for _, list := range members {
				for _, q := range list {
					if i, known := place[q]; known && i != d.end && j.ends[i].at >= 0 {
						weight[j.ends[i].at]++
					}
				}
			}
		}
		if b := int(d.lid) / blockLIDs; b != block {
			block = b
			p.fill(b)
		}
		l.flow(p, d, weight)
	}
	l.round()
	return l.done()
}

// flow adds the flows to a LID, so many from each switch.
func (l *loads) flow(p *Part, d dest, weight []uint64) {
	j := l.j
	row := int(d.lid) % blockLIDs * p.width
	p.slots, p.dest, p.to = p.slot[row:row+p.width], d, &j.ends[d.end]
	clear(p.state)
	clear(p.stops)
	for s := range j.switches {
		p.follow(int32(s))
	}
	for s, n := range weight {
		switch {
		case n == 0:
		case p.ends[s].why != Delivered:
			l.out.Lost += n
			weight[s] = 0
		default:
			l.out.Flows += n
			l.out.Passed += n * uint64(p.steps[s])
			l.out.Longest = max(l.out.Longest, int(p.steps[s]))
		}
	}
	p.from = byDistance(p.from[:0], &p.counts, len(j.switches), func(s int) int {
		if p.ends[s].why != Delivered {
			return 0
		}
		return int(p.steps[s])
	})
	for _, s := range p.from {
		h := j.hops[int(s)*(j.degree+1)+int(p.slots[s])]
		l.links[h.link] += weight[s]
		weight[h.next] += weight[s]
	}
}

// sorted are the CA and router ports in the order of their switches' GUIDs and ports, as
// jobs are often placed.
func (j *Job) sorted() []int32 {
	var out []int32
	for i := range j.ends {
		if e := &j.ends[i]; !e.isSwitch() && e.at >= 0 {
			out = append(out, int32(i))
		}
	}
	slices.SortStableFunc(out, func(a, b int32) int {
		x, y := &j.ends[a], &j.ends[b]
		return cmp.Or(cmp.Compare(j.switches[x.at].GUID(), j.switches[y.at].GUID()), cmp.Compare(x.exit, y.exit))
	})
	return out
}

// Shift has a flow from every CA and router port to the one that comes so many places after
// it, by switch GUID and switch port, the last to the first ones again. A round is for one
// number of places: for each from 1 up, and where there are more than rounds, for as many of
// them, at equal distances.
func (j *Job) Shift(rounds int) Load {
	l, hosts, lids := j.newLoads(), j.sorted(), j.firstLIDs()
	n := len(hosts)
	for i := range min(rounds, n-1) {
		k := 1 + i*(n-1)/min(rounds, n-1)
		for at, from := range hosts {
			to := hosts[(at+k)%n]
			l.single(&j.ends[from], &j.ends[to], lids[to])
		}
		l.round()
	}
	return l.done()
}

// Bisection has flows between partners, in both directions: in each round the CA and router
// ports are parted into two halves and paired at random, by a generator that begins with
// seed.
func (j *Job) Bisection(rounds int, seed uint64) Load {
	l, hosts, lids := j.newLoads(), j.sorted(), j.firstLIDs()
	for range rounds {
		for i := len(hosts) - 1; i > 0; i-- {
			seed += 0x9E3779B97F4A7C15
			z := (seed ^ seed>>30) * 0xBF58476D1CE4E5B9
			z = (z ^ z>>27) * 0x94D049BB133111EB
			k := (z ^ z>>31) % uint64(i+1)
			hosts[i], hosts[k] = hosts[k], hosts[i]
		}
		for i := 0; i+1 < len(hosts); i += 2 {
			a, b := hosts[i], hosts[i+1]
			l.single(&j.ends[a], &j.ends[b], lids[b])
			l.single(&j.ends[b], &j.ends[a], lids[a])
		}
		l.round()
	}
	return l.done()
}

// firstLIDs are the base LIDs by place in ends.
func (j *Job) firstLIDs() []ib.LID {
	out := make([]ib.LID, len(j.ends))
	for _, d := range slices.Backward(j.dests) {
		out[d.end] = d.lid
	}
	return out
}

// single adds a flow from one end port to another.
func (l *loads) single(from, to *sender, lid ib.LID) {
	j := l.j
	at, passed := from.at, 0
	for passed <= len(j.switches) {
		out, read := j.in.Tables[j.switches[at].Index].exit(lid)
		if !read {
			break
		}
		if at == to.at && out == to.exit {
			l.out.Flows++
			l.out.Passed += uint64(passed)
			l.out.Longest = max(l.out.Longest, passed)
			j.eachLink(from.at, to, lid, func(link int32) { l.links[link]++ })
			return
		}
		slot := int(j.slots[at][out])
		if slot == j.degree {
			break
		}
		at = j.links[j.firstLink[at]+int32(slot)].to
		passed++
	}
	l.out.Lost++
}

// eachLink calls visit with the links of a way that arrives.
func (j *Job) eachLink(at int32, to *sender, lid ib.LID, visit func(int32)) {
	for {
		out, _ := j.in.Tables[j.switches[at].Index].exit(lid)
		if at == to.at && out == to.exit {
			return
		}
		link := j.firstLink[at] + int32(j.slots[at][out])
		visit(link)
		at = j.links[link].to
	}
}
