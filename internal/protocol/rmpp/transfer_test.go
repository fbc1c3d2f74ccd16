package rmpp

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// flight is a packet between two endpoints.
type flight struct {
	at time.Duration
	to int
	m  [mad.Size]byte
}

// pair is two endpoints and an unreliable wire between them.
type pair struct {
	now       time.Duration
	ends      [2]*Endpoint[int]
	air       []flight
	r         *rand.Rand
	loss, dup float64
	spread    time.Duration // of delays: more than 1 us reorders
	got       []*Message
	ended     []Ending[int]
	carried   int
}

func newPair(seed uint64, l Limits) *pair {
	return &pair{r: rand.New(rand.NewPCG(seed, 1)), ends: [2]*Endpoint[int]{New[int](l), New[int](l)}}
}

func (p *pair) pump() {
	var m [mad.Size]byte
	for i, e := range p.ends {
		for {
			to, ok := e.Next(p.now, &m)
			if !ok {
				break
			}
			copies := 1
			if p.r.Float64() < p.dup {
				copies++
			}
			for range copies {
				if p.r.Float64() >= p.loss {
					delay := time.Microsecond
					if p.spread > 0 {
						delay += time.Duration(p.r.Int64N(int64(p.spread)))
					}
					p.air = append(p.air, flight{p.now + delay, to, m})
				}
			}
			_ = i
		}
		p.ended = append(p.ended, e.Ended()...)
	}
}

// run goes on until nothing is under way, and reports whether it came to that.
func (p *pair) run(limit time.Duration) bool {
	for p.now < limit {
		p.pump()
		next := -1
		for i := range p.air {
			if next < 0 || p.air[i].at < p.air[next].at {
				next = i
			}
		}
		due, waits := time.Duration(0), false
		for _, e := range p.ends {
			if at, ok := e.Deadline(); ok && (!waits || at < due) {
				due, waits = at, true
			}
		}
		switch {
		case next >= 0 && (!waits || p.air[next].at <= due):
			f := p.air[next]
			p.air = append(p.air[:next], p.air[next+1:]...)
			p.now = max(p.now, f.at)
			p.carried++
			if m := p.ends[f.to].Receive(p.now, 1-f.to, &f.m); m != nil {
				p.got = append(p.got, m)
			}
		case waits:
			p.now = max(p.now, due)
			for _, e := range p.ends {
				e.Expire(p.now)
			}
		default:
			return true
		}
	}
	return false
}

func message(tid byte, n int, r *rand.Rand) *Message {
	m := &Message{Body: make([]byte, n)}
	m.Head[0], m.Head[1], m.Head[2], m.Head[mad.OffsetMethod] = 1, byte(mad.ClassSubnAdm), 2, 0x92
	m.Head[mad.OffsetTransactionID+7] = tid
	for i := range m.Body {
		m.Body[i] = byte(r.Uint32())
	}
	for i := 36; i < HeadSize; i++ {
		m.Head[i] = byte(r.Uint32())
	}
	return m
}

func testLimits() Limits {
	l := DefaultLimits()
	l.ReceiveMax, l.Tries = 1<<20, 12
	return l
}

// equal compares messages without their RMPP headers.
func equal(a, b *Message) bool {
	return bytes.Equal(a.Body, b.Body) &&
		bytes.Equal(a.Head[:offRMPP], b.Head[:offRMPP]) && bytes.Equal(a.Head[36:], b.Head[36:])
}

func TestEveryLengthArrives(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 8, 199, 200, 201, 399, 400, 401, 6400, 6401, 12800, 50_001} {
		p := newPair(1, testLimits())
		want := message(9, n, r)
		if err := p.ends[0].Send(0, 1, want); err != nil {
			t.Fatal(err)
		}
		if !p.run(time.Minute) || len(p.got) != 1 || !equal(p.got[0], want) {
			t.Errorf("%d bytes: %d messages arrived, or not as sent", n, len(p.got))
		}
		if len(p.ended) != 1 || p.ended[0].Err != nil {
			t.Errorf("%d bytes: ended %v", n, p.ended)
		}
		if p.now > time.Second {
			t.Errorf("%d bytes: %v passed without a loss: somebody waited for a time-out", n, p.now)
		}
	}
}

func TestBadWires(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := newPair(seed, testLimits())
		p.loss, p.dup = r.Float64()*0.3, r.Float64()*0.5
		p.spread = time.Duration(r.IntN(3)) * 50 * time.Microsecond
		var want []*Message
		for i := range 1 + r.IntN(4) {
			m := message(byte(i), r.IntN(30_000), r)
			want = append(want, m)
			if err := p.ends[0].Send(0, 1, m); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if !p.run(10 * time.Minute) {
			t.Fatalf("seed %d: it does not end", seed)
		}
		arrived := map[byte]*Message{}
		for _, m := range p.got {
			tid := m.Head[mad.OffsetTransactionID+7]
			if arrived[tid] != nil {
				t.Errorf("seed %d: message %d arrived twice", seed, tid)
			}
			arrived[tid] = m
			if !equal(m, want[tid]) {
				t.Errorf("seed %d: message %d is not what was sent", seed, tid)
			}
		}
		if len(p.ended) != len(want) {
			t.Errorf("seed %d: %d endings for %d messages", seed, len(p.ended), len(want))
		}
		for _, e := range p.ended {
			var a *Abort
			if e.Err == nil && arrived[byte(e.Transaction)] == nil {
				t.Errorf("seed %d: message %d: said to be through, and is not", seed, e.Transaction)
			}
			if e.Err != nil && (!errors.As(e.Err, &a) || a.Status != mad.RMPPTooManyRetries && a.Status != mad.RMPPTotalTimeTooLong) {
				t.Errorf("seed %d: message %d ended with %v", seed, e.Transaction, e.Err)
			}
		}
		for i, e := range p.ends {
			if e.Busy() != 0 || e.bytes != 0 || len(e.sends)+len(e.receives) != 0 {
				t.Errorf("seed %d: end %d keeps %d transfers, %d bytes", seed, i, e.Busy(), e.bytes)
			}
		}
	}
}

// TestOnce: with Once a peer that acknowledges nothing is sent the first segment once and no
// word more, and its transfer ends; one that acknowledges gets all, over a bad wire too, once it
// has acknowledged the first.
func TestOnce(t *testing.T) {
	l := testLimits()
	l.Once = true
	e := New[int](l)
	r := rand.New(rand.NewPCG(4, 4))
	if err := e.Send(0, 1, message(1, 5000, r)); err != nil {
		t.Fatal(err)
	}
	sent := 0
	var m [mad.Size]byte
	for now := time.Duration(0); now <= l.ResponseTime; now += l.ResponseTime / 4 {
		e.Expire(now)
		for _, ok := e.Next(now, &m); ok; _, ok = e.Next(now, &m) {
			sent++
		}
	}
	if sent != 1 || e.Busy() != 0 || e.bytes != 0 || m[offRMPP+1] != byte(mad.RMPPData) {
		t.Errorf("%d packets left, %d transfers under way, %d bytes", sent, e.Busy(), e.bytes)
	}
	for seed := range uint64(50) {
		p := newPair(seed, l)
		want := message(2, 20_000, r)
		if err := p.ends[0].Send(0, 1, want); err != nil {
			t.Fatal(err)
		}
		p.pump() // the first segment leaves, and its acknowledgement, before the wire is bad
		p.now = p.air[0].at
		p.ends[1].Receive(p.now, 0, &p.air[0].m)
		p.air = nil
		p.pump()
		p.ends[0].Receive(p.now, 1, &p.air[0].m)
		p.air = nil
		p.loss = 0.2
		if !p.run(10*time.Minute) || len(p.got) != 1 || !equal(p.got[0], want) {
			t.Errorf("seed %d: %d messages arrived", seed, len(p.got))
		}
	}
}

func TestSilenceEndsWithTooManyRetries(t *testing.T) {
	p := newPair(1, DefaultLimits())
	p.loss = 1
	if err := p.ends[0].Send(0, 1, message(1, 1000, p.r)); err != nil {
		t.Fatal(err)
	}
	if !p.run(time.Minute) || len(p.ended) != 1 {
		t.Fatal("it does not end")
	}
	var a *Abort
	if !errors.As(p.ended[0].Err, &a) || a.Status != mad.RMPPTooManyRetries || a.Remote {
		t.Errorf("ended with %v, want 126 of this side", p.ended[0].Err)
	}
	l := DefaultLimits()
	if want := time.Duration(l.Tries) * l.ResponseTime; p.now != want {
		t.Errorf("it took %v, want %v", p.now, want)
	}
}

func TestRoomIsBounded(t *testing.T) {
	l := DefaultLimits()
	l.Senders, l.PerPeer, l.SendTotal = 3, 2, 1000
	e := New[int](l)
	r := rand.New(rand.NewPCG(1, 1))
	for i, c := range []struct {
		peer, tid, bytes int
		want             error
	}{
		{1, 1, 100, nil},
		{1, 1, 100, ErrDuplicate},
		{1, 2, 100, nil},
		{1, 3, 100, ErrTooMany},
		{2, 1, 900, ErrTooMany},
		{2, 1, 33 << 20, ErrTooLong},
		{2, 1, 100, nil},
		{3, 1, 100, ErrTooMany},
	} {
		if err := e.Send(0, c.peer, message(byte(c.tid), c.bytes, r)); !errors.Is(err, c.want) {
			t.Errorf("send %d: %v, want %v", i, err, c.want)
		}
	}
}
