package isolation

import (
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Raw says what a proof makes of raw packets (EtherType, IPv6), which carry no
// P_Key that anybody could check.
type Raw uint8

// The ways to take raw packets.
const (
	// RawIgnored leaves them out of the proof.
	RawIgnored Raw = iota
	// RawDenied wants them stopped between end ports that the policy keeps
	// apart, by a filter of either one's switch port.
	RawDenied
	// RawAllowed is for a policy that lets them pass; the proof says so.
	RawAllowed
)

// String is the word for it.
func (r Raw) String() string {
	switch r {
	case RawDenied:
		return "denied"
	case RawAllowed:
		return "allowed"
	}
	return "ignored"
}

// ParseRaw is the inverse of String; ok is false for another word.
func ParseRaw(word string) (r Raw, ok bool) {
	for _, r := range []Raw{RawIgnored, RawDenied, RawAllowed} {
		if word == r.String() {
			return r, true
		}
	}
	return RawIgnored, false
}

// rawGap is how raw packets pass the switch port before an end port: in, from
// the end port, or out, to it.
type rawGap struct {
	in, out bool
	why     string
}

func (g rawGap) open() bool { return g.in || g.out }

// rawGapOf judges the way of raw packets from and to the end port p. The switch's
// own port 0 needs no filter.
func rawGapOf(p *observed.Port) rawGap {
	switch {
	case p.Node.Switch != nil, p.Peer == nil:
		return rawGap{}
	case p.Peer.IsEnd():
		return rawGap{true, true, "no switch port before it"}
	}
	return rawGapAt(p.Peer)
}

// rawGapAt judges an external switch port. Of what was not read the proof says
// so elsewhere.
func rawGapAt(s *observed.Port) (g rawGap) {
	info := &s.Node.Switch.Info
	if !s.Node.Switch.InfoRead || !s.InfoRead {
		return g
	}
	var why []string
	look := func(name string, can, on, forgets bool) bool {
		switch {
		case !can:
			why = append(why, "FilterRaw"+name+"Cap is 0")
		case !on && forgets:
			why = append(why, "FilterRaw"+name+" is 0: the switch does not keep it")
		case !on:
			why = append(why, "FilterRaw"+name+" is 0")
		default:
			return false
		}
		return true
	}
	g.in = look("Inbound", info.FilterRawInboundCap, s.Info.FilterRawInbound, s.Forgets&observed.ElementFilterRawInbound != 0)
	g.out = look("Outbound", info.FilterRawOutboundCap, s.Info.FilterRawOutbound, s.Forgets&observed.ElementFilterRawOutbound != 0)
	g.why = strings.Join(why, ", ")
	return g
}

// noteRaw counts the end ports whose switch ports let raw packets pass.
func (p *Prover) noteRaw(i int) {
	p.countRaw(p.raw[i], -1)
	p.raw[i] = rawGapOf(p.ports[i])
	p.countRaw(p.raw[i], 1)
}

func (p *Prover) countRaw(g rawGap, by int) {
	if g.in {
		p.rawIn += by
	}
	if g.out {
		p.rawOut += by
	}
}

// rawParty are the end ports of one grant that can send, or receive, raw packets.
type rawParty struct{ in, out, both int }

// rawEnd is an end port, or what is behind a switch port and did not answer
// (grant 0, the empty set: kept apart from everybody).
type rawEnd struct {
	rawGap
	at    *observed.Port
	grant int32
	port  int32 // its number, or -1
}

// CaveatRaw is the caveat of RawAllowed. It concerns every end port.
const CaveatRaw = "the policy lets raw packets pass, which carry no P_Key: between any two end ports whose switch ports do not filter them"

// findRaw looks for end ports that raw packets can go between and that the
// policy keeps apart, and lists the switch ports that let them.
func (p *prover) findRaw() {
	switch {
	case p.rawPackets == RawAllowed:
		p.proof.Caveats = append(p.proof.Caveats, CaveatRaw)
		return
	case p.rawPackets == RawIgnored:
		return
	}
	strangers := p.rawStrangers()
	in, out := p.rawIn, p.rawOut
	for _, s := range strangers {
		in, out = in+one(s.in), out+one(s.out)
	}
	if in == 0 || out == 0 {
		return
	}
	ends := strangers
	for i, g := range p.raw {
		if g.open() {
			ends = append(ends, rawEnd{g, p.guards[i].at, p.policy.grant[i], int32(i)})
		}
	}
	p.enterRaw(ends, in, out)
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rawStrangers are links that carry data to nobody who answered.
func (p *prover) rawStrangers() (out []rawEnd) {
	for _, s := range p.open {
		if s.IsEnd() || !s.InfoRead || s.Info.PortState == smp.PortDown || s.Info.PortState == smp.PortInit {
			continue
		}
		if g := rawGapAt(s); g.open() {
			out = append(out, rawEnd{g, s, noGrant, -1})
		}
	}
	return out
}

// noGrant is the grant of ports in no partition.
const noGrant int32 = 0

// enterRaw counts the pairs, in out of all of which raw packets leave and come
// to, and enters the places.
func (p *prover) enterRaw(ends []rawEnd, in, out int) {
	parties := make(map[int32]*rawParty)
	for _, e := range ends {
		x := parties[e.grant]
		if x == nil {
			x = new(rawParty)
			parties[e.grant] = x
		}
		x.in, x.out, x.both = x.in+one(e.in), x.out+one(e.out), x.both+one(e.in && e.out)
	}
	// Of each grant: how many ports a port of it can send to, and be sent to
	// from, against the policy.
	type reached struct {
		to, from int
		itself   bool // a port of the grant is counted as its own partner
	}
	wrong := make(map[int32]reached, len(parties))
	for grant, own := range parties {
		r := reached{to: out, from: in}
		for _, h := range p.policy.partners(grant) {
			if x := parties[h]; x != nil {
				r.to, r.from = r.to-x.out, r.from-x.in
			}
		}
		p.proof.Counts.Raw += own.in * r.to
		if r.itself = !p.policy.may(grant); r.itself {
			p.proof.Counts.Raw -= own.both // nobody sends to itself
		}
		wrong[grant] = r
	}
	if p.proof.Counts.Raw == 0 {
		return
	}
	for _, e := range ends {
		r := wrong[e.grant]
		if !e.in {
			r.to = 0
		}
		if !e.out {
			r.from = 0
		}
		if r.itself && e.in && e.out {
			r.to, r.from = r.to-1, r.from-1
		}
		if r.to <= 0 && r.from <= 0 {
			continue
		}
		p.pairs.rest(p.policy.partsOf(e.grant), ByEndPorts, e.at, "raw packets pass: "+e.why)
		p.rawGaps.add(e.why, e.at.String())
		if e.port >= 0 {
			p.mark(e.port, ByEndPorts)
		}
		if counted(&p.proof.Counts.RawPlaces, MaxListed) {
			p.proof.Raw = append(p.proof.Raw, Finding{placeOf(e.at), e.why})
		}
	}
}

// partners are the grants that one grant may talk to, each once; may answers
// for that grant afterwards.
func (p *policy) partners(grant int32) (out []int32) {
	p.from = 0
	p.ask(grant)
	for _, k := range p.sets.sets[grant] {
		with := p.members[k.Base()].full
		if k.IsFull() {
			with = p.members[k.Base()].all
		}
		out = append(out, with...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
