package endpoint_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// side is one end with its only queue pair and its memory.
type side struct {
	t      testing.TB
	end    endpoint.ConnectionEnd
	rooms  []endpoint.ConnectionRoom
	memory []byte // at address base, under rkey

	sent     []string // how requests ended
	statuses map[uint64]endpoint.Status
	got      [][]byte // messages that came, and nil for a WRITE with immediate data
	imms     []uint32
	tooLong  int
}

const (
	base = 0x1_0000
	rkey = 77
	mtu  = 16
)

func (s *side) Sent(r *endpoint.ConnectionRequest, status endpoint.Status) {
	s.statuses[r.ID] = status
	s.sent = append(s.sent, status.String())
}
func (s *side) Rooms() int { return len(s.rooms) }
func (s *side) TakeRoom() endpoint.ConnectionRoom {
	r := s.rooms[0]
	s.rooms = s.rooms[1:]
	return r
}
func (s *side) ReturnRoom(r endpoint.ConnectionRoom) {
	s.rooms = append([]endpoint.ConnectionRoom{r}, s.rooms...)
}
func (s *side) Received(r endpoint.ConnectionRoom, a endpoint.ConnectionArrival) {
	switch {
	case a.TooLong:
		s.tooLong++
	case a.Write:
		s.got = append(s.got, nil)
	default:
		s.got = append(s.got, bytes.Clone(r.Buffer[:a.Size]))
	}
	if a.Packet.ImmDt != nil {
		s.imms = append(s.imms, a.Packet.ImmDt.Value())
	}
}

func (s *side) Window(key uint32, va uint64, size uint32, _ bool) ([]byte, bool) {
	from := int64(va) - base
	if size == 0 {
		return nil, true
	}
	if key != rkey || from < 0 || from+int64(size) > int64(len(s.memory)) {
		return nil, false
	}
	return s.memory[from : from+int64(size)], true
}

func (s *side) room(size int) {
	s.rooms = append(s.rooms, endpoint.ConnectionRoom{Buffer: make([]byte, size)})
}

// post asks for something, named by id.
func (s *side) post(id uint64, op endpoint.Operation, data []byte, at uint64) {
	s.end.Post(endpoint.ConnectionRequest{Owner: s, ID: id, Op: op, Data: data, RemoteAddress: at, RKey: rkey})
}

// link is two ends and what is between them.
type link struct {
	t    testing.TB
	now  time.Duration
	a, b *side
	log  []packet.OpCode // of what left
}

func settings(transport packet.Transport) endpoint.ConnectionSettings {
	return endpoint.ConnectionSettings{
		Transport: transport, MTU: mtu, ReceivePSN: 0xFFFFF0, SendPSN: 0xFFFFF0, MinRNRTimer: 1,
		Timeout: 1, RetryCount: 7, RNRRetryCount: 7,
	}
}

func newLink(t testing.TB, transport packet.Transport) *link {
	l := &link{t: t}
	for _, s := range []**side{&l.a, &l.b} {
		*s = &side{t: t, memory: make([]byte, 1024), statuses: map[uint64]endpoint.Status{}}
		(*s).end.Open(*s, settings(transport))
	}
	return l
}

// bytes lays out what an end sends, without keys and addresses.
func raw(t testing.TB, o *endpoint.Outgoing) []byte {
	t.Helper()
	b, v, err := packet.Append(nil, o.OpCode, false, o.Payload)
	if err != nil {
		t.Fatal(err)
	}
	v.BTH.SetPSN(o.PSN)
	v.BTH.SetAckReq(o.AckReq)
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
	return b
}

// take gives an end the bytes of a packet.
func (s *side) take(now time.Duration, b []byte) endpoint.ConnectionOutcome {
	s.t.Helper()
	v, err := packet.Parse(b)
	if err != nil {
		s.t.Fatal(err)
	}
	if v.BTH.OpCode().Operation().IsResponse() {
		return s.end.Answered(now, &v)
	}
	return s.end.Requested(&v, s)
}

// next is the next packet of a side, nil for none.
func (l *link) next(s *side) []byte {
	l.t.Helper()
	if !s.end.HasAnswer() && !s.end.HasRequest(false) {
		return nil
	}
	o := s.end.Next(l.now)
	l.log = append(l.log, o.OpCode)
	return raw(l.t, &o)
}

// carry moves packets until nobody has one, but for those that lose wants.
func (l *link) carry(lose func(b []byte) bool) {
	l.t.Helper()
	if lose == nil {
		lose = func([]byte) bool { return false }
	}
	l.carryTo(func(_ *side, b []byte) bool { return lose(b) })
}

// carryTo does the same; lose is told where a packet goes.
func (l *link) carryTo(lose func(to *side, b []byte) bool) {
	l.t.Helper()
	for range 100_000 {
		moved := false
		for _, way := range [][2]*side{{l.a, l.b}, {l.b, l.a}} {
			if b := l.next(way[0]); b != nil {
				moved = true
				if !lose(way[1], b) {
					way[1].take(l.now, b)
				}
			}
		}
		if !moved {
			return
		}
	}
	l.t.Fatal("packets without end")
}

// expire goes to the next deadline, and reports whether there was one.
func (l *link) expire() bool {
	at, ok := l.a.end.Deadline()
	if other, too := l.b.end.Deadline(); too && (!ok || other < at) {
		at, ok = other, true
	}
	if ok {
		l.now = max(l.now, at)
		l.a.end.Expire(l.now)
		l.b.end.Expire(l.now)
	}
	return ok
}
