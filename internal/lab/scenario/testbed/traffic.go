package testbed

import (
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// What a queue pair of a stage has.
const (
	receives      = 32              // posted at all times
	longest       = 4096            // bytes of a message
	pathMTU       = ib.MTU256       // of connections: longer messages take several packets
	ackTimeout    = ib.TimeValue(6) // about a quarter of a millisecond, until a packet is sent again
	retries       = 2               // and then the request fails
	firstPSN      = 0xFFFFFE        // so that numbers wrap
	rawIPv6Size   = 40              // bytes of an IPv6 header
	vendorClass   = 0x0A            // of management datagrams
	rawEtherType  = 0x0800          // of raw EtherType packets
	initMask      = endpoint.AttrPort | endpoint.AttrPKeyIndex
	connectedMask = endpoint.AttrPath | endpoint.AttrPathMTU | endpoint.AttrRemote | endpoint.AttrReceivePSN
	reliableMask  = endpoint.AttrTimeout | endpoint.AttrRetryCount | endpoint.AttrRNRRetryCount
)

// QP is a queue pair, with an EE context of its own when it is RD.
type QP struct {
	At       observed.Place
	Service  endpoint.Service
	stage    *Testbed
	device   *endpoint.Device
	qp       *endpoint.QP
	ee       *endpoint.EEContext
	caller   endpoint.Caller
	attr     endpoint.Attr
	received []endpoint.Completion
	sent     []endpoint.Completion
}

// Sent is a data packet that left a port.
type Sent struct {
	observed.Place
	VL   ib.VL
	SL   ib.SL
	PKey ib.PKey // 0 in a raw packet
	QKey ib.QKey // meant when HasQKey
	// HasPKey reports whether the packet has a transport header, HasQKey that it is
	// a datagram's.
	HasPKey, HasQKey bool
}

// MaxSent is how many packets Sent keeps.
const MaxSent = 1 << 14

// sightData sees every data packet.
func (s *Testbed) sightData(d fabric.DataSighting) {
	at := observed.Place{Node: d.Node, Port: d.Port}
	s.noteData(d)
	switch {
	case d.Outcome == fabric.OutcomeRefused && len(s.Drops) < MaxDrops:
		s.Drops = append(s.Drops, Drop{at, d.Reason.String()})
	case d.Outcome.IsDrop() && len(s.Drops) < MaxDrops:
		s.Drops = append(s.Drops, Drop{at, d.Outcome.String()})
	case d.Outcome == fabric.OutcomeLeft && len(s.Sent) < MaxSent:
		v, err := packet.Parse(d.Bytes)
		if err != nil {
			return // hostile bytes have no keys
		}
		p := Sent{Place: at, VL: d.VL, SL: v.LRH.SL(), HasPKey: v.BTH != nil, HasQKey: v.DETH != nil}
		if p.HasPKey {
			p.PKey = v.BTH.PKey()
		}
		if p.HasQKey {
			p.QKey = v.DETH.QKey()
		}
		s.Sent = append(s.Sent, p)
	}
}

// CreateQP makes a queue pair. Datagram and raw ones are ready to send, those
// of RC, UC and RD once Connect was called. The error is the verbs'.
func (s *Testbed) CreateQP(p observed.Place, service endpoint.Service, caller endpoint.Caller, index uint16, key ib.QKey) (*QP, error) {
	device, err := s.Fabric.Device(p.Node)
	if err != nil {
		return nil, err
	}
	q := &QP{At: p, Service: service, stage: s, device: device, caller: caller}
	q.attr = endpoint.Attr{Port: p.Port, PKeyIndex: index, QKey: key}
	c := endpoint.QPConfig{Service: service}
	switch service {
	case endpoint.RD:
		if q.ee, err = device.CreateEEContext(); err == nil {
			q.qp, err = device.CreateRDQP(c)
		}
	case endpoint.SMI, endpoint.GSI:
		c.Port = p.Port
		q.qp, err = device.CreateQP(caller, c)
	default:
		q.qp, err = device.CreateQP(caller, c)
	}
	if err != nil {
		return nil, err
	}
	if err := q.init(); err != nil {
		q.qp.Destroy()
		return nil, err
	}
	return q, q.post(receives)
}

// init takes a queue pair as far as it gets without a peer.
func (q *QP) init() error {
	mask, rts := initMask, endpoint.AttrMask(0)
	switch q.Service {
	case endpoint.RC, endpoint.UC:
		return q.qp.Modify(q.caller, endpoint.StateInit, mask, q.attr)
	case endpoint.UD:
		mask, rts = initMask|endpoint.AttrQKey, endpoint.AttrSendPSN
	case endpoint.RD:
		if err := q.ee.Modify(endpoint.StateInit, initMask, q.attr); err != nil {
			return err
		}
		mask = endpoint.AttrQKey
	case endpoint.RawIPv6, endpoint.RawEtherType:
		mask = endpoint.AttrPort
	default:
		mask = 0
	}
	if err := q.qp.Modify(q.caller, endpoint.StateInit, mask, q.attr); err != nil {
		return err
	}
	if err := q.qp.Modify(q.caller, endpoint.StateRTR, 0, q.attr); err != nil {
		return err
	}
	return q.qp.Modify(q.caller, endpoint.StateRTS, rts, q.attr)
}

func (q *QP) post(n int) error {
	for range n {
		if err := q.qp.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, longest+endpoint.GRHSize)}); err != nil {
			return err
		}
	}
	return nil
}

func (q *QP) lid() ib.LID { return q.stage.Fabric.Agent(q.At.Node).Port(q.At.Port).LID }

// Connect joins two queue pairs of RC, UC or RD.
func Connect(a, b *QP) error {
	if a.Service != b.Service || a.Service != endpoint.RC && a.Service != endpoint.UC && a.Service != endpoint.RD {
		return fmt.Errorf("%v and %v: want two queue pairs of RC, UC or RD", a.Service, b.Service)
	}
	if err := a.connect(b); err != nil {
		return err
	}
	return b.connect(a)
}

func (q *QP) connect(to *QP) error {
	a := q.attr
	a.Path, a.PathMTU, a.ReceivePSN, a.SendPSN = endpoint.Address{DLID: to.lid()}, pathMTU, firstPSN, firstPSN
	a.Timeout, a.RetryCount, a.RNRRetryCount, a.MinRNRTimer = ackTimeout, retries, retries, 1
	modify := func(state endpoint.State, mask endpoint.AttrMask) error { return q.qp.Modify(q.caller, state, mask, a) }
	a.Remote = uint32(to.qp.Number())
	if q.Service == endpoint.RD {
		a.Remote = to.ee.Number()
		modify = func(state endpoint.State, mask endpoint.AttrMask) error { return q.ee.Modify(state, mask, a) }
	}
	rtr, rts := connectedMask, endpoint.AttrSendPSN
	if q.Service != endpoint.UC {
		rtr, rts = rtr|endpoint.AttrMinRNRTimer, rts|reliableMask
	}
	if err := modify(endpoint.StateRTR, rtr); err != nil {
		return err
	}
	return modify(endpoint.StateRTS, rts)
}

// Modify gives a queue pair another Q_Key, or, by way of SQD, another P_Key
// index. The error is the verbs', and then nothing has changed.
func (q *QP) Modify(key *ib.QKey, index *uint16, caller endpoint.Caller) error {
	a := q.attr
	if key != nil {
		a.QKey = *key
		if err := q.qp.Modify(caller, endpoint.StateRTS, endpoint.AttrQKey, a); err != nil {
			return err
		}
	}
	if index != nil {
		a.PKeyIndex = *index
		if err := q.qp.Modify(caller, endpoint.StateSQD, 0, a); err != nil {
			return err
		}
		refused := q.qp.Modify(caller, endpoint.StateSQD, endpoint.AttrPKeyIndex, a)
		if err := q.qp.Modify(caller, endpoint.StateRTS, 0, a); err != nil {
			return err
		}
		if refused != nil {
			return refused
		}
	}
	q.attr = a
	return nil
}

// Query is the state and the attributes of a queue pair, of its EE context when
// it is RD.
func (q *QP) Query() (endpoint.State, endpoint.Attr) {
	if q.ee != nil {
		return q.ee.Query()
	}
	return q.qp.Query()
}

// Message is what Send sends.
type Message struct {
	Bytes, Count int
	QKey         *ib.QKey // nil for the receiver's
	PKeyIndex    uint16   // of GSI
	SL           ib.SL
	// Via is the router's port that the message goes to first, nil for none; then
	// it has a GRH, for the receiver's GID and with this hop limit.
	Via      *observed.Place
	HopLimit uint8
}

// Send sends messages from one queue pair to another and lets time pass for
// them to arrive. Drops and Sent are those since then.
func (s *Testbed) Send(from, to *QP, m Message) error {
	s.Drops, s.Sent = s.Drops[:0], s.Sent[:0]
	r := endpoint.SendRequest{
		Op: endpoint.OpSend, Data: make([]byte, m.Bytes), To: endpoint.Address{DLID: to.lid(), SL: m.SL},
		RemoteQP: to.qp.Number(), RemoteQKey: to.attr.QKey, PKeyIndex: m.PKeyIndex,
	}
	if m.QKey != nil {
		r.RemoteQKey = *m.QKey
	}
	if m.Via != nil {
		there := s.Fabric.Agent(to.At.Node)
		guid, _ := there.GUID(to.At.Port, 0) // every end port has one
		r.To.DLID = s.Fabric.Agent(m.Via.Node).Port(m.Via.Port).LID
		r.To.Global, r.To.HopLimit = true, m.HopLimit
		r.To.DGID = ib.MakeGID(there.Port(to.At.Port).GIDPrefix, ib.PortGUID(guid))
	}
	switch from.Service {
	case endpoint.RawEtherType:
		r.EtherType = rawEtherType
	case endpoint.RawIPv6:
		if m.Bytes < rawIPv6Size {
			return fmt.Errorf("%d bytes: want the %d of an IPv6 header at least", m.Bytes, rawIPv6Size)
		}
		r.Data[0], r.Data[6], r.Data[7] = 0x60, 59, 64 // version, no next header, hop limit
		binary.BigEndian.PutUint16(r.Data[4:], uint16(m.Bytes-rawIPv6Size))
	case endpoint.RD:
		r.EEContext = from.ee.Number()
	}
	management(to, r.Data)
	for range m.Count {
		if err := from.qp.PostSend(r); err != nil {
			return err
		}
	}
	return s.Advance(s.config.Timeout)
}

// management makes a payload for QP1 a Get of a vendor's class, which nobody answers,
// and one for QP0 a Get of NodeInfo, which the agent there answers.
func management(to *QP, payload []byte) {
	if len(payload) != mad.Size {
		return
	}
	switch to.Service {
	case endpoint.GSI:
		copy(payload, []byte{mad.BaseVersion, vendorClass, mad.ClassVersion, byte(mad.MethodGet)})
	case endpoint.SMI:
		copy(payload, []byte{mad.BaseVersion, byte(mad.ClassSubnLID), mad.ClassVersion, byte(mad.MethodGet)})
		binary.BigEndian.PutUint16(payload[mad.OffsetAttributeID:], uint16(smp.AttrNodeInfo))
	}
}

// Forge puts a datagram on the wire as a host could whose adapter obeys nobody:
// with any P_Key and Q_Key, on any service level.
func (s *Testbed) Forge(from observed.Place, to *QP, pkey ib.PKey, qkey ib.QKey, sl ib.SL, bytes int) error {
	s.Drops, s.Sent = s.Drops[:0], s.Sent[:0]
	payload := make([]byte, bytes)
	management(to, payload)
	b, v, err := packet.Append(nil, packet.OpCodeUDSendOnly, false, payload)
	if err != nil {
		return err
	}
	source := from.Port
	if s.nodes[from.Node].Type == ib.NodeSwitch {
		source = 0 // which has the LID
	}
	v.LRH.SetSLID(s.Fabric.Agent(from.Node).Port(source).LID)
	v.LRH.SetDLID(to.lid())
	v.LRH.SetSL(sl)
	v.BTH.SetPKey(pkey)
	v.BTH.SetDestQP(to.qp.Number())
	v.DETH.SetQKey(qkey)
	v.DETH.SetSrcQP(2) // the lowest that is no manager's
	if err := packet.Seal(b); err != nil {
		return err
	}
	return s.Inject(from, b)
}

// Inject puts bytes on the wire at an end port, unchanged.
func (s *Testbed) Inject(from observed.Place, bytes []byte) error {
	s.Drops, s.Sent = s.Drops[:0], s.Sent[:0]
	if err := s.Fabric.Inject(from.Node, from.Port, bytes); err != nil {
		return err
	}
	return s.Advance(s.config.Timeout)
}

// poll takes what has completed, and posts receives again.
func (q *QP) poll() error {
	var done [16]endpoint.Completion
	for {
		n := q.qp.Poll(done[:])
		again := 0
		for _, c := range done[:n] {
			switch {
			case c.Op >= endpoint.OpReceive && c.Status == endpoint.Success:
				q.received = append(q.received, c)
				again++
			case c.Op >= endpoint.OpReceive && c.Status != endpoint.Flushed:
				q.received = append(q.received, c) // a failure that ends a receive request is no silence
			case c.Op < endpoint.OpReceive:
				q.sent = append(q.sent, c)
			}
		}
		if err := q.post(again); err != nil {
			return err
		}
		if n < len(done) {
			return nil
		}
	}
}

// Received takes what a queue pair has received since the last call.
func (q *QP) Received() ([]endpoint.Completion, error) {
	err := q.poll()
	got := q.received
	q.received = nil
	return got, err
}

// Completed takes the oldest send request that has ended; false for none.
func (q *QP) Completed() (endpoint.Completion, bool, error) {
	err := q.poll()
	if len(q.sent) == 0 {
		return endpoint.Completion{}, false, err
	}
	c := q.sent[0]
	q.sent = q.sent[1:]
	return c, true, err
}

// Number is the queue pair's number.
func (q *QP) Number() ib.QPN { return q.qp.Number() }

// Events takes the events of a device that nobody has taken yet.
func (s *Testbed) Events(g ib.NodeGUID) ([]endpoint.Event, error) {
	device, err := s.Fabric.Device(g)
	if err != nil {
		return nil, err
	}
	var all []endpoint.Event
	for {
		e, ok := device.NextEvent()
		if !ok {
			return all, nil
		}
		all = append(all, e)
	}
}
