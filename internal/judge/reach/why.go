package reach

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Cause is why two end ports can or cannot talk.
type Cause uint8

// The causes; the zero value is CauseUnknown, which is never a pass.
const (
	CauseUnknown     Cause = iota // something that decides was not read
	CauseTalk                     // packets of a partition get through both ways
	CauseNoPartition              // they share no partition
	CauseBothLimited              // both are limited members of all partitions that they share
	CauseStopped                  // their keys match, and something on the way stops the packets
)

var causeNames = [...]string{"unknown", "talk", "no-partition", "both-limited", "stopped"}

// String is the cause as it stands in the API.
func (c Cause) String() string { return causeNames[c] }

// Names gives partitions their names, by number. A partition that has none is shown by
// its number.
type Names map[ib.PKeyBase]string

// View is how somebody looks at a fabric. The zero value is that of who sees everything.
type View struct {
	Names Names
	// SL is the service level of packets.
	SL ib.SL
	// AnyVL leaves virtual lanes out: for a snapshot without them.
	AnyVL bool
	// Sees reports whether the viewer knows of a port's membership of a partition; nil
	// for all. What he does not see is left out of every answer.
	Sees func(p *observed.Port, b ib.PKeyBase) bool
	// Takes reports whether an end port can be made a member of a partition; nil for all.
	// Remedies name no others.
	Takes func(b ib.PKeyBase, g ib.PortGUID) bool
	// Brief leaves out what is between the two ports: the switches, their tables and
	// the state of links.
	Brief bool
}

// Shared is a partition of which both ports hold a key.
type Shared struct {
	PKey ib.PKeyBase
	// Name is empty where nobody gave one.
	Name string
	// FromFull and ToFull tell that the port holds the full key.
	FromFull bool
	ToFull   bool
	// There and Back are what becomes of a packet each way; nil where the keys do not
	// match.
	There *Trace
	Back  *Trace
}

// Matches reports whether one of the two is a full member.
func (s *Shared) Matches() bool { return s.FromFull || s.ToFull }

// talks reports whether packets get through both ways.
func (s *Shared) talks() bool {
	return s.There != nil && s.There.Disposition == Delivered && s.Back.Disposition == Delivered
}

// Answer is why one end port can or cannot talk to another.
type Answer struct {
	From  ib.PortGUID
	To    ib.PortGUID
	Cause Cause
	// Sentence says the cause for people.
	Sentence string
	// Shared are the partitions of which both hold a key, by number.
	Shared []Shared
	// Remedies are changes, any one of which would let the two talk; none where
	// they do.
	Remedies []Remedy
}

// Explain says why two different end ports of a fabric can or cannot talk.
func Explain(from, to *observed.Port, v View) Answer {
	a := Answer{From: from.GUID, To: to.GUID, Shared: v.sharedBy(from, to), Remedies: []Remedy{}}
	var stopped *Shared
	for i := range a.Shared {
		s := &a.Shared[i]
		if !s.Matches() {
			continue
		}
		there, back := Follow(from, to, v.packet(s.PKey, s.FromFull)), Follow(to, from, v.packet(s.PKey, s.ToFull))
		s.There, s.Back = &there, &back
		if s.talks() {
			a.Cause = CauseTalk
		} else if stopped == nil || stopped.PKey == ib.PKeyBaseDefault {
			stopped = s // a partition that somebody made says more than the default one
		}
	}
	if a.Cause != CauseTalk {
		a.Cause = causeOf(from, to, a.Shared, stopped)
	}
	e := explanation{from: from, to: to, view: v, answer: &a, stopped: stopped}
	a.Sentence = e.sentence()
	a.Remedies = append(a.Remedies, e.remedies()...)
	for i := range a.Shared {
		if s := &a.Shared[i]; v.Brief && s.There != nil {
			s.There.Hops, s.There.Reason, s.Back.Hops, s.Back.Reason = nil, "", nil, ""
		}
	}
	return a
}

// causeOf is the cause where no packet gets through both ways.
func causeOf(from, to *observed.Port, shared []Shared, stopped *Shared) Cause {
	switch {
	case stopped != nil && (stopped.There.Disposition != Delivered && stopped.There.Disposition != Unknown ||
		stopped.Back.Disposition != Delivered && stopped.Back.Disposition != Unknown):
		if !tableKnown(from) || !tableKnown(to) {
			return CauseUnknown // another partition may let them talk
		}
		return CauseStopped
	case stopped != nil, !tableKnown(from), !tableKnown(to):
		return CauseUnknown
	case len(shared) > 0:
		return CauseBothLimited
	}
	return CauseNoPartition
}

// tableKnown reports whether every key of an end port was read.
func tableKnown(p *observed.Port) bool { return p.InfoRead && p.PKeysKnown() }

// packet is what a member of a partition sends.
func (v *View) packet(b ib.PKeyBase, full bool) Packet {
	p := Packet{PKey: b.Limited(), SL: v.SL, AnyVL: v.AnyVL}
	if full {
		p.PKey = b.Full()
	}
	return p
}

// memberships are the partitions in the table of an end port, as far as it was read and
// the viewer sees them, with whether it holds the full key.
func (v *View) memberships(p *observed.Port) map[ib.PKeyBase]bool {
	m := map[ib.PKeyBase]bool{}
	for _, k := range p.ReadPKeys() {
		if k.IsValid() && (v.Sees == nil || v.Sees(p, k.Base())) {
			m[k.Base()] = m[k.Base()] || k.IsFull()
		}
	}
	return m
}
