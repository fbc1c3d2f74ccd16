package mastership

import (
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Why a manager does not count. Nothing in these texts is from a device, so that
// there are only so many of them.
const (
	rogueThere     = "nobody named it"
	rogueTwin      = "another port claims the same GUID"
	rogueMisplaced = "it is listed, but is not where the list of cables has it"
	rogueUnproven  = "it does not prove that it is the manager that it says it is"
	rogueSilent    = "it does not say who it is"
)

// fencedRogue begins the reason of a fence before such a manager.
const fencedRogue = "a subnet manager that nobody named: "

// capLook is the state of reading CapabilityMask of a port, to see whether IsSM is set.
type capLook struct {
	under, again bool
	next         time.Duration // no other before this
}

// capLookGap is the least time between two looks at one port, whatever comes from it.
const capLookGap = 200 * time.Millisecond

// alarm reports a manager that does not count, once for each reason. shown says that its
// location was verified, not only claimed: then a strict manager fences it at once, unless it
// may yet prove, or has proved, who it is (judgeClaims).
func (x *Peers) alarm(p *observed.Port, reason string, shown bool) {
	if x.rogues.Saw(x.clock, p.Place(), p.GUID, reason) {
		x.host.Emit(event.RogueManager{Port: p.GUID, At: facts.Where(p), Reason: reason})
	}
	if shown && x.config.Profile >= protect.Strict && x.isProven(reason) && !x.hasProved(p) {
		x.fenceRogue(p, reason)
	}
}

// isProven reports whether a reason is known for certain as soon as it is known: nobody could
// prove anything, or the manager gave orders. Of two ports with one GUID either may be the
// genuine one, and who is not where he belongs is the business of the list of cables.
func (x *Peers) isProven(reason string) bool {
	switch reason {
	case rogueTwin, rogueMisplaced, rogueUnproven, rogueSilent:
		return false
	case rogueThere:
		return x.config.Election.Key == nil
	}
	return true
}

// saysNothing reports a manager that did not say who it is, unless its port says by now
// that no manager is there: one that is stopped leaves the questions under way unanswered.
func (x *Peers) saysNothing(p *observed.Port) {
	at, guid := p.Place(), p.GUID
	if x.rogues.Has(at, guid) {
		x.alarm(p, rogueSilent, true)
		return
	}
	x.talk.Do(transact.Request{
		Path: p.Path, MKey: p.MKey(), Method: mad.MethodGet,
		Attribute: smp.AttrPortInfo, Modifier: p.Modifier(smp.AttrPortInfo, p.PortInfoBlock()),
	}, func(r transact.Reply) {
		var info smp.PortInfo
		p := x.host.Facts().Fabric.At(at)
		switch {
		case p == nil || p.GUID != guid:
		case r.Err == nil && info.UnmarshalBinary(r.SMP.Data[:]) == nil && !info.CapabilityMask.Has(smp.CapIsSM):
			x.Note(p, false)
		default:
			x.alarm(p, rogueSilent, true)
		}
	})
}

// acceptListed removes, when a manager starts, the fences before managers that are listed
// by now, and before ports that no longer report a manager. One that is to prove that it
// shares the secret has not yet.
func (x *Peers) acceptListed() {
	for _, f := range x.host.Facts().fences() {
		if !strings.HasPrefix(f.Reason, fencedRogue) {
			continue
		}
		q := x.host.Facts().Fabric.At(f.At)
		if q == nil || q.Peer == nil || !q.Peer.InfoRead {
			continue
		}
		may, _ := x.MayCount(q.Peer)
		if may && slices.Contains(x.config.Election.Trusted, q.Peer.GUID) || !x.IsRival(q.Peer) {
			x.host.Unfence(f.At, "accepted when the manager started")
		}
	}
}

// Note records whether PortInfo of p has IsSM set. Call it with every PortInfo
// that was read of an end port.
func (x *Peers) Note(p *observed.Port, isSM bool) {
	if !x.Named() || x.election == nil || p == x.host.Facts().Fabric.Self || !p.IsEnd() {
		return
	}
	at := p.Place()
	p.Info.CapabilityMask &^= smp.CapIsSM
	if isSM {
		p.Info.CapabilityMask |= smp.CapIsSM
	}
	if isSM {
		x.claimed(p)
	}
	switch may, why := x.MayCount(p); {
	case !isSM:
		x.rogues.Went(at)
		x.unclaimed(standing(p))
		if x.counted(p) {
			x.Ask()
		}
	case !may:
		x.alarm(p, why, true)
	case x.counted(p) || x.silent[at] || x.rogues.Has(at, p.GUID):
	case x.IsMaster():
		x.Ask()
	default:
		x.host.Want(WantSweep, p.String()+" says that a subnet manager is behind it")
	}
}

// counted reports whether the manager behind p took part in the last round.
func (x *Peers) counted(p *observed.Port) bool {
	for i := range x.round.here {
		if x.round.here[i].Address.Port == p.GUID {
			return true
		}
	}
	return false
}

// knownMaster reports whether the last round has seen that the manager behind p is master.
func (x *Peers) knownMaster(p *observed.Port) bool {
	for i := range x.round.here {
		if r := &x.round.here[i]; r.Address.Port == p.GUID {
			return r.Info.SMState == smp.SMMaster
		}
	}
	return false
}

// LookFor reads PortInfo of a port that may have a manager behind it, at most
// once in capLookGap.
func (x *Peers) LookFor(p *observed.Port) {
	if !x.Named() || p == nil || !p.IsEnd() || !p.Reached || p == x.host.Facts().Fabric.Self {
		return
	}
	at := p.Place()
	if x.looks[at] == nil {
		x.looks[at] = &capLook{}
	}
	x.looks[at].again = true
	x.startCapLooks()
}

// startCapLooks starts the reads that are due, and removes those that are done.
func (x *Peers) startCapLooks() {
	for at, l := range x.looks {
		switch {
		case l.under || x.clock < l.next:
		case !l.again:
			delete(x.looks, at)
		default:
			if p := x.host.Facts().Fabric.At(at); p != nil && p.Reached {
				l.under, l.again, l.next = true, false, x.clock+capLookGap
				x.readCaps(p, l)
			} else {
				delete(x.looks, at)
			}
		}
	}
}

func (x *Peers) readCaps(p *observed.Port, l *capLook) {
	at, guid := p.Place(), p.GUID
	x.talk.Do(transact.Request{
		Path: p.Path, MKey: p.MKey(), Method: mad.MethodGet,
		Attribute: smp.AttrPortInfo, Modifier: p.Modifier(smp.AttrPortInfo, p.PortInfoBlock()),
	}, func(r transact.Reply) {
		l.under = false
		var info smp.PortInfo
		p := x.host.Facts().Fabric.At(at)
		if r.Err != nil || info.UnmarshalBinary(r.SMP.Data[:]) != nil || p == nil || p.GUID != guid {
			return
		}
		x.Note(p, info.CapabilityMask.Has(smp.CapIsSM))
	})
}

// due is when the next action concerning questions to other managers is due; electing
// says that an election waits for them.
func (x *Peers) due(electing bool) (at time.Duration, some bool) {
	for _, w := range []*transact.Window{x.talk, x.polls} {
		if due, waits := w.Deadline(); waits && (!some || due < at) {
			at, some = due, true
		}
	}
	if end := x.awaitedUntil(); electing && x.Awaits() && (!some || end < at) {
		at, some = end, true
	}
	for _, d := range x.doubts {
		if !d.under && (!some || d.next < at) {
			at, some = d.next, true
		}
	}
	if due, is := x.claimsDue(); is && (!some || due < at) {
		at, some = due, true
	}
	for _, l := range x.looks {
		if !l.under && (!some || l.next < at) {
			at, some = l.next, true
		}
	}
	return at, some
}

// probeGap is the least time between two looks for devices that were silent, since somebody
// asks for SMInfo from a place where nobody is known.
const probeGap = time.Second

// requesterOf returns the source of an SMInfo request, and reports managers that are not
// Named. A LID alone proves nothing: root on a host may give its port the LID of another.
func (x *Peers) requesterOf(p *mad.SMP, slid ib.LID) Address {
	var from Address
	if p.Class == mad.ClassSubnLID {
		from.LID = slid
	}
	sender, shown := facts.CameFrom(x.host.Facts().Fabric, x.host.Facts().Ends, p, slid)
	if sender == nil && x.IsMaster() && x.clock >= x.probed+probeGap {
		x.probed = x.clock
		x.host.Want(WantProbe, "a round of questions begins") // a manager that did not answer may be there again
	}
	if sender == nil || sender == x.host.Facts().Fabric.Self {
		return from
	}
	var asker smp.SMInfo
	err := asker.UnmarshalBinary(p.Data[:])
	proves := err == nil && x.election.Proves(Remote{Info: asker, Address: Address{Port: sender.GUID}})
	if may, _ := x.MayCount(sender); may && (shown || proves) {
		from.Port = sender.GUID
	}
	counts := err == nil && x.election.Counts(Remote{Info: asker, Address: from})
	if counts {
		x.meet(sender.GUID)
	}
	if shown && proves {
		x.proved(sender)
	}
	if counts && proves { // it may not have been ready when it was asked
		x.round.partners = max(x.round.partners, 1)
	}
	switch {
	case p.Method == mad.MethodSet && !counts:
		x.alarm(sender, SentControl(p.AttributeModifier), shown)
	case counts && proves && x.IsMaster() && asker.SMState == smp.SMMaster && !x.knownMaster(sender):
		x.Ask() // it was given up, and is there again, or has taken over meanwhile
	case !x.counted(sender):
		x.LookFor(sender)
	}
	return from
}
