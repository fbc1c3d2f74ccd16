package desired

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TalkingPorts is ports that send to each other on some levels of a policy: full members to all,
// limited ones to full ones.
type TalkingPorts struct {
	Levels        uint16 // as a set, bit n for level n
	Full, Limited []ib.PortGUID
}

// Divides reports whether the shares of levels are to be divided among virtual lanes, so
// that Count is needed.
func (l *QoSLevels) Divides() bool { return l != nil && l.share != nil && l.vls > 1 }

// Count counts the pairs of hosts whose packets take each virtual lane of each port between
// switches, by the forwarding tables of all switches by Node.Index.
func (l *QoSLevels) Count(linear [][]ib.PortNum, talks []TalkingPorts) {
	g := l.graph
	l.use, l.places = make([][]uint64, len(g.Nodes)), make(map[*observed.Node]uint16, len(g.Nodes))
	for s, n := range g.Nodes {
		l.places[n] = uint16(s)
		l.use[s] = make([]uint64, len(n.Ports)*l.n*l.vls)
	}
	ends := make(map[ib.PortGUID][]graph.End, len(g.Ends))
	for _, e := range g.Ends {
		if e.Port == 0 {
			continue // the manager's port, or one that is asked for its counters: next to nothing
		}
		guid := g.Nodes[e.At].Ports[e.Port].Peer.GUID
		ends[guid] = append(ends[guid], e)
	}
	for _, t := range talks {
		l.count(linear, ends, t)
	}
}

// senders are the members of a talk at one switch.
type senders struct {
	at        uint16
	in        ib.PortNum // the port of one of them
	all, full uint64
}

func (l *QoSLevels) count(linear [][]ib.PortNum, ends map[ib.PortGUID][]graph.End, t TalkingPorts) {
	var in [ib.VLManagement]bool
	for sl, group := range l.of {
		if t.Levels>>sl&1 != 0 && group != ib.VLManagement {
			in[group] = true
		}
	}
	var from []senders
	for i, list := range [][]ib.PortGUID{t.Full, t.Limited} {
		for _, guid := range list {
			for _, e := range ends[guid] {
				from = append(from, senders{e.At, e.Port, 1, uint64(1 - i)})
			}
		}
	}
	slices.SortStableFunc(from, func(a, b senders) int { return cmp.Compare(a.at, b.at) })
	at := 0 // of those that are summed up
	for _, x := range from {
		if at > 0 && from[at-1].at == x.at {
			from[at-1].all += x.all
			from[at-1].full += x.full
			continue
		}
		from[at] = x
		at++
	}
	for i, list := range [][]ib.PortGUID{t.Full, t.Limited} {
		for _, guid := range list {
			for _, e := range ends[guid] {
				for _, x := range from[:at] {
					n := x.all
					if i > 0 {
						n = x.full
					}
					if n > 0 && x.at != e.At {
						l.follow(linear, &in, x, e, n)
					}
				}
			}
		}
	}
}

// follow counts the packets of n hosts at a switch to an end port.
func (l *QoSLevels) follow(linear [][]ib.PortNum, groups *[ib.VLManagement]bool, from senders, to graph.End, n uint64) {
	g := l.graph
	layer := l.lanes.LayerOf(from.at, to.At)
	for i := range to.LMC.Count() {
		at, in, lid := from.at, from.in, int(to.LID)+i
		for range g.Nodes { // a circle is for the judge to find
			node := g.Nodes[at]
			table := linear[node.Index]
			if lid >= len(table) || int(table[lid]) >= len(node.Ports) || table[lid] == 0 {
				break
			}
			out := table[lid]
			far := node.Ports[out].Peer
			if far == nil || far.Node.Switch == nil {
				break
			}
			lane := int(l.lanes.LaneOf(at, in, out, layer))
			row := l.use[at][int(out)*l.n*l.vls:]
			for group, has := range groups[:l.n] {
				if has {
					row[group*l.vls+lane] += n
				}
			}
			at, in = l.places[far.Node], far.Num
		}
	}
}

// useOf is how many pairs have packets on each virtual lane of a port between switches; nil
// where that was not counted.
func (l *QoSLevels) useOf(p *observed.Port) []uint64 {
	if l.use == nil || p.Node.Switch == nil {
		return nil
	}
	place := l.graph.Index[p.Node.Index]
	if place < 0 {
		return nil
	}
	return l.use[place][int(p.Num)*l.n*l.vls : (int(p.Num)+1)*l.n*l.vls]
}
