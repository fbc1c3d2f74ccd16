package policy

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// Limits of a policy.
const (
	// PartitionsMax is the most partitions in a policy: one for every number.
	PartitionsMax = int(ib.PKeyBaseMax)
	// GroupsMax is the most named groups in a policy.
	GroupsMax = 1 << 16
	// MembersMax is the most selectors in a policy, over all partitions and groups.
	MembersMax = 1 << 20
	// NameMax is the longest name of a partition or group, in bytes (OpenSM
	// cuts longer ones and then fails to recognise them).
	NameMax = 63
)

// DefaultName is the name of the default partition where none is given.
const DefaultName = "Default"

// Policy is a whole policy: what one file says.
type Policy struct {
	// Default is the membership that every end port has in the default
	// partition unless a member of that partition says otherwise: Limited, Full
	// or None. With None no two tenants have a partition in common: only whom a
	// partition of the policy with that number names is in the default one, and
	// the subnet manager's port is a full member of every partition that has a
	// member.
	Default Membership
	// AllowBoth lets a port hold the full and the limited key of one
	// partition. Without it a Both member is a full member.
	AllowBoth bool
	// AllowRaw lets raw packets (EtherType, IPv6) pass, which carry no P_Key and
	// so go to every end port. Otherwise switch ports filter them where they can.
	AllowRaw bool
	// TrustDescriptions lets selectors go by what a node says of itself. A
	// reader refuses a policy that has such selectors without it.
	TrustDescriptions bool
	// Trusted are the ports that may ask subnet administration for everything,
	// and register for others.
	Trusted []TrustedPorts
	// MayBeAbsent reports whether names which find no port are no cause for a warning,
	// or to refuse the policy; AbsentWarns that they are only one for a warning.
	MayBeAbsent, AbsentWarns bool
	// Absentees are single names that may be absent, wherever they stand; none is
	// false.
	Absentees map[Selector]bool
	// Apart are ports, sorted and none twice, that a selector means only if it names
	// them by GUID: ALL and the types, groups, nodes, patterns and places alone do
	// not, be it for a partition or for Trusted. In the default partition they are at
	// most limited members, unless it names them so. They are the ports of tenants,
	// which get keys only where tenants agreed to it.
	Apart []GUIDRange
	// Source is what the reader called the text: the name of its file.
	Source string
	// Groups are named lists of selectors.
	Groups []Group
	// Partitions are in the order of the file. Names and stated numbers are
	// unique. The default partition is among them only if the file names it.
	// Those of services are the last.
	Partitions []Partition
	// Services are what AddService was called with.
	Services []Service
	// Aliases are further GUIDs of ports, each port and each GUID once; nil
	// when the policy does not speak of them, so that they are left alone.
	Aliases []PortAliases
	// Settings are those of links and devices; nil for Default. Links are
	// limits of single links, the last for a place counts.
	Settings *Settings
	Links    []LinkLimit
	// Drained are switches that are to carry no packets from one switch to another.
	Drained []Drained
	// Warnings tell what is odd in the file, sorted by place.
	Warnings []Fault
}

// Partition is one partition and its members.
type Partition struct {
	Name string
	// PKey is the number of the partition; 0 leaves it to Allocate.
	PKey ib.PKeyBase
	// From is where Allocate looks for a number, from the lowest up; 0: from
	// 0x0001.
	From ib.PKeyBase
	// Service and Tenant tell whose partition it is when AddService made it;
	// else they are empty.
	Service, Tenant string
	// SL is the service level of paths in the partition.
	SL ib.SL
	// ServiceLevels are those of paths to services, in place of SL; no service ID is in
	// two of them.
	ServiceLevels []ServiceLevel
	// RateLimit is the most that paths and groups of the partition are said to carry, 0
	// for no limit.
	RateLimit ib.Rate
	// Multicast are the groups to create in the partition.
	Multicast []MulticastGroup
	// Members in order: the last one that selects a port decides for it. No
	// selector is in the list twice.
	Members []Member
	// MayBeAbsent is as in Policy, for the members that are named here.
	MayBeAbsent bool
	// Immutable promises that Members is never changed in place: the same slice
	// has the same members.
	Immutable bool
	Pos       Pos
}

// TrustedPorts are ports that a policy trusts; Pos is where it says so.
type TrustedPorts struct {
	Selector
	Pos Pos
}

// Group is a named list of selectors, none of which is itself a group.
type Group struct {
	Name      string
	Selectors []Selector
	// At are the places of the selectors in the file; nil when they are not known.
	At []Pos
	// MayBeAbsent is as in Policy, for the selectors of this group.
	MayBeAbsent bool
	Pos         Pos
}

// Member gives the ports that a selector selects a membership.
type Member struct {
	Selector
	Membership Membership
	// Index0 puts the key of this partition at index 0 of these ports' tables.
	Index0 bool
	Pos    Pos
}

// Membership tells which key of a partition a port holds.
type Membership uint8

// The memberships. Both holds both keys, None none; None is only ever
// Policy.Default.
const (
	Limited Membership = iota + 1
	Full
	Both
	None
)

// String prints the membership as the policy files write it.
func (m Membership) String() string {
	switch m {
	case Limited:
		return "limited"
	case Full:
		return "full"
	case Both:
		return "both"
	case None:
		return "none"
	}
	return fmt.Sprintf("invalid membership %d", uint8(m))
}

// SelectorKind tells how a selector selects end ports. The kinds go from the
// least to the most specific.
type SelectorKind uint8

// The kinds of selector.
const (
	// SelectAll selects every end port.
	SelectAll SelectorKind = iota + 1
	// SelectCAs, SelectSwitches and SelectRouters go by the type of node.
	SelectCAs
	SelectSwitches
	SelectRouters
	// SelectGroup selects what the group named Text selects.
	SelectGroup
	// SelectPattern selects nodes whose description matches the glob Text.
	SelectPattern
	// SelectDescription selects nodes whose description is Text.
	SelectDescription
	// SelectNode selects all end ports of the node with GUID.
	SelectNode
	// SelectSelf selects the port of the subnet manager.
	SelectSelf
	// SelectPort selects the end port with GUID, or the one that the policy
	// gives GUID as an alias.
	SelectPort
	// SelectPlace selects the end port that is cabled to the switch port At; with
	// a GUID only if that is the port's.
	SelectPlace
)

// Place is a port of a switch.
type Place struct {
	// Switch is the switch; 0 when it goes by Name.
	Switch ib.NodeGUID
	// Name is the description of the switch. One that two switches have names
	// neither.
	Name string
	Port ib.PortNum
}

// SwitchName is the switch of the place as a policy writes it.
func (p Place) SwitchName() string {
	if p.Switch != 0 {
		return p.Switch.String()
	}
	return p.Name
}

// String prints the place as a policy writes it: SWITCH:PORT.
func (p Place) String() string {
	if p.Switch != 0 {
		return fmt.Sprintf("%v:%d", p.Switch, p.Port)
	}
	return fmt.Sprintf("%s:%d", p.Name, p.Port)
}

// keywords are the kinds that a word names.
var keywords = []struct {
	word string
	kind SelectorKind
}{
	{"ALL", SelectAll}, {"ALL_CAS", SelectCAs}, {"ALL_SWITCHES", SelectSwitches}, {"ALL_ROUTERS", SelectRouters}, {"SELF", SelectSelf},
}

// KeywordSelector is the selector that a keyword such as ALL_CAS stands for.
func KeywordSelector(word string) (Selector, bool) {
	for _, k := range keywords {
		if k.word == word {
			return Selector{Kind: k.kind}, true
		}
	}
	return Selector{}, false
}

// Keyword is the word for a selector that KeywordSelector gives.
func (s Selector) Keyword() (string, bool) {
	for _, k := range keywords {
		if k.kind == s.Kind {
			return k.word, true
		}
	}
	return "", false
}

// Selector selects end ports. It is comparable.
type Selector struct {
	Kind SelectorKind
	// GUID is the port's for SelectPort and, unless it is 0, for SelectPlace, and
	// the node's for SelectNode.
	GUID uint64
	// At is the place of SelectPlace.
	At Place
	// Text is the name, description or pattern of the kinds that have one.
	Text string
}

// String prints the selector for messages.
func (s Selector) String() string {
	switch s.Kind {
	case SelectPort:
		return "port " + ib.PortGUID(s.GUID).String()
	case SelectPlace:
		if s.GUID != 0 {
			return fmt.Sprintf("port %v at %q", ib.PortGUID(s.GUID), s.At.String())
		}
		return fmt.Sprintf("place %q", s.At.String())
	case SelectNode:
		return "node " + ib.NodeGUID(s.GUID).String()
	case SelectDescription:
		return fmt.Sprintf("description %q", s.Text)
	case SelectPattern:
		return fmt.Sprintf("pattern %q", s.Text)
	case SelectGroup:
		return fmt.Sprintf("group %q", s.Text)
	}
	if word, ok := s.Keyword(); ok {
		return word
	}
	return fmt.Sprintf("invalid selector kind %d", s.Kind)
}

// membership is what a member of this policy gets: Both needs AllowBoth.
func (p *Policy) membership(m Membership) Membership {
	if m == Both && !p.AllowBoth {
		return Full
	}
	return m
}

// BadName tells what is wrong with the name of a partition or group, or
// nothing. Both formats can write every name that passes.
func BadName(name string) string {
	switch {
	case name == "":
		return "no name"
	case len(name) > NameMax:
		return fmt.Sprintf("a name of %d bytes", len(name))
	case strings.TrimSpace(name) != name:
		return fmt.Sprintf("name %q with blanks around it", name)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7F || strings.ContainsRune("=,:;#", r) }):
		return fmt.Sprintf("name %q", name)
	}
	return ""
}

// NameRule is what BadName asks of a name, for messages.
const NameRule = "up to 63 bytes without = , : ; # or control characters"

// MarshalText prints the membership as String does; a number that is none is an error.
func (m Membership) MarshalText() ([]byte, error) {
	if m < Limited || m > None {
		return nil, fmt.Errorf("membership %d: want limited, full, both or none", uint8(m))
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads what MarshalText prints.
func (m *Membership) UnmarshalText(text []byte) error {
	for c := Limited; c <= None; c++ {
		if c.String() == string(text) {
			*m = c
			return nil
		}
	}
	return fmt.Errorf("membership %q: want limited, full, both or none", text)
}
