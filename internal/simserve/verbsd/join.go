package verbsd

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// general is queue pair 1 of a port, which is taken while a call waits for an answer of
// subnet administration.
type general struct {
	port  ib.PortNum
	pair  *endpoint.GSIPair
	asked map[uint64]*asked // by transaction identifier
}

// asked is a request under way.
type asked struct {
	to     ib.LID
	of     *session
	answer *sa.MAD // nil until it came
}

// receive takes what came in. An answer counts only from whom the request went to.
func (g *general) receive(h *host) {
	g.pair.Receive(func(c *endpoint.Completion, m *[mad.Size]byte) {
		var in sa.MAD
		if in.UnmarshalBinary(m[:]) != nil || !in.Method.IsResponse() {
			return
		}
		if a := g.asked[in.TransactionID]; a != nil && a.answer == nil && a.to == c.SLID {
			a.answer = &in
			a.of.fresh = true
		}
	})
}

// general takes a port's queue pair 1. It fails if the queue pair is in use.
func (h *host) general(port ib.PortNum) (*general, error) {
	if g := h.joining[port]; g != nil {
		return g, nil
	}
	pair, err := endpoint.OpenGSI(h.device, port)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", verbs.ErrBusy, err) // not of the kind that err is: no room
	}
	g := &general{port: port, pair: pair, asked: map[uint64]*asked{}}
	h.joining[port] = g
	return g, nil
}

// done gives up a request, and with the last one the queue pair.
func (h *host) done(g *general, transaction uint64) {
	delete(g.asked, transaction)
	if len(g.asked) == 0 && h.joining[g.port] == g {
		g.pair.Close()
		delete(h.joining, g.port)
	}
}

// hopLimit is that of what stays within the subnet.
const hopLimit = 0

// join asks to join a multicast group, or to leave it.
func (s *session) join(r *verbs.Request) (*waiting, error) {
	h := s.host
	key, err := h.device.QueryPKey(r.Port, r.Index)
	if err != nil {
		return nil, err
	}
	switch {
	case !key.IsValid():
		return nil, fmt.Errorf("port %d: P_Key index %d: %w", r.Port, r.Index, verbs.ErrPKeyEmpty)
	case r.Address == nil || !r.Address.DGID.IsMulticast():
		return nil, fmt.Errorf("join: want the GID of a multicast group: %w", verbs.ErrRequest)
	}
	agent := h.fabric.Agent(h.node.GUID)
	guid, _ := agent.GUID(r.Port, 0) // every end port has one
	record := sa.MCMemberRecord{
		MGID: r.Address.DGID, PortGID: ib.MakeGID(agent.Port(r.Port).GIDPrefix, ib.PortGUID(guid)), PKey: key, JoinState: sa.JoinFull,
	}
	var tid [8]byte
	_, _ = rand.Read(tid[:]) // it does not fail
	m := sa.MAD{
		Header: mad.Header{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
			Method: mad.MethodSet, TransactionID: binary.BigEndian.Uint64(tid[:]), AttributeID: sa.AttrMCMemberRecord,
		},
		ComponentMask: sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordPKey | sa.MCMemberRecordJoinState,
	}
	if r.Call == verbs.CallLeave {
		m.Method = mad.MethodDelete
	}
	body, err := record.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	copy(m.Data[:], body)
	return s.ask(r, &m)
}

// ask sends a request to the subnet's administration. The answer to it is awaited.
func (s *session) ask(r *verbs.Request, m *sa.MAD) (*waiting, error) {
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	h := s.host
	port := h.fabric.Agent(h.node.GUID).Port(r.Port)
	if port.MasterSMLID == 0 {
		return nil, fmt.Errorf("port %d: no subnet manager has told it of itself: %w", r.Port, verbs.ErrTimeout)
	}
	g, err := h.general(r.Port)
	if err != nil {
		return nil, err
	}
	a := &asked{to: port.MasterSMLID, of: s}
	g.asked[m.TransactionID] = a
	err = g.pair.Send((*[mad.Size]byte)(bytes), endpoint.SendRequest{
		RemoteQP: ib.QP1, PKeyIndex: uint16(r.Index), To: endpoint.Address{DLID: a.to, SL: port.MasterSMSL, HopLimit: hopLimit},
	})
	if err != nil {
		h.done(g, m.TransactionID)
		return nil, err
	}
	return &waiting{
		try: func(s *session, out *verbs.Answer) (bool, error) {
			if a.answer == nil {
				return false, nil
			}
			h.done(g, m.TransactionID)
			return true, joined(a.answer, out)
		},
		give: func(*session) error {
			if a.answer == nil {
				h.done(g, m.TransactionID)
			}
			return fmt.Errorf("%s: the administration of the subnet, at LID %v, does not answer: %w", r.Call, a.to, verbs.ErrTimeout)
		},
	}, nil
}

// joined tells what the administration answered.
func joined(m *sa.MAD, out *verbs.Answer) error {
	if m.Status != mad.StatusOK {
		return fmt.Errorf("the administration of the subnet refuses it: %v: %w", m.Status, verbs.ErrPermission)
	}
	var record sa.MCMemberRecord
	if err := record.UnmarshalBinary(m.Data[:sa.MCMemberRecordSize]); err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrRequest, err)
	}
	out.Group = &verbs.MulticastGroup{
		MGID: record.MGID, MLID: record.MLID, QKey: record.QKey, PKey: record.PKey, MTU: record.MTU,
		SL: record.SL, HopLimit: record.HopLimit,
	}
	return nil
}
