package policyfile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// confFlags are the flags of a definition, which its members and multicast
// groups inherit.
type confFlags struct {
	// group holds the parameters of groups; its Pos is the place of the flags.
	group  policy.MulticastGroup
	scopes uint16 // a bit for each scope that was named
	ipoib  bool
	index0 bool
	member policy.Membership
}

// groupFlags are the flags of groups, headerWords those of a definition.
var (
	groupFlags  = []string{"mtu", "rate", "scope", "Q_Key", "TClass", "sl", "FlowLabel"}
	headerWords = append(groupFlags[:len(groupFlags):len(groupFlags)], "ipoib", "defmember", "indx0")
)

// confMemberships are the words for what a member is.
var confMemberships = []string{policy.Limited.String(), policy.Full.String(), policy.Both.String()}

// portKeywords are the words that stand in place of a GUID; NONE is no port.
var portKeywords = []string{"ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF", "NONE"}

// number reads a number between low and high, both included.
func (r *confReader) number(t policy.SourceText, what string, low, high uint64) (uint64, bool) {
	v, octal, ok := policy.ParseNumber(t.S)
	if !ok || v < low || v > high {
		r.Fault(t.Pos, policy.NumberRange(low, high), "%s %q", what, t.S)
		return 0, false
	}
	if octal {
		r.Warn(t.Pos, "%s %s begins with 0, so it is octal: %d", what, t.S, v)
	}
	return v, true
}

func (r *confReader) headerFlags(flags policy.SourceText, more bool) confFlags {
	f := confFlags{member: policy.Limited}
	f.group = policy.MulticastGroup{MTU: policy.DefaultMTU, Rate: policy.DefaultRate, Pos: flags.Pos}
	for more {
		var item policy.SourceText
		item, flags, more = flags.Cut(',')
		name, value, hasValue := item.Cut('=')
		name, value = name.Trim(), value.Trim()
		if name.S == "" && !hasValue {
			continue // an empty flag does nothing
		}
		word, ok := r.word(name, "flag", headerWords)
		switch {
		case !ok:
		case word == "indx0" && name.S != word:
			r.Fault(name.Pos, "indx0 written out", "flag %q", name.S)
		case word == "indx0" || word == "ipoib":
			if hasValue {
				r.Fault(value.Pos, "no value", "flag %s with the value %q", word, value.S)
			}
			f.index0 = f.index0 || word == "indx0"
			f.ipoib = f.ipoib || word == "ipoib"
		case word == "defmember":
			f.member = r.membership(value)
		default:
			r.groupFlag(&f.group, &f.scopes, word, value)
		}
	}
	if r.ignoreLevels && f.group.SL != 0 {
		r.Warn(f.group.Pos, "sl %d counts for nothing, since qos is FALSE", f.group.SL)
		f.group.SL = 0
	}
	return f
}

// groupFlag sets the parameter that word names.
func (r *confReader) groupFlag(g *policy.MulticastGroup, scopes *uint16, word string, value policy.SourceText) {
	switch word {
	case "mtu":
		v, _, _ := policy.ParseNumber(value.S)
		if g.MTU = ib.MTU(min(v, math.MaxUint8)); !g.MTU.IsValid() {
			r.Fault(value.Pos, "a code from 1 to 5 (4 is 2048 bytes, 5 is 4096)", "mtu %q", value.S)
		}
	case "rate":
		v, _, _ := policy.ParseNumber(value.S)
		if g.Rate = ib.Rate(min(v, math.MaxUint8)); !g.Rate.IsValid() {
			r.Fault(value.Pos, "the code of a rate (3 is 10 Gb/s, 7 is 40, 16 is 100)", "rate %q", value.S)
		}
	case "scope":
		if v, ok := r.number(value, word, 1, policy.ScopeMax); ok {
			*scopes |= 1 << v
		}
	case "Q_Key":
		v, _ := r.number(value, word, 0, math.MaxUint32)
		g.QKey = ib.QKey(v)
	case "TClass":
		v, _ := r.number(value, word, 0, math.MaxUint8)
		g.TClass = uint8(v)
	case "sl":
		v, _ := r.number(value, word, 0, policy.SLMax)
		g.SL = ib.SL(v)
	case "FlowLabel":
		v, _ := r.number(value, word, 0, policy.FlowLabelMax)
		g.FlowLabel = uint32(v)
	}
}

// word finds which of the words t stands for; OpenSM takes prefixes.
func (r *confReader) word(t policy.SourceText, what string, words []string) (string, bool) {
	if t.S == "" {
		r.Fault(t.Pos, policy.OrList(words), "no %s", what)
		return "", false
	}
	word, candidates := policy.MatchWord(t.S, words)
	switch {
	case word != "":
		if word != t.S {
			r.Warn(t.Pos, "%s %q is taken for %s, as OpenSM does, which compares as many letters as there are: write it out", what, t.S, word)
		}
		return word, true
	case len(candidates) > 0:
		r.Fault(t.Pos, "it written out", "%s %q, which can be %s", what, t.S, policy.OrList(candidates))
	default:
		r.Fault(t.Pos, policy.OrList(words), "%s %q", what, t.S)
	}
	return "", false
}

func (r *confReader) membership(t policy.SourceText) policy.Membership {
	word, _ := r.word(t, "membership", confMemberships)
	switch word {
	case policy.Full.String():
		return policy.Full
	case policy.Both.String():
		if !r.policy.AllowBoth {
			r.Warn(t.Pos, "both acts as full, because both keys on one port are not allowed (allow_both_pkeys)")
		}
		return policy.Both
	}
	return policy.Limited
}

// properties reads the members and groups on one line of a statement.
func (r *confReader) properties(piece policy.SourceText) {
	for more := true; more; {
		var item policy.SourceText
		item, piece, more = piece.Cut(',')
		name, value, hasValue := item.Cut('=')
		switch name = name.Trim(); {
		case name.S == "" && !hasValue:
		case name.S == "mgid":
			r.multicast(value.Trim(), piece, more)
			return // the rest of the line was its flags
		case strings.Contains(item.S, ":"):
			before, _, _ := item.Cut(':')
			colon := before.Pos
			colon.Column += len([]rune(before.S))
			r.Fault(colon, "';' before a new definition, and one ':' in each", "':' among the members")
			return
		default:
			r.member(name, value.Trim(), hasValue)
		}
	}
}

func (r *confReader) member(name, value policy.SourceText, hasValue bool) {
	m := policy.Member{Membership: r.open.member, Index0: r.open.index0, Pos: name.Pos}
	if hasValue {
		m.Membership = r.membership(value)
	}
	switch {
	case name.S == "":
		r.Fault(name.Pos, "a port GUID or "+policy.OrList(portKeywords), "a membership without a port")
		return
	case name.S[0] >= '0' && name.S[0] <= '9':
		v, ok := r.number(name, "port GUID", 1, math.MaxUint64)
		if !ok {
			return
		}
		m.Selector = policy.Selector{Kind: policy.SelectPort, GUID: v}
	default:
		word, candidates := policy.MatchWord(name.S, portKeywords)
		if word == "" && len(candidates) == 0 {
			r.Fault(name.Pos, "a port GUID or "+policy.OrList(portKeywords), "%q", name.S)
			return
		}
		word, _ = r.word(name, "keyword", portKeywords)
		s, ok := policy.KeywordSelector(word)
		if !ok {
			return // a fault, or NONE
		}
		m.Selector = s
	}
	if r.open.partition == nil {
		return
	}
	if r.members++; r.members > policy.MembersMax {
		if r.members == policy.MembersMax+1 {
			r.Fault(name.Pos, "fewer", "more than %d members", policy.MembersMax)
		}
		return
	}
	part := &r.policy.Partitions[r.open.partition.index]
	part.Members = append(part.Members, m)
	r.statements[len(r.statements)-1].Members++
}

// multicast reads an mgid item: the address and the flags after it.
func (r *confReader) multicast(address, flags policy.SourceText, more bool) {
	before := len(r.Faults)
	header := r.open.confFlags
	g, scopes := header.group, header.scopes
	g.TClass, g.Pos = 0, address.Pos
	mgid, err := ib.ParseGID(address.S)
	if err != nil || !mgid.IsMulticast() {
		r.Fault(address.Pos, "a multicast GID (an IPv6 address that begins with ff)", "mgid %q", address.S)
	}
	for more {
		var item policy.SourceText
		item, flags, more = flags.Cut(',')
		name, value, hasValue := item.Cut('=')
		if name = name.Trim(); name.S == "" && !hasValue {
			continue
		}
		if word, ok := r.word(name, "flag of an mgid", groupFlags); ok {
			r.groupFlag(&g, &scopes, word, value.Trim())
		}
	}
	if len(r.Faults) > before || r.open.partition == nil {
		return
	}
	r.statements[len(r.statements)-1].Groups++
	g.MGID = mgid
	if err := g.ClearPKey(r.open.partition.key); err != nil {
		r.Fault(address.Pos, fmt.Sprintf("0 or %v", r.open.partition.key), "%v", err)
		return
	}
	made := g.IsBroadcast() && r.open.ipoib // by the flag, wherever it has this scope
	if g.IsIPoIB() {
		if !made && (g.MTU != header.group.MTU || g.Rate != header.group.Rate) {
			r.Fault(address.Pos, fmt.Sprintf("MTU %v and rate %v, as the partition", header.group.MTU, header.group.Rate),
				"IPoIB group %s with MTU %v and rate %v", address.S, g.MTU, g.Rate)
			return
		}
		if g.QKey == 0 {
			g.QKey = policy.QKeyIPoIB
		}
	}
	if scopes == 0 {
		if scopes = 1 << policy.ScopeLink; g.Scope() != policy.ScopeLink {
			r.Fault(address.Pos, fmt.Sprintf("scope=%d said too: without it the group would be made in scope %d", g.Scope(), policy.ScopeLink),
				"mgid %s of scope %d", address.S, g.Scope())
			return
		}
	}
	part := &r.policy.Partitions[r.open.partition.index]
	for scope := range uint8(policy.ScopeMax + 1) {
		if scopes&(1<<scope) != 0 {
			g.MGID = policy.WithScope(g.MGID, scope)
			if !made || !r.madeBefore(part, g) {
				r.groups.Add(r.open.partition.index, part, g)
			}
		}
	}
}

// madeBefore reports whether the flag ipoib has made the group that an mgid names.
// OpenSM takes that, and the group stays as it was made.
func (r *confReader) madeBefore(part *policy.Partition, g policy.MulticastGroup) bool {
	i := slices.IndexFunc(part.Multicast, func(x policy.MulticastGroup) bool { return x.MGID == g.MGID })
	if i < 0 {
		return false
	}
	was := part.Multicast[i]
	if g.TClass == 0 { // an mgid does not take it over from the definition
		was.TClass = 0
	}
	if was.Pos = g.Pos; was != g {
		r.Warn(g.Pos, "the group %v is made by ipoib already, and stays as it is: what is said here of its MTU, rate, sl, Q_Key, TClass or FlowLabel counts for nothing, as with OpenSM", g.MGID)
	}
	return true
}
