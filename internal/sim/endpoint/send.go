package endpoint

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// ServiceLevels is a set of service levels, bit n for SL n.
type ServiceLevels uint16

// AllServiceLevels has every service level.
const AllServiceLevels ServiceLevels = 0xFFFF

// hasPacket reports whether c would send a packet now.
func (c *context) hasPacket() bool {
	switch {
	case c.service == RD:
		return false
	case c.service.isDatagram():
		return c.state == StateRTS && c.qp.sends.Len() > 0
	case c.end.HasAnswer():
		return true
	}
	return (c.state == StateRTS || c.state == StateSQD) && c.end.HasRequest(c.state == StateSQD)
}

// kick puts c in its port's ready queue when it has something to send.
func (c *context) kick() {
	if !c.queued && c.hasPacket() {
		c.queued = true
		c.port().ready.Push(c)
		if c.d.wakeUp != nil {
			c.d.wakeUp(c.attr.Port)
		}
	}
}

// Ready reports whether something may wait to leave by port n. What waits for an
// active port counts.
func (d *Device) Ready(n ib.PortNum) bool {
	p, err := d.port(n)
	return err == nil && p.ready.Len() > 0
}

// HasSMI reports whether port n has a QP0.
func (d *Device) HasSMI(n ib.PortNum) bool {
	p, err := d.port(n)
	return err == nil && p.smi != nil
}

func (c *context) unready() {
	if c.queued {
		c.queued = false
		c.port().ready.Keep(func(other **context) bool { return *other != c })
	}
}

// after follows each call of c's connection.
func (c *context) after() {
	f := c.end.Failure()
	if f.Broken {
		c.fail()
	}
	if o, ok := f.Owner.(owner); ok {
		o.failSend()
	}
	if at, ok := c.end.Deadline(); ok {
		c.wake(at)
	} else {
		c.sleep()
	}
	c.kick()
}

// Send appends to dst the next packet that leaves by port n, of a level in
// levels; QP0's leave whatever levels says. Contexts take turns, packet by
// packet, their answers before their requests. It reports false, with dst as it
// was, when there is none. Data leaves an active port only, QP0's packets leave one
// that is not down.
func (d *Device) Send(now time.Duration, n ib.PortNum, levels ServiceLevels, dst []byte) ([]byte, bool) {
	p, err := d.port(n)
	if err != nil {
		return dst, false
	}
	state := p.Info().PortState
	for range p.ready.Len() {
		c := p.ready.Pop()
		switch {
		case !c.hasPacket():
			c.queued = false
			continue
		case c.service == SMI && state >= smp.PortInit:
		case state != smp.PortActive || levels>>c.level()&1 == 0:
			p.ready.Push(c)
			continue
		}
		c.queued = false
		var b []byte
		if c.service.isDatagram() {
			b = c.qp.appendDatagram(dst)
			if c.hasPacket() { // kick, but for telling who is asking anyway
				c.queued = true
				p.ready.Push(c)
			}
		} else {
			out := c.end.Next(now)
			b = c.appendPacket(dst, &out)
			c.after()
		}
		if len(b) > len(dst) {
			return b, true
		}
	}
	return dst, false
}

// level is the SL of the next packet.
func (c *context) level() ib.SL {
	if c.service.isDatagram() {
		return c.qp.sends.At(0).To.SL
	}
	return c.attr.Path.SL
}

// appendPacket makes a packet of a connection.
func (c *context) appendPacket(dst []byte, o *Outgoing) []byte {
	v := &c.d.outgoing
	b, err := v.Append(dst, o.OpCode, c.attr.Path.Global, o.Payload)
	if err != nil {
		return dst // no payload is longer than an MTU
	}
	c.route(v, &c.attr.Path)
	v.BTH.SetPKey(c.port().key(c.attr.PKeyIndex))
	v.BTH.SetDestQP(ib.QPN(c.attr.Remote))
	v.BTH.SetPSN(o.PSN)
	v.BTH.SetAckReq(o.AckReq)
	v.BTH.SetSolicitedEvent(o.Solicited)
	if v.RDETH != nil {
		v.RDETH.SetEEContext(c.attr.Remote)
		v.BTH.SetDestQP(o.Peer.SrcQP())
	}
	if v.DETH != nil {
		v.BTH.SetDestQP(o.Request.RemoteQP)
		if from, ok := o.Request.Owner.(owner); ok {
			v.DETH.SetQKey(from.stampedQKey(o.Request.RemoteQKey))
			v.DETH.SetSrcQP(from.Number())
		}
	}
	if v.RETH != nil {
		v.RETH.SetVA(o.VA)
		v.RETH.SetRKey(o.Request.RKey)
		v.RETH.SetDMALen(o.DMALen)
	}
	if v.ImmDt != nil {
		v.ImmDt.SetValue(o.Imm)
	}
	if v.AETH != nil {
		v.AETH.SetSyndrome(o.Syndrome)
		v.AETH.SetMSN(o.MSN)
	}
	return sealed(dst, b)
}

// appendDatagram makes the packet of the oldest request, which ends with it.
func (q *QP) appendDatagram(dst []byte) []byte {
	r := q.sends.At(0)
	c := q.completions.Add()
	c.ID, c.Op = r.ID, r.Op
	b := q.layDatagram(dst, r)
	q.sends.Drop()
	return b
}

func (q *QP) layDatagram(dst []byte, r *SendRequest) []byte {
	if q.service.isRaw() {
		return q.appendRaw(dst, r)
	}
	op := packet.SendOnly
	if r.HasImm {
		op = packet.SendOnlyImm
	}
	v := &q.d.outgoing
	b, err := v.Append(dst, packet.MakeOpCode(packet.UD, op), r.To.Global, r.Data)
	if err != nil {
		return dst // PostSend has looked at the length
	}
	q.route(v, &r.To)
	v.BTH.SetPKey(q.stampedPKey(r))
	v.BTH.SetDestQP(r.RemoteQP)
	v.BTH.SetPSN(q.psn)
	v.BTH.SetSolicitedEvent(r.Solicited)
	q.psn = (q.psn + 1) & max24
	v.DETH.SetQKey(q.stampedQKey(r.RemoteQKey))
	v.DETH.SetSrcQP(q.Number())
	if v.ImmDt != nil {
		v.ImmDt.SetValue(r.Imm)
	}
	return sealed(dst, b)
}

func sealed(dst, b []byte) []byte {
	if packet.Seal(b[len(dst):]) != nil {
		return dst // Append makes nothing too short
	}
	return b
}

// route fills the route headers.
func (c *context) route(v *packet.View, to *Address) {
	p := c.port()
	info := p.Info()
	v.LRH.SetSL(to.SL)
	v.LRH.SetDLID(to.DLID)
	v.LRH.SetSLID(info.LID | ib.LID(to.SourcePathBits)&(ib.LID(1)<<info.LMC-1))
	if c.service == SMI {
		v.LRH.SetVL(ib.VLManagement)
		if to.DLID == ib.LIDPermissive {
			v.LRH.SetSLID(ib.LIDPermissive)
		}
	}
	if v.GRH != nil {
		sgid, _ := p.GID(int(to.SGIDIndex)) // zero if the entry is gone
		v.GRH.SetSGID(sgid)
		v.GRH.SetDGID(to.DGID)
		v.GRH.SetTClass(to.TClass)
		v.GRH.SetFlowLabel(to.FlowLabel)
		v.GRH.SetHopLmt(to.HopLimit)
	}
}

// stampedPKey is the key that a datagram leaves with.
func (q *QP) stampedPKey(r *SendRequest) ib.PKey {
	switch {
	case q.service == GSI:
		return q.port().key(r.PKeyIndex)
	case q.service == SMI && r.PKey != 0:
		return r.PKey
	case q.service == SMI:
		return ib.PKeyDefaultFull
	}
	return q.port().key(q.attr.PKeyIndex)
}

// stampedQKey is the key that a datagram leaves with: a privileged one comes from
// the QP only.
func (q *QP) stampedQKey(asked ib.QKey) ib.QKey {
	if q.service.isManagement() || asked.IsPrivileged() {
		return q.attr.QKey
	}
	return asked
}

// appendRaw makes a raw packet, which has no transport headers and no ICRC.
func (q *QP) appendRaw(dst []byte, r *SendRequest) []byte {
	v := packet.View{LRH: new(packet.LRH), RWH: new(packet.RWH)}
	v.LRH.SetLNH(packet.LNHRaw)
	v.RWH.SetEtherType(r.EtherType)
	header := v.RWH[:]
	if q.service == RawIPv6 {
		v.LRH.SetLNH(packet.LNHRawIPv6)
		header = nil
	}
	q.route(&v, &r.To)
	v.LRH.SetPktLen(uint16((packet.LRHSize + len(header) + len(r.Data)) / 4))
	b := append(dst, v.LRH[:]...)
	b = append(b, header...)
	b = append(b, r.Data...)
	b = append(b, make([]byte, packet.VCRCSize)...)
	packet.SealVCRC(b[len(dst):])
	return b
}
