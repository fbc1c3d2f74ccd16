package watch

import (
	"maps"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// trapRate is how many traps a second of one sender are looked at for good,
	// trapBurst how many at once. A device sends one, and repeats it at most
	// once in PortInfo.SubnetTimeOut until it is repressed. The same goes for all
	// together whose LID the snapshot gives to nobody.
	trapRate  = 4
	trapBurst = 16
	// linkRate is how many changes of one link a second are followed for good,
	// linkBurst how many at once: who lets his link go up and down without end is
	// out of the subnet for so long.
	linkRate  = 1.0 / 30
	linkBurst = 4
	// muteRate and muteBurst are the same for a link that has not changed, of which the
	// device behind it did not answer, or answers again: it takes the manager several
	// time-outs to find the first.
	muteRate  = 1.0
	muteBurst = 8
	// accountsMax bounds the senders and links that are remembered; beyond it those
	// that have been quiet are forgotten.
	accountsMax = 4096
)

// Sender is who sent traps.
type Sender struct {
	bucket Bucket
	// told reports whether he is named already: not again before he was quiet.
	told bool
}

// Senders are the ports that sent traps. The zero value is empty.
type Senders struct {
	at map[observed.Place]*Sender
	// Unknown is all together whose LID nobody has.
	Unknown Sender
}

// Of is the account of a port.
func (x *Senders) Of(now time.Duration, at observed.Place) *Sender {
	if x.at == nil {
		x.at = make(map[observed.Place]*Sender)
	}
	s := x.at[at]
	if s == nil {
		if len(x.at) >= accountsMax {
			maps.DeleteFunc(x.at, func(_ observed.Place, s *Sender) bool { return s.bucket.Full(now, trapRate, trapBurst) })
		}
		s = &Sender{}
		x.at[at] = s
	}
	return s
}

// Allows reports whether another trap of s is looked at.
func (s *Sender) Allows(now time.Duration) bool {
	s.told = s.told && !s.bucket.Full(now, trapRate, trapBurst)
	return s.bucket.Take(now, trapRate, trapBurst)
}

// Tell reports whether s is to be named: once, until it was quiet.
func (s *Sender) Tell() bool {
	first := !s.told
	s.told = true
	return first
}

// Links says how often the link of a port may be followed. The zero value is empty.
type Links struct {
	at map[observed.Place]*followed
}

// followed is what is left to a link: of changes, and of silence behind it.
type followed struct{ moved, mute Bucket }

// Next is when a link may be followed: now, or later when it changed too often. mute tells
// that it has not changed, and is followed for a device that did not answer, or answers again.
func (x *Links) Next(now time.Duration, at observed.Place, mute bool) time.Duration {
	b := x.account(now, at)
	next := b.moved.Next(now, linkRate, linkBurst)
	if mute {
		next = max(next, b.mute.Next(now, muteRate, muteBurst))
	}
	return next
}

// Take counts that a link is followed.
func (x *Links) Take(now time.Duration, at observed.Place, mute bool) {
	if b := x.account(now, at); mute {
		b.mute.Take(now, muteRate, muteBurst)
	} else {
		b.moved.Take(now, linkRate, linkBurst)
	}
}

func (x *Links) account(now time.Duration, at observed.Place) *followed {
	if x.at == nil {
		x.at = make(map[observed.Place]*followed)
	}
	b := x.at[at]
	if b == nil {
		if len(x.at) >= accountsMax {
			maps.DeleteFunc(x.at, func(_ observed.Place, b *followed) bool {
				return b.moved.Full(now, linkRate, linkBurst) && b.mute.Full(now, muteRate, muteBurst)
			})
		}
		b = &followed{}
		x.at[at] = b
	}
	return b
}

// Owners says which end port a LID belongs to. The zero value knows none.
type Owners struct {
	fabric *observed.Fabric
	epoch  uint64
	built  bool
	master *observed.Port
	ports  map[ib.LID]*observed.Port
}

// Of is the end port among ends to which the manager has given a LID, and which
// shows to have it; nil for none. A LID that a port has taken belongs to nobody.
// given is the LIDs that were given; epoch goes up when they, or those that ports
// show, may have changed.
func (o *Owners) Of(lid ib.LID, f *observed.Fabric, epoch uint64, ends []*observed.Port, given Given) *observed.Port {
	if !o.built || o.fabric != f || o.epoch != epoch || o.master != given.Master {
		o.build(f, epoch, ends, given)
	}
	p := o.ports[lid]
	if p == nil || !p.InfoRead || lid < p.Info.LID || int(lid) >= int(p.Info.LID)+p.Info.LMC.Count() {
		return nil
	}
	return p
}

// Given are LIDs by the ports to which the manager has given them. Where Master is set,
// that port has MasterLID instead, and no other has it.
type Given struct {
	LIDs      map[ib.PortGUID]ib.LID
	Master    *observed.Port
	MasterLID ib.LID
}

// differs reports whether a port was given another LID than it shows.
func (g *Given) differs(p *observed.Port) bool {
	if g.Master != nil && (p == g.Master || p.Answers(g.MasterLID)) {
		return p != g.Master || p.Info.LID != g.MasterLID
	}
	lid, ok := g.LIDs[p.GUID]
	return ok && lid != p.Info.LID
}

func (o *Owners) build(f *observed.Fabric, epoch uint64, ends []*observed.Port, given Given) {
	*o = Owners{fabric: f, epoch: epoch, built: true, master: given.Master, ports: make(map[ib.LID]*observed.Port, len(ends))}
	for _, p := range ends {
		if !p.InfoRead || !p.Info.LID.IsUnicast() || given.differs(p) {
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
