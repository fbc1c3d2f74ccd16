package endpoint_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// pattern is n bytes that tell their place and their message.
func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(seed*31 + i)
	}
	return b
}

// TestLossyLink posts random requests on both sides of a link that loses and
// repeats packets: each request ends well, in order, and does what it is for once.
func TestLossyLink(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			transport := packet.RC
			if seed%4 == 3 {
				transport = packet.RD
			}
			l := newLink(t, transport)
			sides := []*side{l.a, l.b}
			type expectation struct {
				messages  [][]byte
				reads     [][2][]byte // where to, and what is to stand there
				requested []uint64
			}
			var want [2]expectation
			for i, s := range sides {
				other := sides[1-i]
				copy(s.memory[512:], pattern(int(seed), 512)) // read only
				for id := range uint64(1 + r.IntN(20)) {
					size := r.IntN(5 * mtu)
					want[i].requested = append(want[i].requested, id)
					switch op := endpoint.Operation(r.IntN(3)); op {
					case endpoint.OpRead:
						at, to := r.IntN(512-size), make([]byte, size)
						s.post(id, op, to, uint64(base+512+at))
						want[i].reads = append(want[i].reads, [2][]byte{to, pattern(int(seed), 512)[at : at+size]})
					case endpoint.OpWrite:
						s.post(id, op, pattern(int(id), size), base+uint64(id)*mtu)
					default:
						data := pattern(int(id), size)
						s.post(id, op, data, 0)
						other.room(5 * mtu)
						want[i].messages = append(want[i].messages, data)
					}
				}
			}
			type late struct {
				to *side
				b  []byte
			}
			var held []late // packets that are late, or come twice
			for round := range 100 {
				l.carryTo(func(to *side, b []byte) bool {
					if r.IntN(10) == 0 && len(held) < 4 {
						held = append(held, late{to, b})
					}
					return round < 40 && r.IntN(10) == 0
				})
				for _, p := range held {
					p.to.take(l.now, p.b)
				}
				held = nil
				for i, s := range sides {
					if f := s.end.Failure(); f.Broken || f.Owner != nil {
						t.Fatalf("side %d broke: %+v, ended %v", i, f, s.sent)
					}
				}
				l.expire()
			}
			for i, s := range sides {
				if len(s.sent) != len(want[i].requested) || slices.ContainsFunc(s.sent, func(x string) bool { return x != "success" }) {
					t.Errorf("side %d: %d requests ended %v", i, len(want[i].requested), s.sent)
				}
				got := sides[1-i].got
				if !slices.EqualFunc(got, want[i].messages, bytes.Equal) {
					t.Errorf("side %d: %d messages sent, %d came, or not the same", i, len(want[i].messages), len(got))
				}
				for _, read := range want[i].reads {
					if !bytes.Equal(read[0], read[1]) {
						t.Errorf("side %d: read %x, want %x", i, read[0], read[1])
					}
				}
			}
		})
	}
}

// TestLossyLinkHolds makes sure that the test above does not skip itself away.
func TestLossyLinkHolds(t *testing.T) {
	l := newLink(t, packet.RC)
	n := 0
	for id := range uint64(50) {
		l.a.post(id, endpoint.OpSend, pattern(int(id), 40), 0)
		l.b.room(40)
	}
	for {
		l.carry(func([]byte) bool { n++; return n%5 == 0 })
		if l.a.end.Failure().Broken {
			t.Fatal("the link broke")
		}
		if !l.expire() {
			break
		}
	}
	if len(l.a.sent) != 50 || len(l.b.got) != 50 {
		t.Errorf("%d sent, %d came", len(l.a.sent), len(l.b.got))
	}
}

// TestSegmentation shows which packets a message makes.
func TestSegmentation(t *testing.T) {
	for _, tt := range []struct {
		op   endpoint.Operation
		size int
		imm  bool
		want []packet.Operation
	}{
		{endpoint.OpSend, 0, false, []packet.Operation{packet.SendOnly}},
		{endpoint.OpSend, mtu, false, []packet.Operation{packet.SendOnly}},
		{endpoint.OpSend, mtu, true, []packet.Operation{packet.SendOnlyImm}},
		{endpoint.OpSend, mtu + 1, false, []packet.Operation{packet.SendFirst, packet.SendLast}},
		{endpoint.OpSend, 3*mtu - 1, true, []packet.Operation{packet.SendFirst, packet.SendMiddle, packet.SendLastImm}},
		{endpoint.OpWrite, mtu, false, []packet.Operation{packet.WriteOnly}},
		{endpoint.OpWrite, 1, true, []packet.Operation{packet.WriteOnlyImm}},
		{endpoint.OpWrite, 3 * mtu, false, []packet.Operation{packet.WriteFirst, packet.WriteMiddle, packet.WriteLast}},
		{endpoint.OpWrite, 2 * mtu, true, []packet.Operation{packet.WriteFirst, packet.WriteLastImm}},
		{endpoint.OpRead, 0, false, []packet.Operation{packet.ReadRequest, packet.ReadResponseOnly}},
		{endpoint.OpRead, mtu, false, []packet.Operation{packet.ReadRequest, packet.ReadResponseOnly}},
		{endpoint.OpRead, 3 * mtu, false, []packet.Operation{
			packet.ReadRequest, packet.ReadResponseFirst, packet.ReadResponseMiddle, packet.ReadResponseLast,
		}},
	} {
		for _, transport := range []packet.Transport{packet.RC, packet.UC, packet.RD} {
			if transport == packet.UC && tt.op == endpoint.OpRead {
				continue
			}
			l := newLink(t, transport)
			l.b.room(4 * mtu)
			data := pattern(3, tt.size)
			l.a.end.Post(endpoint.ConnectionRequest{
				Owner: l.a, Op: tt.op, Data: data, HasImm: tt.imm, Imm: 0x1234_5678, RemoteAddress: base, RKey: rkey,
			})
			l.carry(nil)
			var got []packet.Operation
			for _, op := range l.log {
				if op.Transport() != transport {
					t.Errorf("%v on %v", op, transport)
				}
				if op.Operation() != packet.Acknowledge {
					got = append(got, op.Operation())
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("transport %d, %d bytes: %v, want %v", transport, tt.size, got, tt.want)
			}
			if fmt.Sprint(l.a.sent) != "[success]" {
				t.Errorf("ended %v", l.a.sent)
			}
			arrives := tt.op == endpoint.OpSend || tt.imm
			if arrives != (len(l.b.got) == 1) || tt.imm != slices.Equal(l.b.imms, []uint32{0x1234_5678}) {
				t.Errorf("came %x, immediate data %x", l.b.got, l.b.imms)
			}
			if tt.op == endpoint.OpSend && !bytes.Equal(l.b.got[0], data) {
				t.Errorf("came %x", l.b.got[0])
			}
			if tt.op == endpoint.OpWrite && !bytes.Equal(l.b.memory[:tt.size], data) {
				t.Errorf("written %x", l.b.memory[:tt.size])
			}
			if tt.imm && tt.op == endpoint.OpWrite && len(l.b.rooms) != 0 {
				t.Error("a WRITE with immediate data took no room")
			}
		}
	}
}

func TestRetries(t *testing.T) {
	t.Run("given up", func(t *testing.T) {
		l := newLink(t, packet.RC)
		l.a.end.RetryCount = 2
		l.a.end.Start()
		l.a.post(1, endpoint.OpSend, []byte("x"), 0)
		l.a.post(2, endpoint.OpSend, []byte("x"), 0)
		times := []time.Duration{}
		for {
			l.carry(func([]byte) bool { return true })
			if f := l.a.end.Failure(); f.Broken {
				break
			}
			if !l.expire() {
				t.Fatal("nothing is due")
			}
			times = append(times, l.now)
		}
		unit := ib.TimeValue(1).Duration()
		if !slices.Equal(times, []time.Duration{unit, 2 * unit, 3 * unit}) || len(l.log) != 6 {
			t.Errorf("time-outs at %v, %d packets; want three, and three times two packets", times, len(l.log))
		}
		l.a.end.Flush()
		if fmt.Sprint(l.a.sent) != "[retry exceeded flushed]" {
			t.Errorf("ended %v", l.a.sent)
		}
	})
	t.Run("no time-out", func(t *testing.T) {
		l := newLink(t, packet.RC)
		l.a.end.Timeout = 0
		l.a.post(1, endpoint.OpSend, []byte("x"), 0)
		l.carry(func([]byte) bool { return true })
		if _, ok := l.a.end.Deadline(); ok {
			t.Error("a deadline all the same")
		}
	})
	t.Run("gap", func(t *testing.T) {
		l := newLink(t, packet.RC)
		l.b.room(100)
		l.a.post(1, endpoint.OpSend, pattern(1, 5*mtu), 0)
		n := 0
		l.carry(func([]byte) bool { n++; return n == 2 })
		if l.now != 0 || len(l.b.got) != 1 || fmt.Sprint(l.a.sent) != "[success]" {
			t.Errorf("without waiting: %x came, ended %v", l.b.got, l.a.sent)
		}
	})
	t.Run("READ responses lost", func(t *testing.T) {
		l := newLink(t, packet.RC)
		copy(l.b.memory, pattern(9, 200))
		to := make([]byte, 6*mtu)
		l.a.post(1, endpoint.OpRead, to, base)
		n := 0
		l.carry(func(b []byte) bool {
			if packet.OpCode(b[packet.LRHSize]).Operation() == packet.ReadResponseMiddle {
				n++
			}
			return n == 2 || n == 3
		})
		for l.expire() {
			l.carry(nil)
		}
		if !bytes.Equal(to, pattern(9, 6*mtu)) || fmt.Sprint(l.a.sent) != "[success]" {
			t.Errorf("read %x, ended %v", to, l.a.sent)
		}
	})
	t.Run("window", func(t *testing.T) {
		l := newLink(t, packet.RC)
		l.a.post(1, endpoint.OpSend, make([]byte, 1000*mtu), 0)
		n := 0
		for l.next(l.a) != nil {
			n++
		}
		if n != endpoint.MaxInFlight {
			t.Errorf("%d packets without an answer, want %d", n, endpoint.MaxInFlight)
		}
		l = newLink(t, packet.RC)
		for id := range uint64(100) {
			l.a.post(id, endpoint.OpRead, make([]byte, 1), base)
		}
		for n = 0; l.next(l.a) != nil; n++ {
		}
		if n != endpoint.MaxReadsInFlight {
			t.Errorf("%d READs without an answer, want %d", n, endpoint.MaxReadsInFlight)
		}
	})
	t.Run("long message", func(t *testing.T) {
		l := newLink(t, packet.RC)
		l.b.room(1000 * mtu)
		l.a.post(1, endpoint.OpSend, pattern(4, 1000*mtu), 0)
		l.carry(nil)
		if len(l.b.got) != 1 || !bytes.Equal(l.b.got[0], pattern(4, 1000*mtu)) {
			t.Errorf("%d messages", len(l.b.got))
		}
	})
	t.Run("RD one at a time", func(t *testing.T) {
		l := newLink(t, packet.RD)
		l.a.post(1, endpoint.OpSend, []byte("x"), 0)
		l.a.post(2, endpoint.OpSend, []byte("y"), 0)
		if l.next(l.a) == nil || l.next(l.a) != nil {
			t.Error("not one message and then its answer")
		}
	})
}

func TestConnectionReceiverNotReady(t *testing.T) {
	l := newLink(t, packet.RC)
	l.a.end.RNRRetryCount = 1
	l.a.end.Start()
	l.a.post(1, endpoint.OpSend, []byte("first"), 0)
	l.a.post(2, endpoint.OpSend, []byte("second"), 0)
	l.carry(nil)
	at, ok := l.a.end.Deadline()
	if !ok || at != 10*time.Microsecond { // code 1
		t.Fatalf("waits until %v, %v", at, ok)
	}
	l.b.room(10)
	l.expire()
	l.carry(nil)
	if fmt.Sprint(l.a.sent) != "[success]" || len(l.b.got) != 1 {
		t.Fatalf("ended %v", l.a.sent)
	}
	// Progress has started the count again: the second has one retry too.
	l.expire()
	l.carry(nil)
	if f := l.a.end.Failure(); !f.Broken || fmt.Sprint(l.a.sent) != "[success RNR retry exceeded]" {
		t.Errorf("ended %v, %+v", l.a.sent, f)
	}
	if f := l.b.end.Failure(); f.Broken {
		t.Error("the receiver is broken")
	}
	t.Run("without end", func(t *testing.T) {
		l := newLink(t, packet.RC)
		l.a.post(1, endpoint.OpSend, []byte("x"), 0)
		for range 50 {
			l.carry(nil)
			if !l.expire() {
				t.Fatal("gave up")
			}
		}
		if len(l.a.sent) != 0 {
			t.Errorf("ended %v", l.a.sent)
		}
	})
}

// TestRefused shows what a receiver refuses, with what, and what comes of it.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name    string
		request endpoint.ConnectionRequest
		room    int
		want    string
	}{
		{"no such memory", endpoint.ConnectionRequest{Op: endpoint.OpWrite, Data: []byte("x"), RKey: 1, RemoteAddress: base}, 0, "remote access error"},
		{"past the end", endpoint.ConnectionRequest{Op: endpoint.OpWrite, Data: []byte("xx"), RKey: rkey, RemoteAddress: base + 1023}, 0, "remote access error"},
		{"READ past the end", endpoint.ConnectionRequest{Op: endpoint.OpRead, Data: make([]byte, 2), RKey: rkey, RemoteAddress: base + 1023}, 0, "remote access error"},
		{"READ of too much", endpoint.ConnectionRequest{Op: endpoint.OpRead, Data: make([]byte, 1025), RKey: rkey, RemoteAddress: base}, 0, "remote access error"},
		{"too long", endpoint.ConnectionRequest{Op: endpoint.OpSend, Data: make([]byte, 2*mtu)}, mtu, "remote invalid request"},
	} {
		for _, transport := range []packet.Transport{packet.RC, packet.RD} {
			t.Run(fmt.Sprint(tt.name, " on ", transport), func(t *testing.T) {
				l := newLink(t, transport)
				if tt.room > 0 {
					l.b.room(tt.room)
				}
				r := tt.request
				r.Owner, r.ID = l.a, 1
				l.a.end.Post(r)
				l.a.post(2, endpoint.OpSend, []byte("next"), 0)
				l.b.room(100)
				l.carry(nil)
				fa, fb := l.a.end.Failure(), l.b.end.Failure()
				if len(l.a.sent) == 0 || l.a.sent[0] != tt.want {
					t.Fatalf("ended %v, want %s first", l.a.sent, tt.want)
				}
				if transport == packet.RC {
					if !fa.Broken || !fb.Broken {
						t.Errorf("failures %+v and %+v", fa, fb)
					}
				} else if fa.Broken || fb.Broken || fa.Owner != endpoint.ConnectionOwner(l.a) || len(l.a.sent) != 2 || l.a.sent[1] != "success" {
					t.Errorf("failures %+v and %+v, ended %v", fa, fb, l.a.sent)
				}
				if tooLong := tt.room > 0; tooLong != (l.b.tooLong == 1) {
					t.Errorf("%d rooms were too small", l.b.tooLong)
				}
			})
		}
	}
}

// TestUnreliable: what UC loses is lost with its message, and nothing else is.
func TestUnreliable(t *testing.T) {
	l := newLink(t, packet.UC)
	for i := range 3 {
		l.b.room(100)
		l.a.post(uint64(i), endpoint.OpSend, pattern(i, 3*mtu), 0)
	}
	n := 0
	l.carry(func([]byte) bool { n++; return n == 5 }) // the middle of the second
	if len(l.b.got) != 2 || !bytes.Equal(l.b.got[0], pattern(0, 3*mtu)) || !bytes.Equal(l.b.got[1], pattern(2, 3*mtu)) {
		t.Errorf("came %x", l.b.got)
	}
	if fmt.Sprint(l.a.sent) != "[success success success]" || len(l.b.rooms) != 1 {
		t.Errorf("ended %v, %d rooms left, want 1", l.a.sent, len(l.b.rooms))
	}
	// Without room, and too long for it.
	l.b.rooms = nil
	l.a.post(9, endpoint.OpSend, []byte("x"), 0)
	l.carry(nil)
	l.b.room(mtu)
	l.a.post(10, endpoint.OpSend, make([]byte, 2*mtu), 0)
	l.carry(nil)
	if len(l.b.got) != 2 || len(l.b.rooms) != 1 || l.b.end.Failure().Broken {
		t.Errorf("%d came, %d rooms, broken", len(l.b.got), len(l.b.rooms))
	}
}

// TestOddPackets feeds an end what no proper peer sends.
func TestOddPackets(t *testing.T) {
	first := uint32(0xFFFFF0)
	send := func(op packet.Operation, psn uint32, payload int) []byte {
		b, v, err := packet.Append(nil, packet.MakeOpCode(packet.RC, op), false, make([]byte, payload))
		if err != nil {
			t.Fatal(err)
		}
		v.BTH.SetPSN(psn)
		return b
	}
	for _, tt := range []struct {
		name    string
		packets [][]byte
		want    endpoint.ConnectionOutcome
		broken  bool
	}{
		{"middle first", [][]byte{send(packet.SendMiddle, first, mtu)}, endpoint.OpCode, true},
		{"first in a message", [][]byte{send(packet.SendFirst, first, mtu), send(packet.SendOnly, first+1, 1)}, endpoint.OpCode, true},
		{"WRITE in a SEND", [][]byte{send(packet.SendFirst, first, mtu), send(packet.WriteLast, first+1, 1)}, endpoint.OpCode, true},
		{"READ in a SEND", [][]byte{send(packet.SendFirst, first, mtu), send(packet.ReadRequest, first+1, 0)}, endpoint.OpCode, true},
		{"short first", [][]byte{send(packet.SendFirst, first, mtu-1)}, endpoint.Length, true},
		{"long only", [][]byte{send(packet.SendOnly, first, mtu+1)}, endpoint.Length, true},
		{"empty last", [][]byte{send(packet.SendFirst, first, mtu), send(packet.SendLast, first+1, 0)}, endpoint.Length, true},
		{"more than the WRITE said", [][]byte{send(packet.WriteOnly, first, 1)}, endpoint.Length, true},
		{"atomic", [][]byte{send(packet.FetchAdd, first, 0)}, endpoint.OpCode, true},
		{"invalidate", [][]byte{send(packet.SendOnlyInvalidate, first, 0)}, endpoint.OpCode, true},
		{"from the future", [][]byte{send(packet.SendOnly, first+5, 1)}, endpoint.Sequence, false},
		{"from the past", [][]byte{send(packet.SendOnly, first-1, 1)}, endpoint.Duplicate, false},
		{"READ from the past", [][]byte{send(packet.ReadRequest, first-1, 0)}, endpoint.ConnectionTaken, false},
		{"an answer to nothing", [][]byte{send(packet.Acknowledge, first, 0)}, endpoint.Duplicate, false},
		{"a READ answered unasked", [][]byte{send(packet.ReadResponseOnly, first, 4)}, endpoint.Duplicate, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(t, packet.RC)
			l.b.room(100)
			var got endpoint.ConnectionOutcome
			for _, b := range tt.packets {
				got = l.b.take(0, b)
			}
			if f := l.b.end.Failure(); got != tt.want || f.Broken != tt.broken {
				t.Errorf("outcome %d, broken %v; want %d, %v", got, f.Broken, tt.want, tt.broken)
			}
		})
	}
	t.Run("answers bounded", func(t *testing.T) {
		l := newLink(t, packet.RC)
		var got endpoint.ConnectionOutcome
		for i := range uint32(endpoint.MaxAnswers + 1) {
			got = l.b.take(0, send(packet.ReadRequest, first+i, 0))
		}
		if got != endpoint.Full {
			t.Errorf("outcome %d, want Full", got)
		}
		n := 0
		for l.next(l.b) != nil {
			n++
		}
		if n != endpoint.MaxAnswers {
			t.Errorf("%d answers", n)
		}
	})
	t.Run("answers to a sender", func(t *testing.T) {
		for name, change := range map[string]func(v *packet.View){
			"not sent yet":   func(v *packet.View) { v.BTH.SetPSN(first + 3) },
			"sent long ago":  func(v *packet.View) { v.BTH.SetPSN(first - 1) },
			"reserved kind":  func(v *packet.View) { v.AETH.SetSyndrome(0x40) },
			"unknown NAK":    func(v *packet.View) { v.AETH.SetSyndrome(0x7F) },
			"atomic":         func(v *packet.View) { v.BTH.SetOpCode(packet.MakeOpCode(packet.RC, packet.AtomicAcknowledge)) },
			"READ of a SEND": func(v *packet.View) { v.BTH.SetOpCode(packet.MakeOpCode(packet.RC, packet.ReadResponseOnly)) },
		} {
			l := newLink(t, packet.RC)
			l.a.post(1, endpoint.OpSend, []byte("x"), 0)
			l.next(l.a)
			op := packet.Acknowledge
			if name == "atomic" {
				op = packet.AtomicAcknowledge
			}
			b := send(op, first, 0)
			v, err := packet.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			change(&v)
			if got := l.a.take(0, b); got == endpoint.ConnectionTaken || len(l.a.sent) != 0 {
				t.Errorf("%s: outcome %d, ended %v", name, got, l.a.sent)
			}
		}
	})
	t.Run("READ answered with too little", func(t *testing.T) {
		l := newLink(t, packet.RC)
		l.a.post(1, endpoint.OpRead, make([]byte, 2*mtu), base)
		l.next(l.a)
		if l.a.take(0, send(packet.ReadResponseFirst, first, mtu-4)); fmt.Sprint(l.a.sent) != "[bad response]" || !l.a.end.Failure().Broken {
			t.Errorf("ended %v", l.a.sent)
		}
	})
}

// TestLeave: one of two that share an end goes, in the middle of its message.
func TestLeave(t *testing.T) {
	l := newLink(t, packet.RD)
	other := &side{t: t, statuses: map[uint64]endpoint.Status{}}
	l.b.room(100)
	l.a.post(1, endpoint.OpSend, pattern(1, 3*mtu), 0)
	l.a.post(2, endpoint.OpSend, []byte("never"), 0)
	l.a.end.Post(endpoint.ConnectionRequest{Owner: other, ID: 3, Data: []byte("the other's")})
	l.b.take(0, l.next(l.a))
	l.a.end.Leave(l.a)
	if fmt.Sprint(l.a.sent) != "[flushed flushed]" {
		t.Errorf("ended %v", l.a.sent)
	}
	l.a.end.Leave(l.a)
	l.carry(nil)
	if fmt.Sprint(other.sent) != "[success]" || len(l.b.got) != 1 || string(l.b.got[0]) != "the other's" {
		t.Errorf("ended %v, came %q", other.sent, l.b.got)
	}
	// The receiver of a message that is half there goes: its room is back.
	l.b.room(100)
	l.a.post(4, endpoint.OpSend, pattern(1, 3*mtu), 0)
	l.b.take(0, l.next(l.a))
	l.b.end.Leave(l.b)
	if len(l.b.rooms) != 1 {
		t.Errorf("%d rooms, want the one that was taken", len(l.b.rooms))
	}
}

func TestStatusString(t *testing.T) {
	for s := endpoint.Success; s <= endpoint.RNRRetryExceeded; s++ {
		if s.String() == "" || s.String() == "unknown status" {
			t.Errorf("status %d is %q", s, s)
		}
	}
	if endpoint.Status(99).String() != "unknown status" {
		t.Error("status 99 has a name")
	}
}

// FuzzPackets: whatever packets come, in whatever order, an end does not panic,
// does not grow, and goes on.
func FuzzPackets(f *testing.F) {
	for transport := range uint8(3) {
		f.Add(transport, []byte{0x00, 0, 16, 0x01, 1, 16, 0x02, 2, 3, 0x0C, 3, 0, 0x11, 0, 0, 0x15, 9, 0})
		f.Add(transport, []byte{0x0A, 0, 4, 0x0B, 1, 4, 0x06, 2, 16, 0x08, 3, 5, 0x0D, 0, 16, 0x10, 1, 8})
	}
	f.Fuzz(func(t *testing.T, transport uint8, script []byte) {
		l := newLink(t, packet.Transport(transport%3))
		other := endpoint.OpRead
		if transport%3 == uint8(packet.UC) {
			other = endpoint.OpWrite // UC has no READ
		}
		for i := range 4 {
			l.b.room(3 * mtu)
			l.b.post(uint64(i), []endpoint.Operation{endpoint.OpSend, other}[i%2], make([]byte, 40), base)
		}
		for ; len(script) >= 3; script = script[3:] {
			op := packet.MakeOpCode(packet.Transport(transport%3), packet.Operation(script[0]&0x1F))
			size := int(script[2]) % (mtu + 2)
			if !op.HasPayload() {
				size = 0
			}
			b, v, err := packet.Append(nil, op, false, make([]byte, size))
			if err != nil {
				continue
			}
			v.BTH.SetPSN(0xFFFFF0 + uint32(int8(script[1])))
			v.BTH.SetAckReq(script[0]&0x20 != 0)
			if v.RETH != nil {
				v.RETH.SetRKey(rkey)
				v.RETH.SetVA(base + uint64(script[1]))
				v.RETH.SetDMALen(uint32(script[2]))
			}
			if v.AETH != nil {
				v.AETH.SetSyndrome(packet.Syndrome(script[2]))
			}
			l.b.take(l.now, b)
			if script[0]&0x40 != 0 {
				l.next(l.b)
			}
			if at, ok := l.b.end.Deadline(); ok && script[0]&0x80 != 0 {
				l.now = max(at, l.now)
				l.b.end.Expire(l.now)
			}
			if f := l.b.end.Failure(); f.Broken {
				l.b.end.Flush()
			}
		}
		answers := 0
		for l.b.end.HasAnswer() {
			l.next(l.b)
			if answers++; answers > endpoint.MaxAnswers*300 {
				t.Fatal("answers without end")
			}
		}
		if l.b.end.Posted() > 5 { // the requests and a RESYNC
			t.Errorf("%d requests", l.b.end.Posted())
		}
	})
}
