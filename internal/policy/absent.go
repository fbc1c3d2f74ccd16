package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
)

// Absent is a name in a policy that finds no end port.
type Absent struct {
	Selector
	Pos Pos
	// Where is what it stands in, for messages: group "red".
	Where string
	// Stops reports whether the policy does not say that it may be absent.
	Stops bool
}

// IsName reports whether the selector names devices or a place, and not all of a
// kind.
func (s Selector) IsName() bool {
	switch s.Kind {
	case SelectPattern, SelectDescription, SelectNode, SelectPort, SelectPlace:
		return true
	}
	return false
}

// NamesOnly reports whether the policy names anybody, and nobody but these.
func (p *Policy) NamesOnly(these map[Selector]bool) bool {
	any := false
	only := func(s Selector) bool {
		any = any || s.IsName()
		return !s.IsName() || these[s]
	}
	for i := range p.Partitions {
		for _, m := range p.Partitions[i].Members {
			if !only(m.Selector) {
				return false
			}
		}
	}
	for i := range p.Groups {
		for _, s := range p.Groups[i].Selectors {
			if !only(s) {
				return false
			}
		}
	}
	return any
}

// note takes notice of what a selector found, at a place in the file; may tells
// that what it stands in may be absent.
func (x *lookup) note(s Selector, found []int32, at Pos, may bool, where string, args ...any) {
	if len(found) > 0 {
		if x.met != nil && s.IsName() && len(x.met) < MembersMax {
			x.met[s] = struct{}{}
		}
		return
	}
	may = may || x.policy.MayBeAbsent || x.policy.Absentees[s]
	where = fmt.Sprintf(where, args...)
	if !may {
		x.warn(at, "%s: no end port for %v", where, s)
	}
	if s.IsName() {
		x.absent = append(x.absent, Absent{s, at, where, !may && !x.policy.AbsentWarns})
	}
}

// placeIn is the n-th of some places, or another where they are not known.
func placeIn(places []Pos, n int, otherwise Pos) Pos {
	if n < len(places) {
		return places[n]
	}
	return otherwise
}

func sortAbsent(list []Absent) {
	slices.SortStableFunc(list, func(a, b Absent) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
}

// SiteSwitch is a switch as a name in a policy may mean it.
type SiteSwitch struct {
	GUID ib.NodeGUID
	Name string
	// Ports is the number of its last port.
	Ports ib.PortNum
}

// Site is all that is there, whether or not a policy can mean it now: ports with a
// claimed GUID and fenced ports are included.
type Site struct {
	Ports    []EndPort
	Switches []SiteSwitch
}

// Explain finds out what is wrong with a name of p that found no end port. It is there
// when something on the site has it: a fenced port, or a port of a switch without a
// cable. Otherwise hint is what may have been meant, to be appended to a message; it may
// be empty.
func (s *Site) Explain(p *Policy, name Selector) (there bool, hint string) {
	switch name.Kind {
	case SelectPort:
		return s.explainPort(p, ib.PortGUID(name.GUID))
	case SelectNode:
		return s.explainNode(ib.NodeGUID(name.GUID))
	case SelectPlace:
		return s.explainPlace(p, name)
	case SelectDescription:
		var all []string
		for i := range s.Ports {
			if names.Fits(name.Text, s.Ports[i].Description) {
				return true, ""
			}
			all = append(all, s.Ports[i].Description)
		}
		return false, names.DidYouMean(name.Text, all)
	case SelectPattern:
		return s.explainPattern(name.Text)
	}
	return true, ""
}

func (s *Site) explainPort(p *Policy, guid ib.PortGUID) (there bool, hint string) {
	if owners, err := p.owners(); err == nil && owners[guid] != 0 {
		guid = owners[guid]
	}
	var all []string
	for i := range s.Ports {
		port := &s.Ports[i]
		switch {
		case port.PortGUID == guid:
			return true, ""
		case uint64(port.NodeGUID) == uint64(guid):
			hint = fmt.Sprintf("; it is the GUID of a node: did you mean {node: %v}?", port.NodeGUID)
		}
		all = append(all, port.PortGUID.String())
	}
	return false, cmp.Or(hint, names.DidYouMean(guid.String(), all))
}

func (s *Site) explainNode(guid ib.NodeGUID) (there bool, hint string) {
	var all []string
	for i := range s.Ports {
		port := &s.Ports[i]
		switch {
		case port.NodeGUID == guid:
			return true, ""
		case uint64(port.PortGUID) == uint64(guid):
			hint = fmt.Sprintf("; it is the GUID of a port: did you mean {port: %v}?", port.PortGUID)
		}
		all = append(all, port.NodeGUID.String())
	}
	return false, cmp.Or(hint, names.DidYouMean(guid.String(), all))
}

// explainPattern proposes another beginning of the pattern.
func (s *Site) explainPattern(pattern string) (there bool, hint string) {
	g, err := compileGlob(pattern)
	if err != nil {
		return false, ""
	}
	rest, plain := strings.CutPrefix(pattern, g.prefix)
	var all []string
	for i := range s.Ports {
		text := s.Ports[i].Description
		if g.match(text) || g.match(names.Short(text)) {
			return true, ""
		}
		if len(text) >= len(g.prefix) {
			all = append(all, text[:len(g.prefix)])
		}
	}
	if nearest, ok := names.Nearest(g.prefix, all); ok && plain {
		return false, names.Proposal(nearest + rest)
	}
	return false, ""
}

func (s *Site) explainPlace(p *Policy, name Selector) (there bool, hint string) {
	var found *SiteSwitch
	var all []string
	for i := range s.Switches {
		sw := &s.Switches[i]
		if name.At.Switch != 0 && sw.GUID == name.At.Switch || name.At.Switch == 0 && names.Fits(name.At.Name, sw.Name) {
			if found != nil {
				return false, fmt.Sprintf("; %v and %v both have the name: want the GUID of the one that is meant", found.GUID, sw.GUID)
			}
			found = sw
		}
		if all = append(all, sw.Name); name.At.Switch != 0 {
			all[i] = sw.GUID.String()
		}
	}
	if found == nil {
		text := name.At.Name
		if name.At.Switch != 0 {
			text = name.At.Switch.String()
		}
		if nearest, ok := names.Nearest(text, all); ok {
			return false, names.Proposal(fmt.Sprintf("%s:%d", nearest, name.At.Port))
		}
		return false, ""
	}
	if name.At.Port > found.Ports {
		return false, fmt.Sprintf("; the switch has ports 1 to %d", found.Ports)
	}
	if name.GUID == 0 {
		return true, ""
	}
	if there, _ := s.explainPort(p, ib.PortGUID(name.GUID)); there {
		return true, ""
	}
	for i := range s.Ports {
		if port := &s.Ports[i]; port.Switch == found.GUID && port.SwitchPort == name.At.Port {
			return false, fmt.Sprintf("; %v is cabled there (%s)", port.PortGUID, names.Printable(port.Description))
		}
	}
	return true, "" // nothing is cabled there now
}

// absentShown bounds the names in the message of an AbsentError.
const absentShown = 50

// AbsentError refuses a policy for names that are nobody's: each with its place and
// what may have been meant.
type AbsentError struct {
	// Source is the policy's.
	Source string
	Names  []Fault
	// All reports whether no name of the policy is anybody's, in a policy whose names
	// may be absent one by one.
	All bool
}

// Error prints a line for each name, and at last how to say that it may be absent.
func (e *AbsentError) Error() string {
	var b strings.Builder
	what, advice := "names in the policy match no device", "mark what is switched off, or still to come, with may_be_absent: true: the name in braces, its group, its partition, its service, or the whole policy"
	switch {
	case e.All:
		what, advice = "ports are named by the policy, and none of them is here", "is this the policy of another fabric? As YAML (ibwarden policy convert) it can say may_be_absent: true"
	case len(e.Names) == 1:
		what = "name in the policy matches no device"
	}
	fmt.Fprintf(&b, "%d %s", len(e.Names), what)
	for i, f := range e.Names {
		if i == absentShown {
			fmt.Fprintf(&b, "\n%d more are not shown", len(e.Names)-i)
			break
		}
		b.WriteString("\n" + (&Error{Name: cmp.Or(e.Source, "policy"), Faults: []Fault{f}}).Error())
	}
	b.WriteString("\n" + advice)
	return b.String()
}
