package racks

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// NameElsewhere is the group of hosts of which neither the file nor a cable says where they stand.
const NameElsewhere = "not in the file"

// NoRack is the rack of a device that is in none.
const NoRack = -1

// Arrange puts the pods of the file in the place of the groups that follow from the cables. It returns the
// names of the racks and rails in them, and the one of each node, or NoRack; nothing, and the groups as they
// were, where the file names no node. A leaf that the file does not name is where most hosts at it
// are, a host where its leaf is, and a switch above leaves in the pod of all that is below it.
func (f *File) Arrange(nodes []observed.LevelNode, links []observed.LevelLink, out *observed.LevelLayout) (racks []string, of []int32) {
	if f == nil {
		return nil, nil
	}
	boxes, inner, some := make([]string, len(nodes)), make([]string, len(nodes)), false
	for i, n := range nodes {
		p := f.of(n.Key, n.Name)
		boxes[i], inner[i] = p.titled(0, 1), p.titled(2, 3)
		some = some || boxes[i] != "" || inner[i] != ""
	}
	if !some {
		return nil, nil
	}
	// A rack without a pod is a box, unless what it is cabled to says in which pod it is.
	a := arrangement{nodes, out.Level, neighbours(len(nodes), links), boxes, inner}
	a.inherit()
	for i := range nodes {
		if boxes[i] == "" {
			boxes[i], inner[i] = inner[i], ""
		}
		if boxes[i] != "" {
			continue
		}
		if boxes[i] = NameElsewhere; nodes[i].Switch {
			boxes[i] = observed.NameCore
		}
	}
	out.Groups, out.Group = a.groups()
	return indexed(inner)
}

type arrangement struct {
	nodes        []observed.LevelNode
	level        []int32
	next         [][]int32
	boxes, inner []string
}

func neighbours(n int, links []observed.LevelLink) [][]int32 {
	next := make([][]int32, n)
	for _, l := range links {
		next[l.A], next[l.B] = append(next[l.A], l.B), append(next[l.B], l.A)
	}
	return next
}

// inherit finds out where devices stand that the file does not name: leaves, then hosts, then what is above.
func (a *arrangement) inherit() {
	order := make([]int, len(a.nodes))
	for i := range order {
		order[i] = i
	}
	rank := func(i int) int32 { // leaves, hosts, other switches by level
		switch level := a.level[i]; {
		case !a.nodes[i].Switch:
			return 1
		case level <= 1:
			return 0
		default:
			return level
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(rank(x), rank(y)) })
	for _, i := range order {
		below := func(j int32) bool { return a.level[j] < a.level[i] }
		switch {
		case !a.nodes[i].Switch:
			below = func(j int32) bool { return a.nodes[j].Switch }
			a.take(i, a.boxes, below, 0)
			a.take(i, a.inner, below, 0)
		case a.level[i] <= 1:
			a.take(i, a.boxes, below, 2)
			a.take(i, a.inner, below, 2)
		default:
			a.take(i, a.boxes, below, 1)
		}
	}
}

// take gives a node a value that it has not: the one of its neighbours that count. Those have to agree where
// share is 1; where it is 2, more than half have to; else the first counts.
func (a *arrangement) take(i int, values []string, counts func(int32) bool, share int) {
	if values[i] != "" {
		return
	}
	number, all, first, most := map[string]int{}, 0, "", ""
	for _, j := range a.next[i] {
		v := values[j]
		if v == "" || !counts(j) {
			continue
		}
		if all++; first == "" {
			first = v
		}
		if number[v]++; number[v] > number[most] {
			most = v
		}
	}
	switch {
	case share == 0:
		values[i] = first
	case share == 1 && number[most] == all, share == 2 && 2*number[most] > all:
		values[i] = most
	}
}

// groups are the boxes: those with hosts or leaves by name, then those of higher switches.
func (a *arrangement) groups() (list []observed.LevelGroup, of []int32) {
	type box struct {
		upper bool
		count int
	}
	found := map[string]*box{}
	for i, name := range a.boxes {
		b := found[name]
		if b == nil {
			b = &box{upper: true}
			found[name] = b
		}
		b.count++
		b.upper = b.upper && a.level[i] > 1
	}
	order := make([]string, 0, len(found))
	for name := range found {
		order = append(order, name)
	}
	last := func(name string) int {
		switch {
		case name == NameElsewhere:
			return 2
		case found[name].upper:
			return 1
		}
		return 0
	}
	slices.SortFunc(order, func(x, y string) int {
		return cmp.Or(cmp.Compare(last(x), last(y)), observed.CompareNames(x, y))
	})
	place := make(map[string]int32, len(order))
	for i, name := range order {
		place[name] = int32(i)
		list = append(list, observed.LevelGroup{Name: name, Nodes: found[name].count})
	}
	of = make([]int32, len(a.boxes))
	for i, name := range a.boxes {
		of[i] = place[name]
	}
	return list, of
}

// indexed are the distinct names, sorted, and the place of each among them; NoRack for "".
func indexed(of []string) (list []string, at []int32) {
	list = slices.Clone(of)
	slices.SortFunc(list, observed.CompareNames)
	list = slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
	place := make(map[string]int32, len(list))
	for i, s := range list {
		place[s] = int32(i)
	}
	at = make([]int32, len(of))
	for i, s := range of {
		if at[i] = NoRack; s != "" {
			at[i] = place[s]
		}
	}
	return list, at
}
