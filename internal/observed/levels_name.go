package observed

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Names of groups that are not of their switches.
const (
	// NameCore and NameSpines are the switches above all groups: NameSpines where the groups
	// are single leaves.
	NameCore   = "core"
	NameSpines = "spines"
	// NameLoose is the nodes that are cabled to no switch.
	NameLoose = "without a switch"
	// NameNumbered begins the name of a group whose switches have no name in common.
	NameNumbered = "group "
)

// names are those of the groups.
func (g *graph) names() []string {
	groups := int(g.count)
	named := groups
	if g.above {
		named--
	}
	of := make([][]string, groups)
	for s, x := range g.group {
		of[x] = append(of[x], g.nodes[g.switches[s]].Name)
	}
	var all []string
	for _, list := range of {
		all = append(all, list...)
	}
	slices.Sort(all)
	names := make([]string, groups)
	for x := range named {
		if names[x] = common(of[x]); names[x] == "" || reserved(names[x]) || within(all, names[x]) != len(of[x]) {
			names[x] = NameNumbered + strconv.Itoa(x+1)
		}
	}
	if g.above {
		names[named] = g.top
	}
	return names
}

// reserved reports whether a name is one of those that are not of switches.
func reserved(name string) bool {
	return name == NameCore || name == NameSpines || name == NameLoose || strings.HasPrefix(name, NameNumbered)
}

// common is what several names begin with, up to the end of a word or a number; all of a
// single one.
func common(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	prefix := list[0]
	for _, name := range list[1:] {
		n := 0
		for n < min(len(prefix), len(name)) && prefix[n] == name[n] {
			n++
		}
		prefix = prefix[:n]
	}
	for !utf8.ValidString(prefix) && utf8.ValidString(list[0]) {
		prefix = prefix[:len(prefix)-1]
	}
	if slices.ContainsFunc(list, func(name string) bool { return goesOn(name, prefix) }) {
		prefix = strings.TrimRight(prefix, "0123456789")
	}
	return strings.TrimRight(prefix, " -_.,:;/#([{")
}

// goesOn reports whether a name goes on with a digit where its prefix ends with one.
func goesOn(name, prefix string) bool {
	return len(prefix) > 0 && len(name) > len(prefix) && isDigit(prefix[len(prefix)-1]) && isDigit(name[len(prefix)])
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// within counts the names of a sorted list that begin with a prefix and do not go on with a
// number of which it has the beginning.
func within(sorted []string, prefix string) (n int) {
	i, _ := slices.BinarySearch(sorted, prefix)
	for ; i < len(sorted) && strings.HasPrefix(sorted[i], prefix); i++ {
		if !goesOn(sorted[i], prefix) {
			n++
		}
	}
	return n
}

// CompareNames orders names as people do: leaf-2 before leaf-10.
func CompareNames(a, b string) int {
	x, y := a, b
	for len(x) > 0 && len(y) > 0 {
		if isDigit(x[0]) && isDigit(y[0]) {
			m, n := digits(x), digits(y)
			p, q := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); c != 0 {
				return c
			}
			x, y = x[m:], y[n:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

func digits(s string) (n int) {
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
