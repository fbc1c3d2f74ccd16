package policyfile

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// WriteYAML writes p with the same members in the same order.
func WriteYAML(p *policy.Policy) []byte {
	w := yamlWriter{policy: p}
	fmt.Fprintf(&w, "version: %d\ndefault: %v\n", Version, p.Default)
	if p.AllowBoth {
		w.WriteString("allow_both: true\n")
	}
	if p.AllowRaw {
		fmt.Fprintf(&w, "raw: %s\n", rawAllow)
	}
	if p.TrustDescriptions {
		w.WriteString("descriptions: trusted\n")
	}
	if p.MayBeAbsent {
		w.WriteString("may_be_absent: true\n")
	} else if p.AbsentWarns {
		fmt.Fprintf(&w, "may_be_absent: %s\n", absenceWarns)
	}
	if len(p.Trusted) > 0 {
		w.WriteString("trusted: [")
		for i, t := range p.Trusted {
			if i > 0 {
				w.WriteString(", ")
			}
			w.WriteString(w.selector(t.Selector))
		}
		w.WriteString("]\n")
	}
	writeSettings(&w.Buffer, p)
	if len(p.Groups) > 0 {
		w.WriteString("groups:\n")
	}
	for _, g := range p.Groups {
		fmt.Fprintf(&w, "  %s: ", quote(g.Name))
		if g.MayBeAbsent {
			w.WriteString("{may_be_absent: true, ports: ")
		}
		w.WriteString("[")
		for i, s := range g.Selectors {
			if i > 0 {
				w.WriteString(", ")
			}
			w.WriteString(w.selector(s))
		}
		w.WriteString("]")
		if g.MayBeAbsent {
			w.WriteString("}")
		}
		w.WriteString("\n")
	}
	writeAliases(&w.Buffer, p.Aliases)
	writeApart(&w.Buffer, p.Apart)
	own := slices.DeleteFunc(slices.Clone(p.Partitions), func(part policy.Partition) bool { return part.Service != "" })
	if len(own) > 0 {
		w.WriteString("partitions:\n")
	}
	for i := range own {
		writePartition(&w, &own[i])
	}
	writeServices(&w, p.Services)
	return w.Bytes()
}

// yamlWriter writes a policy.
type yamlWriter struct {
	bytes.Buffer
	policy *policy.Policy
}

// selector writes one selector, in braces where it may be absent by itself.
func (w *yamlWriter) selector(s policy.Selector) string {
	text := writeSelector(s)
	if !w.policy.Absentees[s] {
		return text
	}
	if s.Kind == policy.SelectPort {
		text = fmt.Sprintf("{port: %s}", text)
	}
	if s.Kind == policy.SelectPattern {
		text = fmt.Sprintf("{description: %s}", text)
	}
	return strings.TrimSuffix(text, "}") + ", may_be_absent: true}"
}

func writePartition(w *yamlWriter, part *policy.Partition) {
	fmt.Fprintf(w, "  - name: %s\n", quote(part.Name))
	if part.PKey != 0 {
		fmt.Fprintf(w, "    pkey: %v\n", part.PKey)
	}
	if part.SL != 0 {
		fmt.Fprintf(w, "    sl: %d\n", part.SL)
	}
	writePaths(&w.Buffer, part)
	if part.MayBeAbsent {
		w.WriteString("    may_be_absent: true\n")
	}
	writeMembers(w, part.Members)
	groups := part.Multicast
	if len(groups) > 0 && groups[0].MGID == policy.Broadcast(policy.ScopeLink) {
		fmt.Fprintf(w, "    ipoib: {%s}\n", parameters(groups[0]))
		groups = groups[1:]
	}
	if len(groups) > 0 {
		w.WriteString("    multicast:\n")
	}
	for _, g := range groups {
		fmt.Fprintf(w, "      - {mgid: \"%v\", %s}\n", g.MGID, parameters(g))
	}
}

func parameters(g policy.MulticastGroup) string {
	return fmt.Sprintf("mtu: %v, rate: %v, sl: %d, qkey: %#x, tclass: %d, flow_label: %d",
		g.MTU, g.Rate, g.SL, uint32(g.QKey), g.TClass, g.FlowLabel)
}

// writeMembers writes members by membership if that keeps their order.
func writeMembers(w *yamlWriter, members []policy.Member) {
	if len(members) == 0 {
		return
	}
	index0 := members[0].Index0
	mixed := slices.ContainsFunc(members, func(m policy.Member) bool { return m.Index0 != index0 })
	if index0 && !mixed {
		w.WriteString("    index0: true\n")
	}
	w.WriteString("    members:\n")
	if !mixed && slices.IsSortedFunc(members, compareMembers) {
		for i, word := range memberships {
			list := slices.Clone(members)
			list = slices.DeleteFunc(list, func(m policy.Member) bool { return m.Membership != policy.Membership(i+1) })
			if len(list) > 0 {
				fmt.Fprintf(w, "      %s:\n", word)
				writeList(w, "        ", list)
			}
		}
		return
	}
	for len(members) > 0 {
		first, run := members[0], 1
		for run < len(members) && members[run].Membership == first.Membership && members[run].Index0 == first.Index0 {
			run++
		}
		fmt.Fprintf(w, "      - as: %v\n", first.Membership)
		if mixed && first.Index0 {
			w.WriteString("        index0: true\n")
		}
		w.WriteString("        ports:\n")
		writeList(w, "          ", members[:run])
		members = members[run:]
	}
}

func writeList(w *yamlWriter, indent string, members []policy.Member) {
	for _, m := range members {
		fmt.Fprintf(w, "%s- %s\n", indent, w.selector(m.Selector))
	}
}

func writeSelector(s policy.Selector) string {
	switch s.Kind {
	case policy.SelectPort:
		return ib.PortGUID(s.GUID).String()
	case policy.SelectPlace:
		if s.GUID != 0 {
			return fmt.Sprintf("{port: %v, at: %s}", ib.PortGUID(s.GUID), strconv.Quote(s.At.String()))
		}
		return fmt.Sprintf("{at: %s}", strconv.Quote(s.At.String()))
	case policy.SelectNode:
		return fmt.Sprintf("{node: %v}", ib.NodeGUID(s.GUID))
	case policy.SelectGroup:
		return fmt.Sprintf("{group: %s}", quote(s.Text))
	case policy.SelectDescription:
		return fmt.Sprintf("{description: %s}", quote(s.Text))
	case policy.SelectPattern:
		return quote(s.Text)
	}
	word, _ := s.Keyword()
	return word
}

// plain is what needs no quotes, unless YAML takes it for something else.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// quote writes s as a scalar, with double quotes where it needs them; the
// escapes between them are Go's too.
func quote(s string) string {
	reserved := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if plain.MatchString(s) && !slices.Contains(reserved, strings.ToLower(s)) {
		return s
	}
	return strconv.Quote(s)
}
