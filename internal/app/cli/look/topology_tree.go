// This file makes a tree of a fabric, for schedulers of jobs: which hosts are at which leaf, and which
// leaves belong together.

package look

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// tree is a fabric as schedulers see it. Names are letters, digits, dots, dashes and underscores, and
// no two switches have the same.
type tree struct {
	leaves []leaf
	groups []treeGroup // none where the leaves have nothing between them and the root
	left   []string    // hosts that are in no leaf, and why
}

// leaf is a leaf switch, or the leaves of all rails and planes that the same hosts are cabled to.
type leaf struct {
	name  string
	hosts []string
	group int // index of tree.groups
}

// treeGroup is what stays connected below the core: a pod.
type treeGroup struct {
	name   string
	leaves []string
}

// treeRoot is the name of the root, which no switch has: a name of a switch holds no underscore at
// its beginning.
const treeRoot = "_fabric"

// nameMax is the longest name of a host or a switch: a label of Kubernetes, which also ends and begins
// with a letter or a digit.
const nameMax = 63

var (
	hostNames   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	notInNames  = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	managedName = regexp.MustCompile(`^MF0;([^:]+):`) // of switches with a management system of their own
)

// treeOf makes the tree. A host is called by the first word of its node description, so it can take
// the name of another: two adapters with the same description are in no leaf, nor is a host whose
// adapters are at leaves that have few hosts in common.
func treeOf(f *observed.Fabric) tree {
	var out tree
	index := make(map[*observed.Node]int, len(f.Nodes))
	nodes, described := make([]observed.LevelNode, len(f.Nodes)), make(map[string]int)
	for i, n := range f.Nodes {
		index[n] = i
		nodes[i] = observed.LevelNode{Switch: n.Switch != nil, Key: uint64(n.GUID()), Name: switchName(n)}
		described[n.Description]++
	}
	var links []observed.LevelLink
	for i, n := range f.Nodes {
		for j := range n.Ports {
			if p := n.Ports[j].Peer; p != nil && i < index[p.Node] {
				links = append(links, observed.LevelLink{A: int32(i), B: int32(index[p.Node])})
			}
		}
	}
	at, adapters := make(map[string][]int), make(map[string]int)
	for _, n := range f.Nodes {
		if n.Type() != ib.NodeCA {
			continue
		}
		name, _, _ := strings.Cut(n.Description, " ")
		switches := leavesOf(n, index)
		why := ""
		switch {
		case described[n.Description] > 1 || n.Contested:
			why = "another adapter has the same description or GUID"
		case len(name) > nameMax || !hostNames.MatchString(name):
			why = "its description does not begin with a host name"
		case len(switches) == 0:
			why = "it is cabled to no switch"
		}
		if why != "" {
			out.left = append(out.left, fmt.Sprintf("%v: %s", n.GUID(), why))
			continue
		}
		adapters[name]++
		at[name] = append(at[name], switches...)
	}
	join := out.rails(len(nodes), at, adapters)
	out.fill(nodes, observed.LevelsOf(nodes, links), join, at)
	slices.Sort(out.left)
	return out
}

// rails joins the leaves that have most of their hosts in common. A host at leaves that have not is at
// the first of them if one adapter has all these cables; else one of its adapters may be another's,
// and it is left out.
func (t *tree) rails(nodes int, at map[string][]int, adapters map[string]int) *joiner {
	join, hosts, common := newJoiner(nodes), make(map[int]int), make(map[[2]int]int)
	for name, list := range at {
		slices.Sort(list)
		list = slices.Compact(list)
		at[name] = list
		for i, a := range list {
			hosts[a]++
			for _, b := range list[i+1:] {
				common[[2]int{a, b}]++
			}
		}
	}
	for name, list := range at {
		for _, b := range list[1:] {
			switch a := list[0]; {
			case 2*common[[2]int{a, b}] > max(hosts[a], hosts[b]):
				join.join(a, b)
			case adapters[name] > 1:
				delete(at, name)
				t.left = append(t.left, name+": its adapters are at leaves that have few hosts in common")
			}
			if at[name] == nil {
				break
			}
		}
	}
	return join
}

// leavesOf are the switches that a host is cabled to.
func leavesOf(n *observed.Node, index map[*observed.Node]int) (out []int) {
	for i := range n.Ports {
		if p := n.Ports[i].Peer; p != nil && p.Node.Switch != nil {
			out = append(out, index[p.Node])
		}
	}
	return out
}

// fill makes leaves and groups. Leaves that a host has in common are one, and so are their groups.
func (t *tree) fill(nodes []observed.LevelNode, levels observed.LevelLayout, join *joiner, at map[string][]int) {
	hosts := make(map[int][]string)
	for name, switches := range at {
		one := join.of(switches[0])
		hosts[one] = append(hosts[one], name)
	}
	members := make(map[int][]int) // switches, by the one that stands for them
	for i, n := range nodes {
		if one := join.of(i); n.Switch && hosts[one] != nil {
			members[one] = append(members[one], i)
		}
	}
	groups := newJoiner(len(levels.Groups))
	for one, list := range members {
		for _, s := range list {
			groups.join(int(levels.Group[one]), int(levels.Group[s]))
		}
	}
	taken, groupAt := map[string]bool{treeRoot: true}, make(map[int]int)
	var order []int
	for one, list := range members {
		slices.SortFunc(list, func(a, b int) int {
			return cmp.Or(observed.CompareNames(nodes[a].Name, nodes[b].Name), cmp.Compare(nodes[a].Key, nodes[b].Key))
		})
		slices.SortFunc(hosts[one], observed.CompareNames)
		order = append(order, one)
	}
	first := func(one int) observed.LevelNode { return nodes[members[one][0]] }
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(observed.CompareNames(first(a).Name, first(b).Name), cmp.Compare(first(a).Key, first(b).Key))
	})
	for _, one := range order {
		name := first(one).Name
		if taken[name] {
			name = fmt.Sprintf("%.*s-%016x", nameMax-17, name, first(one).Key)
		}
		taken[name] = true
		g := groups.of(int(levels.Group[one]))
		if _, has := groupAt[g]; !has {
			groupAt[g] = len(t.groups)
			t.groups = append(t.groups, treeGroup{name: cleaned(levels.Groups[g].Name)})
		}
		t.groups[groupAt[g]].leaves = append(t.groups[groupAt[g]].leaves, name)
		t.leaves = append(t.leaves, leaf{name, hosts[one], groupAt[g]})
	}
	t.nameGroups(taken)
}

// nameGroups makes the names of groups different from all others, and leaves out groups that say
// nothing: all leaves in one, or each in one of its own.
func (t *tree) nameGroups(taken map[string]bool) {
	if len(t.groups) <= 1 || len(t.groups) == len(t.leaves) {
		t.groups = nil
		return
	}
	for i := range t.groups {
		g := &t.groups[i]
		for base, n := g.name, 1; taken[g.name]; n++ {
			g.name = fmt.Sprintf("%.*s-group%d", nameMax-16, base, n)
		}
		taken[g.name] = true
	}
}

// switchName is what a switch is called: the first word of its description, or the name that its
// management system was given.
func switchName(n *observed.Node) string {
	name, _, _ := strings.Cut(n.Description, " ")
	if m := managedName.FindStringSubmatch(n.Description); m != nil {
		name = m[1]
	}
	if name = cleaned(name); name == "" {
		name = fmt.Sprintf("switch-%016x", uint64(n.GUID()))
	}
	return name
}

// cleaned is a text as a name.
func cleaned(text string) string {
	text = notInNames.ReplaceAllString(text, "-")
	return strings.Trim(text[:min(len(text), nameMax)], "._-")
}

// joiner says which of some numbers were joined.
type joiner struct{ up []int }

func newJoiner(n int) *joiner {
	j := &joiner{up: make([]int, n)}
	for i := range j.up {
		j.up[i] = i
	}
	return j
}

// of is the lowest of those that a number was joined with.
func (j *joiner) of(i int) int {
	for j.up[i] != i {
		j.up[i] = j.up[j.up[i]]
		i = j.up[i]
	}
	return i
}

func (j *joiner) join(a, b int) {
	a, b = j.of(a), j.of(b)
	j.up[max(a, b)] = min(a, b)
}
