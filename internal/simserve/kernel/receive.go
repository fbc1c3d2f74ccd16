package kernel

import (
	"encoding/binary"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// Receive takes a datagram that arrived at the port and that the adapter's own
// agents did not answer.
func (l *Layer) Receive(now time.Duration, p *Packet) {
	if l.gone || !isValid(p) {
		l.dropped++
		return
	}
	in := *p
	in.PathBits &= l.pathMask
	p = &in
	a := l.find(&p.MAD)
	switch {
	case a == nil:
		l.refuse(p)
	case a.asked.QPN != uint32(p.QP):
		l.dropped++
	case a.kernelRMPP() && mad.Class(p.MAD[mad.OffsetClass]) == mad.ClassSubnAdm && rmppActive(p.MAD[:]):
		l.receiveLong(now, a, p)
	default:
		l.hand(a, p, append([]byte(nil), p.MAD[:]...))
	}
}

// isValid holds a datagram against the rules for any at its queue pair.
func isValid(p *Packet) bool {
	class := mad.Class(p.MAD[mad.OffsetClass])
	if p.MAD[0] != mad.BaseVersion || isSubnet(class) != (p.QP == 0) {
		return false
	}
	// Communication management has a method for everything but ClassPortInfo.
	attribute := mad.AttributeID(binary.BigEndian.Uint16(p.MAD[mad.OffsetAttributeID:]))
	return class != mad.ClassCommMgt || attribute == mad.AttrClassPortInfo ||
		mad.Method(p.MAD[mad.OffsetMethod]) == mad.MethodSend
}

// refuse answers a Get or Set for which there is no agent.
func (l *Layer) refuse(p *Packet) {
	method := mad.Method(p.MAD[mad.OffsetMethod])
	if method != mad.MethodGet && method != mad.MethodSet || isResponse(p.MAD[:]) || len(l.replies) >= maxReplies {
		l.dropped++
		return
	}
	r := *p
	r.MAD[mad.OffsetMethod] = byte(mad.MethodGetResp)
	binary.BigEndian.PutUint16(r.MAD[mad.OffsetStatus:], uint16(mad.StatusUnsupportedAttrib))
	if mad.Class(r.MAD[mad.OffsetClass]) == mad.ClassSubnDirected {
		r.MAD[mad.OffsetStatus] |= 0x80
	}
	l.replies = append(l.replies, r)
}

// hand gives a whole message to its agent's file: an answer only if it was
// asked for.
func (l *Layer) hand(a *agent, p *Packet, bytes []byte) {
	f := a.file
	from := l.senderOf(p.Address)
	switch s := a.match(p); {
	case s != nil:
		l.end(s)
		from = 0
	case isResponse(p.MAD[:]) && (a.kernelRMPP() || !hasRMPP(mad.Class(p.MAD[mad.OffsetClass])) || !rmppActive(p.MAD[:])),
		f.count+len(f.unread) >= MaxMessages/2, from.IsUnicast() && f.waiting[from] >= maxUnasked:
		l.dropped++
		return
	}
	if !from.IsUnicast() {
		from = 0
	}
	h := umad.Header{
		ID: a.slot, QPN: p.QPN, LID: p.LID, SL: p.SL, PathBits: p.PathBits, PKeyIndex: p.PKeyIndex,
	}
	if p.HasGRH {
		h.GRHPresent, h.GRH = 1, p.GRH
		h.HopLimit = answerHops
	}
	if from != 0 {
		f.waiting[from]++
	}
	f.deliver(message{h, bytes, from})
}

// answerHops is the hop limit for whatever answers a datagram.
const answerHops = 0xFF

// match is the request that an answer answers.
func (a *agent) match(p *Packet) *send {
	if !isResponse(p.MAD[:]) {
		return nil
	}
	class := mad.Class(p.MAD[mad.OffsetClass])
	for _, s := range a.file.sends[sendKey{transaction(p.MAD[:]), class}] {
		if s.agent == a && s.wait > 0 && !s.response &&
			(class == mad.ClassSubnDirected || samePath(&s.packet.Address, &p.Address)) {
			return s
		}
	}
	return nil
}

// samePath reports whether an answer arrived at the address of the request.
func samePath(asked, answer *Address) bool {
	if asked.HasGRH != answer.HasGRH {
		return false
	}
	if asked.HasGRH {
		return asked.GRH.GIDIndex == answer.GRH.GIDIndex
	}
	return asked.PathBits == answer.PathBits
}

// longLimits are for one agent. Linux has no bounds; here what one message may
// hold is what a table of the largest subnet needs, and what one LID sends fills
// a small part of the room, so that as with Linux nobody waits for its end.
func longLimits() rmpp.Limits {
	l := rmpp.DefaultLimits()
	l.ReceiveMax, l.ReceiveTotal = 32<<20, 1<<30
	l.Senders, l.PerPeer, l.Receivers = 16_384, 64, 16_384
	l.SenderSends, l.SenderReceives = 64, 64
	l.SendTotal, l.SenderSendTotal, l.SenderReceiveTotal, l.SenderLittle = 1<<30, 64<<20, 64<<20, 32<<20
	return l
}

func (a *agent) endpoint() *rmpp.Endpoint[Address] {
	if a.long == nil {
		a.long = rmpp.NewBy(longLimits(), a.file.layer.senderOf)
		a.file.layer.joining = append(a.file.layer.joining, a)
	}
	return a.long
}

// senderOf is the LID that stands for all of a port's: every end port has as
// many as this one.
func (l *Layer) senderOf(from Address) ib.LID { return from.LID &^ ib.LID(l.pathMask) }

// peer is what tells the other sides of RMPP transfers apart: what is the same
// in both directions.
func (p *Packet) peer() Address {
	out := p.Address
	if out.HasGRH {
		out.GRH.HopLimit = answerHops
	}
	return out
}

// complete gives a segment the hop limit that its message was written with;
// acknowledgements have none.
func (a *agent) complete(to Address, p *Packet) {
	if !to.HasGRH || mad.RMPPType(p.MAD[mad.OffsetRMPPType]) != mad.RMPPData {
		return
	}
	for _, s := range a.file.sends[sendKey{transaction(p.MAD[:]), mad.Class(p.MAD[mad.OffsetClass])}] {
		if s.agent == a && s.long && s.packet.peer() == to && s.packet.MAD[mad.OffsetMethod] == p.MAD[mad.OffsetMethod] {
			p.GRH.HopLimit = s.packet.GRH.HopLimit
		}
	}
}

// receiveLong takes a packet of an RMPP transfer.
func (l *Layer) receiveLong(now time.Duration, a *agent, p *Packet) {
	whole := a.endpoint().Receive(now, p.peer(), &p.MAD)
	a.endings(now)
	if whole == nil {
		return
	}
	first := *p
	first.MAD = [mad.Size]byte{}
	copy(first.MAD[:], whole.Head[:])
	l.hand(a, &first, append(whole.Head[:], whole.Body...))
}

// endings looks at the transfers that ended.
func (a *agent) endings(now time.Duration) {
	l := a.file.layer
	for _, e := range a.long.Ended() {
		for _, s := range a.file.sends[sendKey{e.Transaction, mad.ClassSubnAdm}] {
			if s.agent != a || !s.long || s.packet.peer() != e.Peer || s.timer >= 0 ||
				a.long.Sending(e.Peer, s.packet.MAD[:]) {
				continue
			}
			abort, failed := e.Err.(*rmpp.Abort)
			switch {
			case !failed:
				l.left(now, s)
			case !abort.Remote && (abort.Status == mad.RMPPTooManyRetries || abort.Status == mad.RMPPTotalTimeTooLong):
				l.timeOut(s)
			default:
				l.end(s) // the kernel tells the program nothing
			}
			break
		}
	}
}
