package resource_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// byProvider is what the provider alone may do.
func (a *attempt) byProvider(c resource.Change) {
	switch c := c.(type) {
	case resource.PutTenant:
		a.putTenant(c)
	case resource.DeleteTenant:
		a.deleteTenant(c)
	case resource.AssignPorts:
		if _, exists := a.tenants[c.Tenant]; !exists {
			a.no(resource.NotFound)
			return
		}
		twice := map[ib.PortGUID]bool{}
		for _, p := range c.Ports {
			if twice[p.GUID] {
				a.no(resource.Invalid)
			}
			twice[p.GUID] = true
			a.assign(c.Tenant, p)
		}
	case resource.ReleasePorts:
		for _, g := range c.Ports {
			a.release(g)
		}
	case resource.MovePorts:
		a.move(c)
	case resource.AssignPool:
		a.assignPool(c)
	case resource.ReleasePool:
		i := slices.IndexFunc(a.pools, func(p pool) bool { return p.first == c.First })
		if i < 0 {
			a.no(resource.NotFound)
			return
		}
		if p := a.pools[i]; p.owner != "" {
			a.dropRange(p.first, p.last)
			a.pools = slices.Clone(a.pools)
			a.pools[i] = pool{first: p.first, last: p.last}
		}
	case resource.DrainSwitch:
		if c.Switch == 0 {
			a.no(resource.Invalid)
			return
		}
		a.drains[c.Switch] = true
	case resource.UndrainSwitch:
		if !a.drains[c.Switch] {
			a.no(resource.NotFound)
			return
		}
		delete(a.drains, c.Switch)
	case resource.PutFile:
		a.putFile(specOf(c.Text))
	case resource.ReturnPorts:
		a.giveBack()
	case resource.Trim:
		for s, t := range a.tombs {
			if a.req.At.Sub(t.at) > 400*24*time.Hour && t.rev <= a.req.Proved {
				delete(a.tombs, s)
			}
		}
		for id, w := range a.waiting {
			if !a.req.At.Before(w.expires) {
				delete(a.waiting, id)
			}
		}
		for at, until := range a.acks {
			if !a.req.At.Before(until) {
				delete(a.acks, at)
			}
		}
		for id, t := range a.tokens {
			if !t.expires.IsZero() && !a.req.At.Before(t.expires) {
				delete(a.tokens, id)
			}
		}
	default:
		panic(fmt.Sprintf("%T", c))
	}
}

func (a *attempt) putTenant(c resource.PutTenant) {
	lo, hi := c.Keys.First, c.Keys.Last
	if !names.MatchString(c.Name) || c.Quota.Members < 0 {
		a.no(resource.Invalid)
	}
	in := func(k ib.PKeyBase) bool { return lo != 0 && lo <= k && k <= hi }
	for _, p := range a.parts {
		if c.Name != "provider" && (p.owner == c.Name) != in(p.k) {
			a.no(resource.Conflict)
		}
	}
	if lo != 0 || hi != 0 {
		if c.Name == "provider" || lo == 0 || hi < lo || hi > 0x7FFE {
			a.no(resource.Invalid)
		}
		for _, t := range a.tenants {
			for k := lo; k <= hi && k != 0; k++ {
				if t.Name != c.Name && t.Keys.First != 0 && t.Keys.First <= k && k <= t.Keys.Last {
					a.no(resource.Exists)
				}
			}
		}
		for k := range a.claims() {
			if in(k) {
				a.no(resource.Conflict)
			}
		}
	}
	if old := a.tenants[c.Name]; c.Name == "provider" && old.ApproveRemovals && !c.ApproveRemovals {
		a.takes = true
	}
	a.tenants[c.Name] = c.Tenant
}

func (a *attempt) deleteTenant(c resource.DeleteTenant) {
	if c.Name == "provider" {
		a.no(resource.Forbidden)
		return
	}
	if _, exists := a.tenants[c.Name]; !exists {
		a.no(resource.NotFound)
	}
	for _, p := range a.parts {
		if p.owner == c.Name {
			a.no(resource.Conflict)
		}
	}
	for _, p := range a.ports {
		if p.owner == c.Name {
			a.no(resource.Conflict)
		}
	}
	for _, p := range a.pools {
		if p.owner == c.Name {
			a.no(resource.Conflict)
		}
	}
	for id, t := range a.tokens {
		if t.tenant == c.Name {
			delete(a.tokens, id)
		}
	}
	for id, w := range a.waiting {
		if w.tenant == c.Name || w.from == c.Name {
			delete(a.waiting, id)
		}
	}
	maps.DeleteFunc(a.acks, func(at ack, _ time.Time) bool { return at.tenant == c.Name })
	delete(a.tenants, c.Name)
}

// inFile reports whether the policy file names a port.
func (m *model) inFile(g ib.PortGUID) bool {
	return slices.ContainsFunc(m.file.parts, func(p filePart) bool { return slices.Contains(p.guids, g) })
}

func (a *attempt) assign(tenant string, p resource.Port) {
	if p.GUID == 0 {
		a.no(resource.Invalid)
		return
	}
	was := a.owner(p.GUID)
	said, spoken := a.ports[p.GUID]
	switch {
	case was == "" && !spoken, was == "" && a.req.Proved < said.rev, was != tenant && was != "" && was != "provider":
		a.no(resource.Conflict)
		return
	}
	for g, x := range a.ports {
		if g != p.GUID && p.Switch != 0 && x.place == int(p.SwitchPort) {
			a.no(resource.Exists)
		}
	}
	if was != tenant {
		if tenant != "provider" && a.inFile(p.GUID) {
			a.no(resource.Conflict)
		}
		for _, x := range slices.Clone(a.mems) {
			if x.port != p.GUID {
				continue
			}
			if x.agreed.as != 0 && was != "" {
				a.no(resource.Conflict)
			}
			a.drop(x.k, x.port)
		}
	}
	n := port{owner: tenant, place: int(p.SwitchPort), rev: said.rev}
	if n != said || !spoken {
		n.rev = 0
	}
	a.ports[p.GUID] = n
}

func (a *attempt) release(g ib.PortGUID) {
	switch was := a.owner(g); {
	case g == 0:
		a.no(resource.Invalid)
	case was == "":
	case was == "provider" && a.inFile(g):
		a.no(resource.Conflict)
	default:
		for _, x := range slices.Clone(a.mems) {
			if x.port == g {
				a.drop(x.k, g)
			}
		}
		a.ports[g] = port{}
	}
}

// move is a release, an assignment, and members of the new owner, all in one.
func (a *attempt) move(c resource.MovePorts) {
	if _, exists := a.tenants[c.Tenant]; !exists {
		a.no(resource.NotFound)
		return
	}
	keep := map[ib.PKeyBase]bool{}
	for _, j := range c.Into {
		p := a.find(j.PKey)
		if p == nil || !a.fresh(j.PKey) {
			return
		}
		if p.owner != c.Tenant {
			a.no(resource.Conflict)
		}
		if keep[j.PKey] {
			a.no(resource.Invalid)
		}
		keep[j.PKey] = true
	}
	was := a.count(c.Tenant)
	for _, g := range slices.Compact(slices.Sorted(slices.Values(c.Ports))) {
		owner, said := a.owner(g), a.ports[g]
		for _, x := range slices.Clone(a.mems) {
			if owner != "" && x.port == g && (owner != c.Tenant || !keep[x.k]) {
				a.drop(x.k, g)
			}
		}
		if owner != "" && owner != c.Tenant && owner != "provider" {
			a.ports[g] = port{owner: "provider", place: said.place}
		}
		p := resource.Port{GUID: g}
		if said.place != 0 {
			p.Switch, p.SwitchPort = 0x99, ib.PortNum(said.place)
		}
		a.assign(c.Tenant, p)
		for _, j := range c.Into {
			if len(a.why) == 0 {
				a.set(a.part(j.PKey), g, want{j.Membership, j.Index0}, true, true)
			}
		}
	}
	a.quota(c.Tenant, was)
}

// giveBack gives what was released and proved back to the provider.
func (a *attempt) giveBack() {
	for _, p := range a.pools {
		if p.owner == "" && p.rev <= a.req.Proved {
			a.dropRange(p.first, p.last)
		}
	}
	a.pools = slices.DeleteFunc(slices.Clone(a.pools), func(p pool) bool { return p.owner == "" && p.rev <= a.req.Proved })
	for g, p := range a.ports {
		if p.owner != "" || p.rev > a.req.Proved {
			continue
		}
		for _, x := range slices.Clone(a.mems) {
			if x.port == g {
				a.drop(x.k, g)
			}
		}
		if delete(a.ports, g); a.owner(g) != "provider" {
			a.ports[g] = port{owner: "provider"} // in a pool, but not the tenant's
		}
	}
}

// dropRange ends what is asked and agreed for GUIDs that have their owner by a pool.
func (a *attempt) dropRange(first, last ib.PortGUID) {
	for _, x := range slices.Clone(a.mems) {
		if _, spoken := a.ports[x.port]; !spoken && first <= x.port && x.port <= last {
			a.drop(x.k, x.port)
		}
	}
}

func (a *attempt) assignPool(c resource.AssignPool) {
	if _, exists := a.tenants[c.Tenant]; !exists {
		a.no(resource.NotFound)
		return
	}
	if c.First == 0 || c.Last < c.First {
		a.no(resource.Invalid)
		return
	}
	was := a.copy()
	var left []pool
	for _, p := range a.pools {
		if p.last < c.First || c.Last < p.first {
			left = append(left, p)
			continue
		}
		if p.owner != "" {
			a.no(resource.Exists)
		} else if a.req.Proved < p.rev || p.first < c.First || c.Last < p.last {
			a.no(resource.Conflict)
		}
	}
	a.pools = left
	for g := c.First; g <= c.Last; g++ {
		_, spoken := a.ports[g]
		if spoken {
			continue
		}
		if c.Tenant != "provider" && a.inFile(g) {
			a.no(resource.Conflict)
		}
		if was.owner(g) == c.Tenant {
			continue
		}
		for _, x := range slices.Clone(a.mems) {
			if x.port == g && x.agreed.as != 0 {
				a.no(resource.Conflict)
			} else if x.port == g {
				a.drop(x.k, g)
			}
		}
	}
	if c.Tenant != "provider" {
		a.pools = append(a.pools, pool{first: c.First, last: c.Last, owner: c.Tenant})
	}
}

// text is the policy file of a fileSpec, and specOf reads it again.
func (f fileSpec) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\ndefault: %v\nmay_be_absent: true\n", f.dflt)
	if len(f.parts) > 0 {
		b.WriteString("partitions:\n")
	}
	for _, p := range f.parts {
		var list []string
		if p.all {
			list = append(list, "ALL_CAS")
		}
		for _, g := range p.guids {
			list = append(list, fmt.Sprintf("%#x", uint64(g)))
		}
		number := ""
		if p.stated != 0 {
			number = fmt.Sprintf("pkey: %d, ", p.stated)
		}
		fmt.Fprintf(&b, "  - {name: %s, %smembers: {full: [%s]}}\n", p.name, number, strings.Join(list, ", "))
	}
	specs[b.String()] = f
	return b.String()
}

var specs = map[string]fileSpec{}

func specOf(text string) fileSpec { return specs[text] }

func (a *attempt) putFile(f fileSpec) {
	old := a.file
	claimed := a.claims()
	kept := map[string]ib.PKeyBase{}
	for _, p := range f.parts {
		if p.stated == 0 {
			kept[p.name] = a.numbers[p.name] // or 0, for one that is still to be given
		}
	}
	for i, p := range f.parts {
		if slices.ContainsFunc(f.parts[:i], func(q filePart) bool { return p.stated != 0 && q.stated == p.stated }) {
			a.no(resource.Invalid)
			return
		}
		for name, k := range a.numbers {
			if _, same := kept[name]; same && p.stated != 0 && p.stated == k {
				a.no(resource.Conflict)
			}
		}
		for _, x := range a.parts {
			switch {
			case p.stated == x.k, x.owner == "provider" && x.name == p.name:
				a.no(resource.Exists)
			}
		}
		for _, t := range a.tenants {
			if p.stated != 0 && t.Keys.First != 0 && t.Keys.First <= p.stated && p.stated <= t.Keys.Last {
				a.no(resource.Forbidden)
			}
		}
		for _, g := range p.guids {
			if a.owner(g) != "provider" {
				a.no(resource.Conflict)
			}
		}
		if p.stated != 0 && claimed[p.stated] == "" && a.heldBack(p.stated, "provider") {
			a.no(resource.Conflict)
		}
	}
	a.file, a.numbers = f, kept
	if sameText(old, f) {
		return
	}
	now := a.claims()
	for k := range claimed {
		if now[k] == "" {
			a.tombs[slot{k, 0}] = tomb{owner: "provider", at: a.req.At}
		}
	}
	less := old.dflt != f.dflt && (old.dflt == policy.Full || f.dflt == policy.None)
	for _, p := range old.parts {
		i := slices.IndexFunc(f.parts, func(x filePart) bool { return x.name == p.name })
		less = less || i < 0
		if i >= 0 {
			q := f.parts[i]
			less = less || p.all && !q.all || slices.ContainsFunc(p.guids, func(g ib.PortGUID) bool { return !slices.Contains(q.guids, g) })
		}
	}
	a.takes = a.takes || less
}

func sameText(a, b fileSpec) bool {
	return a.dflt == b.dflt && slices.EqualFunc(a.parts, b.parts, func(x, y filePart) bool {
		return x.name == y.name && x.stated == y.stated && x.all == y.all && slices.Equal(x.guids, y.guids)
	})
}

// rollback goes by the models of earlier revisions.
func (a *attempt) rollback(c resource.Rollback) {
	tenant := c.Tenant
	if tenant == "" && a.by.Tenant != "provider" {
		tenant = a.by.Tenant
	}
	if tenant != "" && !a.acts(tenant) {
		a.no(resource.Forbidden)
		return
	}
	if _, exists := a.tenants[tenant]; tenant != "" && !exists {
		a.no(resource.NotFound)
		return
	}
	if tenant != "" && c.Owners {
		a.no(resource.Invalid)
		return
	}
	then := a.history[c.To]
	target := map[string]bool{}
	for _, t := range c.Target {
		target[t.Key] = true
	}
	counts := map[string]int{}
	for name := range a.tenants {
		counts[name] = a.count(name)
	}
	if c.Owners {
		a.backOwners(then, target)
	}
	now := a.copy()
	for _, x := range now.mems {
		mine := tenant == "" || now.part(x.k).owner == tenant || now.owner(x.port) == tenant
		was := then.mem(x.k, x.port)
		if target[resource.MemberKey(x.k, x.port)] && mine && now.seesMem(a.by.Tenant, a.by.Keys, x) && (was == nil || x.agreed.as != 0 && was.agreed.as == 0) {
			a.freshThen(now, x.k)
			a.drop(x.k, x.port)
		}
	}
	for _, p := range now.parts {
		was := then.part(p.k)
		if target[resource.PartitionKey(p.k)] && (tenant == "" || p.owner == tenant) && (was == nil || was.owner != p.owner) {
			a.freshThen(now, p.k)
			a.dropPart(p.k)
		}
	}
	if target["file/policy"] && tenant == "" {
		a.putFile(then.file)
	}
	a.parts = slices.Clone(a.parts)
	for i, p := range a.parts {
		if was := then.part(p.k); was != nil && target[resource.PartitionKey(p.k)] && (tenant == "" || was.owner == tenant) && was.name != p.name {
			a.freshThen(now, p.k)
			a.parts[i].name = fmt.Sprint("was ", p.k)
		}
	}
	for _, p := range then.parts {
		is := a.part(p.k)
		if target[resource.PartitionKey(p.k)] && (tenant == "" || p.owner == tenant) && (is == nil || *is != p) {
			a.putPartition(resource.PutPartition{Partition: resource.Partition{PKey: p.k, Name: p.name, Owner: p.owner, SL: p.sl, IPoIB: p.ipoib}})
		}
	}
	for _, x := range then.mems {
		a.backMember(tenant, then, x, target)
	}
	for name, was := range counts {
		a.quota(name, was)
	}
}

// backOwners gives each port that changed hands back: out of all partitions of today, and bound to the
// place of then.
func (a *attempt) backOwners(then *model, target map[string]bool) {
	for g := ib.PortGUID(0); g < 0x100; g++ {
		if !target[resource.PortKey(g)] {
			continue
		}
		was, spoken := then.ports[g]
		if _, is := a.ports[g]; !spoken && !is {
			continue
		}
		if !spoken {
			was.owner = "provider"
			for _, p := range a.pools {
				if p.first <= g && g <= p.last {
					was.owner = p.owner
				}
			}
		}
		owner := a.owner(g)
		if _, exists := a.tenants[was.owner]; !exists || owner == "" || owner == was.owner {
			continue
		}
		for _, x := range slices.Clone(a.mems) {
			if x.port == g {
				a.drop(x.k, g)
			}
		}
		if owner != "provider" {
			a.ports[g] = port{owner: "provider", place: a.ports[g].place}
		}
		p := resource.Port{GUID: g}
		if was.place != 0 {
			p.Switch, p.SwitchPort = 0x99, ib.PortNum(was.place)
		}
		a.assign(was.owner, p)
	}
}

func (a *attempt) freshThen(now *model, k ib.PKeyBase) {
	if a.req.Seen != resource.Unseen && now.lastSeen(a.by.Tenant, a.by.Keys, k) > a.req.Seen {
		a.no(resource.Stale)
	}
}

// backMember brings one member back as far as the caller may.
func (a *attempt) backMember(tenant string, then *model, x mem, target map[string]bool) {
	owner, portOwner := then.part(x.k).owner, then.owner(x.port)
	if !target[resource.MemberKey(x.k, x.port)] || tenant != "" && owner != tenant && portOwner != tenant || !a.sees(a.by.Tenant, a.by.Keys, x.k) {
		return
	}
	w := x.agreed
	if w.as == 0 {
		w = x.ask
	}
	if is := a.mem(x.k, x.port); is != nil && (is.agreed.as != 0) == (x.agreed.as != 0) && (is.agreed == w || is.agreed.as == 0 && is.ask == w) {
		return
	}
	p := a.part(x.k)
	ofPart, ofPort := a.sides(p, x.port)
	ofPart = ofPart && (x.agreed.as != 0 || x.byPart) && owner == p.owner
	ofPort = ofPort && (x.agreed.as != 0 || !x.byPart) && portOwner == a.owner(x.port)
	if ofPart || ofPort {
		a.fresh(x.k)
		a.set(p, x.port, w, ofPart, ofPort)
	}
}

// amend is for callers who want all of what they ask at once, or nothing.
func (a *attempt) amend(c resource.AmendPartition) {
	t := a.tenants[a.by.Tenant]
	switch k := c.PKey; {
	case k < 1 || k > 0x7FFE:
		a.no(resource.Invalid)
		return
	case t.Name != "provider" && (t.Keys.First == 0 || k < t.Keys.First || k > t.Keys.Last || !a.reaches(k)):
		a.no(resource.Forbidden)
		return
	}
	p := a.part(c.PKey)
	if p == nil && c.Make != nil {
		a.putPartition(resource.PutPartition{Partition: resource.Partition{PKey: c.PKey, Owner: t.Name, Name: c.Make.Name}, Create: true})
	} else {
		if p = a.find(c.PKey); p == nil || !a.fresh(c.PKey) {
			return
		}
		n := resource.Partition{PKey: p.k, Owner: p.owner, Name: p.name, SL: p.sl, IPoIB: p.ipoib}
		if c.Name != "" {
			n.Name = c.Name
		}
		if c.SL != nil {
			n.SL = *c.SL
		}
		if n.Name != p.name || n.SL != p.sl {
			a.putPartition(resource.PutPartition{Partition: n})
		}
	}
	if len(a.why) > 0 {
		return
	}
	if len(c.Set) > 0 || c.All {
		a.setMembers(resource.SetMembers{PKey: c.PKey, Members: c.Set, All: c.All})
	}
	for _, m := range c.Set {
		if x := a.mem(c.PKey, m.Port); x == nil || x.agreed != (want{m.Membership, m.Index0}) {
			a.no(resource.Forbidden)
		}
	}
	if len(c.Remove) > 0 && len(a.why) == 0 {
		n := 0
		for _, x := range a.mems {
			if x.k == c.PKey {
				n++
			}
		}
		a.removeMembers(resource.RemoveMembers{PKey: c.PKey, Ports: c.Remove})
		if c.Empty && n > 0 && !slices.ContainsFunc(a.mems, func(x mem) bool { return x.k == c.PKey }) {
			a.dropPart(c.PKey)
		}
	}
}
