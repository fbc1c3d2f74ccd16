package ftree

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// The place of a parent among all that its children may have had follows from the ports of
// the cables to it, which are the same on most siblings. So one that is gone leaves its place
// free, the others keep theirs, and only what went by it moves.

const (
	// goneShare: one in so many parents of a family may be taken to be gone, or one.
	goneShare = 4
	// idleShare: a port is free on siblings when no more than one in so many uses it.
	idleShare = 4
	// agreeing of agreeShare siblings have the cable to a parent at the same port, where ports
	// tell anything.
	agreeing, agreeShare = 2, 3
	// fewestDown is the number of cables down from which on a switch is expected to have as
	// many up.
	fewestDown = 4
)

// ports counts something by port number.
type ports [int(ib.PortNone) + 1]uint16

// most is the first port with the highest count.
func (p *ports) most() (best int) {
	for i, n := range p {
		if n > p[best] {
			best = i
		}
	}
	return best
}

// agreement is how many of all cables are at the port where most are.
type agreement struct{ same, all int }

func (a *agreement) add(p *ports) {
	a.same += int(p[p.most()])
	for _, n := range p {
		a.all += int(n)
	}
}

// tells reports whether so many agree that their ports are no accident.
func (a *agreement) tells() bool { return a.same*agreeShare >= a.all*agreeing }

// columns is where the parents of each family stand.
type columns struct {
	t *tree
	f family
	// children of each family.
	children [][]uint16
	// plane is the same for switches of a level that have the same switches at the top above
	// them: they stand at the same place wherever they are.
	plane []int32
	// own counts, for each switch as a parent, the lowest ports of its children's cables to
	// it, shared those to all of its plane.
	own, shared []ports
	// apart tells of levels whose switches of one plane are reached by other ports in one pod
	// than in another.
	apart map[uint16]bool
	// lines are the places of each family, nil where ports do not tell them.
	lines []*line
}

// line is the parents of a family by the ports of the cables to them.
type line struct {
	level uint16
	// parents are in the order of their ports, at is the port of each; noParent where one
	// is gone.
	parents []int32
	at      []int
	// step is the distance of the ports of two parents, cables the number of cables to each.
	step, cables int
	// width is the number of parents that there were.
	width int
}

// noParent stands for one that is gone.
const noParent = -1

// columnsOf finds the places of all parents.
func (t *tree) columnsOf(f family, byLevel []uint16) *columns {
	n := len(t.Nodes)
	c := &columns{
		t: t, f: f, children: make([][]uint16, len(f.parents)), plane: t.planes(f, byLevel),
		own: make([]ports, n), shared: make([]ports, n), lines: make([]*line, len(f.parents)),
	}
	for s := range n {
		up := false
		for p := t.first[s]; p < t.first[s+1]; p++ {
			if x := t.to[p]; t.level[x] > t.level[s] {
				c.own[x][t.exits(p)[0]]++
				c.shared[c.plane[x]][t.exits(p)[0]]++
				up = true
			}
		}
		if up {
			c.children[f.of[s]] = append(c.children[f.of[s]], uint16(s))
		}
	}
	c.findApart()
	for root, parents := range f.parents {
		if len(parents) > 0 && len(c.children[root]) > 0 {
			c.lines[root] = c.lineOf(root)
		}
	}
	c.widen()
	return c
}

// findApart fills apart.
func (c *columns) findApart() {
	c.apart = map[uint16]bool{}
	type key struct {
		level uint16
		port  int
	}
	plane := map[key]int32{}
	for x := range c.own {
		k := key{c.t.level[x], c.own[x].most()}
		if k.port == 0 {
			continue // nothing is below it
		}
		if _, known := plane[k]; !known {
			plane[k] = c.plane[x]
		}
		c.apart[k.level] = c.apart[k.level] || plane[k] != c.plane[x]
	}
}

// planes returns the plane of every switch: the number of one that is in it.
func (t *tree) planes(f family, byLevel []uint16) []int32 {
	plane := make([]int32, len(t.Nodes))
	type key struct {
		level uint16
		plane int32
	}
	named := map[key]int32{}
	for _, s := range slices.Backward(byLevel) {
		parents := f.parents[f.of[s]]
		plane[s] = f.of[s]
		for i, x := range parents {
			switch {
			case len(f.parents[f.of[x]]) == 0: // a top
			case i == 0:
				plane[s] = plane[x]
			default:
				plane[s] = min(plane[s], plane[x])
			}
		}
		k := key{t.level[s], plane[s]}
		if _, known := named[k]; !known {
			named[k] = int32(s)
		}
	}
	for s := range plane {
		plane[s] = named[key{t.level[s], plane[s]}]
	}
	return plane
}

// lineOf orders the parents of a family by port, and finds those that are gone between
// others.
func (c *columns) lineOf(root int) *line {
	parents, children := c.f.parents[root], c.children[root]
	count := func(x uint16) *ports { return &c.shared[c.plane[x]] }
	planes := map[int32]bool{}
	for _, x := range parents {
		planes[c.plane[x]] = true
	}
	// Where several of a plane are above the same switches, their own ports tell.
	if len(planes) == 1 || len(planes) < len(parents) && !c.apart[c.t.level[parents[0]]] {
		count = func(x uint16) *ports { return &c.own[x] }
	}
	port := func(x uint16) int { return count(x).most() }
	sorted := slices.Clone(parents)
	sortBy(sorted, port)
	var agreed agreement
	for i, x := range sorted {
		if i > 0 && port(x) == port(sorted[i-1]) {
			return nil
		}
		agreed.add(count(x))
	}
	if !agreed.tells() {
		return nil
	}
	l := &line{level: c.t.level[children[0]]}
	l.step, l.cables = c.stepOf(children)
	used := c.usedBy(children)
	isIdle := func(at int) bool {
		for i := range l.step {
			if int(used[min(at+i, int(ib.PortNone))])*idleShare > len(children) {
				return false
			}
		}
		return true
	}
	for i, x := range sorted {
		if i > 0 {
			for at := port(sorted[i-1]) + l.step; at+l.step <= port(x); at++ {
				if isIdle(at) {
					l.parents, l.at = append(l.parents, noParent), append(l.at, at)
					at += l.step - 1
				}
			}
		}
		l.parents, l.at = append(l.parents, int32(x)), append(l.at, port(x))
	}
	if !mayBeGone(len(l.parents)-len(sorted), len(l.parents)) {
		isGone := func(x int32) bool { return x == noParent }
		l.parents, l.at = slices.DeleteFunc(l.parents, isGone), nil
		for _, x := range sorted {
			l.at = append(l.at, port(x))
		}
	}
	l.width = len(l.parents)
	return l
}

// mayBeGone reports whether so many of all parents can be gone.
func mayBeGone(gone, all int) bool { return gone <= max(1, all/goneShare) && gone < all }

// stepOf is how far the ports of siblings' cables to one parent and to the next are from each
// other, and how many cables there are to each.
func (c *columns) stepOf(children []uint16) (step, cables int) {
	var counts ports
	adjacent := 0
	for _, s := range children {
		for p := c.t.first[s]; p < c.t.first[s+1]; p++ {
			if c.t.level[c.t.to[p]] <= c.t.level[s] {
				continue
			}
			exits := c.t.exits(p)
			counts[len(exits)]++
			if len(exits) > 1 && exits[1] == exits[0]+1 {
				adjacent++
			} else if len(exits) > 1 {
				adjacent--
			}
		}
	}
	cables = counts.most()
	if adjacent <= 0 {
		return 1, cables
	}
	return cables, cables
}

// usedBy counts, for each port, on how many of some switches it has a cable.
func (c *columns) usedBy(switches []uint16) *ports {
	used := new(ports)
	for _, s := range switches {
		for l := c.t.First[s]; l < c.t.First[s+1]; l++ {
			used[c.t.Port[l]]++
		}
		for _, e := range c.t.EndsOf(s) {
			used[e.Port]++
		}
	}
	return used
}

// widen gives every line the width that others of its level have, where that is a little
// more: they lost their first or last parent. All of a level may have: then one is missing
// that would make as many cables up as down.
func (c *columns) widen() {
	widths := map[uint16]int{}
	for _, l := range c.lines {
		if l != nil {
			widths[l.level] = max(widths[l.level], l.width)
		}
	}
	for root, l := range c.lines {
		if l != nil && l.width == widths[l.level] && c.lacksOne(l, c.children[root]) {
			widths[l.level]++
		}
	}
	for _, l := range c.lines {
		if l != nil && mayBeGone(widths[l.level]-l.width, widths[l.level]) {
			l.width = widths[l.level]
		}
	}
}

// lacksOne reports whether most of some siblings have one parent too few for as many cables
// up as down, and ports free for it.
func (c *columns) lacksOne(l *line, children []uint16) bool {
	count := 0
	for _, s := range children {
		down, up := int(c.t.Hosts[s]), 0
		for p := c.t.first[s]; p < c.t.first[s+1]; p++ {
			switch x := c.t.to[p]; cmp.Compare(c.t.level[x], c.t.level[s]) {
			case -1:
				down += c.t.cables(p)
			case 1:
				up += c.t.cables(p)
			}
		}
		all := len(c.t.Nodes[s].Ports) - 1
		if down >= fewestDown && down == (l.width+1)*l.cables && all-down-up >= l.cables {
			count++
		}
	}
	return 2*count > len(children)
}

// placed lists the parents of a family in the order of their places, noParent where one is
// gone, and how many cables a child has to that.
func (c *columns) placed(root int32) (parents []int32, cables int) {
	l := c.lines[root]
	if l == nil {
		for _, x := range c.f.parents[root] {
			parents = append(parents, int32(x))
		}
		return parents, 0
	}
	parents = slices.Repeat([]int32{noParent}, l.width)
	for i, x := range l.parents {
		parents[(i+l.at[0]/l.step)%l.width] = x
	}
	return parents, l.cables
}
