package policyfile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// tenantsMax is the most tenants of one service.
const tenantsMax = policy.PartitionsMax

func (r *yamlReader) services(node ast.Node) {
	names := map[string]policy.Pos{}
	for _, v := range r.List(node, "services") {
		if r.Full() {
			return
		}
		r.service(v, names)
	}
}

// service reads one service; names are those of the services so far.
func (r *yamlReader) service(node ast.Node, names map[string]policy.Pos) {
	s := policy.Service{Pos: YAMLPos(node)}
	var offered, to, numbers, ipoib ast.Node
	keep := func(to *ast.Node) func(ast.Node) { return func(v ast.Node) { *to = v } }
	r.Fields(node, "a service", map[string]func(ast.Node){
		"name": func(v ast.Node) {
			t, _ := r.Scalar(v, "name", policy.NameRule)
			s.Name, s.Pos = t.S, t.Pos
		},
		"pkey":          func(v ast.Node) { s.From = ib.PKeyBase(r.Numeral(v, "pkey", 1, uint64(ib.PKeyBaseMax-1))) },
		"pkeys":         keep(&numbers),
		"sl":            func(v ast.Node) { s.SL = ib.SL(r.Numeral(v, "sl", 0, policy.SLMax)) },
		"rate_limit":    func(v ast.Node) { s.RateLimit = r.rate(v, "rate_limit") },
		"offered_by":    keep(&offered),
		"to":            keep(&to),
		"ipoib":         keep(&ipoib),
		"may_be_absent": func(v ast.Node) { s.MayBeAbsent = r.Truth(v, "may_be_absent") },
	})
	if bad := policy.BadName(s.Name); bad != "" {
		r.Fault(s.Pos, policy.NameRule, "%s for a service", bad)
		return
	}
	if first, again := names[s.Name]; again {
		r.Fault(s.Pos, "each name once", "service %q again, as at %v", s.Name, first)
		return
	}
	names[s.Name] = s.Pos
	if offered == nil || to == nil {
		r.Fault(s.Pos, "name, offered_by and to", "an incomplete service")
		return
	}
	if len(r.List(to, "to")) == 0 {
		r.Fault(YAMLPos(to), "at least one partition or group", "a service to nobody")
		return
	}
	seen := map[policy.Selector]policy.Pos{}
	for _, item := range r.List(offered, "offered_by") {
		if x, ok := r.selector(item, true); ok && r.once(seen, x, YAMLPos(item)) {
			s.OfferedBy, s.At = append(s.OfferedBy, x), append(s.At, YAMLPos(item))
		}
	}
	r.tenants(&s, to)
	if numbers != nil {
		r.numbers(&s, numbers)
	}
	if ipoib != nil {
		part := policy.Partition{Name: s.Name, SL: s.SL, RateLimit: s.RateLimit}
		r.ipoib(ipoib, &part)
		s.Multicast = part.Multicast
		if len(s.Multicast) > 0 && s.Multicast[0].Scope() != policy.ScopeLink {
			r.Fault(YAMLPos(ipoib), "scope: link", "another scope for a service")
		}
	}
	r.addService(s)
}

// tenants reads to whom a service is offered.
func (r *yamlReader) tenants(s *policy.Service, node ast.Node) {
	seen := map[string]policy.Pos{}
	for i, item := range r.List(node, "to") {
		if i == tenantsMax {
			r.Fault(YAMLPos(item), "fewer", "a service to more than %d tenants", tenantsMax)
			return
		}
		t, ok := r.Scalar(item, "a tenant", "the name of a partition or group")
		if !ok {
			continue
		}
		if first, again := seen[t.S]; again {
			r.Fault(t.Pos, "each tenant once", "tenant %q again, as at %v", t.S, first)
			continue
		}
		seen[t.S] = t.Pos
		s.To = append(s.To, policy.Tenant{Name: t.S, Pos: t.Pos})
	}
}

// numbers reads the numbers that are stated for tenants.
func (r *yamlReader) numbers(s *policy.Service, node ast.Node) {
	r.Fields(node, "pkeys", map[string]func(ast.Node){"": func(pair ast.Node) {
		v := pair.(*ast.MappingValueNode)
		name := v.Key.(*ast.StringNode).Value
		for i := range s.To {
			if s.To[i].Name == name {
				s.To[i].PKey = ib.PKeyBase(r.Numeral(v.Value, "pkey", 1, uint64(ib.PKeyBaseMax-1)))
				return
			}
		}
		r.Fault(YAMLPos(v.Key), "a tenant that the service is offered to", "tenant %q", name)
	}})
}

// addService adds a service whose tenants are all there, and checks the names
// and numbers of its partitions against the others.
func (r *yamlReader) addService(s policy.Service) {
	var known []policy.Tenant
	for _, t := range s.To {
		_, named := r.names[t.Name]
		switch {
		case r.ofServices[t.Name]:
			r.Fault(t.Pos, "the name of a partition or group", "%q is the partition of a service", t.Name)
		case !named && !r.groupNames[t.Name]:
			r.Fault(t.Pos, "the name of a partition or group", "no partition or group %q%s", t.Name,
				names.DidYouMean(t.Name, slices.Sorted(maps.Keys(r.tenantNames()))))
		default:
			known = append(known, t)
		}
	}
	s.To = known
	first := len(r.policy.Partitions)
	if err := r.policy.AddService(s); err != nil {
		r.Fault(s.Pos, "the names of partitions or groups", "%v", err)
		return
	}
	for i := range r.policy.Partitions[first:] {
		part := &r.policy.Partitions[first+i]
		r.identify(part)
		r.ofServices[part.Name] = true
		for range part.Members {
			if r.members++; r.members == policy.MembersMax+1 {
				r.Fault(part.Pos, "fewer", "more than %d selectors", policy.MembersMax)
			}
		}
	}
	if len(r.policy.Partitions) > policy.PartitionsMax {
		r.Fault(s.Pos, "fewer", "more than %d partitions, those of services among them", policy.PartitionsMax)
	}
}

// tenantNames are the partitions and groups to which a service can be offered.
func (r *yamlReader) tenantNames() map[string]bool {
	all := maps.Clone(r.groupNames)
	for name := range r.names {
		all[name] = !r.ofServices[name]
	}
	maps.DeleteFunc(all, func(_ string, can bool) bool { return !can })
	return all
}

func writeServices(w *yamlWriter, services []policy.Service) {
	if len(services) > 0 {
		w.WriteString("services:\n")
	}
	for i := range services {
		s := &services[i]
		fmt.Fprintf(w, "  - name: %s\n", quote(s.Name))
		if s.From != 0 {
			fmt.Fprintf(w, "    pkey: %v\n", s.From)
		}
		stated := ""
		for _, t := range s.To {
			if t.PKey != 0 {
				stated += fmt.Sprintf(", %s: %v", quote(t.Name), t.PKey)
			}
		}
		if stated != "" {
			fmt.Fprintf(w, "    pkeys: {%s}\n", stated[2:])
		}
		if s.SL != 0 {
			fmt.Fprintf(w, "    sl: %d\n", s.SL)
		}
		if s.RateLimit != 0 {
			fmt.Fprintf(w, "    rate_limit: %v\n", s.RateLimit)
		}
		if s.MayBeAbsent {
			w.WriteString("    may_be_absent: true\n")
		}
		w.WriteString("    offered_by:\n")
		if len(s.OfferedBy) == 0 {
			w.WriteString("      []\n")
		}
		for _, x := range s.OfferedBy {
			fmt.Fprintf(w, "      - %s\n", w.selector(x))
		}
		w.WriteString("    to: [")
		for n, t := range s.To {
			if n > 0 {
				w.WriteString(", ")
			}
			w.WriteString(quote(t.Name))
		}
		w.WriteString("]\n")
		if len(s.Multicast) > 0 {
			fmt.Fprintf(w, "    ipoib: {%s}\n", parameters(s.Multicast[0]))
		}
	}
}
