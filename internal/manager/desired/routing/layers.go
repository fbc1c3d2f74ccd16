package routing

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// layers gives pairs of switches layers in which their paths close no circle; nil where one
// is enough, and where there is no second one.
func layers(in *graph.Input, linear [][]ib.PortNum) *graph.Lanes {
	room := min(in.VLs, in.Layers)
	p := newPaths(in.Graph, linear)
	if room < 2 || !p.closes() {
		return nil
	}
	lane := make([]ib.VL, room)
	for layer := range lane {
		lane[layer] = ib.VL(layer)
	}
	waits := graph.NewWaits(p.net, make([]uint8, len(p.net.To)), [][][]ib.VL{{lane}}, room)
	n := len(in.Nodes)
	out := &graph.Lanes{Layers: 1, Layer: make([][]uint8, n)}
	for s := range out.Layer {
		out.Layer[s] = make([]uint8, n)
	}
	// Pairs of switches with hosts come first: most packets are theirs.
	for rank := range 3 {
		for a := range n {
			for b := range a {
				if p.rank(a, b) != rank {
					continue
				}
				paths := append(p.between(uint16(a), uint16(b)), p.between(uint16(b), uint16(a))...)
				for layer := range room {
					if waits.Take(uint8(layer), paths...) {
						out.Layer[a][b], out.Layer[b][a] = uint8(layer), uint8(layer)
						out.Layers = max(out.Layers, layer+1)
						break
					}
				}
			}
		}
	}
	out.VLs = out.Layers
	if out.Layers == 1 {
		return nil
	}
	return out
}

// paths are the ways of packets over the channels of a graph.
type paths struct {
	net    *graph.Channels
	linear [][]ib.PortNum
	by     [][]int32 // by switch and port, the channel
}

func newPaths(g *graph.Graph, linear [][]ib.PortNum) *paths {
	p := &paths{net: graph.NewChannels(g), linear: linear, by: make([][]int32, len(g.Nodes))}
	for s, n := range g.Nodes {
		p.by[s] = slices.Repeat([]int32{-1}, len(n.Ports))
		for c := p.net.First[s]; c < p.net.First[s+1]; c++ {
			for _, port := range p.net.Ports[c] {
				p.by[s][port] = c
			}
		}
	}
	return p
}

// rank is 0 for pairs of switches with hosts, 1 where one has some, 2 for the others.
func (p *paths) rank(a, b int) (rank int) {
	for _, s := range [2]int{a, b} {
		if p.net.Hosts[s] == 0 {
			rank++
		}
	}
	return rank
}

// exit is the channel by which packets for a LID leave a switch, -1 for none.
func (p *paths) exit(s uint16, lid ib.LID) int32 {
	port := p.linear[p.net.Nodes[s].Index][lid]
	if int(port) >= len(p.by[s]) {
		return -1
	}
	return p.by[s][port]
}

// between are the paths from a switch to all LIDs behind another, each once.
func (p *paths) between(from, to uint16) (out [][]int32) {
	for _, e := range p.net.EndsOf(to) {
		for k := range e.LMC.Count() {
			var path []int32
			for at := from; at != to && len(path) <= len(p.net.Nodes); {
				c := p.exit(at, e.LID+ib.LID(k))
				if c < 0 {
					break
				}
				path = append(path, c)
				at = p.net.To[c]
			}
			if !slices.ContainsFunc(out, func(x []int32) bool { return slices.Equal(x, path) }) {
				out = append(out, path)
			}
		}
	}
	return out
}

// closes reports whether packets could wait for each other in a circle if all took one
// virtual lane.
func (p *paths) closes() bool {
	after := make([][]int32, len(p.net.To))
	before := make([]int, len(p.net.To)) // how many channels wait for this one
	for _, e := range p.net.Ends {
		for k := range e.LMC.Count() {
			lid := e.LID + ib.LID(k)
			for s := range p.net.Nodes {
				c := p.exit(uint16(s), lid)
				if c < 0 {
					continue
				}
				if next := p.exit(p.net.To[c], lid); next >= 0 && !slices.Contains(after[c], next) {
					after[c] = append(after[c], next)
					before[next]++
				}
			}
		}
	}
	var free []int32
	for c, n := range before {
		if n == 0 {
			free = append(free, int32(c))
		}
	}
	done := 0
	for ; len(free) > 0; done++ {
		c := free[len(free)-1]
		free = free[:len(free)-1]
		for _, next := range after[c] {
			if before[next]--; before[next] == 0 {
				free = append(free, next)
			}
		}
	}
	return done < len(p.net.To)
}
