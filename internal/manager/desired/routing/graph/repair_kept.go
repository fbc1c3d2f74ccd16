package graph

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// KeptRoutes are the routes of an engine, some of whose exits may be replaced.
type KeptRoutes struct {
	*firstRoutes
	// rows are the exits by place and LID; those of earlier KeptRoutes are shared.
	rows [][]ib.PortNum
	// moved are, by LID, the exits that are not the engine's.
	moved map[ib.LID][]keptExit
	// Missing is the number of cables between switches that are missing, Moved that of the
	// replaced exits.
	Missing, Moved int
}

// keptExit is what the engine has for a LID at a switch.
type keptExit struct {
	at   uint16
	port ib.PortNum
}

// firstRoutes is the graph of the engine. Switches are named by their places in it.
type firstRoutes struct {
	guids []ib.NodeGUID
	// The links of switch s are firstLink[s] to firstLink[s+1]-1, by port.
	firstLink []int32
	to        []uint16
	port      []ib.PortNum
	back      []ib.PortNum // the port at the other end
	order     []uint16
	ends      []End     // by LID, without those beyond the first of a range
	links     [][]int32 // by place and port: the link, -1 for none
}

// KeepRoutes keeps the routes of an engine for a graph. It is nil where the engine tells no order,
// or needs more than one virtual lane.
func KeepRoutes(g *Graph, r *Routes) *KeptRoutes {
	if r.Order == nil || r.Lanes != nil {
		return nil
	}
	f := &firstRoutes{firstLink: g.First, to: g.To, port: g.Port, order: r.Order}
	k := &KeptRoutes{firstRoutes: f, rows: make([][]ib.PortNum, len(g.Nodes)), moved: map[ib.LID][]keptExit{}}
	f.guids = make([]ib.NodeGUID, len(g.Nodes))
	for s, n := range g.Nodes {
		f.guids[s], k.rows[s] = n.GUID(), r.Linear[n.Index]
	}
	f.back = make([]ib.PortNum, len(g.To))
	for l, b := range g.Back {
		f.back[l] = g.Port[b]
	}
	f.ends = slices.SortedFunc(slices.Values(g.Ends), func(a, b End) int { return cmp.Compare(a.LID, b.LID) })
	return k
}

// index finds links by their ports.
func (f *firstRoutes) index() {
	if f.links != nil {
		return
	}
	f.links = make([][]int32, len(f.guids))
	for s := range f.guids {
		row := slices.Repeat([]int32{-1}, 256)
		for l := f.firstLink[s]; l < f.firstLink[s+1]; l++ {
			row[f.port[l]] = l
		}
		f.links[s] = row
	}
}

// laterGraph is a later graph in terms of the first.
type laterGraph struct {
	k *KeptRoutes
	// place is, by place of the later graph, that of the first; alive tells which links
	// there are.
	place []uint16
	alive []bool
	lost  []int32 // links that are missing
	ends  []End
}

// On are the routes for a later graph; ok is false where it has something that the first
// graph has not, and where the routes cannot be repaired.
func (k *KeptRoutes) On(g *Graph) (out *KeptRoutes, ok bool) {
	k.index()
	l := &laterGraph{k: k}
	if !l.match(g) || !l.matchEnds(g) {
		return nil, false
	}
	m := &repairing{laterGraph: l, rows: slices.Clone(k.rows), own: make([]bool, len(k.rows)), moved: make(map[ib.LID][]keptExit, len(k.moved))}
	if !m.repair() {
		return nil, false
	}
	out = &KeptRoutes{firstRoutes: k.firstRoutes, rows: m.rows, moved: m.moved, Missing: len(l.lost) / 2}
	for _, all := range m.moved {
		out.Moved += len(all)
	}
	return out, true
}

// Linear are the tables for the graph of On, by Node.Index.
func (k *KeptRoutes) Linear(g *Graph) [][]ib.PortNum {
	out := make([][]ib.PortNum, len(g.Index))
	at := 0
	for _, n := range g.Nodes {
		for k.guids[at] != n.GUID() {
			at++
		}
		out[n.Index] = k.rows[at]
	}
	return out
}

// match finds the switches and links of a graph among those of the first.
func (l *laterGraph) match(g *Graph) bool {
	f := l.k.firstRoutes
	l.place, l.alive = make([]uint16, len(g.Nodes)), make([]bool, len(f.to))
	at := 0
	for s, n := range g.Nodes { // both are ordered by GUID
		for at < len(f.guids) && f.guids[at] < n.GUID() {
			at++
		}
		if at == len(f.guids) || f.guids[at] != n.GUID() {
			return false
		}
		l.place[s] = uint16(at)
	}
	for s := range g.Nodes {
		links := f.links[l.place[s]]
		for x := g.First[s]; x < g.First[s+1]; x++ {
			link := links[g.Port[x]]
			if link < 0 || f.to[link] != l.place[g.To[x]] || f.back[link] != g.Port[g.Back[x]] {
				return false
			}
			l.alive[link] = true
		}
	}
	for link, alive := range l.alive {
		if !alive {
			l.lost = append(l.lost, int32(link))
		}
	}
	return true
}

// matchEnds finds the end ports of a graph among those of the first.
func (l *laterGraph) matchEnds(g *Graph) bool {
	l.ends = slices.SortedFunc(slices.Values(g.Ends), func(a, b End) int { return cmp.Compare(a.LID, b.LID) })
	known := l.k.ends
	for i := range l.ends {
		e := &l.ends[i]
		e.At = l.place[e.At]
		for len(known) > 0 && known[0].LID < e.LID {
			known = known[1:]
		}
		if len(known) == 0 || known[0] != *e {
			return false
		}
	}
	return true
}
