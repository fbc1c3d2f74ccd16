package engine

import (
	"maps"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/traps"
	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// trapRate is how many traps a second of one sender are looked at for good,
	// trapBurst how many at once. A device sends one, and repeats it at most
	// once in PortInfo.SubnetTimeOut until it is repressed.
	trapRate  = 4
	trapBurst = 16
	// unknownRate and unknownBurst are the same for all together whose LID the
	// snapshot gives to nobody.
	unknownRate  = 4
	unknownBurst = 16
	// maxSenders bounds the senders that are remembered; beyond it those that
	// have been quiet are forgotten.
	maxSenders = 4096
)

// sender is who sent traps.
type sender struct {
	traps.Bucket
	// told tells that an event names it already: not again before it was quiet.
	told bool
}

// allows reports whether another trap of s is looked at, and tells of a sender
// from which there are too many.
func (e *Engine) allows(now time.Duration, s *sender, rate, burst float64, who string) bool {
	s.told = s.told && !s.Full(now, rate, burst)
	if s.Take(now, rate, burst) {
		return true
	}
	e.tellOnce(s, event.Flooded{Sender: who})
	return false
}

func (e *Engine) tellOnce(s *sender, ev event.Event) {
	if !s.told {
		s.told = true
		e.emit(ev)
	}
}

// senderOf is the account of a port's traps.
func (e *Engine) senderOf(now time.Duration, p *observed.Port) *sender {
	at := p.Place()
	s := e.senders[at]
	if s == nil {
		if len(e.senders) >= maxSenders {
			maps.DeleteFunc(e.senders, func(_ observed.Place, s *sender) bool { return s.Full(now, trapRate, trapBurst) })
		}
		s = &sender{}
		e.senders[at] = s
	}
	return s
}

// owners says which end port a LID belongs to.
type owners struct {
	fabric *observed.Fabric
	epoch  uint64
	built  bool
	ports  map[ib.LID]*observed.Port
}

// holder is the end port to which the manager has given a LID, and which shows to
// have it; nil for none. A LID that a port has taken belongs to nobody.
func (e *Engine) holder(lid ib.LID) *observed.Port {
	o := &e.attention.owners
	if !o.built || o.fabric != e.fabric || o.epoch != e.epoch {
		*o = owners{fabric: e.fabric, epoch: e.epoch, built: true, ports: make(map[ib.LID]*observed.Port, len(e.ends))}
		for _, p := range e.ends {
			if !p.InfoRead || !p.Info.LID.IsUnicast() {
				continue
			}
			if given, ok := e.known.LIDs[p.GUID]; ok && given != p.Info.LID {
				continue
			}
			for i := range p.Info.LMC.Count() {
				lid := p.Info.LID + ib.LID(i)
				if _, twice := o.ports[lid]; twice {
					o.ports[lid] = nil
				} else {
					o.ports[lid] = p
				}
			}
		}
	}
	p := o.ports[lid]
	if p == nil || !p.InfoRead || lid < p.Info.LID || int(lid) >= int(p.Info.LID)+p.Info.LMC.Count() {
		return nil
	}
	return p
}

func (e *Engine) directory() *traps.Directory {
	return &traps.Directory{Holder: e.holder, Ends: e.ends, Prefix: e.config.GIDPrefix}
}

// receiveTrap takes a trap. One of a sender that the snapshot does not know, or
// that sends too many, is dropped before anything is done for it; one in the name
// of another port is not believed. Any other is answered with TrapRepress, so
// that its sender stops, and costs a look at its sender at the most.
func (e *Engine) receiveTrap(now time.Duration, p *mad.SMP, slid ib.LID) {
	if p.Class != mad.ClassSubnLID || e.fabric == nil {
		return // traps go by LID
	}
	from := e.holder(slid)
	if from == nil {
		e.allows(now, &e.unknown, unknownRate, unknownBurst, "somebody whose LID belongs to no port")
		return
	}
	s := e.senderOf(now, from)
	var n smp.Notice
	if !e.allows(now, s, trapRate, trapBurst, from.String()) || n.UnmarshalBinary(p.Data[:]) != nil {
		return
	}
	if e.holder(n.IssuerLID) != from {
		e.tellOnce(s, event.Disbelieved{Sender: from.String(), Number: n.TrapNumber, Issuer: n.IssuerLID})
		return
	}
	if !e.repress(now, p, slid, &n) || !n.IsGeneric {
		return
	}
	trapped := event.Trapped{Number: n.TrapNumber, Issuer: n.IssuerLID, Notice: n, Sender: slid, Report: traps.Explain(from, &n, e.directory())}
	e.emit(trapped)
	e.heedTrap(from, trapped)
}

// heedTrap looks at who sent a trap, if that is who it is about.
func (e *Engine) heedTrap(from *observed.Port, t event.Trapped) {
	details, ok := t.Notice.TypedDetails()
	if !ok {
		return
	}
	switch d := details.(type) {
	case *smp.LinkStateDetails:
		if from.Node.Switch != nil && e.holder(d.LID) == from {
			e.wantLook(from, t)
		}
	case *smp.LocalChangeDetails:
		if e.holder(d.LID) == from {
			e.wantLook(from, t)
		}
	case *smp.BadMKeyDetails:
		e.suspect(from, d)
	}
}

// wantLook has a node looked at; where nobody watches over a policy that stands,
// the subnet is swept instead, since the next pass will rest on that.
func (e *Engine) wantLook(p *observed.Port, t event.Trapped) {
	if t.Number == smp.TrapLocalChange {
		e.askAgain(p)
		e.lookForManager(p)
	}
	if e.desired == nil && e.atRest() {
		e.wantSweep(t.String())
		return
	}
	e.lookAgain(endPlace(p))
}

// outboxMax bounds the answers that wait to be sent: whoever asks faster than
// they leave has to ask again.
const outboxMax = 256

func (e *Engine) answer(p mad.SMP, dlid ib.LID) {
	if len(e.outbox) < outboxMax {
		e.outbox = append(e.outbox, outgoing{p, dlid})
	}
}
