package resource

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Change is something that a caller asks for. EncodeChange makes the form that the
// history and waiting approvals keep.
type Change interface {
	// Action names the change in the audit log.
	Action() string
	plan(*draft) error
}

// Fabric is what Plan asks of the fabric as it was found.
type Fabric interface {
	// TableSize is how many keys a port has room for; false for a GUID that the
	// fabric has not seen.
	TableSize(ib.PortGUID) (keys int, known bool)
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
	// Refused is how many requests of the caller were refused in the last minute: they
	// count against the quota as his changes do, and not against that of other callers.
	Refused int
	// Proved is the last revision that was proved on the fabric.
	Proved uint64
	// ID names what the change makes, if it makes something that needs a name:
	// random, from the server.
	ID string
	// Fabric may be nil where it has not been read.
	Fabric Fabric
}

// Unseen is the Request.Seen of callers who cannot say what they have seen, such as
// those of UFM's calls.
const Unseen = ^uint64(0)

// Plan checks a request and returns what it does: all of it, or nothing and a
// *Refusal. What takes something away may, instead, be only an Approval that waits
// for a second person (Diff.Approval). The state is as before, but is changed in
// between.
func (s *State) Plan(r Request) (Diff, error) {
	d := &draft{State: s, Request: r, at: map[string]int{}}
	kept := s.compiled.stale
	s.compiled.stale = stale{}
	defer func() {
		d.revert()
		s.compiled.stale = kept
	}()
	if err := d.check(); err != nil {
		return Diff{}, err
	}
	second := d.tenants[r.By.Tenant].ApproveRemovals
	if err := r.Change.plan(d); err != nil {
		return Diff{}, err
	}
	if err := d.limits(); err != nil {
		return Diff{}, err
	}
	if d.takes && d.approved == nil && second {
		if err := d.hold(); err != nil {
			return Diff{}, err
		}
	}
	return d.diff(), nil
}

// draft is a change that is being planned: its edits are made in the state, and
// taken back at the end.
type draft struct {
	*State
	Request
	undo         []Edit
	edits        []Edit
	at           map[string]int // index in edits by key
	words, about []string
	// takes reports whether the change takes a key from a port, or deletes a partition.
	takes bool
	// approved is what a second person has approved, while it is carried out.
	approved *Approval
}

// put and remove edit one object; say adds a sentence about one to the diff.
func (d *draft) put(o Object)      { d.edit(o.Key(), o) }
func (d *draft) remove(key string) { d.edit(key, nil) }

func (d *draft) say(about, format string, args ...any) {
	d.words, d.about = append(d.words, fmt.Sprintf(format, args...)), append(d.about, about)
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

// revert takes all edits back.
func (d *draft) revert() {
	for _, e := range slices.Backward(d.undo) {
		d.set(e)
	}
	d.undo, d.edits, d.words, d.about = nil, nil, nil, nil
	clear(d.at)
}

// diff is what remains of the edits: an object that is as before is not in it.
func (d *draft) diff() Diff {
	out := Diff{Words: d.words, About: d.about}
	for _, e := range d.edits {
		if !reflect.DeepEqual(e.Before, e.After) {
			out.Edits = append(out.Edits, e)
		}
	}
	return out
}

// check is what goes for every change.
func (d *draft) check() error {
	t := d.tenants[d.By.Tenant]
	switch {
	case len(d.By.Name) > CallerMax || d.By.Name == "":
		return refuse(Invalid, "", "the name of the caller has %d bytes: want 1 to %d", len(d.By.Name), CallerMax)
	case len(d.Why) > WhyMax:
		return refuse(Invalid, "why", "%d bytes: want at most %d", len(d.Why), WhyMax)
	case t == nil:
		return refuse(Forbidden, "", "%s acts for tenant %q, which does not exist", d.By.Name, d.By.Tenant)
	case d.By.ReadOnly:
		return refuse(Forbidden, "", "%s may only read", d.By.Name)
	}
	if err := d.InQuota(d.By, d.At, d.Refused); err != nil {
		return err
	}
	if d.By.Keys.First != 0 {
		switch d.Change.(type) {
		case PutPartition, DeletePartition, SetMembers, RemoveMembers, AmendPartition, Consent, Refuse:
		default:
			return refuse(Forbidden, "", "%s may only change the partitions %v", d.By.Name, d.By.Keys)
		}
	}
	return nil
}

// InQuota refuses a caller who has made his tenant's changes of the last minute, with the
// requests of his own that were refused.
func (s *State) InQuota(by Caller, at time.Time, refused int) error {
	t := s.tenants[by.Tenant]
	if t == nil || t.Quota.ChangesPerMinute == 0 {
		return nil
	}
	if made := len(s.within(t.Name, at)); made+refused >= t.Quota.ChangesPerMinute {
		return refuse(TooFast, "", "in the last minute tenant %s has made %d changes, and %d of this caller were refused: want at most %d", t.Name, made, refused, t.Quota.ChangesPerMinute)
	}
	return nil
}

// limits holds the whole change against limits that go for all tenants together.
func (d *draft) limits() error {
	grown := 0
	for _, e := range d.edits {
		if _, is := e.Before.(*Member); is {
			grown--
		}
		if _, is := e.After.(*Member); is {
			grown++
		}
	}
	if grown > 0 && d.total > MembersMax {
		return refuse(OverQuota, "members", "all partitions together would have more than %d members", MembersMax)
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

// fresh refuses a change of a partition of which changed, after the caller saw it,
// what he may see.
func (d *draft) fresh(k ib.PKeyBase) error {
	if d.Seen == Unseen {
		return nil
	}
	if last := d.TouchedFor(d.By, k); last > d.Seen {
		return refuse(Stale, "", "partition %v changed in revision %d, after revision %d that you saw", k, d.NumberFor(d.By, last), d.NumberFor(d.By, d.Seen))
	}
	return nil
}

// unchanged refuses to carry out an approved change on an object that changed after
// it was asked for: who approved it may not have seen that. Ports that were offered leave
// all partitions, and nobody was shown which.
func (d *draft) unchanged(key string) error {
	if d.approved != nil && d.approved.From == "" && d.revisions[key] > d.approved.Revision {
		return refuse(Stale, "", "%s changed in revision %d, after revision %d when %s asked for this: ask again", key, d.NumberFor(d.By, d.revisions[key]), d.NumberFor(d.By, d.approved.Revision), d.approved.By)
	}
	return nil
}

// partition is the partition that a caller wants to change, or a refusal that tells
// of nothing that he may not see.
func (d *draft) partition(k ib.PKeyBase) (*Partition, error) {
	p := d.partitions[k]
	if p == nil || !d.Sees(d.By, k) {
		if name, claimed := d.Claimed(k); claimed && d.By.IsProvider() && d.By.Keys.First == 0 {
			return nil, refuse(Conflict, "pkey", "%v is partition %q of %s: change it there", k, name, d.Source())
		}
		return nil, refuse(NotFound, "pkey", "no partition %v", k)
	}
	return p, d.fresh(k)
}

// ownedPartition is a partition that the caller may change as its owner.
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

// CheckName says what is wrong with the name of a tenant; nil for nothing.
func CheckName(name string) error {
	if !goodName.MatchString(name) {
		return fmt.Errorf("%q: want %s", name, nameRule)
	}
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
