package graph

// Depths are, for each switch, the hops to the nearest switch with CAs.
func (g *Graph) Depths() []uint16 {
	dist := make([]uint16, len(g.Nodes))
	g.Distances(dist, nil, g.Leaves()...)
	return dist
}

// Tour returns all switches in an order to route to them: a walk
// that goes on to where CAs are nearest, so that the leaves of a pod follow
// each other. Choices that alternate from one destination to the next then
// spread over the links into the pod as evenly as over those out of it.
func (g *Graph) Tour() []uint16 {
	depth := g.Depths()
	out := make([]uint16, 0, len(g.Nodes))
	seen := make([]bool, len(g.Nodes))
	walk := func(from uint16) {
		seen[from] = true
		out = append(out, from)
		for stack := []uint16{from}; len(stack) > 0; {
			next, found := uint16(0), false
			for _, t := range g.Neighbours(stack[len(stack)-1]) {
				if !seen[t] && (!found || depth[t] < depth[next]) {
					next, found = t, true
				}
			}
			if !found {
				stack = stack[:len(stack)-1]
				continue
			}
			seen[next] = true
			out = append(out, next)
			stack = append(stack, next)
		}
	}
	for _, s := range g.Leaves() {
		if !seen[s] {
			walk(s)
		}
	}
	for s := range g.Nodes {
		if !seen[s] {
			walk(uint16(s))
		}
	}
	return out
}
