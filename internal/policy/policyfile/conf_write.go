package policyfile

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// WriteConf writes p with the same meaning: on any fabric, what is read back resolves to the
// same members. The format knows ports by GUID and keyword only; the error, a
// *policy.Error, lists what p names otherwise, and whatever else the format cannot say.
// The name is for messages.
//
// allow_both is an option of OpenSM, not of the file: it must be given again when the
// file is read, which a comment in the file says.
func WriteConf(p *policy.Policy, name string) ([]byte, error) {
	w := confWriter{policy: p, groups: map[string]*policy.Group{}}
	for i := range p.Groups {
		w.groups[p.Groups[i].Name] = &p.Groups[i]
	}
	for _, a := range p.Aliases {
		w.Fault(a.Pos, "a policy without them: partitions.conf knows none", "alias GUIDs of port %v", a.Port)
	}
	if p.Default == policy.None {
		w.Fault(policy.Pos{}, "limited or full: in partitions.conf every port is in the default partition", "default: none")
	}
	if len(p.Apart) > 0 {
		w.Fault(policy.Pos{}, "a policy without it: partitions.conf knows none", "apart")
	}
	if p.AllowRaw {
		w.Fault(policy.Pos{}, "a policy without it: partitions.conf knows none", "raw: allow")
	}
	if asked, usual := p.Asked(), policy.DefaultSettings(); !asked.Equal(&usual) || len(p.Links) > 0 || len(p.Drained) > 0 {
		w.Fault(policy.Pos{}, "a policy without it: partitions.conf knows none", "settings")
	}
	for i := range p.Partitions {
		if x := &p.Partitions[i]; x.RateLimit != 0 || x.ServiceLevels != nil {
			w.Fault(x.Pos, "a policy without it: partitions.conf knows none", "rate_limit or service_ids of partition %q", x.Name)
		}
	}
	for _, t := range p.Trusted {
		w.Fault(t.Pos, "a policy without it: partitions.conf knows none", "trusted: %v", t.Selector)
	}
	w.WriteString("# OpenSM partition configuration, written by ibwarden\n")
	if p.AllowBoth {
		w.WriteString("# needs allow_both_pkeys TRUE (opensm -W)\n")
	}
	if p.Default == policy.Full || len(p.Partitions) == 0 {
		fmt.Fprintf(&w, "%s=%v : ALL=%v, SELF=full ;\n", policy.DefaultName, ib.PKeyBaseDefault, p.Default)
	}
	if err := w.state(); err != nil {
		return nil, err
	}
	// Automatic numbers come last: OpenSM gives them out while it reads, and
	// a number stated after that would be taken twice.
	for _, stated := range []bool{true, false} {
		for i := range w.policy.Partitions {
			if part := &w.policy.Partitions[i]; (part.PKey != 0) == stated {
				w.partition(part)
			}
		}
	}
	if err := w.Err(name); err != nil {
		return nil, err
	}
	return w.Bytes(), nil
}

// state states the numbers of partitions that are to be looked for from some
// number up: OpenSM looks from elsewhere.
func (w *confWriter) state() error {
	if !slices.ContainsFunc(w.policy.Partitions, func(p policy.Partition) bool { return p.PKey == 0 && p.From != 0 }) {
		return nil
	}
	keys, err := policy.Allocate(w.policy, nil)
	if err != nil {
		return err
	}
	stated := *w.policy
	stated.Partitions = slices.Clone(stated.Partitions)
	for i := range stated.Partitions {
		if part := &stated.Partitions[i]; part.PKey == 0 && part.From != 0 {
			part.PKey = keys[part.Name]
		}
	}
	w.policy = &stated
	return nil
}

type confWriter struct {
	bytes.Buffer
	policy.SourceNotes
	policy *policy.Policy
	groups map[string]*policy.Group
}

// partition writes a definition for each run of members with one Index0. The
// first of them has the multicast groups.
func (w *confWriter) partition(part *policy.Partition) {
	if bad := policy.BadName(part.Name); bad != "" {
		w.Fault(part.Pos, policy.NameRule, "%s for a partition", bad)
		return
	}
	if part.PKey == 0 && part.Name[0] >= '0' && part.Name[0] <= '9' {
		w.Fault(part.Pos, "a stated P_Key, or another name", "partition %q without P_Key: partitions.conf takes such a name for a P_Key", part.Name)
	}
	members, groups := w.members(part), part.Multicast
	for first := true; first || len(members) > 0; first = false {
		run := 0
		for run < len(members) && members[run].Index0 == members[0].Index0 {
			run++
		}
		w.definition(part, groups, members[:run])
		members, groups = members[run:], nil
	}
}

// definition writes one statement. OpenSM misreads a ';' on a line of its own
// and an mgid line without flags, so neither is written.
func (w *confWriter) definition(part *policy.Partition, groups []policy.MulticastGroup, members []policy.Member) {
	w.WriteString(part.Name)
	if part.PKey != 0 {
		fmt.Fprintf(w, "=%v", part.PKey)
	}
	if len(members) > 0 && members[0].Index0 {
		w.WriteString(",indx0")
	}
	if part.SL != 0 {
		fmt.Fprintf(w, ",sl=%d", part.SL)
	}
	// IPoIB groups must have the MTU and rate of the definition.
	if i := slices.IndexFunc(groups, policy.MulticastGroup.IsIPoIB); i >= 0 {
		fmt.Fprintf(w, ",mtu=%d,rate=%d", groups[i].MTU, groups[i].Rate)
	}
	// The broadcast group is made by a flag, unless its SL is one of its own.
	ipoib := slices.IndexFunc(groups, func(g policy.MulticastGroup) bool {
		return g.MGID == policy.Broadcast(policy.ScopeLink) && g.SL == part.SL
	})
	if ipoib >= 0 {
		g := groups[ipoib]
		fmt.Fprintf(w, ",ipoib,Q_Key=%#x,TClass=%d,FlowLabel=%d", uint32(g.QKey), g.TClass, g.FlowLabel)
	}
	w.WriteString(" :")
	for i, g := range groups {
		if i != ipoib {
			fmt.Fprintf(w, "\n\tmgid=%v,scope=%d,mtu=%d,rate=%d,sl=%d,Q_Key=%#x,TClass=%d,FlowLabel=%d",
				g.MGID, g.Scope(), g.MTU, g.Rate, g.SL, uint32(g.QKey), g.TClass, g.FlowLabel)
		}
	}
	for i, m := range members {
		if i > 0 {
			w.WriteByte(',')
		}
		who, keyword := m.Keyword()
		if !keyword {
			who = ib.PortGUID(m.GUID).String()
		}
		fmt.Fprintf(w, "\n\t%s=%v", who, m.Membership)
	}
	w.WriteString(" ;\n")
}

// members gives the members of part with their groups opened, and notes those
// that partitions.conf has no word for.
func (w *confWriter) members(part *policy.Partition) (members []policy.Member) {
	const want = "port GUIDs, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS and SELF only"
	add := func(m policy.Member, s policy.Selector, from string) {
		if _, keyword := s.Keyword(); !keyword && s.Kind != policy.SelectPort {
			w.Fault(m.Pos, want, "partition %q: %v%s cannot be written in partitions.conf", part.Name, s, from)
			return
		}
		m.Selector = s
		members = append(members, m)
	}
	for _, m := range part.Members {
		if m.Kind != policy.SelectGroup {
			add(m, m.Selector, "")
			continue
		}
		group := w.groups[m.Text]
		if group == nil {
			w.Fault(m.Pos, "a group of the policy", "no group %q", m.Text)
			continue
		}
		for _, s := range group.Selectors {
			add(m, s, fmt.Sprintf(" (in group %q)", m.Text))
		}
	}
	return members
}
