package observed

const (
	// fewHosts is how many devices a spine may have of its own, such as the manager's host or
	// the adapter inside a switch, without being taken for a leaf: the leaves below it have
	// manyTimes as many at least.
	fewHosts  = 2
	manyTimes = 4
	// levelLeaf is the level of a leaf.
	levelLeaf = 1
)

// levels finds the level of each switch. A leaf has hosts; the level of others is their
// distance from leaves. One that seems to be above the top and is cabled like a switch two
// levels down, such as a leaf whose hosts are all off, is put beside that one, and what is
// behind it below it. Switches among which there is no leaf are leaves all.
func (g *graph) levels() {
	n := len(g.next)
	away, down := make([]int32, n), make([]bool, n)
	order := make([]int32, 0, n)
	for s := range away {
		if away[s] = -1; g.isLeaf(int32(s)) {
			away[s], order = 0, append(order, int32(s))
		}
	}
	for i := 0; i < len(order); i++ {
		for _, t := range g.next[order[i]] {
			if away[t] < 0 {
				away[t], order = away[order[i]]+1, append(order, t)
			}
		}
	}
	common := make([]int32, n)
	for _, s := range order {
		g.raise(s, away, down, common)
	}
	for s := range g.level {
		g.level[s] = max(g.level[s], levelLeaf)
	}
	g.lift()
}

// lift puts a switch one level up that has most of its cables to switches at its level, none
// of which has many such cables: a few that lead further down are in the wrong place.
func (g *graph) lift() {
	flat := make([]int, len(g.next)) // cables at one level
	for s, next := range g.next {
		for _, t := range next {
			if g.level[t] == g.level[s] {
				flat[s]++
			}
		}
	}
	var lifted []int
	for s, next := range g.next {
		if g.level[s] == levelLeaf || 2*flat[s] <= len(next) {
			continue
		}
		many := false
		for _, t := range next {
			many = many || g.level[t] == g.level[s] && 4*flat[t] > len(g.next[t])
		}
		if !many {
			lifted = append(lifted, s)
		}
	}
	for _, s := range lifted {
		g.level[s]++
	}
}

// isLeaf reports whether a switch has hosts, and not only a few of a spine.
func (g *graph) isLeaf(s int32) bool { return g.hosts[s] > 0 && !g.isLent(s) && !g.isTop(s) }

// isLent reports whether the few hosts of a switch do not make it a leaf: a switch beside it
// has many.
func (g *graph) isLent(s int32) bool {
	if g.hosts[s] == 0 || g.hosts[s] > fewHosts {
		return false
	}
	for _, t := range g.next[s] {
		if g.hosts[t] >= manyTimes*g.hosts[s] {
			return true
		}
	}
	return false
}

// isTop reports whether a switch with a few hosts has nobody beside it but such switches as
// isLent means, which have no fewer: it stands above them.
func (g *graph) isTop(s int32) bool {
	if g.hosts[s] > fewHosts || len(g.next[s]) == 0 {
		return false
	}
	for _, t := range g.next[s] {
		if g.hosts[t] < g.hosts[s] || !g.isLent(t) {
			return false
		}
	}
	return true
}

// raise sets the level of a switch that is so far away from the leaves, when those that are
// closer have theirs.
func (g *graph) raise(s int32, away []int32, down []bool, common []int32) {
	level, below := int32(levelLeaf), int32(0)
	for _, t := range g.next[s] {
		switch {
		case away[t] != away[s]-1:
		case down[t] && g.level[t] > levelLeaf:
			below = max(below, g.level[t]-1)
		default:
			level = max(level, g.level[t]+1)
		}
	}
	if away[s] == 0 {
		level = levelLeaf
	}
	switch g.level[s] = level; {
	case below > 0:
		g.level[s], down[s] = below, true
	case level > levelLeaf+1 && g.hasTwin(s, level-1, common):
		g.level[s], down[s] = level-2, true
	}
}

// hasTwin reports whether a switch above some at a level has mostly the same of them beside it
// as one below them has. common is zero for every switch, before and after.
func (g *graph) hasTwin(s, between int32, common []int32) (found bool) {
	var seen []int32
	own := int32(0)
	for _, t := range g.next[s] {
		if g.level[t] != between {
			continue
		}
		own++
		for _, u := range g.next[t] {
			if g.level[u] == between-1 {
				if common[u] == 0 {
					seen = append(seen, u)
				}
				common[u]++
			}
		}
	}
	for _, u := range seen {
		if !found && 2*common[u] > own { // else no count of others is small enough
			others := int32(0)
			for _, t := range g.next[u] {
				if g.level[t] == between {
					others++
				}
			}
			found = 2*common[u] > own+others-common[u]
		}
		common[u] = 0
	}
	return found
}
