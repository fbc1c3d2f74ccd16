package observed

import (
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Change is an attribute of which a device answered something else than is
// known of it, or of which nothing is known any more.
type Change struct {
	// Port is the port that the attribute belongs to; port 0 for what belongs
	// to a switch as a whole, the port that was asked for what belongs to a CA
	// or router as a whole.
	Port      *Port
	Attribute mad.AttributeID
}

// journal is what changed, whether that is not all of it, and whether anybody
// has asked yet.
type journal struct {
	changes        []Change
	more, followed bool
	noted          uint64 // changes since followed, kept or not
}

// MaxChanges bounds the changes that a Fabric keeps for TakeChanges.
const MaxChanges = 4096

// TakeChanges lists what Absorb, MarkUnread and Recall changed since the last call, in
// their order. all says that there was more than MaxChanges, or that this is the first
// call: then anything may have changed. What is set without them, such as cables, is not
// listed.
func (f *Fabric) TakeChanges() (list []Change, all bool) {
	list, all = f.journal.changes, f.journal.more || !f.journal.followed
	f.journal = journal{followed: true, noted: f.journal.noted}
	return list, all
}

// Noted is how many changes there have been since TakeChanges was first called,
// whether or not it has listed them. An answer that reads as before is none.
func (f *Fabric) Noted() uint64 { return f.journal.noted }

// note enters a change of an attribute that belongs to p. Nothing is kept before the
// first TakeChanges.
func (p *Port) note(attribute mad.AttributeID) {
	if p.Node.fabric == nil {
		return
	}
	j := &p.Node.fabric.journal
	if !j.followed {
		return
	}
	if j.noted++; len(j.changes) < MaxChanges {
		j.changes = append(j.changes, Change{p, attribute})
	} else {
		j.more = true
	}
}

// noteNode enters a change of an attribute that belongs to p's node as a whole.
func (p *Port) noteNode(attribute mad.AttributeID) {
	if p.Node.Switch != nil {
		p = &p.Node.Ports[0]
	}
	p.note(attribute)
}

// sameInfo compares two answers but for the counters of violations, which
// count on whatever anybody does until they stop, for one M_Key in place of another, from which
// nothing is worked out, and for ClientReregister, which is a question and no
// state.
func sameInfo(a, b smp.PortInfo) bool {
	if a.MKey != 0 && b.MKey != 0 {
		a.MKey = b.MKey
	}
	if len(Stopped(&a)) > len(Stopped(&b)) {
		return false
	}
	a.MKeyViolations, a.PKeyViolations, a.QKeyViolations = b.MKeyViolations, b.PKeyViolations, b.QKeyViolations
	a.ClientReregister = b.ClientReregister
	return a == b
}
