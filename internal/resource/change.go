package resource

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Change is something that a caller asks for. Its JSON form, with Action, is what
// the history and waiting approvals keep.
type Change interface {
	// Action names the change in the audit log.
	Action() string
	plan(*draft) error
}

// Request is a change with what goes for every change.
type Request struct {
	Change Change
	By     Caller
	At     time.Time
	Why    string
	// Seen is the revision of the objects that the caller has seen: what changed
	// after it makes the change stale. Unseen for callers who say nothing of it.
	Seen uint64
	// Proved is the last revision that was proved on the fabric.
	Proved uint64
	// ID names what the change makes, if it makes something that needs a name:
	// random, from the server.
	ID string
}

// Unseen is the Request.Seen of callers who cannot say what they have seen, such as
// those of UFM's calls.
const Unseen = ^uint64(0)

// Plan checks a request and returns what it does. The state is as before. The error
// is a *Refusal.
func (s *State) Plan(r Request) (Diff, error) {
	d := &draft{State: s, Request: r, at: map[string]int{}}
	err := d.check()
	if err == nil {
		err = r.Change.plan(d)
	}
	for _, e := range slices.Backward(d.undo) {
		s.set(e)
	}
	if err != nil {
		return Diff{}, err
	}
	return d.diff(), nil
}

// draft is a change that is being planned: its edits are made in the state, and
// taken back at the end.
type draft struct {
	*State
	Request
	undo  []Edit
	edits []Edit
	at    map[string]int // index in edits by key
	words []string
}

// put and remove edit one object; say adds a sentence to the diff.
func (d *draft) put(o Object)      { d.edit(o.Key(), o) }
func (d *draft) remove(key string) { d.edit(key, nil) }

func (d *draft) say(format string, args ...any) {
	d.words = append(d.words, fmt.Sprintf(format, args...))
}

func (d *draft) edit(key string, after Object) {
	before := d.objects[key]
	if before == nil && after == nil {
		return
	}
	d.undo = append(d.undo, Edit{Key: key, Before: after, After: before})
	d.set(Edit{Key: key, Before: before, After: after})
	if i, again := d.at[key]; again {
		d.edits[i].After = after
		return
	}
	d.at[key] = len(d.edits)
	d.edits = append(d.edits, Edit{Key: key, Before: before, After: after})
}

// diff is what remains of the edits: an object that is as before is not in it.
func (d *draft) diff() Diff {
	out := Diff{Words: d.words}
	for _, e := range d.edits {
		if !same(e.Before, e.After) {
			out.Edits = append(out.Edits, e)
		}
	}
	return out
}

func same(a, b Object) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// check is what goes for every change.
func (d *draft) check() error {
	t := d.tenants[d.By.Tenant]
	switch {
	case t == nil:
		return refuse(Forbidden, "", "%s acts for tenant %q, which does not exist", d.By.Name, d.By.Tenant)
	case d.By.ReadOnly:
		return refuse(Forbidden, "", "%s may only read", d.By.Name)
	}
	if most := t.Quota.ChangesPerMinute; most > 0 && len(d.within(t.Name, d.At)) >= most {
		return refuse(TooFast, "", "tenant %s has made %d changes in the last minute: want at most %d", t.Name, most, most)
	}
	return nil
}

// provider refuses callers that do not act for the provider.
func (d *draft) provider() error {
	if !d.By.IsProvider() {
		return refuse(Forbidden, "", "%s acts for tenant %s: only the provider may do this", d.By.Name, d.By.Tenant)
	}
	return nil
}

// acts reports whether the caller may act for a tenant: as that tenant, or as the
// provider.
func (d *draft) acts(tenant string) bool { return d.By.Tenant == tenant || d.By.IsProvider() }

// fresh refuses a change of a partition that changed after the caller saw it.
func (d *draft) fresh(k ib.PKeyBase) error {
	if d.Seen != Unseen && d.touched[k] > d.Seen {
		return refuse(Stale, "", "partition %v changed in revision %d, after revision %d that you saw", k, d.touched[k], d.Seen)
	}
	return nil
}

// partition is the partition that a caller wants to change, or a refusal that tells
// of nothing that he may not see.
func (d *draft) partition(k ib.PKeyBase) (*Partition, error) {
	p := d.partitions[k]
	if p == nil || !d.Sees(d.By, k) {
		if name, claimed := d.Claimed(k); claimed && d.By.IsProvider() {
			return nil, refuse(Conflict, "pkey", "%v is %q of the policy file: change the file", k, name)
		}
		return nil, refuse(NotFound, "pkey", "no partition %v", k)
	}
	return p, d.fresh(k)
}

// owned is a partition that the caller may change as its owner.
func (d *draft) ownedPartition(k ib.PKeyBase) (*Partition, error) {
	p, err := d.partition(k)
	if err == nil && !d.acts(p.Owner) {
		return nil, refuse(Forbidden, "pkey", "partition %v is not %s's", k, d.By.Tenant)
	}
	return p, err
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

// nameRule is what goodName asks of the name of a tenant or partition.
const nameRule = "1 to 40 letters, digits, '_', '.' or '-', the first a letter or digit"

// PutTenant makes a tenant, or changes it.
type PutTenant struct{ Tenant }

// Action implements Change.
func (PutTenant) Action() string { return "put tenant" }

func (c PutTenant) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	if !goodName.MatchString(c.Name) {
		return refuse(Invalid, "name", "%q: want %s", c.Name, nameRule)
	}
	if c.Name == Provider && c.Keys.First != 0 {
		return refuse(Invalid, "keys", "%v: the provider has every key that no tenant has", c.Keys)
	}
	if c.Keys.First != 0 && (!c.Keys.First.IsValid() || c.Keys.Last < c.Keys.First || c.Keys.Last >= ib.PKeyBaseDefault) {
		return refuse(Invalid, "keys", "%v: want a first and a last number from 0x0001 to 0x7ffe", c.Keys)
	}
	for _, t := range d.Tenants() {
		if t.Name != c.Name && c.Keys.First != 0 && t.Keys.First != 0 && t.Keys.First <= c.Keys.Last && c.Keys.First <= t.Keys.Last {
			return refuse(Exists, "keys", "%v: tenant %s has %v", c.Keys, t.Name, t.Keys)
		}
	}
	for _, p := range d.State.Partitions("") {
		if p.Owner == c.Name && c.Name != Provider && !c.Keys.Has(p.PKey) || p.Owner != c.Name && c.Keys.Has(p.PKey) {
			return refuse(Conflict, "keys", "%v: partition %v is %s's", c.Keys, p.PKey, p.Owner)
		}
	}
	q := c.Quota
	if q.Partitions < 0 || q.Members < 0 || q.KeysPerPort < 0 || q.ChangesPerMinute < 0 {
		return refuse(Invalid, "quota", "%+v: want numbers from 0", q)
	}
	t := c.Tenant
	if d.tenants[c.Name] == nil {
		d.say("tenant %s is made, with the keys %v", c.Name, c.Keys)
	} else {
		d.say("tenant %s is changed, with the keys %v", c.Name, c.Keys)
	}
	d.put(&t)
	return nil
}

// DeleteTenant removes a tenant that owns nothing any more. Its tokens go with it.
type DeleteTenant struct {
	Name string `json:"name"`
}

// Action implements Change.
func (DeleteTenant) Action() string { return "delete tenant" }

func (c DeleteTenant) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	switch {
	case c.Name == Provider:
		return refuse(Forbidden, "name", "the provider cannot be deleted")
	case d.tenants[c.Name] == nil:
		return refuse(NotFound, "name", "no tenant %q", c.Name)
	case len(d.owned[c.Name]) > 0:
		return refuse(Conflict, "name", "tenant %s has %d partitions: delete them first", c.Name, len(d.owned[c.Name]))
	}
	for _, p := range d.Ports() {
		if p.Owner == c.Name {
			return refuse(Conflict, "name", "tenant %s has port %v: release it first", c.Name, p.GUID)
		}
	}
	for _, t := range d.Tokens(c.Name) {
		d.remove(t.Key())
	}
	d.remove(key(KindTenant, c.Name))
	d.say("tenant %s is deleted, with its tokens", c.Name)
	return nil
}

// PutToken makes a token.
type PutToken struct{ Token }

// Action implements Change.
func (PutToken) Action() string { return "create token" }

func (c PutToken) plan(d *draft) error {
	switch {
	case d.tenants[c.Tenant] == nil && d.By.IsProvider():
		return refuse(NotFound, "tenant", "no tenant %q", c.Tenant)
	case !d.acts(c.Tenant):
		return refuse(Forbidden, "tenant", "%s acts for tenant %s", d.By.Name, d.By.Tenant)
	case c.ID == "" || len(c.Sum) != 64:
		return refuse(Invalid, "", "a token without an ID or without the SHA-256 of its secret")
	case d.objects[c.Key()] != nil || d.tokens[c.Sum] != nil:
		return refuse(Exists, "id", "there is a token %s", c.ID)
	}
	t := c.Token
	t.Created = d.At
	d.put(&t)
	d.say("token %s is made for tenant %s", c.ID, c.Tenant)
	return nil
}

// DeleteToken ends a token.
type DeleteToken struct {
	ID string `json:"id"`
}

// Action implements Change.
func (DeleteToken) Action() string { return "delete token" }

func (c DeleteToken) plan(d *draft) error {
	t, _ := d.objects[key(KindToken, c.ID)].(*Token)
	if t == nil || !d.acts(t.Tenant) {
		return refuse(NotFound, "id", "no token %q", c.ID)
	}
	d.remove(t.Key())
	d.say("token %s of tenant %s is deleted", t.ID, t.Tenant)
	return nil
}

// PutFile applies a policy file.
type PutFile struct{ File }

// Action implements Change.
func (PutFile) Action() string { return "apply policy file" }

func (c PutFile) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	p, err := c.parse()
	if err != nil {
		return refuse(Invalid, "text", "%v", err)
	}
	names := map[string]*Partition{}
	for _, x := range d.partitions {
		names[x.PolicyName()] = x
	}
	for _, part := range p.Partitions {
		if x := d.partitions[part.PKey]; x != nil {
			return refuse(Exists, "text", "%v: partition %q states P_Key %v, which %s's partition %q has", part.Pos, part.Name, part.PKey, x.Owner, x.Name)
		}
		if x := names[part.Name]; x != nil {
			return refuse(Exists, "text", "%v: partition %q has the name of %s's partition %v", part.Pos, part.Name, x.Owner, x.PKey)
		}
		for _, t := range d.Tenants() {
			if t.Keys.Has(part.PKey) {
				return refuse(Forbidden, "text", "%v: partition %q states P_Key %v, which is tenant %s's", part.Pos, part.Name, part.PKey, t.Name)
			}
		}
	}
	f := c.File
	d.put(&f)
	d.say("policy file %s is applied: %d partitions", c.Name, len(p.Partitions))
	return nil
}

// badKey refuses numbers that no partition of the API has.
func badKey(k ib.PKeyBase) error {
	if k < 1 || k >= ib.PKeyBaseDefault {
		return refuse(Invalid, "pkey", "%v: want 0x0001 to 0x7ffe", k)
	}
	return nil
}

// goodMembership refuses what no member has.
func goodMembership(m policy.Membership) error {
	if m != policy.Full && m != policy.Limited && m != policy.Both {
		return refuse(Invalid, "membership", "%v: want full, limited or both", m)
	}
	return nil
}
