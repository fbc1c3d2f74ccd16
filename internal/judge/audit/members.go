package audit

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

func (a *auditor) staleKeys() {
	for _, p := range a.external() {
		if !a.info(p) {
			continue
		}
		keys := tenantKeys(a.keys(p))
		if p.Peer == nil && !p.IsUp() && len(keys) > 0 {
			a.found(place(p), "the link is %s; the P_KeyTable has %v", p.Info.PortState, keys)
		}
		if a.options.Earlier == nil || p.Peer == nil {
			continue
		}
		old := a.earlier(p)
		if old != nil && old.Peer != nil && endOf(old.Peer) != endOf(p.Peer) && p.FacesEnd() && len(keys) > 0 &&
			slices.Equal(keys, tenantKeys(a.earlierKeys(old))) {
			a.found(place(p), "%s is behind it where %s was, and the P_KeyTable has %v as before", p.Peer, old.Peer, keys)
		}
	}
}

func (a *auditor) idlePortOpen() {
	for _, p := range a.external() {
		if !a.info(p) || p.Peer != nil || p.IsUp() || p.Info.PortPhysicalState == smp.PhysDisabled {
			continue
		}
		keys := a.keys(p)
		if len(tenantKeys(keys)) > 0 || slices.Contains(keys, ib.PKeyDefaultFull) {
			a.found(place(p), "PortPhysicalState %s; the P_KeyTable has %v", p.Info.PortPhysicalState, keys)
		}
	}
}

// tenancy is the nodes, switches aside, that are full members of a partition
// other than the default one.
type tenancy struct {
	base    ib.PKeyBase
	members []*observed.Node // in the order of their port GUIDs
	in      map[*observed.Node]bool
}

func (t *tenancy) has(n *observed.Node) bool { return t.in[n] }

// lacks reports whether a member of t is not one of o.
func (t *tenancy) lacks(o *tenancy) bool {
	return slices.ContainsFunc(t.members, func(n *observed.Node) bool { return !o.has(n) })
}

// tenancies finds the partitions in which at least two nodes are full.
func (a *auditor) tenancies() []*tenancy {
	by := map[ib.PKeyBase]*tenancy{}
	for _, p := range a.hosts() {
		for _, k := range tenantKeys(a.keys(p)) {
			t := by[k.Base()]
			if t == nil {
				t = &tenancy{base: k.Base(), in: map[*observed.Node]bool{}}
				by[k.Base()] = t
			}
			if k.IsFull() && !t.has(p.Node) {
				t.members, t.in[p.Node] = append(t.members, p.Node), true
			}
		}
	}
	for _, t := range by {
		// The manager is in all of them where it has no default key: it says
		// nothing of whose they are.
		if n := inAll(a.f); n != nil && t.has(n) {
			t.members = slices.DeleteFunc(t.members, func(m *observed.Node) bool { return m == n })
			delete(t.in, n)
		}
	}
	var out []*tenancy
	for _, t := range by {
		if len(t.members) > 1 {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(x, y *tenancy) int { return cmp.Compare(x.base, y.base) })
	return out
}

// inAll is the node of the manager where its port has tenants' keys and none of
// the default partition: there is none then, and the manager is in every
// partition. Else it is nil.
func inAll(f *observed.Fabric) *observed.Node {
	p := f.Manager()
	if p == nil {
		return nil
	}
	keys := validKeys(readEntries(p))
	if len(keys) == 0 || holds(keys, ib.PKeyBaseDefault) {
		return nil
	}
	return p.Node
}

// givesFull reports whether the policy makes some port of n a full member.
func (a *auditor) givesFull(n *observed.Node, base ib.PKeyBase) bool {
	for i := range n.Ports {
		if _, full := a.allows(n.Ports[i].GUID, base); full && n.Ports[i].GUID != 0 {
			return true
		}
	}
	return false
}

func (a *auditor) bridgeHost() {
	of := map[*observed.Node][]*tenancy{}
	for _, t := range a.tenancies() {
		for _, n := range t.members {
			of[n] = append(of[n], t)
		}
	}
	for _, n := range a.f.Nodes {
		for i, x := range of[n] {
			for _, y := range of[n][i+1:] {
				if x.lacks(y) && y.lacks(x) && !(a.givesFull(n, x.base) && a.givesFull(n, y.base)) {
					a.found(nodePlace(n), "full in %s, with %d nodes, and in %s, with %d", x.base, len(x.members), y.base, len(y.members))
				}
			}
		}
	}
}

func (a *auditor) sharedFull() {
	all := a.tenancies()
	of := map[*observed.Node][]*tenancy{}
	for _, t := range all {
		for _, n := range t.members {
			of[n] = append(of[n], t)
		}
	}
	for _, shared := range all {
		x, y := joinedBy(shared, of)
		if x != nil {
			a.found("partition "+shared.base.String(), "%s and %s are full in it, and each in a partition without the other", nodePlace(x), nodePlace(y))
		}
	}
}

// joinedBy finds two full members of a partition who are each full in another
// one that the other is not in. One member of each set of other partitions
// stands for all who have the same.
func joinedBy(shared *tenancy, of map[*observed.Node][]*tenancy) (x, y *observed.Node) {
	var kinds []*observed.Node
	others := func(n *observed.Node) []*tenancy {
		return slices.DeleteFunc(slices.Clone(of[n]), func(t *tenancy) bool { return t == shared })
	}
	for _, n := range shared.members {
		if !slices.ContainsFunc(kinds, func(k *observed.Node) bool { return slices.Equal(others(k), others(n)) }) {
			kinds = append(kinds, n)
		}
	}
	apart := func(p, q *observed.Node) bool {
		return slices.ContainsFunc(others(p), func(t *tenancy) bool { return !t.has(q) })
	}
	for i, p := range kinds {
		for _, q := range kinds[i+1:] {
			if apart(p, q) && apart(q, p) {
				return p, q
			}
		}
	}
	return nil, nil
}

func (a *auditor) defaultMembers() {
	for _, p := range a.f.EndPorts() {
		wanted := a.managers()[p.GUID]
		if a.intent.Partitions != nil {
			_, wanted = a.allows(p.GUID, ib.PKeyBaseDefault)
		}
		full := slices.Contains(a.keys(p), ib.PKeyDefaultFull)
		switch {
		case full && !wanted:
			a.found(place(p), "holds %s but should not", ib.PKeyDefaultFull)
		case !full && wanted && p.PKeysKnown() && (a.intent.Partitions != nil || a.someLimited()):
			a.found(place(p), "does not hold %s: limited members cannot talk to it", ib.PKeyDefaultFull)
		}
	}
}

// someLimited reports whether some port is a limited member of the default
// partition.
func (a *auditor) someLimited() bool {
	return slices.ContainsFunc(a.f.EndPorts(), func(p *observed.Port) bool {
		return slices.Contains(validKeys(readEntries(p)), ib.PKeyDefaultLimited)
	})
}

// indexZero finds ports that have keys, and none at index 0. One that has none at
// all is in no partition.
func (a *auditor) indexZero() {
	for _, p := range a.hosts() {
		if entries := a.entries(p); len(entries) > 0 && p.PKeyBlockRead(0) && !p.PKeys[0].IsValid() {
			a.found(place(p), "P_KeyTable[0] is %s", p.PKeys[0])
		}
	}
}

func (a *auditor) invalidEntries() {
	for _, p := range a.f.EndPorts() {
		at := map[ib.PKey]int{}
		for _, e := range a.entries(p) {
			if first, twice := at[e.key]; twice {
				a.found(place(p), "P_KeyTable[%d] and [%d] are both %s", first, e.index, e.key)
			} else if at[e.key] = e.index; !e.key.IsValid() {
				a.found(place(p), "P_KeyTable[%d] is %s", e.index, e.key)
			}
		}
	}
}

// membersOf are the hosts of each partition but the default one, without the
// manager where it is in all of them.
func membersOf(f *observed.Fabric) map[ib.PKeyBase]map[ib.PortGUID]bool {
	out := map[ib.PKeyBase]map[ib.PortGUID]bool{}
	manager := inAll(f)
	for _, p := range f.EndPorts() {
		if p.Node == manager {
			continue
		}
		for _, k := range tenantKeys(validKeys(readEntries(p))) {
			if p.Node.Switch == nil {
				if out[k.Base()] == nil {
					out[k.Base()] = map[ib.PortGUID]bool{}
				}
				out[k.Base()][p.GUID] = true
			}
		}
	}
	return out
}

func (a *auditor) keyChangedHands() {
	for _, p := range a.hosts() {
		a.entries(p)
	}
	for _, p := range a.options.Earlier.EndPorts() {
		a.earlierKeys(p)
	}
	if slices.ContainsFunc(a.hosts(), unreadKeys) || slices.ContainsFunc(a.options.Earlier.EndPorts(), unreadKeys) {
		return // who holds a key now, or did then, is not known
	}
	now, then := membersOf(a.f), membersOf(a.options.Earlier)
	for base := ib.PKeyBase(1); base < ib.PKeyBaseDefault; base++ {
		if len(now[base]) == 0 || len(then[base]) == 0 {
			continue
		}
		kept := 0
		for g := range then[base] {
			if now[base][g] {
				kept++
			}
		}
		if kept == 0 {
			a.found("partition "+base.String(), "%d ports hold it, and none of the %d that did before", len(now[base]), len(then[base]))
		}
	}
}

func (a *auditor) switchInTenant() {
	for _, n := range a.f.Switches() {
		a.foreignTenantKeys(&n.Ports[0])
	}
}

func (a *auditor) routerInTenant() {
	for _, p := range a.hosts() {
		if p.Node.Type() == ib.NodeRouter {
			a.foreignTenantKeys(p)
		}
	}
}

// foreignTenantKeys reports tenant keys at a port that belongs to no tenant.
func (a *auditor) foreignTenantKeys(p *observed.Port) {
	for _, e := range a.entries(p) {
		wanted, _ := a.allows(p.GUID, e.key.Base())
		if e.key.IsValid() && e.key.Base() != ib.PKeyBaseDefault && !wanted {
			a.found(place(p), "P_KeyTable[%d] is %s", e.index, e.key)
		}
	}
}

func (a *auditor) virtualPorts() {
	for _, p := range a.hosts() {
		if a.info(p) && p.Info.CapabilityMask.Has(smp.CapHasCapabilityMask2) && p.Info.CapabilityMask2.Has(smp.Cap2Virtualization) {
			a.unknown(place(p), "CapabilityMask2 announces virtual ports; their P_KeyTables are not read here")
		}
	}
}
