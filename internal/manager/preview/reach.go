package preview

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Reach tells who can talk, before and after.
type Reach struct {
	// PairsBefore and PairsAfter count the pairs of end ports that can talk;
	// Gained and Lost those that can in one of the two only. Partitions that
	// hold every end port count as well.
	PairsBefore int `json:"pairs_before"`
	PairsAfter  int `json:"pairs_after"`
	Gained      int `json:"gained"`
	Lost        int `json:"lost"`
	// Groups lists the pairs of groups between which something changes, by
	// name. A port of two groups counts in both.
	Groups []GroupPair `json:"groups"`
}

// GroupPair tells how many pairs of ports of two groups, or within one, come
// to talk or cease to.
type GroupPair struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Gained int    `json:"gained"`
	Lost   int    `json:"lost"`
	// Opened reports whether no port of one could talk to a port of the other
	// before, Closed that none can any more.
	Opened bool `json:"opened"`
	Closed bool `json:"closed"`
	// Over are the partitions over which the pairs gained can talk after, or
	// those lost could before.
	Over []ib.PKeyBase `json:"over"`
	// Example is one of the pairs.
	Example [2]string `json:"example"`
}

// member is an end port with what it holds and who it belongs to.
type member struct {
	port          *observed.Port
	before, after []role
	names         []int // of groups, as indexes
}

// role is a port's part in a partition: the key with the most rights.
type role struct {
	base ib.PKeyBase
	full bool
}

// roles are the partitions of a table, sorted.
func roles(table []ib.PKey) []role {
	var out []role
	for _, k := range table {
		if k.IsValid() {
			out = append(out, role{k.Base(), k.IsFull()})
		}
	}
	slices.SortFunc(out, func(a, b role) int {
		if c := cmp.Compare(a.base, b.base); c != 0 {
			return c
		}
		if a.full == b.full {
			return 0
		} else if a.full {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(out, func(a, b role) bool { return a.base == b.base })
}

// over lists the partitions over which holders of a and b can talk.
func over(a, b []role) (out []ib.PKeyBase) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].base < b[0].base:
			a = a[1:]
		case a[0].base > b[0].base:
			b = b[1:]
		default:
			if a[0].full || b[0].full {
				out = append(out, a[0].base)
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

func talk(a, b []role) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].base < b[0].base:
			a = a[1:]
		case a[0].base > b[0].base:
			b = b[1:]
		case a[0].full || b[0].full:
			return true
		default:
			a, b = a[1:], b[1:]
		}
	}
	return false
}

// class is the end ports that hold the same and have the same names.
type class struct {
	member
	count   int
	example [2]*observed.Port // two of them, when there are two
}

// index is what reach and findings share.
type index struct {
	in      Input
	members []member
	names   []string
	classes []class
}

func newIndex(in Input) *index {
	x := &index{in: in}
	named := x.nameSets()
	byKey := map[string]int{}
	for _, p := range in.Fabric.EndPorts() {
		after := in.Desired.Port(p).PKeys
		if after == nil {
			after = p.PKeys
		}
		m := member{port: p, before: roles(p.PKeys), after: roles(after), names: named[p.GUID]}
		if len(m.names) == 0 {
			m.names = x.formerName(m.before)
		}
		x.members = append(x.members, m)
		key := m.key()
		i, known := byKey[key]
		if !known {
			i = len(x.classes)
			byKey[key] = i
			x.classes = append(x.classes, class{member: m})
		}
		if c := &x.classes[i]; c.count < len(c.example) {
			c.example[c.count] = p
		}
		x.classes[i].count++
	}
	return x
}

// key is equal for members of one class.
func (m *member) key() string {
	var b []byte
	for _, list := range [][]role{m.before, m.after} {
		b = binary.BigEndian.AppendUint16(b, uint16(len(list)))
		for _, r := range list {
			k := r.base.Limited()
			if r.full {
				k = r.base.Full()
			}
			b = binary.BigEndian.AppendUint16(b, uint16(k))
		}
	}
	for _, n := range m.names {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return string(b)
}

// nobody names the end ports that have no other name.
const nobody = "(others)"

// nameSets gives every port the names that people know it by: its groups, or
// without any the partitions that are not everybody's.
func (x *index) nameSets() map[ib.PortGUID][]int {
	sets := x.in.Groups
	if len(sets) == 0 {
		for _, p := range x.in.Partitions {
			if p.Base != ib.PKeyBaseDefault {
				sets = append(sets, Set{p.Name, slices.Concat(p.Full, p.Limited)})
			}
		}
	}
	named := map[ib.PortGUID][]int{}
	for _, s := range sets {
		n := x.name(s.Name)
		for _, g := range s.Ports {
			if !slices.Contains(named[g], n) {
				named[g] = append(named[g], n)
			}
		}
	}
	return named
}

// formerName names a port by the partitions that it was in.
func (x *index) formerName(before []role) []int {
	var were []string
	for _, r := range before {
		if r.base != ib.PKeyBaseDefault {
			were = append(were, r.base.String())
		}
	}
	if len(x.in.Groups) > 0 || len(were) == 0 {
		return []int{x.name(nobody)}
	}
	return []int{x.name("(was in " + strings.Join(were, ", ") + ")")}
}

func (x *index) name(s string) int {
	i := slices.Index(x.names, s)
	if i < 0 {
		i = len(x.names)
		x.names = append(x.names, s)
	}
	return i
}

// pairing collects what is said of one pair of groups.
type pairing struct {
	GroupPair
	before, after int
	bases         map[ib.PKeyBase]bool
}

// reach compares who can talk before and after. It goes by classes: ports with
// equal tables are one.
func (x *index) reach() Reach {
	r := Reach{Groups: []GroupPair{}}
	pairings := map[[2]int]*pairing{}
	for i := range x.classes {
		for j := i; j < len(x.classes); j++ {
			a, b := &x.classes[i], &x.classes[j]
			pairs := a.count * b.count
			if i == j {
				pairs = a.count * (a.count - 1) / 2
			}
			before, after := talk(a.before, b.before), talk(a.after, b.after)
			if pairs == 0 || !before && !after {
				continue
			}
			if before {
				r.PairsBefore += pairs
			}
			if after {
				r.PairsAfter += pairs
			}
			if after && !before {
				r.Gained += pairs
			} else if before && !after {
				r.Lost += pairs
			}
			x.pair(pairings, a, b, i == j, pairs, before, after)
		}
	}
	for _, p := range pairings {
		if p.Gained == 0 && p.Lost == 0 {
			continue
		}
		p.Opened, p.Closed = p.before == 0, p.after == 0
		p.Over = make([]ib.PKeyBase, 0, len(p.bases))
		for b := range p.bases {
			p.Over = append(p.Over, b)
		}
		slices.Sort(p.Over)
		r.Groups = append(r.Groups, p.GroupPair)
	}
	slices.SortFunc(r.Groups, func(a, b GroupPair) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) })
	return r
}

// pair enters pairs of ports of two classes under the names of both.
func (x *index) pair(pairings map[[2]int]*pairing, a, b *class, same bool, pairs int, before, after bool) {
	seen := map[[2]int]bool{}
	for _, m := range a.names {
		for _, n := range b.names {
			key := [2]int{m, n}
			if x.names[m] > x.names[n] {
				key = [2]int{n, m}
			}
			if seen[key] {
				continue
			}
			seen[key] = true
			p := pairings[key]
			if p == nil {
				p = &pairing{GroupPair: GroupPair{A: x.names[key[0]], B: x.names[key[1]]}, bases: map[ib.PKeyBase]bool{}}
				pairings[key] = p
			}
			p.enter(a, b, same, key[0] != m, pairs, before, after)
		}
	}
}

func (p *pairing) enter(a, b *class, same, swapped bool, pairs int, before, after bool) {
	if before {
		p.before += pairs
	}
	if after {
		p.after += pairs
	}
	if before == after {
		return
	}
	bases := over(a.after, b.after)
	if before {
		bases = over(a.before, b.before)
		p.Lost += pairs
	} else {
		p.Gained += pairs
	}
	for _, base := range bases {
		p.bases[base] = true
	}
	if p.Example[0] != "" {
		return
	}
	from, to := a.example[0], b.example[0]
	if same {
		to = a.example[1]
	}
	if swapped {
		from, to = to, from
	}
	p.Example = [2]string{from.String(), to.String()}
}
