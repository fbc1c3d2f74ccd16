package resource_test

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// attempt is a change that is tried on a copy of the model. It goes on after a
// refusal and collects every reason there is: which of them comes first is not the
// model's to say.
type attempt struct {
	*model
	before *model
	by     resource.Caller
	req    resource.Request
	known  map[ib.PortGUID]bool
	why    map[resource.Reason]bool
	takes  bool
	made   bool // an offer
	// since is when a change was asked for that is carried out now; 0: not so.
	since   uint64
	history map[uint64]*model
}

func (a *attempt) no(r resource.Reason) { a.why[r] = true }

func (a *attempt) acts(tenant string) bool {
	return a.by.Tenant == tenant || a.by.Tenant == "provider"
}

// try tells what a request comes to: the model after it, or the reasons for which it
// may be refused.
func (m *model) try(r resource.Request, known map[ib.PortGUID]bool, history map[uint64]*model) (*model, map[resource.Reason]bool, bool) {
	a := &attempt{model: m.copy(), before: m, by: r.By, req: r, known: known, why: map[resource.Reason]bool{}, history: history}
	t, exists := m.tenants[r.By.Tenant]
	if !exists || r.By.ReadOnly {
		a.no(resource.Forbidden)
		return nil, a.why, false
	}
	if r.By.Keys.First != 0 {
		switch r.Change.(type) {
		case resource.PutPartition, resource.DeletePartition, resource.SetMembers, resource.RemoveMembers, resource.AmendPartition, resource.Consent, resource.Refuse:
		default:
			a.no(resource.Forbidden)
		}
	}
	lately := 0
	for _, at := range m.accepted[t.Name] {
		if r.At.Sub(at) < 60*time.Second {
			lately++
		}
	}
	if t.Quota.ChangesPerMinute > 0 && lately >= t.Quota.ChangesPerMinute {
		a.no(resource.TooFast)
	}
	if len(a.why) > 0 {
		return nil, a.why, false
	}
	a.change(r.Change)
	if len(a.why) > 0 {
		return nil, a.why, false
	}
	if offer, is := r.Change.(resource.OfferPorts); is && !t.ApproveRemovals {
		a.offered(offer, waits{by: r.By.Name, maker: m.maker(r.By)}, r.ID)
	}
	if _, second := r.Change.(resource.Approve); a.takes && t.ApproveRemovals && !second {
		n := m.copy()
		n.waiting[r.ID] = waits{by: r.By.Name, maker: m.maker(r.By), tenant: t.Name, keys: r.By.Keys, expires: r.At.Add(7 * 24 * time.Hour), change: r.Change, seen: r.Seen, rev: m.rev}
		return n, nil, true
	}
	return a.model, nil, a.made
}

func (m *model) maker(c resource.Caller) string {
	if t, is := m.tokens[c.Name]; is && t.tenant == c.Tenant {
		return t.maker
	}
	return c.Name
}

func (a *attempt) change(c resource.Change) {
	switch c := c.(type) {
	case resource.PutPartition:
		a.putPartition(c)
	case resource.DeletePartition:
		if p := a.find(c.PKey); p != nil && a.fresh(c.PKey) {
			if !a.acts(p.owner) {
				a.no(resource.Forbidden)
				return
			}
			a.dropPart(c.PKey)
		}
	case resource.SetMembers:
		a.setMembers(c)
	case resource.RemoveMembers:
		a.removeMembers(c)
	case resource.AmendPartition:
		a.amend(c)
	case resource.Consent:
		a.consent(c)
	case resource.Refuse:
		if x := a.request(c.PKey, c.Port); x != nil {
			if x.agreed.as == 0 {
				a.drop(c.PKey, c.Port)
			} else {
				x.ask, x.byPart = want{}, false
			}
		}
	case resource.PutToken:
		a.putToken(c)
	case resource.DeleteToken:
		if t, is := a.tokens[c.ID]; !is || !a.acts(t.tenant) {
			a.no(resource.NotFound)
		}
		a.dropToken(c.ID, c.KeepMade)
	case resource.Approve:
		a.approve(c)
	case resource.OfferPorts:
		a.offer(c)
	case resource.Reject:
		if w, is := a.waiting[c.ID]; !is || !waitSeen(a.by.Tenant, resource.KeyRange{}, w) {
			a.no(resource.NotFound)
		}
		delete(a.waiting, c.ID)
	case resource.Rollback:
		a.rollback(c)
	case resource.AcknowledgeAlarm:
		at := ack{a.by.Tenant, c.Alarm}
		_, known := a.acks[at]
		switch {
		case len(c.Alarm) != 16:
			a.no(resource.Invalid)
		case c.Until.IsZero() && !known:
			a.no(resource.NotFound)
		case c.Until.IsZero():
			delete(a.acks, at)
		case !c.Until.After(a.req.At) || c.Until.After(a.req.At.Add(90*24*time.Hour)):
			a.no(resource.Invalid)
		default:
			a.acks[at] = c.Until
		}
	default:
		if a.by.Tenant != "provider" {
			a.no(resource.Forbidden)
			return
		}
		a.byProvider(c)
	}
}

// find is a partition that the caller may know of.
func (a *attempt) find(k ib.PKeyBase) *part {
	if a.sees(a.by.Tenant, a.by.Keys, k) {
		return a.part(k)
	}
	if _, files := a.claims()[k]; files && a.by.Tenant == "provider" && a.by.Keys.First == 0 {
		a.no(resource.Conflict)
	} else {
		a.no(resource.NotFound)
	}
	return nil
}

func (a *attempt) fresh(k ib.PKeyBase) bool {
	stale := a.req.Seen != resource.Unseen && a.lastSeen(a.by.Tenant, a.by.Keys, k) > a.req.Seen
	if stale {
		a.no(resource.Stale)
	}
	return !stale
}

// later refuses to take what changed after it was asked for.
func (a *attempt) later(rev uint64) {
	if a.since != 0 && rev > a.since {
		a.no(resource.Stale)
	}
}

func (a *attempt) drop(k ib.PKeyBase, g ib.PortGUID) {
	i := slices.IndexFunc(a.mems, func(x mem) bool { return x.k == k && x.port == g })
	if a.mems[i].agreed.as != 0 {
		a.takes = true
	}
	a.later(a.memRev[slot{k, g}])
	a.mems = slices.Delete(slices.Clone(a.mems), i, i+1)
	owner := ""
	if p := a.part(k); p != nil {
		owner = p.owner
	}
	a.tombs[slot{k, g}] = tomb{owner: owner, at: a.req.At}
}

func (a *attempt) dropPart(k ib.PKeyBase) {
	a.later(a.partRev[k])
	for _, x := range slices.Clone(a.mems) {
		if x.k == k {
			a.drop(k, x.port)
		}
	}
	a.parts = slices.DeleteFunc(slices.Clone(a.parts), func(p part) bool { return p.k == k })
	a.takes = true
}

// sides tells for whom the caller speaks: the owner of the partition, and of the port.
func (a *attempt) sides(p *part, g ib.PortGUID) (ofPart, ofPort bool) {
	owner := a.owner(g)
	if a.by.Tenant == "provider" {
		own := owner == p.owner
		return own || p.owner == "provider", own || owner == "provider"
	}
	return p.owner == a.by.Tenant, owner == a.by.Tenant
}

func (a *attempt) setMembers(c resource.SetMembers) {
	p := a.find(c.PKey)
	if p == nil || !a.fresh(c.PKey) {
		return
	}
	if c.All && !a.acts(p.owner) {
		a.no(resource.Forbidden)
	}
	named := map[ib.PortGUID]bool{}
	for _, m := range c.Members {
		if named[m.Port] {
			a.no(resource.Invalid)
		}
		named[m.Port] = true
	}
	was := a.count(p.owner)
	for _, x := range slices.Clone(a.mems) {
		if c.All && x.k == c.PKey && !named[x.port] {
			a.drop(c.PKey, x.port)
		}
	}
	for _, m := range c.Members {
		ofPart, ofPort := a.sides(p, m.Port)
		if c.NoRequests && !ofPort {
			a.no(resource.Forbidden)
		}
		a.set(p, m.Port, want{m.Membership, m.Index0}, ofPart, ofPort)
	}
	a.quota(p.owner, was)
}

// count is how many members a tenant has agreed to in its partitions.
func (m *model) count(owner string) (n int) {
	for _, x := range m.mems {
		if p := m.part(x.k); p != nil && p.owner == owner && (x.agreed.as != 0 || x.byPart) {
			n++
		}
	}
	return n
}

func (a *attempt) quota(owner string, was int) {
	most := a.tenants[owner].Quota.Members
	if now := a.count(owner); most > 0 && now > most && now > was {
		a.no(resource.OverQuota)
	}
}

// portSide reports whether the owner of the port wants the member.
func (x mem) portSide() bool { return x.agreed.as != 0 || x.ask.as != 0 && !x.byPart }

// first reports whether the owner of the port wants the key at index 0.
func (x mem) first() bool { return x.agreed.index0 || x.ask.index0 && !x.byPart }

func (a *attempt) set(p *part, g ib.PortGUID, w want, ofPart, ofPort bool) {
	switch {
	case g == 0, w.as != policy.Full && w.as != policy.Limited:
		a.no(resource.Invalid)
		return
	case !ofPart && !ofPort:
		a.no(resource.Forbidden)
		return
	}
	var old mem
	x := a.mem(p.k, g)
	if x != nil {
		old = *x
	} else {
		a.mems = append(slices.Clone(a.mems), mem{k: p.k, port: g})
		x = &a.mems[len(a.mems)-1]
	}
	less := w.as <= old.agreed.as && (ofPort || !w.index0 || old.agreed.index0)
	met := old.ask == w && old.byPart != ofPart
	switch {
	case old.agreed.as != 0 && w == old.agreed:
		if old.byPart == ofPart || ofPart && ofPort {
			x.ask, x.byPart = want{}, false
		}
	case ofPart && ofPort, met, old.agreed.as != 0 && less:
		x.agreed, x.ask, x.byPart = w, want{}, false
	default:
		x.ask, x.byPart = w, ofPart
	}
	if *x == old {
		return
	}
	if x.agreed.as < old.agreed.as {
		a.takes = true
		a.later(a.memRev[slot{p.k, g}])
	}
	delete(a.tombs, slot{p.k, g})
	if ofPort {
		a.fits(*x, old)
	}
}

// fits holds a member that the owner of the port wants against the port.
func (a *attempt) fits(x, old mem) {
	t := a.tenants[a.owner(x.port)]
	if t.KnownPortsOnly && !a.known[x.port] {
		a.no(resource.NotFound)
	}
	n := 0
	for _, y := range a.mems {
		if y.port != x.port {
			continue
		}
		if y.k != x.k && y.first() && x.first() {
			a.no(resource.Conflict)
		}
		if y.portSide() {
			n++
		}
	}
	room := 127
	if a.known[x.port] {
		room = tableSize - 1
	}
	if !old.portSide() && (n > room || t.Quota.KeysPerPort > 0 && n > t.Quota.KeysPerPort) {
		a.no(resource.OverQuota)
	}
}

func (a *attempt) removeMembers(c resource.RemoveMembers) {
	p := a.find(c.PKey)
	if p == nil || !a.fresh(c.PKey) {
		return
	}
	any := false
	for _, g := range c.Ports {
		if x := a.mem(c.PKey, g); x != nil && a.seesMem(a.by.Tenant, a.by.Keys, *x) {
			any = true
			a.drop(c.PKey, g)
		}
	}
	if any && c.DeleteEmptied && a.acts(p.owner) && !slices.ContainsFunc(a.mems, func(x mem) bool { return x.k == c.PKey }) {
		a.dropPart(c.PKey)
	}
}

// request is a member that waits for the caller.
func (a *attempt) request(k ib.PKeyBase, g ib.PortGUID) *mem {
	p := a.find(k)
	if p == nil || !a.fresh(k) {
		return nil
	}
	x := a.mem(k, g)
	ofPart, ofPort := a.sides(p, g)
	if x == nil || !a.seesMem(a.by.Tenant, a.by.Keys, *x) || x.ask.as == 0 || x.byPart && !ofPort || !x.byPart && !ofPart {
		a.no(resource.NotFound)
		return nil
	}
	a.mems = slices.Clone(a.mems)
	return a.mem(k, g)
}

func (a *attempt) consent(c resource.Consent) {
	x := a.request(c.PKey, c.Port)
	if x == nil {
		return
	}
	if x.ask != (want{c.Membership, c.Index0}) {
		a.no(resource.Stale)
		return
	}
	p := a.part(c.PKey)
	was := a.count(p.owner)
	ofPart, ofPort := a.sides(p, c.Port)
	a.set(p, c.Port, x.ask, ofPart, ofPort)
	a.quota(p.owner, was)
}

var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

func (a *attempt) putPartition(c resource.PutPartition) {
	old, owner := a.part(c.PKey), c.Owner
	if owner == "" {
		if owner = a.by.Tenant; old != nil && a.acts(old.owner) {
			owner = old.owner
		}
	}
	if !a.acts(owner) {
		a.no(resource.Forbidden)
		return
	}
	t, exists := a.tenants[owner]
	if !exists {
		a.no(resource.NotFound)
		return
	}
	k := c.PKey
	if k == 0 {
		for k = 1; k < 0x7FFF && (a.part(k) != nil || a.taken(k, t) || !a.reaches(k)); k++ {
		}
		old = nil
		if k == 0x7FFF {
			a.no(resource.OverQuota)
			return
		}
	}
	if k > 0x7FFE {
		a.no(resource.Invalid)
		return
	}
	if old == nil || !a.acts(old.owner) {
		a.mayTake(k, t)
	}
	if !a.reaches(k) {
		a.no(resource.Forbidden)
	}
	if old != nil && (c.Create || old.owner != owner) {
		a.no(resource.Exists)
	}
	if !names.MatchString(c.Name) || c.Name == "default" || c.SL > 15 {
		a.no(resource.Invalid)
	}
	for _, p := range a.parts {
		if p.k != k && p.owner == owner && p.name == c.Name {
			a.no(resource.Exists)
		}
	}
	for _, f := range a.file.parts {
		if owner == "provider" && f.name == c.Name {
			a.no(resource.Exists)
		}
	}
	n := 0
	for _, p := range a.parts {
		if p.owner == owner {
			n++
		}
	}
	if old != nil {
		a.fresh(k)
	} else if t.Quota.Partitions > 0 && n >= t.Quota.Partitions {
		a.no(resource.OverQuota)
	}
	a.parts = slices.DeleteFunc(slices.Clone(a.parts), func(p part) bool { return p.k == k })
	a.parts = append(a.parts, part{k, c.Name, owner, c.SL, c.IPoIB})
	if c.Members != nil && len(a.why) == 0 {
		a.setMembers(resource.SetMembers{PKey: k, Members: c.Members, All: true})
	}
}

func (a *attempt) reaches(k ib.PKeyBase) bool {
	return a.by.Keys.First == 0 || a.by.Keys.First <= k && k <= a.by.Keys.Last
}

// mayTake collects why a tenant may not have a number.
func (a *attempt) mayTake(k ib.PKeyBase, t resource.Tenant) {
	for _, x := range a.tenants {
		in := x.Keys.First != 0 && x.Keys.First <= k && k <= x.Keys.Last
		if x.Name == t.Name && !in && t.Name != "provider" || x.Name != t.Name && in {
			a.no(resource.Forbidden)
		}
	}
	if _, files := a.claims()[k]; files {
		a.no(resource.Exists)
	}
	if a.heldBack(k, t.Name) {
		a.no(resource.Conflict)
	}
}

// heldBack reports whether another's ports may still have the key of a number.
func (a *attempt) heldBack(k ib.PKeyBase, owner string) bool {
	for s, x := range a.before.tombs {
		if now, still := a.tombs[s]; still && s.k == k && x.owner != owner && x.rev > a.req.Proved && now == x {
			return true
		}
	}
	return false
}

func (a *attempt) taken(k ib.PKeyBase, t resource.Tenant) bool {
	probe := &attempt{model: a.model, before: a.before, by: a.by, req: a.req, why: map[resource.Reason]bool{}}
	probe.mayTake(k, t)
	return len(probe.why) > 0
}

func (a *attempt) putToken(c resource.PutToken) {
	switch t := c.Token; {
	case !a.acts(t.Tenant):
		a.no(resource.Forbidden)
		return
	case a.tenants[t.Tenant].Name == "":
		a.no(resource.NotFound)
	default:
		if _, there := a.tokens[t.ID]; there {
			a.no(resource.Exists)
		}
		if !names.MatchString(t.ID) || !t.Expires.IsZero() && !t.Expires.After(a.req.At) {
			a.no(resource.Invalid)
		}
		if end := a.by.Expires; !end.IsZero() && (t.Expires.IsZero() || t.Expires.After(end)) {
			a.no(resource.Forbidden)
		}
	}
	maker := c.ID
	if a.by.Tenant == c.Tenant {
		maker = a.maker(a.by)
	}
	a.tokens[c.ID] = token{c.Tenant, maker, a.by.Name, c.Keys, c.Expires}
}

// dropToken ends a token, and those that it made, unless they are kept: then they count as
// made by who made the token.
func (a *attempt) dropToken(id string, keep bool) {
	by := a.tokens[id].by
	delete(a.tokens, id)
	maps.DeleteFunc(a.waiting, func(_ string, w waits) bool { return !keep && w.from != "" && w.by == id })
	for made, t := range a.tokens {
		switch {
		case t.by != id:
		case keep:
			t.by = by
			a.tokens[made] = t
		default:
			a.dropToken(made, false)
		}
	}
}

func (a *attempt) approve(c resource.Approve) {
	w, is := a.waiting[c.ID]
	if !is || !waitSeen(a.by.Tenant, resource.KeyRange{}, w) {
		a.no(resource.NotFound)
		return
	}
	if !a.acts(w.tenant) {
		a.no(resource.Forbidden)
		return
	}
	if w.from == "" && len(c.Into) > 0 {
		a.no(resource.Invalid)
	}
	if !a.req.At.Before(w.expires) {
		a.no(resource.Conflict)
		return
	}
	mine := []string{a.by.Name, a.maker(a.by)}
	if (a.by.Tenant == w.tenant || a.by.Tenant == w.from) && (slices.Contains(mine, w.by) || slices.Contains(mine, w.maker)) {
		a.no(resource.Forbidden)
		return
	}
	if w.from != "" {
		a.accept(w, c.Into)
		delete(a.waiting, c.ID)
		return
	}
	by := a.by
	a.by, a.req.Seen, a.since = resource.Caller{Name: w.by, Tenant: w.tenant, Keys: w.keys}, w.seen, w.rev
	a.change(w.change)
	if offer, is := w.change.(resource.OfferPorts); is {
		a.offered(offer, w, a.req.ID)
	}
	a.by = by
	delete(a.waiting, c.ID)
}
