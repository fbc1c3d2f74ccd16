package resource

import (
	"cmp"
	"fmt"
)

// hold makes an approval of a change that takes something away, in place of the
// change.
func (d *draft) hold() error {
	data, err := EncodeChange(d.Change)
	if err != nil {
		return refuse(Invalid, "", "%v", err)
	}
	waiting, size := 0, len(data)
	for _, a := range d.approvals {
		if a.Tenant == d.By.Tenant && a.From == "" { // others cannot fill it with offers
			waiting++
			size += len(a.Change)
		}
	}
	words := few(d.words)
	d.revert()
	id := d.approvalID()
	switch {
	case waiting >= ApprovalsMax:
		return refuse(OverQuota, "", "tenant %s has %d changes that wait for a second person: want at most %d", d.By.Tenant, waiting, ApprovalsMax)
	case size > ApprovalSizeMax:
		return refuse(OverQuota, "", "the changes of tenant %s that wait for a second person would have %d bytes: want at most %d", d.By.Tenant, size, ApprovalSizeMax)
	case d.approvals[id] != nil:
		return refuse(Exists, "id", "there is an approval %s", id)
	}
	a := &Approval{
		ID: id, Tenant: d.By.Tenant, By: d.By.Name, Maker: d.maker(d.By), Keys: d.By.Keys, At: d.At, Expires: d.At.Add(ApprovalLife), Why: d.Why,
		Action: d.Change.Action(), Change: data, Words: words, Seen: d.Seen, Revision: d.last,
	}
	d.put(a)
	d.say(a.Key(), "%s by %s waits as %s until %s for the approval of another caller of tenant %s", a.Action, a.By, a.ID, a.Expires.UTC().Format("2006-01-02 15:04"), a.Tenant)
	return nil
}

// approvalID names the approval that a change makes.
func (d *draft) approvalID() string {
	id := cmp.Or(d.ID, fmt.Sprintf("a%d", d.LastFor(d.By)+1))
	if d.ID == "" && !d.By.IsProvider() {
		id = d.By.Tenant + "-" + id // each tenant counts by itself
	}
	return id
}

// Approve carries out a change that waits. The caller who asked for it cannot approve it,
// nor can a token that they made, or that the maker of their token made. The change is
// planned again, with the rights of the caller who asked, and removes nothing that has
// changed since. An offer of ports is approved by the tenant that it is made to.
type Approve struct {
	ID string `json:"id"`
	// Into are the partitions of that tenant in which the ports are from then on.
	Into []Joined `json:"into,omitempty"`
}

func (Approve) Action() string { return "approve" }

func (c Approve) plan(d *draft) error {
	a, err := d.approval(c.ID)
	if err != nil {
		return err
	}
	by := d.By
	switch {
	case !d.acts(a.Tenant):
		return refuse(Forbidden, "id", "%s waits for the tenant to which the ports are offered", a.ID)
	case !d.At.Before(a.Expires):
		return refuse(Conflict, "id", "%s expired at %s: ask again", a.ID, a.Expires.UTC().Format("2006-01-02 15:04"))
	case (by.Tenant == a.Tenant || by.Tenant == a.From) && (by.Name == a.By || d.maker(by) == a.Maker || d.maker(by) == a.By || by.Name == a.Maker),
		isPerson(by.Name) && identity(by.Name) == identity(a.By): // whomever he acts for, and whatever he is called by now
		return refuse(Forbidden, "id", "%s was asked for by %s: want the approval of another person", a.ID, a.By)
	case len(c.Into) > 0 && a.From == "":
		return refuse(Invalid, "into", "%s is no offer of ports", a.ID)
	}
	change, err := DecodeChange(a.Change)
	if err != nil {
		return refuse(Conflict, "id", "%v", err)
	}
	switch change.(type) {
	case Approve, Reject:
		return refuse(Conflict, "id", "%s is no change that can wait", change.Action())
	}
	if a.From != "" {
		if err := d.accept(a, change, c.Into); err != nil {
			return err
		}
		d.remove(a.Key())
		d.say(a.Key(), "tenant %s accepts what tenant %s offered, as %s", a.Tenant, a.From, a.ID)
		return nil
	}
	d.By, d.Seen, d.approved = Caller{Name: a.By, Tenant: a.Tenant, Keys: a.Keys}, a.Seen, a
	err = change.plan(d)
	d.By = by
	if err != nil {
		return err
	}
	d.remove(a.Key())
	d.say(a.Key(), "%s by %s is approved by %s", a.Action, a.By, by.Name)
	return nil
}

// Reject ends a change that waits. The caller who asked for it may reject it too, and who
// offers ports an offer.
type Reject struct {
	ID string `json:"id"`
}

func (Reject) Action() string { return "reject" }

func (c Reject) plan(d *draft) error {
	a, err := d.approval(c.ID)
	if err != nil {
		return err
	}
	d.remove(a.Key())
	if a.From != "" {
		d.say(a.Key(), "%s, by which tenant %s offered ports to tenant %s, is rejected", a.ID, a.From, a.Tenant)
		return nil
	}
	d.say(a.Key(), "%s by %s is rejected by %s", a.Action, a.By, d.By.Name)
	return nil
}

// approval is a change that waits, if the caller may see it.
func (d *draft) approval(id string) (*Approval, error) {
	a := d.approvals[id]
	if a == nil || !d.acts(a.Tenant) && d.By.Tenant != a.From {
		return nil, refuse(NotFound, "id", "no approval %q", id)
	}
	return a, nil
}

// Trim forgets what has had its time: removals older than RemovedLife that have been
// proved, approvals, acknowledgements and tokens that have expired. It forgets at most TrimMax of them.
type Trim struct{}

func (Trim) Action() string { return "trim" }

func (Trim) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	var removals, approvals, acknowledgements, tokens int
	for _, o := range d.Objects() {
		if len(d.edits) >= TrimMax {
			break
		}
		switch o := o.(type) {
		case *Removed:
			if d.At.Sub(o.At) > RemovedLife && d.revisions[o.Key()] <= d.Proved {
				d.remove(o.Key())
				removals++
			}
		case *Approval:
			if !d.At.Before(o.Expires) {
				d.remove(o.Key())
				approvals++
			}
		case *Acknowledgement:
			if !d.At.Before(o.Until) {
				d.remove(o.Key())
				acknowledgements++
			}
		case *Token:
			if o.expired(d.At) {
				d.remove(o.Key())
				tokens++
			}
		}
	}
	if len(d.edits) > 0 {
		d.say("", "%d removals, %d approvals, %d acknowledgements and %d tokens have had their time", removals, approvals, acknowledgements, tokens)
	}
	return nil
}
