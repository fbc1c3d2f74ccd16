package endpoint

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Reason says why a packet was dropped.
type Reason uint8

// The reasons.
const (
	Taken            Reason = iota // it was not
	ReasonMalformed                // lengths, versions, opcode
	ReasonPortState                // data at a port that is neither armed nor active
	ReasonAddress                  // not a LID or GID of the port, nor a group
	ReasonICRC                     // wrong
	ReasonLane                     // virtual lane 15 is for QP0, QP0 is on virtual lane 15
	ReasonNoQP                     // no QP or EE context of that number
	ReasonPort                     // the QP belongs to another port
	ReasonService                  // the QP has another transport
	ReasonState                    // the QP does not receive, or not such a packet
	ReasonPKeyBase                 // another partition
	ReasonMembership               // limited members both
	ReasonQKey                     // wrong
	ReasonNoReceive                // no receive request posted
	ReasonLength                   // does not fit its buffer, its memory or its place in the message
	ReasonSequence                 // not the PSN that is next
	ReasonDuplicate                // seen before
	ReasonOpCode                   // makes no sense at this point
	ReasonAccess                   // memory that the peer may not touch
	ReasonFull                     // too many answers wait to be sent
	ReasonRefused                  // RD: no QP that takes it
	reasonCount
)

var reasonNames = [reasonCount]string{
	"taken", "malformed", "port state", "address", "ICRC", "VL", "no QP", "other port", "service", "state",
	"P_Key base", "P_Key membership", "Q_Key", "no receive request", "length", "sequence", "duplicate", "opcode",
	"access", "too many answers", "refused",
}

// String says why in a word or two.
func (r Reason) String() string {
	if r >= reasonCount {
		return "unknown reason"
	}
	return reasonNames[r]
}

// ViolationKind is the key that was violated.
type ViolationKind uint8

// The kinds of violation.
const (
	BadPKey ViolationKind = iota + 1
	BadQKey
)

// Violation is a packet refused for a key, with what traps 257 and 258 tell. Its
// source QP is 0 when the packet does not name it, as in RC and UC.
type Violation struct {
	Kind    ViolationKind
	Offence smp.BadKeyDetails
}

// Result is the outcome of a packet.
type Result struct {
	Reason Reason
	// Violation is set for a drop that the port counts; valid until the next
	// call of Receive.
	Violation *Violation
}

// Receive takes a packet that arrived at port n.
func (d *Device) Receive(now time.Duration, n ib.PortNum, bytes []byte) Result {
	d.violation.Kind = 0
	p, err := d.port(n)
	if err != nil {
		return Result{Reason: ReasonPort}
	}
	// A view of its own would be allocated for each packet.
	if err := d.view.Parse(bytes); err != nil {
		return Result{Reason: ReasonMalformed}
	}
	r := Result{Reason: d.receive(now, p, &d.view, bytes)}
	if d.violation.Kind != 0 {
		r.Violation = &d.violation
	}
	return r
}

func (d *Device) receive(now time.Duration, p *port, v *packet.View, bytes []byte) Reason {
	if r := p.admits(v); r != Taken {
		return r
	}
	if v.BTH == nil {
		if v.LRH.VL() == ib.VLManagement {
			return ReasonLane
		}
		return p.deliverRaw(v)
	}
	if right, err := packet.CheckICRC(bytes); err != nil || !right {
		return ReasonICRC
	}
	qpn := v.BTH.DestQP()
	transport := v.BTH.OpCode().Transport()
	switch {
	case (qpn == ib.QP0) != (v.LRH.VL() == ib.VLManagement):
		return ReasonLane
	case qpn == ib.QPMulticast || v.LRH.DLID().IsMulticast():
		return d.receiveMulticast(p, v)
	case transport == packet.RD:
		return d.receiveRD(now, p, v)
	}
	q := p.find(d, qpn)
	switch {
	case q == nil && qpn == ib.QP1 && transport == packet.UD:
		return d.receiveAtQP1(p, v)
	case q == nil:
		return ReasonNoQP
	case q.attr.Port != p.number:
		return ReasonPort
	case q.service.isRaw() || q.service.transport() != transport:
		return ReasonService
	case !q.state.receives():
		return ReasonState
	}
	r, index := q.checkPKey(v)
	switch {
	case r != Taken:
		return d.violated(BadPKey, v, r)
	case transport != packet.UD && v.BTH.OpCode().Operation().IsResponse():
		return q.answered(now, v)
	case transport != packet.UD:
		return q.requested(v, q)
	case q.service != SMI && v.DETH.QKey() != q.attr.QKey:
		return d.violated(BadQKey, v, ReasonQKey)
	}
	return q.deliver(v, index)
}

// receiveAtQP1 checks the keys of a datagram for QP1 that nobody here takes: every port has QP1, and
// counts there what has the wrong keys, whatever programs have opened.
func (d *Device) receiveAtQP1(p *port, v *packet.View) Reason {
	if r, _ := p.checkAnyPKey(v.BTH.PKey()); r != Taken {
		return d.violated(BadPKey, v, r)
	}
	if v.DETH.QKey() != ib.QKeyGSI {
		return d.violated(BadQKey, v, ReasonQKey)
	}
	return ReasonNoQP
}

// outcomes are the reasons that a ConnectionOutcome stands for.
var outcomes = [...]Reason{
	ConnectionTaken: Taken, NoRoom: ReasonNoReceive, Length: ReasonLength,
	Sequence: ReasonSequence, Duplicate: ReasonDuplicate, OpCode: ReasonOpCode,
	ConnectionAccess: ReasonAccess, Full: ReasonFull, Refused: ReasonRefused,
}

// answered takes an answer of the peer.
func (c *context) answered(now time.Duration, v *packet.View) Reason {
	if c.state != StateRTS && c.state != StateSQD {
		return ReasonState
	}
	r := outcomes[c.end.Answered(now, v)]
	c.after()
	return r
}

// requested takes a request of the peer, for q if that is not nil.
func (c *context) requested(v *packet.View, q *QP) Reason {
	var to ConnectionOwner
	if q != nil {
		to = owner{q}
	}
	r := outcomes[c.end.Requested(v, to)]
	if c.service == RC {
		switch r {
		case ReasonAccess:
			c.d.raise(Event{Kind: EventQPAccessError, QP: q})
		case ReasonLength, ReasonOpCode:
			c.d.raise(Event{Kind: EventQPRequestError, QP: q})
		}
	}
	c.after()
	return r
}

// admits checks what does not depend on the queue pair.
func (p *port) admits(v *packet.View) Reason {
	state, lid := p.Info().PortState, v.LRH.DLID()
	management := v.LRH.VL() == ib.VLManagement
	switch {
	case state < smp.PortInit || !management && state < smp.PortArmed:
		return ReasonPortState
	case lid == ib.LIDPermissive && management:
	case lid.IsMulticast() && !management:
		if v.GRH != nil && !v.GRH.DGID().IsMulticast() {
			return ReasonAddress
		}
		return Taken
	case !p.owns(lid):
		return ReasonAddress
	}
	if v.GRH != nil && !p.ownsGID(v.GRH.DGID()) {
		return ReasonAddress
	}
	return Taken
}

// find looks up a queue pair.
func (p *port) find(d *Device, n ib.QPN) *QP {
	switch n {
	case ib.QP0:
		return p.smi
	case ib.QP1:
		return p.gsi
	}
	return d.qps[n]
}

// checkPKey compares a packet's P_Key with what the context goes by, and tells
// the entry that decided.
func (c *context) checkPKey(v *packet.View) (Reason, uint16) {
	key := v.BTH.PKey()
	switch c.service {
	case SMI:
		return Taken, 0 // a member of all partitions
	case GSI:
		return c.port().checkAnyPKey(key)
	}
	return compare(key, c.port().key(c.attr.PKeyIndex)), c.attr.PKeyIndex
}

// checkAnyPKey compares a key with all entries of the port's table, and tells the entry that decided.
func (p *port) checkAnyPKey(key ib.PKey) (Reason, uint16) {
	worst := ReasonPKeyBase
	for i, entry := range p.PKeys() {
		r := compare(key, entry)
		if r == Taken {
			return Taken, uint16(i)
		}
		worst = max(worst, r)
	}
	return worst, 0
}

// compare checks the partition first and then the membership.
func compare(key, entry ib.PKey) Reason {
	switch {
	case key.Matches(entry):
		return Taken
	case key.Base() != entry.Base() || !key.IsValid():
		return ReasonPKeyBase
	}
	return ReasonMembership
}

// violated notes whose key was wrong.
func (d *Device) violated(kind ViolationKind, v *packet.View, r Reason) Reason {
	o := smp.BadKeyDetails{
		LID1: v.LRH.SLID(), LID2: v.LRH.DLID(), SL: v.LRH.SL(), QP2: v.BTH.DestQP(), Key: uint32(v.BTH.PKey()),
	}
	if v.DETH != nil {
		o.QP1 = v.DETH.SrcQP()
		if kind == BadQKey {
			o.Key = uint32(v.DETH.QKey())
		}
	}
	if v.GRH != nil {
		o.GID1, o.GID2 = v.GRH.SGID(), v.GRH.DGID()
	}
	d.violation = Violation{Kind: kind, Offence: o}
	return r
}

// receiveMulticast gives a copy to every QP of the group that takes it.
func (d *Device) receiveMulticast(p *port, v *packet.View) Reason {
	switch {
	case v.BTH.DestQP() != ib.QPMulticast || !v.LRH.DLID().IsMulticast() || v.GRH == nil:
		return ReasonAddress
	case v.BTH.OpCode().Transport() != packet.UD:
		return ReasonService
	}
	best, delivered := ReasonNoQP, false // ReasonNoQP is less than those of the keys
	result := Taken
	for _, q := range d.groups[group{v.LRH.DLID(), v.GRH.DGID()}] {
		if q.attr.Port != p.number || !q.state.receives() {
			continue
		}
		r, index := q.checkPKey(v)
		switch {
		case r != Taken:
			best = max(best, r)
		case v.DETH.QKey() != q.attr.QKey:
			best = max(best, ReasonQKey)
		default:
			if r = q.deliver(v, index); !delivered || r == Taken {
				result = r
			}
			delivered = true
		}
	}
	switch {
	case delivered:
		return result
	case best == ReasonQKey:
		return d.violated(BadQKey, v, best)
	case best != ReasonNoQP:
		return d.violated(BadPKey, v, best)
	}
	return best
}

// describe takes from a packet what a receive completion tells of it.
func (c *Completion) describe(v *packet.View) {
	c.SLID, c.DLID, c.SL = v.LRH.SLID(), v.LRH.DLID(), v.LRH.SL()
	c.Global = v.GRH != nil
	if v.BTH != nil {
		c.PKey, c.Solicited = v.BTH.PKey(), v.BTH.SolicitedEvent()
	}
	if v.DETH != nil {
		c.SrcQP = v.DETH.SrcQP()
	}
	if v.ImmDt != nil {
		c.HasImm, c.Imm = true, v.ImmDt.Value()
	}
	if v.RWH != nil {
		c.EtherType = v.RWH.EtherType()
	}
}

// deliver puts a datagram, whose P_Key matched an entry, into the next receive
// request.
func (q *QP) deliver(v *packet.View, index uint16) Reason {
	var header []byte
	switch {
	case q.service.isRaw():
	case v.GRH != nil:
		header = v.GRH[:]
	default:
		header = noGRH[:]
	}
	switch {
	case q.service.isManagement() && v.ImmDt != nil:
		return ReasonOpCode
	case q.receives.Len() == 0:
		return ReasonNoReceive
	case len(header)+len(v.Payload) > len(q.receives.At(0).Buffer):
		return ReasonLength
	}
	r := q.receives.Pop()
	size := copy(r.Buffer, header)
	size += copy(r.Buffer[size:], v.Payload)
	c := q.completions.Add()
	c.ID, c.Op, c.Bytes, c.PKeyIndex = r.ID, OpReceive, r.Buffer[:size], index
	c.describe(v)
	return Taken
}

// noGRH stands before a datagram without a GRH.
var noGRH [GRHSize]byte

// deliverRaw gives a copy to every raw QP of the port and kind.
func (p *port) deliverRaw(v *packet.View) Reason {
	service := RawIPv6
	if v.RWH != nil {
		service = RawEtherType
	}
	result := ReasonNoQP
	for _, q := range p.raw {
		if q.service != service || !q.state.receives() {
			continue
		}
		if r := q.deliver(v, 0); result != Taken {
			result = r
		}
	}
	return result
}
