package policyfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// YAMLSizeMax is the largest file that is read, in bytes.
const YAMLSizeMax = 16 << 20

// Version is the version of the format that is read and written.
const Version = 1

// memberships are the words for what a member is.
var memberships = []string{policy.Limited.String(), policy.Full.String(), policy.Both.String()}

// The words for the treatment of raw packets.
const rawAllow, rawDeny = "allow", "deny"

// ReadYAML reads a policy in YAML. The name is for messages. The error is a *policy.Error.
func ReadYAML(data []byte, name string) (*policy.Policy, error) {
	r := yamlReader{
		policy:     &policy.Policy{Default: policy.Limited},
		groupNames: map[string]bool{},
		names:      map[string]policy.Pos{},
		keys:       map[ib.PKeyBase]policy.Pos{},
		ofServices: map[string]bool{},
	}
	r.groups.SourceNotes = &r.SourceNotes
	src := r.Clean(data, YAMLSizeMax)
	if len(r.Faults) == 0 {
		if root := r.Parse(src, "a policy, with at least version: 1"); root != nil {
			r.root(root)
		}
	}
	return r.Result(r.policy, name)
}

type yamlReader struct {
	YAMLTree
	policy  *policy.Policy
	groups  policy.SourceGroups
	members int
	// groupNames, names and keys are those of the groups and partitions so far.
	groupNames map[string]bool
	names      map[string]policy.Pos
	keys       map[ib.PKeyBase]policy.Pos
	// ofServices are the names of partitions that services have.
	ofServices map[string]bool
}

// rootKeys are what root reads later.
type rootKeys struct {
	version                               bool
	partitions, groups, services, trusted ast.Node
}

// ofPolicy reads the keys of a policy.
func (r *yamlReader) ofPolicy(root *rootKeys) map[string]func(ast.Node) {
	return map[string]func(ast.Node){
		"version": func(v ast.Node) {
			root.version = true
			r.Numeral(v, "version", Version, Version)
		},
		"default":    r.dflt,
		"allow_both": func(v ast.Node) { r.policy.AllowBoth = r.Truth(v, "allow_both") },
		"raw": func(v ast.Node) {
			word, _ := r.Choice(v, "raw packets", []string{rawAllow, rawDeny})
			r.policy.AllowRaw = word == rawAllow
		},
		"descriptions": func(v ast.Node) {
			_, r.policy.TrustDescriptions = r.Choice(v, "descriptions", []string{"trusted"})
		},
		"may_be_absent": r.absence,
		"groups":        func(v ast.Node) { root.groups = v },
		"services":      func(v ast.Node) { root.services = v },
		"trusted":       func(v ast.Node) { root.trusted = v },
		"aliases":       r.aliases,
		"apart":         r.apart,
		"settings":      r.settings,
		"partitions":    func(v ast.Node) { root.partitions = v },
	}
}

// YAMLKeys are the keys that a policy can have, and begin with, sorted.
func YAMLKeys() []string { return slices.Sorted(maps.Keys(new(yamlReader).ofPolicy(new(rootKeys)))) }

func (r *yamlReader) root(node ast.Node) {
	var root rootKeys
	r.Fields(node, "the policy", r.ofPolicy(&root))
	if !root.version {
		r.Fault(YAMLPos(node), fmt.Sprintf("version: %d", Version), "a policy without version")
	}
	if root.groups != nil {
		r.Fields(root.groups, "groups", map[string]func(ast.Node){"": r.group})
	}
	if root.trusted != nil {
		r.trusted(root.trusted)
	}
	if root.partitions != nil {
		r.partitions(root.partitions)
	}
	if root.services != nil {
		r.services(root.services)
	}
}

// trusted reads the ports that may ask subnet administration for everything.
func (r *yamlReader) trusted(node ast.Node) {
	seen := map[policy.Selector]policy.Pos{}
	for _, item := range r.List(node, "trusted") {
		if s, ok := r.selector(item, true); ok && r.once(seen, s, YAMLPos(item)) {
			r.policy.Trusted = append(r.policy.Trusted, policy.TrustedPorts{Selector: s, Pos: YAMLPos(item)})
		}
	}
}

func (r *yamlReader) partitions(partitions ast.Node) {
	for i, v := range r.List(partitions, "partitions") {
		if i == policy.PartitionsMax {
			r.Fault(YAMLPos(v), "fewer", "more than %d partitions", policy.PartitionsMax)
		}
		if r.Full() || i >= policy.PartitionsMax {
			return
		}
		r.partition(v)
	}
}

// absenceWarns is the word for names that may be absent with a warning.
const absenceWarns = "warn"

// absence reads how names that no device has are treated.
func (r *yamlReader) absence(node ast.Node) {
	word, ok := r.Choice(node, "may_be_absent", []string{"true", "false", absenceWarns})
	r.policy.MayBeAbsent, r.policy.AbsentWarns = ok && word == "true", ok && word == absenceWarns
}

// dflt reads what every port is in the default partition.
func (r *yamlReader) dflt(node ast.Node) {
	word, ok := r.Choice(node, "a membership", []string{policy.Limited.String(), policy.Full.String(), policy.None.String()})
	switch {
	case ok && word == policy.None.String():
		r.policy.Default = policy.None
	case ok && word == policy.Full.String():
		r.policy.Default = policy.Full
	}
}

// membership reads one of the memberships that words allow.
func (r *yamlReader) membership(node ast.Node, words []string) policy.Membership {
	word, ok := r.Choice(node, "a membership", words)
	if !ok {
		return policy.Limited
	}
	return policy.Membership(1 + slices.Index(memberships, word))
}

// group reads one entry of groups, name and selectors.
func (r *yamlReader) group(pair ast.Node) {
	v := pair.(*ast.MappingValueNode)
	g := policy.Group{Name: v.Key.(*ast.StringNode).Value, Pos: YAMLPos(v.Key)}
	if bad := policy.BadName(g.Name); bad != "" {
		r.Fault(g.Pos, policy.NameRule, "%s for a group", bad)
	}
	if _, keyword := policy.KeywordSelector(g.Name); keyword || policy.IsPattern(g.Name) || strings.HasPrefix(g.Name, "0x") {
		r.Fault(g.Pos, "a name that is no keyword, GUID or pattern", "group %q", g.Name)
	}
	seen := map[policy.Selector]policy.Pos{}
	ports := v.Value
	if _, mapping := v.Value.(ast.MapNode); mapping {
		ports = nil
		r.Fields(v.Value, "a group", map[string]func(ast.Node){
			"ports":         func(v ast.Node) { ports = v },
			"may_be_absent": func(v ast.Node) { g.MayBeAbsent = r.Truth(v, "may_be_absent") },
		})
		if ports == nil {
			r.Fault(g.Pos, "ports", "an incomplete group")
			return
		}
	}
	for _, item := range r.List(ports, "group "+strconv.Quote(g.Name)) {
		s, ok := r.selector(item, false)
		if ok && r.once(seen, s, YAMLPos(item)) {
			g.Selectors, g.At = append(g.Selectors, s), append(g.At, YAMLPos(item))
		}
	}
	if len(r.policy.Groups) == policy.GroupsMax {
		r.Fault(g.Pos, "fewer", "more than %d groups", policy.GroupsMax)
		return
	}
	r.policy.Groups = append(r.policy.Groups, g)
	r.groupNames[g.Name] = true
}

// once notes a selector that is in a list, or a policy, too often.
func (r *yamlReader) once(seen map[policy.Selector]policy.Pos, s policy.Selector, at policy.Pos) bool {
	first, again := seen[s]
	if again {
		r.Fault(at, "each selector once", "%v again, as at %v", s, first)
		return false
	}
	seen[s] = at
	if r.members++; r.members == policy.MembersMax+1 {
		r.Fault(at, "fewer", "more than %d selectors", policy.MembersMax)
	}
	return r.members <= policy.MembersMax
}

func (r *yamlReader) partition(node ast.Node) {
	part := policy.Partition{Pos: YAMLPos(node)}
	index0 := false
	var members, ipoib, multicast ast.Node
	keep := func(to *ast.Node) func(ast.Node) { return func(v ast.Node) { *to = v } }
	r.Fields(node, "a partition", map[string]func(ast.Node){
		"name": func(v ast.Node) {
			t, _ := r.Scalar(v, "name", policy.NameRule)
			part.Name, part.Pos = t.S, t.Pos
		},
		"pkey":          func(v ast.Node) { part.PKey = ib.PKeyBase(r.Numeral(v, "pkey", 1, uint64(ib.PKeyBaseMax))) },
		"sl":            func(v ast.Node) { part.SL = ib.SL(r.Numeral(v, "sl", 0, policy.SLMax)) },
		"rate_limit":    func(v ast.Node) { part.RateLimit = r.rate(v, "rate_limit") },
		"service_ids":   func(v ast.Node) { part.ServiceLevels = r.serviceIDs(v) },
		"index0":        func(v ast.Node) { index0 = r.Truth(v, "index0") },
		"members":       keep(&members),
		"ipoib":         keep(&ipoib),
		"multicast":     keep(&multicast),
		"may_be_absent": func(v ast.Node) { part.MayBeAbsent = r.Truth(v, "may_be_absent") },
	})
	r.identify(&part)
	if members != nil {
		part.Members = r.memberLists(members, index0)
	}
	if ipoib != nil {
		r.ipoib(ipoib, &part)
	}
	if multicast != nil {
		for _, v := range r.List(multicast, "multicast") {
			r.multicast(v, &part)
		}
	}
	r.policy.Partitions = append(r.policy.Partitions, part)
}

// identify checks the name and number of a partition against the others.
func (r *yamlReader) identify(part *policy.Partition) {
	if bad := policy.BadName(part.Name); bad != "" {
		r.Fault(part.Pos, policy.NameRule, "%s for a partition", bad)
		return
	}
	if part.Name == policy.DefaultName {
		part.PKey = cmp.Or(part.PKey, ib.PKeyBaseDefault)
		if part.PKey != ib.PKeyBaseDefault {
			r.Fault(part.Pos, fmt.Sprintf("pkey %v, or another name", ib.PKeyBaseDefault), "partition %q with pkey %v", part.Name, part.PKey)
		}
	}
	if first, again := r.names[part.Name]; again {
		r.Fault(part.Pos, "each name once", "partition %q again, as at %v", part.Name, first)
	}
	if first, again := r.keys[part.PKey]; again {
		r.Fault(part.Pos, "each pkey once", "pkey %v again, as at %v", part.PKey, first)
	}
	r.names[part.Name] = part.Pos
	if part.PKey != 0 {
		r.keys[part.PKey] = part.Pos
	}
}

// memberLists reads members in either of its two forms.
func (r *yamlReader) memberLists(node ast.Node, index0 bool) (members []policy.Member) {
	seen := map[policy.Selector]policy.Pos{}
	add := func(list ast.Node, as policy.Membership, index0 bool) {
		for _, item := range r.List(list, "members") {
			s, ok := r.selector(item, true)
			at := YAMLPos(item)
			if as == policy.Both && !r.policy.AllowBoth {
				r.Warn(at, "both acts as full, because allow_both is not true")
			}
			if ok && r.once(seen, s, at) {
				members = append(members, policy.Member{Selector: s, Membership: as, Index0: index0, Pos: at})
			}
		}
	}
	entries, ordered := node.(*ast.SequenceNode)
	if !ordered {
		readers := map[string]func(ast.Node){}
		for i, word := range memberships {
			readers[word] = func(v ast.Node) { add(v, policy.Membership(i+1), index0) }
		}
		r.Fields(node, "members", readers)
		slices.SortStableFunc(members, compareMembers)
		return members
	}
	for _, entry := range entries.Values {
		var ports, as ast.Node
		first := index0
		r.Fields(entry, "an entry of members", map[string]func(ast.Node){
			"as":     func(v ast.Node) { as = v },
			"ports":  func(v ast.Node) { ports = v },
			"index0": func(v ast.Node) { first = r.Truth(v, "index0") },
		})
		if as == nil || ports == nil {
			r.Fault(YAMLPos(entry), "as and ports", "an incomplete entry of members")
			continue
		}
		add(ports, r.membership(as, memberships), first)
	}
	return members
}

// compareMembers orders members that were listed without an order: the one
// that decides comes last.
func compareMembers(a, b policy.Member) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Membership, a.Membership))
}
