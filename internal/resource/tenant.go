package resource

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// PutTenant makes a tenant, or changes it.
type PutTenant struct {
	Tenant
	// KeepLabels leaves the labels as they are.
	KeepLabels bool `json:"keep_labels,omitempty"`
}

func (PutTenant) Action() string { return "put tenant" }

func (c PutTenant) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	if !goodName.MatchString(c.Name) {
		return refuse(Invalid, "name", "%q: want %s", c.Name, nameRule)
	}
	q := c.Quota
	if q.Partitions < 0 || q.Members < 0 || q.KeysPerPort < 0 || q.ChangesPerMinute < 0 {
		return refuse(Invalid, "quota", "%+v: want numbers from 0", q)
	}
	if err := c.checkKeys(d); err != nil {
		return err
	}
	if old := d.tenants[c.Name]; old != nil && c.KeepLabels {
		c.Labels = old.Labels
	}
	if err := c.Labels.Check(); err != nil {
		return refuse(Invalid, "labels", "%v", err)
	}
	t := c.Tenant
	what := "is made"
	if old := d.tenants[c.Name]; old != nil {
		if what = "is changed"; *old == t {
			return nil
		}
		// Nobody lifts alone what binds him.
		d.takes = d.takes || t.Name == Provider && old.ApproveRemovals && !t.ApproveRemovals
	}
	d.put(&t)
	d.say(t.Key(), "tenant %s %s, with the keys %v%s", c.Name, what, c.Keys, t.Labels.After(" and the labels "))
	return nil
}

// checkKeys holds the keys of a tenant against those of others, and against all
// partitions.
func (c PutTenant) checkKeys(d *draft) error {
	for _, k := range slices.Sorted(maps.Keys(d.owned[c.Name])) {
		if c.Name != Provider && !c.Keys.Has(k) {
			return refuse(Conflict, "keys", "%v: partition %v is %s's", c.Keys, k, c.Name)
		}
	}
	switch {
	case c.Keys == KeyRange{}:
		return nil
	case c.Name == Provider:
		return refuse(Invalid, "keys", "%v: the provider has every key that no tenant has", c.Keys)
	case !c.Keys.First.IsValid() || c.Keys.Last < c.Keys.First || c.Keys.Last >= ib.PKeyBaseDefault:
		return refuse(Invalid, "keys", "%v: want a first and a last number from 0x0001 to 0x7ffe", c.Keys)
	}
	for _, t := range d.ranges {
		if t.Name != c.Name && t.Keys.First <= c.Keys.Last && c.Keys.First <= t.Keys.Last {
			return refuse(Exists, "keys", "%v: tenant %s has %v", c.Keys, t.Name, t.Keys)
		}
	}
	for k := c.Keys.First; k <= c.Keys.Last; k++ {
		if p := d.partitions[k]; p != nil && p.Owner != c.Name {
			return refuse(Conflict, "keys", "%v: partition %v is %s's", c.Keys, k, p.Owner)
		}
		if name, claimed := d.Claimed(k); claimed {
			return refuse(Conflict, "keys", "%v: %v is partition %q of the policy file", c.Keys, k, name)
		}
	}
	return nil
}

// DeleteTenant removes a tenant that owns nothing any more. Its tokens go with it.
type DeleteTenant struct {
	Name string `json:"name"`
}

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
		return refuse(Conflict, "name", "tenant %s still has partitions (%d): delete them first", c.Name, len(d.owned[c.Name]))
	case len(d.portsOf[c.Name]) > 0:
		return refuse(Conflict, "name", "tenant %s still has ports (%d), among them %v: release them first", c.Name, len(d.portsOf[c.Name]), d.PortsOf(c.Name)[0].GUID)
	case len(d.Pools(c.Name)) > 0:
		return refuse(Conflict, "name", "tenant %s has the pool from %v: release it first", c.Name, d.Pools(c.Name)[0].First)
	}
	for _, t := range d.Tokens(c.Name) {
		d.remove(t.Key())
	}
	for _, a := range d.Approvals() {
		if a.Tenant == c.Name || a.From == c.Name {
			d.remove(a.Key())
		}
	}
	for _, x := range slices.Collect(maps.Values(d.acknowledged[c.Name])) { // another tenant may get the name
		d.remove(x.Key())
	}
	d.remove(key(KindTenant, c.Name))
	d.say(key(KindTenant, c.Name), "tenant %s is deleted, with its tokens", c.Name)
	return nil
}

// PutToken makes a token.
type PutToken struct{ Token }

func (PutToken) Action() string { return "create token" }

var goodSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (c PutToken) plan(d *draft) error {
	switch {
	case !d.acts(c.Tenant):
		return refuse(Forbidden, "tenant", "%s acts for tenant %s", d.By.Name, d.By.Tenant)
	case isPerson(d.By.Name): // it would outlast what the other service says of him
		return refuse(Forbidden, "", "%s logged in with a service that can end that at any time: make tokens with a token, or over the Unix socket", d.By.Name)
	case d.tenants[c.Tenant] == nil:
		return refuse(NotFound, "tenant", "no tenant %q", c.Tenant)
	case !goodName.MatchString(c.ID):
		return refuse(Invalid, "id", "%q: want %s", c.ID, nameRule)
	case !goodSum.MatchString(c.Sum):
		return refuse(Invalid, "sum", "want the SHA-256 of the secret as 64 hexadecimal digits")
	case d.objects[c.Key()] != nil || d.tokens[c.Sum] != nil:
		return refuse(Exists, "id", "there is a token %s", c.ID)
	case len(c.Note) > NoteMax || strings.ContainsFunc(c.Note, isControl):
		return refuse(Invalid, "note", "want at most %d bytes without control characters", NoteMax)
	case c.Keys != KeyRange{} && (!c.Keys.First.IsValid() || c.Keys.Last < c.Keys.First):
		return refuse(Invalid, "keys", "%v: want a first and a last number", c.Keys)
	case !c.Expires.IsZero() && !c.Expires.After(d.At):
		return refuse(Invalid, "expires", "%v has passed", c.Expires)
	case !d.By.Expires.IsZero() && (c.Expires.IsZero() || c.Expires.After(d.By.Expires)):
		return refuse(Forbidden, "expires", "%s ends at %v: want no token that ends later", d.By.Name, d.By.Expires)
	case len(d.tokensOf[c.Tenant]) >= TokensMax:
		return refuse(OverQuota, "", "tenant %s has %d tokens: want at most %d", c.Tenant, len(d.tokensOf[c.Tenant]), TokensMax)
	}
	t := c.Token
	t.Created, t.Maker, t.By = d.At, t.ID, d.By.Name
	if d.By.Tenant == t.Tenant {
		t.Maker = d.maker(d.By)
	}
	d.put(&t)
	d.say(t.Key(), "token %s is made for tenant %s", c.ID, c.Tenant)
	return nil
}

// DeleteToken ends a token, and those that were made with it, and with these, and the offers of ports
// of all of them: a thief made some. KeepMade leaves both, the tokens as made by who made the token.
type DeleteToken struct {
	ID       string `json:"id"`
	KeepMade bool   `json:"keep_made,omitempty"`
}

func (DeleteToken) Action() string { return "delete token" }

func (c DeleteToken) plan(d *draft) error {
	t, _ := d.objects[key(KindToken, c.ID)].(*Token)
	if t == nil || !d.acts(t.Tenant) {
		return refuse(NotFound, "id", "no token %q", c.ID)
	}
	made := map[string][]*Token{}
	for _, x := range d.Tokens("") {
		made[x.By] = append(made[x.By], x)
	}
	d.remove(t.Key())
	d.say(t.Key(), "token %s of tenant %s is deleted", t.ID, t.Tenant)
	ended := map[string]bool{}
	for by := []string{t.ID}; len(by) > 0; by = by[1:] {
		ended[by[0]] = true
		for _, x := range made[by[0]] {
			if kept := *x; c.KeepMade {
				kept.By = t.By
				d.put(&kept)
				d.say(x.Key(), "token %s of tenant %s, which %s made, stays", x.ID, x.Tenant, t.ID)
				continue
			}
			d.remove(x.Key())
			d.say(x.Key(), "token %s of tenant %s, which %s made, is deleted with it", x.ID, x.Tenant, by[0])
			by = append(by, x.ID)
		}
	}
	for _, a := range d.Approvals() {
		if a.From != "" && ended[a.By] && !c.KeepMade {
			d.remove(a.Key())
			d.say(a.Key(), "%s, by which %s offered ports, is ended with it", a.ID, a.By)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7F }
