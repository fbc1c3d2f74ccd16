package testbed

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// hostDepth is how many datagrams may wait at a host's queue pair 1.
const hostDepth = 64

// host is a host's queue pair 1, from which its root asks others.
type host struct {
	observed.Place
	qp    *endpoint.QP
	rooms [hostDepth][endpoint.GRHSize + mad.Size]byte
	long  *rmpp.Endpoint[mad.Address]
	asked *Answer // what is waited for, nil for nothing
}

// General is a request to another port's queue pair 1.
type General struct {
	From observed.Place
	// To is where it goes; 0 for the port's own subnet administration.
	To ib.LID
	// PKeyIndex is the key that it goes with.
	PKeyIndex uint16
	// SLID, when it is not 0, stands in its header instead of the port's LID: the
	// packet is put on the wire by hand.
	SLID ib.LID
	// PathBits are the low bits of its SLID, as far as the port's LMC has them.
	PathBits uint8
	// Head is what each of its datagrams begins with, Body the rest. One that takes
	// several datagrams is cut; of it, Part sends the first only.
	Head [rmpp.HeadSize]byte
	Body []byte
	Part bool
	// Silent does not wait for an answer.
	Silent bool
}

// Answer is the result of a General.
type Answer struct {
	id       uint64
	Answered bool
	Status   mad.Status
	// Head and Body are the message, joined.
	Head [rmpp.HeadSize]byte
	Body []byte
}

// host is the queue pair 1 of a port.
func (s *Testbed) host(p observed.Place) (*host, error) {
	for _, h := range s.hosts {
		if h.Place == p {
			return h, nil
		}
	}
	device, err := s.Fabric.Device(p.Node)
	if err != nil {
		return nil, err
	}
	h := &host{Place: p, long: rmpp.New[mad.Address](rmpp.DefaultLimits())}
	h.qp, err = device.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.GSI, Port: p.Port, SendDepth: hostDepth, ReceiveDepth: hostDepth})
	for _, to := range []endpoint.State{endpoint.StateInit, endpoint.StateRTR, endpoint.StateRTS} {
		if err == nil {
			err = h.qp.Modify(endpoint.Kernel, to, 0, endpoint.Attr{})
		}
	}
	for i := range h.rooms {
		if err == nil {
			err = h.post(uint64(i))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("queue pair 1 of %s: %w", s.Name(p), err)
	}
	s.hosts = append(s.hosts, h)
	return h, nil
}

func (h *host) post(room uint64) error {
	return h.qp.PostReceive(endpoint.ReceiveRequest{ID: room, Buffer: h.rooms[room][:]})
}

// AskGeneral sends a request from a host's queue pair 1 and waits for its answer,
// or for as long as one may take. The error says that it could not be sent.
func (s *Testbed) AskGeneral(g General) (*Answer, error) {
	h, err := s.host(g.From)
	if err != nil {
		return nil, err
	}
	s.Drops = s.Drops[:0]
	a := &Answer{id: s.nextID}
	s.nextID++
	for i := range 8 {
		g.Head[8+i] = byte(a.id >> (56 - 8*i))
	}
	if g.To == 0 {
		g.To = s.Fabric.Agent(g.From.Node).Port(g.From.Port).MasterSMLID
	}
	if len(g.Body) <= rmpp.SegmentSize && !g.Part {
		var m [mad.Size]byte
		copy(m[copy(m[:], g.Head[:]):], g.Body)
		err = s.launch(h, &g, &m)
	} else if message := (&rmpp.Message{Head: g.Head, Body: g.Body}); g.Part {
		err = s.launch(h, &g, rmpp.First(message))
	} else {
		err = h.long.Send(s.Fabric.Now(), mad.Address{LID: g.To, QP: 1}, message)
	}
	if err != nil || g.Silent {
		return a, err
	}
	h.asked = a
	err = s.Until(s.Fabric.Now()+s.config.Timeout, func() bool { return a.Answered })
	h.asked = nil
	return a, err
}

// launch sends one datagram.
func (s *Testbed) launch(h *host, g *General, m *[mad.Size]byte) error {
	if g.SLID != 0 {
		return s.spoof(h, g, m)
	}
	return h.qp.PostSend(endpoint.SendRequest{
		Op: endpoint.OpSend, Data: m[:], RemoteQP: 1, RemoteQKey: ib.QKeyGSI, PKeyIndex: g.PKeyIndex,
		To: endpoint.Address{DLID: g.To, SourcePathBits: g.PathBits},
	})
}

// spoof puts a datagram on the wire that says that another port sent it.
func (s *Testbed) spoof(h *host, g *General, m *[mad.Size]byte) error {
	b, v, err := packet.Append(nil, packet.OpCodeUDSendOnly, false, m[:])
	if err != nil {
		return err
	}
	keys := s.Fabric.Agent(h.Node).PKeys(h.Port)
	v.LRH.SetSLID(g.SLID)
	v.LRH.SetDLID(g.To)
	if int(g.PKeyIndex) < len(keys) {
		v.BTH.SetPKey(keys[g.PKeyIndex])
	}
	v.BTH.SetDestQP(1)
	v.DETH.SetQKey(ib.QKeyGSI)
	v.DETH.SetSrcQP(1)
	if err := packet.Seal(b); err != nil {
		return err
	}
	return s.Fabric.Inject(h.Node, h.Port, b)
}

// listen takes what came in at the hosts' queue pairs 1, and sends what long
// messages have to send.
func (s *Testbed) listen() {
	now := s.Fabric.Now()
	var done [16]endpoint.Completion
	for _, h := range s.hosts {
		for n := h.qp.Poll(done[:]); n > 0; n = h.qp.Poll(done[:]) {
			for i := range done[:n] {
				if c := &done[i]; c.Op == endpoint.OpReceive {
					if c.Status == endpoint.Success && len(c.Bytes) == endpoint.GRHSize+mad.Size {
						h.take(now, (*[mad.Size]byte)(c.Bytes[endpoint.GRHSize:]), mad.Address{LID: c.SLID, QP: c.SrcQP})
					}
					_ = h.post(c.ID) // there was room for it before
				}
			}
		}
		var m [mad.Size]byte
		for to, ok := h.long.Next(now, &m); ok; to, ok = h.long.Next(now, &m) {
			_ = h.qp.PostSend(endpoint.SendRequest{ // what has no room is lost
				Op: endpoint.OpSend, Data: m[:], RemoteQP: to.QP, RemoteQKey: ib.QKeyGSI, To: endpoint.Address{DLID: to.LID},
			})
		}
	}
}

// take takes a datagram: a whole answer, or a piece of one.
func (h *host) take(now time.Duration, m *[mad.Size]byte, from mad.Address) {
	var head mad.Header
	if head.UnmarshalBinary(m[:]) != nil {
		return
	}
	whole := &rmpp.Message{Head: [rmpp.HeadSize]byte(m[:]), Body: m[rmpp.HeadSize:]}
	if head.Class == mad.ClassSubnAdm && rmpp.IsActive(m) {
		if whole = h.long.Receive(now, from, m); whole == nil {
			return
		}
	}
	if head.UnmarshalBinary(whole.Head[:]) != nil || h.asked == nil || head.TransactionID != h.asked.id || !head.Method.IsResponse() {
		return
	}
	h.asked.Answered, h.asked.Status, h.asked.Head = true, head.Status, whole.Head
	h.asked.Body = append([]byte(nil), whole.Body...)
}
