package graph

// Without returns the graph without the links of some switches, by their places, and without
// what is behind them. Places stay what they are: the switches remain, alone.
func (g *Graph) Without(switches []uint16) *Graph {
	gone := make([]bool, len(g.Nodes))
	for _, s := range switches {
		gone[s] = true
	}
	out := &Graph{Fabric: g.Fabric, Nodes: g.Nodes, Index: g.Index, Detached: g.Detached, Top: g.Top}
	out.First = make([]int32, 1, len(g.First))
	out.Hosts = make([]uint32, len(g.Nodes))
	out.EndFirst = make([]int32, 1, len(g.EndFirst))
	moved := make([]int32, len(g.To)) // the place of a link in out
	for s := range g.Nodes {
		for l := g.First[s]; l < g.First[s+1]; l++ {
			if !gone[s] && !gone[g.To[l]] {
				moved[l] = int32(len(out.To))
				out.To, out.Port, out.Back = append(out.To, g.To[l]), append(out.Port, g.Port[l]), append(out.Back, g.Back[l])
			}
		}
		out.First = append(out.First, int32(len(out.To)))
		if !gone[s] {
			out.Hosts[s] = g.Hosts[s]
			out.Ends = append(out.Ends, g.EndsOf(uint16(s))...)
		}
		out.EndFirst = append(out.EndFirst, int32(len(out.Ends)))
	}
	for l := range out.Back {
		out.Back[l] = moved[out.Back[l]]
	}
	return out
}
