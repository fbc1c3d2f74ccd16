package server

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// request is one that is being answered.
type request struct {
	Asker
	now    time.Duration
	from   mad.Address
	head   *[rmpp.HeadSize]byte
	method mad.Method
	id     mad.AttributeID
	mask   sa.ComponentMask
	data   []byte
	budget int
	asker  *requester
	chosen bool // the answer holds something of the server's choosing
	keyed  bool // it came with the SA_Key
}

func (q *request) modifier() uint32 { return binary.BigEndian.Uint32(q.head[20:]) }

// offsetUnit is the unit of AttributeOffset, in bytes.
const offsetUnit = 8

// request takes one: it is answered now when nobody waits, else in its turn.
func (s *Server) request(now time.Duration, from mad.Address, head *[rmpp.HeadSize]byte, data []byte) {
	s.counts.Queries++
	method := mad.Method(head[mad.OffsetMethod])
	if method == mad.MethodTrap {
		s.counts.Dropped++
		return
	}
	r := s.requesterAt(now, from.LID)
	busy := r != &s.nobody && !r.take(now, &s.config.Limits, isChange(method))
	if s.isIdle() && !r.hasWork() && r.unkept < s.config.Limits.UnkeptEach {
		s.begin(now, r, from, head, data, busy)
		s.enter(r)
		return
	}
	a := arrival{from: from, head: *head, busy: busy}
	if len(data) > copy(a.data[:], data) {
		a.body = data // of a joined message, which is nobody else's
	}
	s.enqueue(r, &a)
}

// begin answers a request, or begins to.
func (s *Server) begin(now time.Duration, r *requester, from mad.Address, head *[rmpp.HeadSize]byte, data []byte, busy bool) {
	q := request{
		now: now, from: from, head: head, data: data, asker: r,
		method: mad.Method(head[mad.OffsetMethod]),
		id:     mad.AttributeID(binary.BigEndian.Uint16(head[mad.OffsetAttributeID:])),
		mask:   sa.ComponentMask(binary.BigEndian.Uint64(head[sa.OffsetComponentMask:])),
		budget: s.config.Limits.Work,
	}
	if isLong(q.method) && s.rmpp.Sending(from, responseHead(head)) {
		s.counts.Dropped++ // its answer is on the way
		return
	}
	if s.isUnknown(from) && s.hold(&q) {
		return
	}
	status := s.admit(&q)
	if status == mad.StatusOK && busy {
		s.counts.Busy++
		status = mad.StatusBusy
	}
	if status != mad.StatusOK {
		s.reply(&q, status, nil)
		return
	}
	if q.method == mad.MethodSet {
		if old := r.recall(now, head, data); old != nil {
			s.tally(&q, mad.Status(binary.BigEndian.Uint16(old[mad.OffsetStatus:])))
			s.push(&q, old)
			return
		}
	}
	s.dispatch(&q)
	if q.chosen {
		r.remember(now, head, data, &s.answer)
	}
	r.spend(&s.config.Limits, s.config.Limits.Work-q.budget)
}

// isUnknown reports whether the server does not know, or not yet, whose a LID is.
func (s *Server) isUnknown(from mad.Address) bool { return s.view == nil || s.view.At(from.LID) == nil }

// isChange reports whether a method registers or ends something.
func isChange(m mad.Method) bool { return m == mad.MethodSet || m == mad.MethodDelete }

// isLong reports whether the answer to a method is a table.
func isLong(m mad.Method) bool {
	return m == mad.MethodGetTable || m == mad.MethodGetMulti || m == mad.MethodGetTraceTable
}

// admit identifies the requester, and decides whether to process the request: it has to
// come from a LID that is certainly one port's, with a key that the port has and, in a
// route header, a GID of the port.
func (s *Server) admit(q *request) mad.Status {
	switch {
	case q.head[0] != mad.BaseVersion || q.head[2] != sa.ClassVersion:
		return mad.StatusBadVersion
	case s.view == nil:
		s.counts.Busy++
		return mad.StatusBusy
	}
	p := s.view.At(q.from.LID)
	if p == nil || p.Contested || s.isAmbiguous(q.from) {
		s.counts.Refused++
		return sa.StatusRequestInvalid
	}
	q.Asker.Port = p
	if q.from.GID != (ib.GID{}) && s.subject.Port(q.from.GID) != p {
		s.counts.Refused++
		return sa.StatusInvalidGID
	}
	if q.from.PKey != 0 && !s.holds(p, q.from.PKey.Base()) {
		s.counts.Refused++
		return sa.StatusDenied
	}
	if key := ib.SMKey(binary.BigEndian.Uint64(q.head[sa.OffsetSMKey:])); key != 0 && s.config.SAKey != 0 {
		if key != s.config.SAKey {
			s.counts.Refused++
			return sa.StatusDenied
		}
		q.keyed = true
	}
	q.Trusted, q.All = s.trust(p, q.keyed)
	return mad.StatusOK
}

// methods are those that each attribute has.
var methods = map[mad.AttributeID][]mad.Method{
	mad.AttrClassPortInfo:   {mad.MethodGet},
	sa.AttrInformInfo:       {mad.MethodSet},
	sa.AttrInformInfoRecord: {mad.MethodGet, mad.MethodGetTable},
	sa.AttrServiceRecord:    {mad.MethodGet, mad.MethodGetTable, mad.MethodSet, mad.MethodDelete},
	sa.AttrMCMemberRecord:   {mad.MethodGet, mad.MethodGetTable, mad.MethodSet, mad.MethodDelete},
	sa.AttrPathRecord:       {mad.MethodGet, mad.MethodGetTable, mad.MethodGetTraceTable},
	sa.AttrTraceRecord:      {mad.MethodGetTraceTable},
	sa.AttrMultiPathRecord:  {mad.MethodGetMulti},
	sa.AttrGUIDInfoRecord:   {mad.MethodGet, mad.MethodGetTable, mad.MethodSet, mad.MethodDelete},
}

// supports is OK when the attribute has the method.
func (s *Server) supports(q *request) mad.Status {
	switch q.method {
	case mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodGetTraceTable, mad.MethodGetMulti, mad.MethodDelete:
	default:
		return mad.StatusUnsupportedMethod
	}
	reads := q.method == mad.MethodGet || q.method == mad.MethodGetTable
	if Knows(q.id) && (reads || q.id == sa.AttrGUIDInfoRecord && s.config.AliasGUIDs && q.method != mad.MethodGetMulti && q.method != mad.MethodGetTraceTable) {
		return mad.StatusOK
	}
	if q.id != sa.AttrGUIDInfoRecord {
		for _, m := range methods[q.id] {
			if m == q.method {
				return mad.StatusOK
			}
		}
	}
	return mad.StatusUnsupportedAttrib
}

// dispatch answers an admitted request.
func (s *Server) dispatch(q *request) {
	status := s.supports(q)
	if status == mad.StatusOK {
		status = s.permits(q)
	}
	if status != mad.StatusOK {
		s.reply(q, status, nil)
		return
	}
	switch {
	case q.id == mad.AttrClassPortInfo:
		info := s.classPortInfo()
		b, _ := info.AppendBinary(nil) // its values fit
		s.reply(q, mad.StatusOK, b)
	case q.method == mad.MethodGetTraceTable:
		s.trace(q)
	case q.id == sa.AttrPathRecord:
		s.paths(q)
	case q.id == sa.AttrMultiPathRecord:
		s.multiPaths(q)
	case q.id == sa.AttrMCMemberRecord:
		s.members(q)
	case q.id == sa.AttrServiceRecord:
		s.services(q)
	case q.id == sa.AttrInformInfo:
		s.subscribe(q)
	case q.id == sa.AttrInformInfoRecord:
		s.subscriptions(q)
	case q.id == sa.AttrGUIDInfoRecord && q.method != mad.MethodGet && q.method != mad.MethodGetTable:
		s.aliases(q)
	default:
		s.find(q)
	}
}

// reply sends an answer of one datagram, with a record in it or none.
func (s *Server) reply(q *request, status mad.Status, data []byte) {
	m := &s.answer
	copy(m[:], q.head[:])
	clear(m[mad.HeaderSize:])
	copy(m[sa.OffsetSMKey:rmpp.HeadSize], q.head[sa.OffsetSMKey:])
	if status != mad.StatusOK {
		data = q.data // as it was asked: some libraries look at it
	}
	copy(m[rmpp.HeadSize:], data)
	m[mad.OffsetMethod] = byte(responseMethod(q.method))
	binary.BigEndian.PutUint16(m[mad.OffsetStatus:], uint16(status))
	binary.BigEndian.PutUint16(m[sa.OffsetAttributeOffset:], 0)
	s.counts.Answers++
	s.tally(q, status)
	s.push(q, m)
}

// responseMethod is the method of the answer: GetResp answers Set too.
func responseMethod(m mad.Method) mad.Method {
	if m == mad.MethodSet {
		return mad.MethodGetResp
	}
	return m | mad.MethodResponse
}

// responseHead is the head of the answer, as far as it tells transfers apart.
func responseHead(head *[rmpp.HeadSize]byte) []byte {
	h := *head
	h[mad.OffsetMethod] = byte(responseMethod(mad.Method(head[mad.OffsetMethod])))
	return h[:]
}

// table is the answer to a request for records, as it grows.
type table struct {
	body  []byte
	pitch int // bytes of a record
	count int
	most  int // bytes that the body may have
	over  bool
}

// add takes in a record of whole 8 bytes, and reports whether more may come.
func (t *table) add(r []byte) bool {
	if len(t.body)+len(r) > t.most {
		t.over = true
		return false
	}
	t.body = append(t.body, r...)
	t.pitch = len(r)
	t.count++
	return true
}

func (s *Server) newTable(q *request) *table {
	if q.method == mad.MethodGet {
		// One record too many says that there are more. What goes into a
		// single datagram is copied from here.
		s.small.body, s.small.count, s.small.over, s.small.most = s.small.body[:0], 0, false, 2*sa.DataSize
		return &s.small
	}
	most := s.config.Limits.RMPP.SendMax
	if s.restricts(q) {
		most = min(most, s.config.Limits.AnswerBytes)
	}
	return &table{most: most}
}

// finish sends the result of a query, in the form that its method asks for.
func (s *Server) finish(q *request, t *table, status mad.Status) {
	switch {
	case status != mad.StatusOK:
		s.reply(q, status, nil)
	case t.count == 0 && s.partial: // it may be there
		s.counts.Busy++
		s.reply(q, mad.StatusBusy, nil)
	case q.method == mad.MethodGet && t.count == 0:
		s.reply(q, sa.StatusNoRecords, nil)
	case q.method == mad.MethodGet && (t.count > 1 || t.over):
		s.reply(q, sa.StatusTooManyRecords, nil)
	case q.method == mad.MethodGet:
		s.reply(q, mad.StatusOK, t.body)
	case t.over:
		s.reply(q, sa.StatusNoResources, nil)
	default:
		s.sendTable(q, t)
	}
}

func (s *Server) sendTable(q *request, t *table) {
	m := rmpp.Message{Body: t.body}
	copy(m.Head[:], q.head[:])
	clear(m.Head[mad.HeaderSize:sa.OffsetSMKey])
	m.Head[mad.OffsetMethod] = byte(responseMethod(q.method))
	binary.BigEndian.PutUint16(m.Head[mad.OffsetStatus:], 0)
	binary.BigEndian.PutUint16(m.Head[sa.OffsetAttributeOffset:], uint16(t.pitch/offsetUnit))
	if s.config.LongByLink {
		s.sendLong(q, m)
		return
	}
	switch err := s.rmpp.Send(q.now, q.from, &m); {
	case err == nil:
		s.counts.Answers++
		s.tally(q, mad.StatusOK)
	case errors.Is(err, rmpp.ErrDuplicate):
		s.counts.Dropped++
	case errors.Is(err, rmpp.ErrTooLong):
		s.reply(q, sa.StatusNoResources, nil)
	case s.config.Unacknowledged: // who takes no more than the first has not to wait for those before him
		s.out.push(q.from, rmpp.First(&m))
		s.counts.Answers++
		s.tally(q, mad.StatusOK)
	default:
		s.counts.Busy++
		s.reply(q, mad.StatusBusy, nil)
	}
}

// sendLong leaves a table to the link.
func (s *Server) sendLong(q *request, m rmpp.Message) {
	switch limits := &s.config.Limits.RMPP; {
	case len(m.Body) > limits.SendMax:
		s.reply(q, sa.StatusNoResources, nil)
	case !s.long.send(q.now, limits, s.senderOf(q.from), q.from, m):
		s.counts.Busy++
		s.reply(q, mad.StatusBusy, nil)
	default:
		s.counts.Answers++
		s.tally(q, mad.StatusOK)
	}
}
