package routing

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// How packets for a LID fare from a switch, by the exits that there are.
const (
	unknown = uint8(iota)
	onPath  // of the walk at hand
	arrives
	ends  // they come to a switch without an exit
	round // they go round, as the file says
)

// filler fills in exits for one LID after the other. Its slices go by switch.
type filler struct {
	t     *tables
	state []uint8
	next  []uint16   // where the exit leads to
	hops  []uint16   // to the LID, of what arrives
	into  [][]uint16 // the switches whose exit leads here
	queue [][]uint16 // switches that arrive, by hops
	path  []uint16
}

func newFiller(t *tables) *filler {
	n := len(t.Nodes)
	return &filler{t: t, state: make([]uint8, n), next: make([]uint16, n), hops: make([]uint16, n), into: make([][]uint16, n)}
}

// fill enters exits for a LID where there are none, and returns how many.
func (f *filler) fill(lid ib.LID, to graph.End) (entered int) {
	t := f.t
	if table := t.linear[t.Nodes[to.At].Index]; table[lid] != to.Port {
		table[lid] = to.Port
		entered++
	}
	if f.walk(lid, to.At) == 0 {
		return entered
	}
	// First the switches without an exit, then those also whose exit leads to one that
	// found none.
	entered += f.spread(lid, false)
	return entered + f.spread(lid, true)
}

// walk finds out how packets from every switch fare, and returns how many switches have none
// that arrive.
func (f *filler) walk(lid ib.LID, home uint16) (lost int) {
	t := f.t
	clear(f.state)
	f.state[home], f.hops[home] = arrives, 0
	for s, n := range t.Nodes {
		f.next[s] = uint16(s)
		if port := t.linear[n.Index][lid]; port != ib.PortNone && uint16(s) != home {
			f.next[s] = t.To[t.by[s][port]]
		}
	}
	for s := range t.Nodes {
		at := uint16(s)
		for f.path = f.path[:0]; f.state[at] == unknown; at = f.next[at] {
			if f.next[at] == at {
				f.state[at] = ends
				break
			}
			f.state[at] = onPath
			f.path = append(f.path, at)
		}
		end, hops := f.state[at], f.hops[at]
		if end == onPath {
			end = round
		}
		for i := len(f.path) - 1; i >= 0; i-- {
			hops++
			f.state[f.path[i]], f.hops[f.path[i]] = end, hops
		}
	}
	for _, end := range f.state {
		if end != arrives {
			lost++
		}
	}
	return lost
}

// spread gives exits to switches that have none, nearest first; with all set, to those also
// whose packets end at such a one. What leads to a switch that has one now arrives.
func (f *filler) spread(lid ib.LID, all bool) (entered int) {
	t := f.t
	for s := range f.into {
		f.into[s] = f.into[s][:0]
	}
	f.queue = f.queue[:0]
	for s, end := range f.state {
		switch {
		case end == arrives:
			f.enqueue(uint16(s))
		case end == ends && f.next[s] != uint16(s):
			f.into[f.next[s]] = append(f.into[f.next[s]], uint16(s))
		}
	}
	for h := 0; h < len(f.queue); h++ {
		for i := 0; i < len(f.queue[h]); i++ {
			at := f.queue[h][i]
			for l := t.First[at]; l < t.First[at+1]; l++ {
				s := t.To[l]
				if f.state[s] != ends || !all && f.next[s] != s {
					continue
				}
				t.linear[t.Nodes[s].Index][lid] = f.among(t.Back[l], s, lid)
				f.next[s] = at
				entered++
				f.arrive(s, uint16(h)+1)
			}
		}
	}
	return entered
}

// among is one of the parallel cables from s to where link leads: LIDs take them in turn.
func (f *filler) among(link int32, s uint16, lid ib.LID) ib.PortNum {
	t := f.t
	var ports []ib.PortNum
	for l := t.First[s]; l < t.First[s+1]; l++ {
		if t.To[l] == t.To[link] {
			ports = append(ports, t.Port[l])
		}
	}
	return ports[int(lid)%len(ports)]
}

// arrive notes that packets from s arrive now, and with them those of all that leads to s.
func (f *filler) arrive(s, hops uint16) {
	f.state[s], f.hops[s] = arrives, hops
	f.enqueue(s)
	for stack := []uint16{s}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, x := range f.into[at] {
			if f.state[x] == ends && f.next[x] == at {
				f.state[x], f.hops[x] = arrives, f.hops[at]+1
				f.enqueue(x)
				stack = append(stack, x)
			}
		}
	}
}

func (f *filler) enqueue(s uint16) {
	h := int(f.hops[s])
	for len(f.queue) <= h {
		f.queue = append(f.queue, nil)
	}
	f.queue[h] = append(f.queue[h], s)
}
