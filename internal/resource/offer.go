// This file moves ports from one tenant to another by the two of them.

package resource

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// OfferPorts offers ports of the caller's tenant to another tenant: it makes an Approval, which
// that tenant approves, saying into which of its partitions, or rejects. Then they move as MovePorts
// moves them. Whether there is such a tenant is not looked at: the owner is not to learn it. Where
// removals of the owner wait for a second person, the offer does.
type OfferPorts struct {
	Tenant string        `json:"tenant"`
	Ports  []ib.PortGUID `json:"ports,omitempty"`
}

// Action implements Change.
func (OfferPorts) Action() string { return "offer ports" }

func (c OfferPorts) plan(d *draft) error {
	from := d.By.Tenant
	switch {
	case !goodName.MatchString(c.Tenant):
		return refuse(Invalid, "tenant", "%q: want %s", c.Tenant, nameRule)
	case c.Tenant == from:
		return refuse(Invalid, "tenant", "the ports are tenant %s's: want another tenant", from)
	case len(c.Ports) == 0 || len(c.Ports) > BulkMax:
		return refuse(Invalid, "ports", "%d ports: want 1 to %d in one change", len(c.Ports), BulkMax)
	}
	ports := slices.Compact(slices.Sorted(slices.Values(c.Ports)))
	a := &Approval{
		ID: d.approvalID(), Tenant: c.Tenant, From: from, By: d.By.Name, Maker: d.maker(d.By), At: d.At, Expires: d.At.Add(ApprovalLife), Why: d.Why,
		Action: c.Action(), Seen: Unseen, Revision: d.last,
	}
	if d.approved != nil { // of whom there may be no token any more, and whose reason it is
		a.Maker, a.Why = d.approved.Maker, d.approved.Why
	}
	for _, g := range ports {
		if err := d.offerable(g, from, c.Tenant); err != nil {
			return err
		}
		d.say(a.Key(), "port %v is offered to tenant %s", g, c.Tenant)
	}
	a.Words = few(d.words)
	var err error
	if a.Change, err = EncodeChange(MovePorts{Tenant: c.Tenant, Ports: ports}); err != nil {
		return refuse(Invalid, "", "%v", err)
	}
	open, size := 0, len(a.Change)
	for _, x := range d.approvals {
		if x.From == from {
			open, size = open+1, size+len(x.Change)
		}
	}
	switch {
	case open >= OffersMax:
		return refuse(OverQuota, "", "tenant %s has %d offers of ports that wait: want at most %d", from, open, OffersMax)
	case size > ApprovalSizeMax:
		return refuse(OverQuota, "", "the offers of tenant %s that wait would have %d bytes: want at most %d", from, size, ApprovalSizeMax)
	case d.approvals[a.ID] != nil:
		return refuse(Exists, "id", "there is an approval %s", a.ID)
	}
	d.put(a)
	d.takes = true
	return nil
}

// offerable refuses a port that is not its tenant's to give away, whoever has it.
func (d *draft) offerable(g ib.PortGUID, from, to string) error {
	switch {
	case g == 0:
		return refuse(Invalid, "ports", "no GUID")
	case d.Owner(g) != from:
		return refuse(NotFound, "ports", "%v is no port of tenant %s", g, from)
	case d.approved != nil && d.given(g) > d.approved.Revision:
		return refuse(Stale, "ports", "%v was given away after it was to be offered: ask again", g)
	}
	for _, x := range d.with(g) {
		name, named := d.written.named[x]
		switch {
		case !named || to == Provider:
		case from == Provider:
			return refuse(Conflict, "ports", "%v stands in %s of the policy file: take it out of there first", x, name)
		default:
			return refuse(Conflict, "ports", "%v: the policy file names it: ask the provider to take it out of there first", x)
		}
	}
	return nil
}

// given is the revision that last said whose a port is, and where; 0 if none did.
func (s *State) given(port ib.PortGUID) uint64 {
	for _, g := range []ib.PortGUID{port, s.written.port(port)} {
		if p := s.ports[g]; p != nil {
			return s.revisions[p.Key()]
		}
		if p := s.pool(g); p != nil {
			return s.revisions[p.Key()]
		}
	}
	return 0
}

// accept moves ports that were offered, into partitions of the tenant that accepts. It is made with the
// rights of the provider, since it ends what others have of the ports; what the caller is told of it
// is only of his tenant's (Diff.WordsFor).
func (d *draft) accept(a *Approval, change Change, into []Joined) error {
	c, is := change.(MovePorts)
	if !is {
		return refuse(Conflict, "id", "%s is no offer of ports", change.Action())
	}
	if len(into) > IntoMax {
		return refuse(Invalid, "into", "%d partitions: want at most %d in one change", len(into), IntoMax)
	}
	for _, j := range into {
		p, err := d.partition(j.PKey)
		if err != nil {
			return err
		}
		if p.Owner != a.Tenant {
			return refuse(Conflict, "into", "partition %v is not tenant %s's", j.PKey, a.Tenant)
		}
	}
	for _, g := range c.Ports {
		if d.Owner(g) != a.From || d.given(g) > a.Revision {
			return refuse(Stale, "id", "port %v was changed after %s: ask tenant %s to offer it again", g, a.ID, a.From)
		}
	}
	c.Into = into
	by, seen := d.By, d.Seen
	d.By, d.Seen, d.approved = Caller{Name: a.By, Tenant: Provider}, Unseen, a
	err := c.plan(d)
	d.By, d.Seen = by, seen
	var r *Refusal
	if errors.As(err, &r) && r.Reason == Conflict && !by.IsProvider() { // it may be about the policy file, or another's port
		return refuse(Conflict, r.Field, "the ports cannot be moved like this: the provider can see why")
	}
	return err
}

// WordsFor are the words of a diff for who made it. Of an offer that was accepted, they are those about
// what he may see.
func (d Diff) WordsFor(c Caller) []string {
	offer := slices.ContainsFunc(d.Edits, func(e Edit) bool {
		a, is := e.Before.(*Approval)
		return is && a.From != ""
	})
	if c.IsProvider() || !offer {
		return d.Words
	}
	seen := map[string]bool{}
	for _, e := range d.Edits {
		seen[e.Key] = e.Before != nil && SeesObject(c, e.Before) || e.After != nil && SeesObject(c, e.After)
	}
	words := []string{}
	for i, text := range d.Words {
		if seen[d.About[i]] {
			words = append(words, text)
		}
	}
	return words
}

// few are the first of the words of a change that waits, which are kept with it.
func few(words []string) []string {
	if n := len(words); n > ApprovalWordsMax {
		words = append(slices.Clone(words[:ApprovalWordsMax]), fmt.Sprintf("and %d more", n-ApprovalWordsMax))
	}
	return slices.Clone(words)
}
