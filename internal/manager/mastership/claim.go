package mastership

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// ProofGrace is how long a port that says that a subnet manager is behind it, and that is
// not listed, may take to prove that it shares the secret before a strict master fences it.
// IsSM alone has programs of its host receive management packets, which no P_Key keeps
// apart.
const ProofGrace = 2 * time.Second

const (
	// proofAgain is the time between two questions to such a port.
	proofAgain = 500 * time.Millisecond
	// claimMemory is how long the time that a port had IsSM set without a proof is
	// remembered: who clears the bit now and then has no more of it.
	claimMemory = 10 * time.Minute
)

// claim is a port with IsSM set. It is kept by the switch port before it, the only thing
// about it that its host does not choose.
type claim struct {
	port     observed.Place
	guid     ib.PortGUID
	since    time.Duration // it has been there unproved, as if without a break
	proved   bool          // by this GUID from here, since IsSM was set
	judged   bool
	answered bool          // the last question
	under    bool          // a question
	asked    time.Duration // when the last was sent
	next     time.Duration // when to look at it again
	gone     bool          // IsSM was cleared
	went     time.Duration // and when
}

// unnamed is which claims the verdict was last given with.
type unnamed struct {
	changed bool
	next    time.Duration
	told    map[observed.Place]ib.PortGUID
}

// standing is where a claim stands: the switch port before a port, or the port itself.
func standing(p *observed.Port) observed.Place {
	if p.Peer != nil && !p.Peer.IsEnd() {
		return p.Peer.Place()
	}
	return p.Place()
}

// claimed is the claim of a port with IsSM set.
func (x *Peers) claimed(p *observed.Port) *claim {
	at := standing(p)
	c := x.claims[at]
	switch {
	case c == nil:
		c = &claim{since: x.clock, next: x.clock, asked: -ProofGrace}
		x.claims[at] = c
	case c.gone:
		x.unnamed.changed = true
		c.gone, c.since, c.next = false, x.clock-max(c.went-c.since, 0), x.clock
		c.judged = false
	}
	if c.guid != p.GUID {
		x.unnamed.changed = true
		c.guid, c.proved, c.judged, c.next = p.GUID, false, false, x.clock
	}
	c.port = p.Place()
	return c
}

// unclaimed notes that no manager stands somewhere any more.
func (x *Peers) unclaimed(at observed.Place) {
	c := x.claims[at]
	if c != nil && !c.gone {
		x.unnamed.changed = true
	}
	switch {
	case c == nil || c.gone:
	case c.proved:
		delete(x.claims, at)
	default:
		c.gone, c.went = true, x.clock
	}
}

// readClaims takes the claims from the subnet as it was read.
func (x *Peers) readClaims() {
	there := make(map[observed.Place]bool)
	for _, p := range x.host.Facts().Ends {
		if x.IsRival(p) {
			there[standing(p)] = true
			x.claimed(p)
		}
	}
	for at, c := range x.claims {
		if !there[at] {
			x.unclaimed(at)
		}
		if c.gone && x.clock > c.went+claimMemory {
			delete(x.claims, at)
		}
	}
}

// proved notes that the manager behind p has shown, from there, that it shares the secret,
// and lifts the fence that stands because it had not.
func (x *Peers) proved(p *observed.Port) {
	if !x.IsRival(p) {
		return
	}
	at := standing(p)
	if c := x.claimed(p); !c.proved {
		c.proved, x.unnamed.changed = true, true
	}
	for _, f := range x.host.Facts().fences() {
		if f.At == at && strings.HasPrefix(f.Reason, fencedRogue) {
			x.host.Unfence(at, "it has proved that it shares the managers' secret")
		}
	}
}

// hasProved reports whether the manager behind p has shown from there who it is.
func (x *Peers) hasProved(p *observed.Port) bool {
	c := x.claims[standing(p)]
	return c != nil && c.proved && c.guid == p.GUID && !c.gone
}

// judges reports whether this manager fences before managers that nobody named. A standby
// asks nobody, and a master leaves those that stood there before it their time.
func (x *Peers) judges() bool {
	is := x.config.Profile >= protect.Strict && x.config.Election.Key != nil && x.IsMaster() && x.host.Facts().Fabric != nil
	if is && !x.judging {
		for _, c := range x.claims {
			c.since, c.next = x.clock, x.clock
		}
	}
	x.judging = is
	return is
}

// judgeClaims fences, as a strict master, before ports that have not proved in time that they
// share the secret, and asks them until then.
func (x *Peers) judgeClaims() {
	if len(x.claims) == 0 || !x.judges() {
		return
	}
	var due []observed.Place
	for at, c := range x.claims {
		if c.open() && x.clock >= c.next {
			due = append(due, at)
		}
	}
	slices.SortFunc(due, observed.Place.Compare)
	for _, at := range due {
		c := x.claims[at]
		if p := x.host.Facts().Fabric.At(c.port); p != nil && p.GUID == c.guid && standing(p) == at && x.IsRival(p) {
			x.judge(p, c)
		} else {
			x.unclaimed(at)
		}
	}
}

// open reports whether a claim is still to be judged, and no question is under way.
func (c *claim) open() bool { return !c.proved && !c.judged && !c.gone && !c.under }

// judge asks the manager of a claim, or fences before it when its time is over.
func (x *Peers) judge(p *observed.Port, c *claim) {
	c.next = x.clock + proofAgain
	listed := slices.Contains(x.config.Election.Trusted, p.GUID)
	may, why := x.MayCount(p)
	late := x.clock >= c.since+ProofGrace
	switch {
	case listed && may, why == rogueMisplaced:
		c.next = x.clock + ProofGrace
	case listed && !x.provedElsewhere(p): // either may be the genuine one
		c.next = x.clock + ProofGrace
	case may && (!late || c.asked < c.since+ProofGrace-proofAgain):
		x.askProof(p, c)
	case !late:
		c.next = min(c.next, c.since+ProofGrace)
	default:
		c.judged = true
		if may && c.answered {
			why = rogueUnproven
		} else if may {
			why = rogueSilent
		}
		x.alarm(p, why, false)
		x.fenceRogue(p, why)
	}
}

// askProof asks the manager of a claim who it is.
func (x *Peers) askProof(p *observed.Port, c *claim) {
	c.under, c.asked = true, x.clock
	at, guid := c.port, c.guid
	x.askPeer(p, x.election.InfoFor(guid), func(info smp.SMInfo, err error) {
		c.under, c.answered = false, err == nil
		q := x.host.Facts().Fabric.At(at)
		if err == nil && q != nil && q.GUID == guid && x.election.Proves(Remote{Info: info, Address: Address{Port: guid}}) {
			x.proved(q)
		}
	})
}

// provedElsewhere reports whether the manager with the GUID of p has proved itself at
// another port.
func (x *Peers) provedElsewhere(p *observed.Port) bool {
	for at, c := range x.claims {
		if at != standing(p) && c.guid == p.GUID && c.proved && !c.gone {
			return true
		}
	}
	return false
}

// fenceRogue fences before a manager that does not count.
func (x *Peers) fenceRogue(p *observed.Port, reason string) {
	if p.Peer == nil || slices.ContainsFunc(x.host.Facts().fences(), func(f facts.Fence) bool { return f.At == p.Peer.Place() }) {
		return
	}
	x.host.Fence(p.Peer.Place(), fencedRogue+reason)
}

// Names reports whether the manager behind p is this one, is listed, or has proved from there
// that it shares the secret.
func (x *Peers) Names(p *observed.Port) bool {
	if f := x.host.Facts().Fabric; f != nil && p == f.Self || x.hasProved(p) {
		return true
	}
	may, _ := x.MayCount(p)
	return may && slices.Contains(x.config.Election.Trusted, p.GUID)
}

// unnamedGap is the least time between two calls of Host.Restate: hosts may set and clear IsSM
// as often as they like.
const unnamedGap = time.Second

// tellUnnamed has the verdict given again when other ports than before have managers that
// nobody named.
func (x *Peers) tellUnnamed() {
	if !x.unnamed.changed || x.clock < x.unnamed.next || !x.IsMaster() {
		return
	}
	x.unnamed.changed, x.unnamed.next = false, x.clock+unnamedGap
	now := make(map[observed.Place]ib.PortGUID)
	for at, c := range x.claims {
		if p := x.host.Facts().Fabric.At(c.port); !c.gone && p != nil && !x.Names(p) {
			now[at] = c.guid
		}
	}
	if !maps.Equal(now, x.unnamed.told) {
		x.unnamed.told = now
		x.host.Want(WantProof, "managers that nobody named came or went")
	}
}

// claimsDue is when judgeClaims has something to do.
func (x *Peers) claimsDue() (at time.Duration, some bool) {
	if x.unnamed.changed && x.IsMaster() {
		at, some = x.unnamed.next, true
	}
	if x.election == nil || len(x.claims) == 0 || !x.judges() {
		return at, some
	}
	for c := range maps.Values(x.claims) {
		if c.open() && (!some || c.next < at) {
			at, some = c.next, true
		}
	}
	return at, some
}
