package policyfile

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// selector reads one selector; in a group a plain text is a description, in a
// partition the name of a group.
func (r *yamlReader) selector(node ast.Node, inPartition bool) (policy.Selector, bool) {
	const want = "a keyword, a port GUID with 0x, a group, a pattern, or a mapping with port, at, node, description or group"
	if _, mapping := node.(ast.MapNode); mapping {
		return r.selectorMapping(node, inPartition)
	}
	t, ok := r.Scalar(node, "a selector", want)
	if !ok {
		return policy.Selector{}, false
	}
	if s, ok := policy.KeywordSelector(t.S); ok {
		return s, true
	}
	switch {
	case strings.HasPrefix(t.S, "0x"):
		return r.guid(node, policy.SelectPort)
	case policy.IsPattern(t.S):
		return r.described(t)
	case inPartition:
		return r.groupNamed(t)
	}
	if _, isText := node.(*ast.StringNode); !isText {
		r.Fault(t.Pos, want, "%q for a selector", t.S)
		return policy.Selector{}, false
	}
	return r.described(t)
}

func (r *yamlReader) selectorMapping(node ast.Node, inPartition bool) (s policy.Selector, ok bool) {
	count, absent := 0, false
	var place, port ast.Node
	read := func(f func(v ast.Node) (policy.Selector, bool)) func(ast.Node) {
		return func(v ast.Node) { count++; s, ok = f(v) }
	}
	readText := func(f func(t policy.SourceText) (policy.Selector, bool)) func(ast.Node) {
		return read(func(v ast.Node) (policy.Selector, bool) {
			t, ok := r.Scalar(v, "a selector", "text")
			if !ok {
				return policy.Selector{}, false
			}
			return f(t)
		})
	}
	readers := map[string]func(ast.Node){
		"port":          func(v ast.Node) { port = v },
		"at":            func(v ast.Node) { place = v },
		"node":          read(func(v ast.Node) (policy.Selector, bool) { return r.guid(v, policy.SelectNode) }),
		"description":   readText(r.described),
		"may_be_absent": func(v ast.Node) { absent = r.Truth(v, "may_be_absent") },
	}
	if inPartition {
		readers["group"] = readText(r.groupNamed)
	}
	faults := len(r.Faults)
	r.Fields(node, "a selector", readers)
	if place != nil || port != nil {
		count++
		s, ok = r.portAt(port, place)
	}
	if count != 1 && len(r.Faults) == faults {
		r.Fault(YAMLPos(node), "exactly one of port (with or without at), at, node, description and group", "a selector with %d keys", count)
	}
	if ok && absent && !s.IsName() {
		r.Fault(YAMLPos(node), "it with the group, or the names in it", "may_be_absent with %v", s)
	}
	if ok && absent {
		if r.policy.Absentees == nil {
			r.policy.Absentees = map[policy.Selector]bool{}
		}
		r.policy.Absentees[s] = true
	}
	return s, ok && count == 1
}

// portAt reads a port by its GUID, its place, or both; either node may be nil.
func (r *yamlReader) portAt(port, place ast.Node) (s policy.Selector, ok bool) {
	s.Kind, ok = policy.SelectPlace, true
	if port != nil {
		if s, ok = r.guid(port, policy.SelectPort); place == nil || !ok {
			return s, ok
		}
		s.Kind = policy.SelectPlace
	}
	const want = "SWITCH:PORT, the name or node GUID of a switch and the number of its port"
	t, isText := r.Scalar(place, "at", want)
	if !isText {
		return s, false
	}
	colon := strings.LastIndexByte(t.S, ':')
	if colon < 0 {
		r.Fault(t.Pos, want, "%q for at", t.S)
		return s, false
	}
	name := t.S[:colon]
	num, err := strconv.ParseUint(t.S[colon+1:], 10, 8)
	if err != nil || num == 0 || num > portMax || name == "" {
		r.Fault(t.Pos, want, "%q for at", t.S)
		return s, false
	}
	s.At = policy.Place{Name: name, Port: ib.PortNum(num)}
	if strings.HasPrefix(name, "0x") {
		guid, err := strconv.ParseUint(name[2:], 16, 64)
		if err != nil || guid == 0 {
			r.Fault(t.Pos, want, "%q for at", t.S)
			return s, false
		}
		s.At.Switch, s.At.Name = ib.NodeGUID(guid), ""
	}
	return s, true
}

// portMax is the highest number of a port of a switch.
const portMax = 254

// untrusted refuses a selector by description where nobody said that these are
// trusted.
func (r *yamlReader) untrusted(at policy.Pos, s policy.Selector) {
	if !r.policy.TrustDescriptions {
		r.Fault(at, "a port GUID, a place ({at: \"SWITCH:PORT\"}), or descriptions: trusted among the first keys of the file",
			"%v goes by what a node says of itself", s)
	}
}

func (r *yamlReader) guid(node ast.Node, kind policy.SelectorKind) (policy.Selector, bool) {
	guid := r.Numeral(node, "a GUID", 1, math.MaxUint64)
	return policy.Selector{Kind: kind, GUID: guid}, guid != 0
}

func (r *yamlReader) described(t policy.SourceText) (policy.Selector, bool) {
	if !policy.IsPattern(t.S) {
		if t.S == "" {
			r.Fault(t.Pos, "the description of a node", "no text")
		}
		s := policy.Selector{Kind: policy.SelectDescription, Text: t.S}
		if t.S != "" {
			r.untrusted(t.Pos, s)
		}
		return s, t.S != ""
	}
	if err := policy.CheckPattern(t.S); err != nil {
		r.Fault(t.Pos, "a pattern of text, *, ?, [a-z] and \\", "pattern %q: %v", t.S, err)
		return policy.Selector{}, false
	}
	s := policy.Selector{Kind: policy.SelectPattern, Text: t.S}
	r.untrusted(t.Pos, s)
	return s, true
}

func (r *yamlReader) groupNamed(t policy.SourceText) (policy.Selector, bool) {
	if !r.groupNames[t.S] {
		r.Fault(t.Pos, "the name of a group; a node is named by {description: ...}", "no group %q%s", t.S,
			names.DidYouMean(t.S, slices.Sorted(maps.Keys(r.groupNames))))
		return policy.Selector{}, false
	}
	return policy.Selector{Kind: policy.SelectGroup, Text: t.S}, true
}
