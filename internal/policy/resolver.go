package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Resolver resolves one policy after another among the same end ports. What a
// policy has in common with the one before is not worked out again.
type Resolver struct {
	ports   *index
	members *memberSet

	// known are the partitions of the last resolution, by number, that made no
	// warning; they hold as long as groups, owners of aliases, dflt and both are
	// the policy's.
	known  map[ib.PKeyBase]known
	groups []Group
	owners map[ib.PortGUID]ib.PortGUID
	dflt   Membership
	both   bool
	// mayBeAbsent, absentWarns and absentees are the policy's.
	mayBeAbsent, absentWarns bool
	absentees                map[Selector]bool
	apart                    []GUIDRange
	met                      map[Selector]struct{}
}

// Remember has every name that finds a port entered into met, which the caller keeps from
// one Resolver to the next.
func (r *Resolver) Remember(met map[Selector]struct{}) { r.met = met }

// known is a partition that was resolved before: its definition and the result.
type known struct {
	name   string
	absent bool // MayBeAbsent
	// immutable is Partition.Immutable: members are the very slice of the policy.
	immutable bool
	members   []Member
	resolved  observed.Partition
}

// NewResolver takes the end ports of a fabric, in any order.
func NewResolver(ports []EndPort) *Resolver {
	x := newIndex(ports)
	return &Resolver{ports: x, members: newMemberSet(len(x.ports))}
}

// Resolve does what Policy.Resolve does. Its answers share lists with each
// other, which may not be changed.
func (r *Resolver) Resolve(p *Policy, keys map[string]ib.PKeyBase) (*Resolution, error) {
	x, err := newLookup(p, r.ports)
	if err != nil {
		return nil, err
	}
	x.met = r.met
	r.retain(p, x.owners)
	res := &Resolution{AllowBoth: p.AllowBoth, NoDefault: p.Default == None}
	if n := len(p.Partitions); n > 0 {
		res.Partitions = make([]observed.Partition, 0, n+1) // with the default one
	}
	parts := make(map[ib.PKeyBase]*Partition, len(p.Partitions)+1)
	noisy := make(map[ib.PKeyBase]bool)
	lifetime := p.Asked().SubnetTimeOut
	add := func(part *Partition, base ib.PKeyBase) error {
		order := 0
		if res.NoDefault {
			order = len(parts)
		}
		parts[base] = part
		if k, same := r.known[base]; same && k.holds(part) {
			res.Partitions = append(res.Partitions, part.describe(k.resolved, order, lifetime))
			return nil
		}
		before := len(x.warnings) + len(x.absent)
		resolved, err := p.resolve(x, r.members, part, base)
		if err != nil {
			r.forget()
			return err
		}
		res.Partitions = append(res.Partitions, part.describe(resolved, order, lifetime))
		noisy[base] = len(x.warnings)+len(x.absent) > before
		return nil
	}
	for i := range p.Partitions {
		part := &p.Partitions[i]
		base := cmp.Or(part.PKey, keys[part.Name])
		if !base.IsValid() {
			return nil, fmt.Errorf("partition %q has no P_Key, and none was allocated", part.Name)
		}
		if other, taken := parts[base]; taken {
			return nil, fmt.Errorf("partitions %q and %q have the same P_Key %v", other.Name, part.Name, base)
		}
		if err := add(part, base); err != nil {
			return nil, fmt.Errorf("partition %q: %w", part.Name, err)
		}
	}
	if _, stated := parts[ib.PKeyBaseDefault]; !stated && p.Default != None {
		if err := add(&Partition{Name: DefaultName}, ib.PKeyBaseDefault); err != nil {
			return nil, err
		}
	}
	if err := p.warnServices(x); err != nil {
		return nil, err
	}
	slices.SortFunc(res.Partitions, func(a, b observed.Partition) int { return cmp.Compare(a.Base, b.Base) })
	res.Aliases = p.resolveAliases(x)
	if res.Trusted, err = p.trusted(x); err != nil {
		return nil, err
	}
	res.Warnings, res.Absent = x.warnings, x.absent
	sortAbsent(res.Absent)
	SortFaults(res.Warnings)
	r.remember(res, parts, func(base ib.PKeyBase, part *Partition) bool {
		return noisy[base] || len(x.lacking) > 0 && slices.ContainsFunc(part.Members, func(m Member) bool {
			return m.Kind == SelectGroup && x.lacking[m.Text]
		})
	})
	return res, nil
}

// Differing lists the ports, ordered, of which the two resolutions say anything
// else: another membership in some partition, or another claim to index 0.
func (r *Resolution) Differing(s *Resolution) []ib.PortGUID {
	var out []ib.PortGUID
	for a, b := r.Partitions, s.Partitions; len(a)+len(b) > 0; {
		var x, y observed.Partition // either is empty when only the other has this number
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Base < b[0].Base:
			x, a = a[0], a[1:]
		case len(a) == 0 || b[0].Base < a[0].Base:
			y, b = b[0], b[1:]
		default:
			x, y, a, b = a[0], b[0], a[1:], b[1:]
		}
		out = differing(out, x.Full, y.Full)
		out = differing(out, x.Limited, y.Limited)
		out = differing(out, x.Index0, y.Index0)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// KeysOf are the keys of a port, one for each of its partitions: the full one
// where it has both.
func (r *Resolution) KeysOf(g ib.PortGUID) (keys []ib.PKey) {
	for _, x := range r.Partitions {
		if _, full := slices.BinarySearch(x.Full, g); full {
			keys = append(keys, x.Base.Full())
		} else if _, limited := slices.BinarySearch(x.Limited, g); limited {
			keys = append(keys, x.Base.Limited())
		}
	}
	return keys
}

// differing adds what only one of two sorted lists has.
func differing(out, a, b []ib.PortGUID) []ib.PortGUID {
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case j == len(b) || i < len(a) && a[i] < b[j]:
			out = append(out, a[i])
			i++
		case i == len(a) || b[j] < a[i]:
			out = append(out, b[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return out
}

// describe adds to a partition whose members are known what does not depend on them.
func (part *Partition) describe(r observed.Partition, order int, lifetime ib.TimeValue) observed.Partition {
	r.Order, r.SL, r.RateLimit, r.ByService, r.Multicast = order, part.SL, part.RateLimit, nil, nil
	for _, x := range part.ServiceLevels {
		r.ByService = append(r.ByService, x.ServiceRange)
	}
	for _, g := range part.Multicast {
		r.Multicast = append(r.Multicast, g.in(r.Base, lifetime))
	}
	return r
}

// holds reports whether part is made of the same. Where it stands in its file
// matters to warnings only.
func (k *known) holds(part *Partition) bool {
	if k.name != part.Name || k.absent != part.MayBeAbsent {
		return false
	}
	if k.immutable && part.Immutable && sameSlice(k.members, part.Members) {
		return true
	}
	return slices.EqualFunc(k.members, part.Members, func(a, b Member) bool {
		return a.Selector == b.Selector && a.Membership == b.Membership && a.Index0 == b.Index0
	})
}

// retain drops what is known when it does not hold for p.
func (r *Resolver) retain(p *Policy, owners map[ib.PortGUID]ib.PortGUID) {
	same := r.dflt == p.Default && r.both == p.AllowBoth && r.mayBeAbsent == p.MayBeAbsent && r.absentWarns == p.AbsentWarns && maps.Equal(r.absentees, p.Absentees) &&
		(sameSlice(r.apart, p.Apart) || slices.Equal(r.apart, p.Apart)) &&
		maps.Equal(r.owners, owners) && slices.EqualFunc(r.groups, p.Groups, func(a, b Group) bool {
		return a.Name == b.Name && a.MayBeAbsent == b.MayBeAbsent && slices.Equal(a.Selectors, b.Selectors)
	})
	if same {
		return
	}
	r.known, r.owners, r.apart = nil, owners, slices.Clone(p.Apart)
	r.dflt, r.both, r.groups = p.Default, p.AllowBoth, slices.Clone(p.Groups)
	r.mayBeAbsent, r.absentWarns, r.absentees = p.MayBeAbsent, p.AbsentWarns, maps.Clone(p.Absentees)
	for i := range r.groups {
		r.groups[i].Selectors = slices.Clone(p.Groups[i].Selectors)
	}
}

// remember keeps the partitions of a resolution that made no warning: a warning
// has to be made each time. Members are copied, for policies can be changed, unless
// the policy promises that they are not.
func (r *Resolver) remember(res *Resolution, parts map[ib.PKeyBase]*Partition, noisy func(ib.PKeyBase, *Partition) bool) {
	maps.DeleteFunc(r.known, func(base ib.PKeyBase, _ known) bool { return parts[base] == nil })
	if r.known == nil {
		r.known = make(map[ib.PKeyBase]known, len(parts))
	}
	for _, resolved := range res.Partitions {
		part := parts[resolved.Base]
		if noisy(resolved.Base, part) {
			delete(r.known, resolved.Base)
			continue
		}
		if k, same := r.known[resolved.Base]; same && k.holds(part) {
			continue
		}
		members := part.Members
		if !part.Immutable {
			members = slices.Clone(members)
		}
		r.known[resolved.Base] = known{part.Name, part.MayBeAbsent, part.Immutable, members, resolved}
	}
}

// forget makes the next resolution begin from nothing: one that was broken off
// leaves its members marked.
func (r *Resolver) forget() { r.known, r.members = nil, newMemberSet(len(r.ports.ports)) }
