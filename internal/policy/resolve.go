package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// EndPort is what resolution needs to know of an end port: a CA or router
// port, or port 0 of a switch.
type EndPort struct {
	PortGUID    ib.PortGUID
	NodeGUID    ib.NodeGUID
	PortNum     ib.PortNum
	Description string
	NodeType    ib.NodeType
	// SM marks the port of the subnet manager itself.
	SM bool
	// Switch, SwitchName and SwitchPort are the place of the port: the switch
	// port that it is cabled to. A Switch of 0 says that it is cabled to none,
	// as port 0 of a switch is.
	Switch     ib.NodeGUID
	SwitchName string
	SwitchPort ib.PortNum
}

// Resolution is a policy for the end ports of one fabric.
type Resolution struct {
	// AllowBoth is the policy's: only with it is any port in both lists of a
	// partition.
	AllowBoth bool
	// NoDefault reports whether the policy's Default is None: a port of which no
	// partition speaks gets no key.
	NoDefault bool
	// Partitions are sorted by Base; the default partition is always there,
	// unless NoDefault and the policy does not name it.
	Partitions []observed.Partition
	// Aliases are those that can be given to the ports there are, sorted by
	// port, each port once.
	Aliases []PortAliases
	// Trusted are the ports that the policy trusts, sorted.
	Trusted []ib.PortGUID
	// Absent are the names that found no port, in the order of the file.
	Absent []Absent
	// Warnings tell of selectors and partitions that found no port, and of a
	// subnet manager that limited members cannot reach.
	Warnings []Fault
}

// Resolve finds the members of every partition among ports. The numbers of
// partitions that state none come from keys, as Allocate gives them.
//
// The error is one of the caller's or of a policy made by hand: a partition
// without a number, two with the same, a group that does not exist, a pattern
// that is none. What the fabric is like never makes an error.
func (p *Policy) Resolve(ports []EndPort, keys map[string]ib.PKeyBase) (*Resolution, error) {
	return NewResolver(ports).Resolve(p, keys)
}

// ResolvedGroup is a group with the ports that it selects, sorted.
type ResolvedGroup struct {
	Name  string
	Ports []ib.PortGUID
}

// ResolveGroups finds the ports of every group, in the order of the policy.
func (p *Policy) ResolveGroups(ports []EndPort) ([]ResolvedGroup, error) {
	x, err := newLookup(p, newIndex(ports))
	if err != nil {
		return nil, err
	}
	out := make([]ResolvedGroup, len(p.Groups))
	for i := range p.Groups {
		found, err := x.group(p.Groups[i].Name)
		if err != nil {
			return nil, err
		}
		out[i].Name = p.Groups[i].Name
		for _, n := range found {
			out[i].Ports = append(out[i].Ports, x.ports[n].PortGUID)
		}
	}
	return out, nil
}

// resolve finds the members of one partition.
func (p *Policy) resolve(x *lookup, members *memberSet, part *Partition, base ib.PKeyBase) (r observed.Partition, err error) {
	isDefault := base == ib.PKeyBaseDefault && p.Default != None
	if isDefault {
		members.set(x.all, mark(p.Default, false))
		if p.Default == Full {
			members.setWhere(x.all, x.apart, mark(Limited, false))
		}
		members.set(x.self, mark(Full, false))
	}
	for _, m := range part.Members {
		found, err := x.findMembers(m.Selector)
		if err != nil {
			return r, fmt.Errorf("%v: %w", m.Pos, err)
		}
		if part.Service == "" {
			x.note(m.Selector, found, m.Pos, part.MayBeAbsent, "partition %q", part.Name)
		}
		members.set(found, mark(p.membership(m.Membership), m.Index0))
	}
	if p.Default == None {
		members.join(x.self)
	}
	r = observed.Partition{Base: base, Name: part.Name}
	members.drain(func(i int32, marks uint8) {
		guid := x.ports[i].PortGUID
		if marks&isFull != 0 {
			r.Full = append(r.Full, guid)
		}
		if marks&isLimited != 0 {
			r.Limited = append(r.Limited, guid)
		}
		if marks&isIndex0 != 0 {
			r.Index0 = append(r.Index0, guid)
		}
		if isDefault && x.ports[i].SM && marks&isFull == 0 {
			x.warn(part.Pos, "the subnet manager's port %v is only a limited member of the default partition: "+
				"other limited members cannot talk to it", guid)
		}
	})
	if len(r.Full)+len(r.Limited) == 0 && !p.MayBeAbsent && !part.MayBeAbsent && part.Service == "" {
		x.warn(part.Pos, "partition %q has no member in this fabric", part.Name)
	}
	return r, nil
}

// The marks of a port in a memberSet.
const (
	isLimited uint8 = 1 << iota
	isFull
	isIndex0
)

func mark(m Membership, index0 bool) uint8 {
	marks := isLimited
	switch m {
	case Full:
		marks = isFull
	case Both:
		marks = isFull | isLimited
	}
	if index0 {
		marks |= isIndex0
	}
	return marks
}

// memberSet collects the members of one partition after another without
// clearing or sorting more than was touched.
type memberSet struct {
	marks   []uint8
	touched []int32
}

func newMemberSet(n int) *memberSet { return &memberSet{marks: make([]uint8, n)} }

// set gives the ports these marks in place of those they had.
func (s *memberSet) set(ports []int32, marks uint8) {
	for _, i := range ports {
		if s.marks[i] == 0 {
			s.touched = append(s.touched, i)
		}
		s.marks[i] = marks
	}
}

// setWhere does what set does for those of the ports that are marked in where, which
// may be nil.
func (s *memberSet) setWhere(ports []int32, where []bool, marks uint8) {
	if where == nil {
		return
	}
	for _, i := range ports {
		if where[i] {
			s.set([]int32{i}, marks)
		}
	}
}

// join makes ports full members of a set that is not empty; what else they are
// in it they stay.
func (s *memberSet) join(ports []int32) {
	if len(s.touched) == 0 {
		return
	}
	for _, i := range ports {
		s.set([]int32{i}, s.marks[i]&isIndex0|isFull)
	}
}

// drain hands out the members in order and empties the set.
func (s *memberSet) drain(yield func(i int32, marks uint8)) {
	slices.Sort(s.touched)
	for _, i := range s.touched {
		yield(i, s.marks[i])
		s.marks[i] = 0
	}
	s.touched = s.touched[:0]
}

// index is a number of end ports in the orders in which selectors look for them.
type index struct {
	warnings  []Fault
	ports     []EndPort // sorted by GUID, each GUID once
	guids     []ib.PortGUID
	all, self []int32
	byType    map[ib.NodeType][]int32
	byNode    map[ib.NodeGUID][]int32
	byText    map[string][]int32
	byShort   map[string][]int32   // by the first of several words
	texts     []string             // the keys of byText, sorted
	doubled   map[ib.PortGUID]bool // GUIDs that two ports claim
	byPlace   map[Place][]int32    // by switch GUID and port
	switches  map[string][]ib.NodeGUID
}

// newIndex puts ports in order; of two with one GUID only the first counts, and
// every resolution warns of the other.
func newIndex(ports []EndPort) *index {
	x := &index{
		byType: map[ib.NodeType][]int32{}, byNode: map[ib.NodeGUID][]int32{}, byText: map[string][]int32{}, byShort: map[string][]int32{},
		doubled: map[ib.PortGUID]bool{}, byPlace: map[Place][]int32{}, switches: map[string][]ib.NodeGUID{},
	}
	// A port that claims the GUID of the manager's own port does not take its place.
	x.ports = slices.SortedStableFunc(slices.Values(ports), func(a, b EndPort) int {
		return cmp.Or(cmp.Compare(a.PortGUID, b.PortGUID), -cmp.Compare(rank(a.SM), rank(b.SM)), comparePorts(a, b))
	})
	x.ports = slices.CompactFunc(x.ports, func(a, b EndPort) bool {
		if a.PortGUID == b.PortGUID {
			x.warnings = append(x.warnings, Fault{Found: fmt.Sprintf("port GUID %v on %v port %d and on %v port %d: only the former is looked at",
				a.PortGUID, a.NodeGUID, a.PortNum, b.NodeGUID, b.PortNum)})
			x.doubled[a.PortGUID] = true
		}
		return a.PortGUID == b.PortGUID
	})
	for i, port := range x.ports {
		i := int32(i)
		x.guids = append(x.guids, port.PortGUID)
		x.all = append(x.all, i)
		if port.SM {
			x.self = append(x.self, i)
		}
		x.byType[port.NodeType] = append(x.byType[port.NodeType], i)
		x.byNode[port.NodeGUID] = append(x.byNode[port.NodeGUID], i)
		x.byText[port.Description] = append(x.byText[port.Description], i)
		if short := names.Short(port.Description); short != port.Description {
			x.byShort[short] = append(x.byShort[short], i)
		}
		x.enterPlace(i)
	}
	x.texts = slices.Sorted(maps.Keys(x.byText))
	return x
}

func rank(first bool) int {
	if first {
		return 1
	}
	return 0
}

// lookup finds ports for the selectors of one policy, as places in index.ports.
type lookup struct {
	*index
	warnings []Fault
	groups   map[string]*Group
	policy   *Policy
	absent   []Absent
	// lacking are the groups of which a name found nobody.
	lacking map[string]bool
	// met receives every name that finds a port; it may be nil.
	met    map[Selector]struct{}
	owners map[ib.PortGUID]ib.PortGUID // ports by the aliases that the policy gives them
	found  map[Selector][]int32        // answers for groups and patterns
	one    [1]int32                    // the answer for a single port
	apart  []bool                      // of Policy.Apart, by place in index.ports; nil: none
}

func newLookup(p *Policy, ports *index) (*lookup, error) {
	owners, err := p.owners()
	if err != nil {
		return nil, err
	}
	x := &lookup{
		index: ports, owners: owners, warnings: slices.Clone(ports.warnings),
		groups: map[string]*Group{}, lacking: map[string]bool{}, found: map[Selector][]int32{}, policy: p,
	}
	for i := range p.Groups {
		x.groups[p.Groups[i].Name] = &p.Groups[i]
	}
	x.setApart(p)
	return x, nil
}

func comparePorts(a, b EndPort) int {
	return cmp.Or(cmp.Compare(a.PortGUID, b.PortGUID), cmp.Compare(a.NodeGUID, b.NodeGUID), cmp.Compare(a.PortNum, b.PortNum))
}

func (x *lookup) warn(at Pos, format string, args ...any) {
	x.warnings = append(x.warnings, Fault{Pos: at, Found: fmt.Sprintf(format, args...)})
}

// find gives the ports that s selects, until the next call. The caller may not
// change the answer.
func (x *lookup) find(s Selector) ([]int32, error) {
	switch s.Kind {
	case SelectAll:
		return x.all, nil
	case SelectCAs:
		return x.byType[ib.NodeCA], nil
	case SelectSwitches:
		return x.byType[ib.NodeSwitch], nil
	case SelectRouters:
		return x.byType[ib.NodeRouter], nil
	case SelectSelf:
		return x.self, nil
	case SelectNode:
		return x.byNode[ib.NodeGUID(s.GUID)], nil
	case SelectDescription:
		return x.described(s.Text), nil
	case SelectPort:
		return x.findPort(ib.PortGUID(s.GUID)), nil
	case SelectPlace:
		return x.findPlace(s), nil
	}
	if found, ok := x.found[s]; ok {
		return found, nil
	}
	var found []int32
	var err error
	switch s.Kind {
	case SelectPattern:
		found, err = x.match(s.Text)
	case SelectGroup:
		found, err = x.group(s.Text)
	default:
		err = fmt.Errorf("%v", s)
	}
	x.found[s] = found
	return found, err
}

// findPort gives the port with this GUID or alias.
func (x *lookup) findPort(guid ib.PortGUID) []int32 {
	// Whose alias a GUID is the policy says alone: no device can become a
	// member by claiming it.
	if owner, alias := x.owners[guid]; alias {
		guid = owner
	}
	i, found := x.byGUID(guid)
	if !found {
		return nil
	}
	x.one[0] = int32(i)
	return x.one[:]
}

// described gives the ports of nodes with this description, or this first word.
func (x *index) described(text string) []int32 {
	whole, first := x.byText[text], x.byShort[text]
	if len(first) == 0 || text == "" {
		return whole
	}
	return slices.Concat(whole, first)
}

// match looks only at descriptions that begin as the pattern does.
func (x *lookup) match(pattern string) ([]int32, error) {
	g, err := compileGlob(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	var found []int32
	first, _ := slices.BinarySearch(x.texts, g.prefix)
	for _, description := range x.texts[first:] {
		if !strings.HasPrefix(description, g.prefix) {
			break
		}
		if g.match(description) || g.match(names.Short(description)) {
			found = append(found, x.byText[description]...)
		}
	}
	return found, nil
}

func (x *lookup) group(name string) ([]int32, error) {
	group, ok := x.groups[name]
	if !ok {
		return nil, fmt.Errorf("no group %q", name)
	}
	var all []int32
	for n, s := range group.Selectors {
		if s.Kind == SelectGroup {
			return nil, fmt.Errorf("group %q holds %v", name, s)
		}
		found, err := x.find(s)
		if err != nil {
			return nil, err
		}
		if x.note(s, found, placeIn(group.At, n, group.Pos), group.MayBeAbsent, "group %q", name); len(found) == 0 {
			x.lacking[name] = true
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// trusted are the ports that the policy trusts, in order.
func (p *Policy) trusted(x *lookup) (out []ib.PortGUID, err error) {
	for _, t := range p.Trusted {
		found, err := x.findMembers(t.Selector)
		if err != nil {
			return nil, fmt.Errorf("%v: trusted: %w", t.Pos, err)
		}
		x.note(t.Selector, found, t.Pos, false, "trusted")
		for _, i := range found {
			out = append(out, x.ports[i].PortGUID)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
