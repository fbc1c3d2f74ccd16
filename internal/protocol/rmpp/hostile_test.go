package rmpp

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// packetOf makes an RMPP packet of transaction 9.
func packetOf(method byte, kind mad.RMPPType, flags mad.RMPPFlags, status mad.RMPPStatus, data1, data2 uint32) *[mad.Size]byte {
	m := message(9, 0, rand.New(rand.NewPCG(1, 1)))
	var out [mad.Size]byte
	copy(out[:], m.Head[:])
	out[mad.OffsetMethod] = method
	putRMPP(&out, kind, flags|mad.RMPPActive, status, data1, data2)
	return &out
}

// replyOf is the type and status of what the endpoint has to say next.
func replyOf(t *testing.T, e *Endpoint[int]) (mad.RMPP, byte) {
	t.Helper()
	var m [mad.Size]byte
	if _, ok := e.Next(0, &m); !ok {
		return mad.RMPP{}, 0
	}
	var h mad.RMPP
	if err := h.UnmarshalBinary(m[offRMPP:]); err != nil {
		t.Fatal(err)
	}
	return h, m[mad.OffsetMethod]
}

const first, last = mad.RMPPFirst, mad.RMPPLast

func TestHostileSegments(t *testing.T) {
	data := func(flags mad.RMPPFlags, n, length uint32) *[mad.Size]byte {
		return packetOf(0x14, mad.RMPPData, flags, 0, n, length)
	}
	bad := func(change func(m *[mad.Size]byte)) *[mad.Size]byte {
		m := data(first, 1, 0)
		change(m)
		return m
	}
	for name, c := range map[string]struct {
		in   []*[mad.Size]byte
		kind mad.RMPPType
		want mad.RMPPStatus
	}{
		"first without 1":         {[]*[mad.Size]byte{data(first, 2, 0)}, mad.RMPPAbort, mad.RMPPInconsistentFirst},
		"1 without first":         {[]*[mad.Size]byte{data(0, 1, 0)}, mad.RMPPAbort, mad.RMPPInconsistentFirst},
		"segment 0":               {[]*[mad.Size]byte{data(0, 0, 0)}, mad.RMPPAbort, mad.RMPPInconsistentFirst},
		"last too long":           {[]*[mad.Size]byte{data(first|last, 1, 221)}, mad.RMPPAbort, mad.RMPPInconsistentLast},
		"last too short":          {[]*[mad.Size]byte{data(first|last, 1, 19)}, mad.RMPPAbort, mad.RMPPInconsistentLast},
		"beyond the last":         {[]*[mad.Size]byte{data(first, 1, 0), data(last, 3, 30), data(0, 4, 0)}, mad.RMPPAbort, mad.RMPPInconsistentLast},
		"two lasts":               {[]*[mad.Size]byte{data(first, 1, 0), data(last, 3, 30), data(last, 2, 30)}, mad.RMPPAbort, mad.RMPPInconsistentLast},
		"last below a segment":    {[]*[mad.Size]byte{data(first, 1, 0), data(0, 5, 0), data(last, 2, 30)}, mad.RMPPAbort, mad.RMPPInconsistentLast},
		"last not as announced":   {[]*[mad.Size]byte{data(first, 1, 660), data(last, 2, 30)}, mad.RMPPAbort, mad.RMPPInconsistentLast},
		"beyond the announced":    {[]*[mad.Size]byte{data(first, 1, 440), data(0, 3, 0)}, mad.RMPPAbort, mad.RMPPInconsistentLast},
		"announced against last":  {[]*[mad.Size]byte{data(first, 1, 0), data(last, 3, 30), data(first, 1, 440)}, mad.RMPPAbort, mad.RMPPInconsistentLast},
		"announced beyond memory": {[]*[mad.Size]byte{data(first, 1, 0xFFFF_FFFF)}, mad.RMPPStop, mad.RMPPResourcesExhausted},
		"segment beyond memory":   {[]*[mad.Size]byte{data(first, 1, 0), data(0, 0xFFFF_FFFF, 0)}, mad.RMPPStop, mad.RMPPResourcesExhausted},
		"status":                  {[]*[mad.Size]byte{packetOf(0x14, mad.RMPPData, first, 5, 1, 0)}, mad.RMPPAbort, mad.RMPPIllegalStatus},
		"version":                 {[]*[mad.Size]byte{bad(func(m *[mad.Size]byte) { m[offRMPP] = 2 })}, mad.RMPPAbort, mad.RMPPUnsupportedVersion},
		"type":                    {[]*[mad.Size]byte{bad(func(m *[mad.Size]byte) { m[offRMPP+1] = 5 })}, mad.RMPPAbort, mad.RMPPBadType},
		"type none":               {[]*[mad.Size]byte{bad(func(m *[mad.Size]byte) { m[offRMPP+1] = 0 })}, mad.RMPPAbort, mad.RMPPBadType},
		"above the window":        {[]*[mad.Size]byte{data(first, 1, 0), data(0, 60, 0)}, mad.RMPPNone, 0},
		"no beginning":            {[]*[mad.Size]byte{data(0, 7, 0)}, mad.RMPPNone, 0},
		"stop for nothing":        {[]*[mad.Size]byte{packetOf(0x14, mad.RMPPStop, 0, 1, 0, 0)}, mad.RMPPNone, 0},
		"abort with any status":   {[]*[mad.Size]byte{packetOf(0x14, mad.RMPPAbort, 0, 3, 0, 0)}, mad.RMPPNone, 0},
		"ack for nothing":         {[]*[mad.Size]byte{packetOf(0x14, mad.RMPPAck, 0, 0, 1, 2)}, mad.RMPPNone, 0},
	} {
		l := DefaultLimits()
		e := New[int](l)
		var h mad.RMPP
		var method byte
		for i, m := range c.in {
			if e.Receive(0, 1, m) != nil {
				t.Errorf("%s: packet %d completed a message", name, i)
			}
			h, method = mad.RMPP{}, 0
			for next, m := replyOf(t, e); next.Type != mad.RMPPNone; next, m = replyOf(t, e) {
				h, method = next, m
			}
		}
		if h.Type != c.kind || h.Status != c.want {
			t.Errorf("%s: type %d status %d, want type %d status %d", name, h.Type, h.Status, c.kind, c.want)
		}
		if c.kind != mad.RMPPNone && (method != 0x94 || e.Busy() != 0) {
			t.Errorf("%s: method %#x, %d transfers left", name, method, e.Busy())
		}
	}
}

func TestHostileAcknowledgements(t *testing.T) {
	for name, c := range map[string]struct {
		ack  *[mad.Size]byte
		want mad.RMPPStatus // 0 for going on
	}{
		"window below segment":  {packetOf(0x12, mad.RMPPAck, 0, 0, 1, 0), mad.RMPPNewWindowLastTooSmall},
		"segment never sent":    {packetOf(0x12, mad.RMPPAck, 0, 0, 2, 40), mad.RMPPSegmentNumberTooBig},
		"segment beyond":        {packetOf(0x12, mad.RMPPAck, 0, 0, 0xFFFF_FFFF, 0xFFFF_FFFF), mad.RMPPSegmentNumberTooBig},
		"status":                {packetOf(0x12, mad.RMPPAck, 0, 9, 1, 2), mad.RMPPIllegalStatus},
		"version":               {func() *[mad.Size]byte { m := packetOf(0x12, mad.RMPPAck, 0, 0, 1, 2); m[offRMPP] = 9; return m }(), mad.RMPPUnsupportedVersion},
		"type":                  {packetOf(0x12, 7, 0, 0, 1, 2), mad.RMPPBadType},
		"a window without end":  {packetOf(0x12, mad.RMPPAck, 0, 0, 1, 0xFFFF_FFFF), 0},
		"nothing yet":           {packetOf(0x12, mad.RMPPAck, 0, 0, 0, 1), 0},
		"of another transfer":   {packetOf(0x14, mad.RMPPAck, 0, 0, 9, 1), 0},
		"an ack of a like name": {packetOf(0x92, mad.RMPPAck, 0, 0, 9, 1), 0},
	} {
		e := New[int](DefaultLimits())
		if err := e.Send(0, 1, message(9, 2000, rand.New(rand.NewPCG(1, 1)))); err != nil {
			t.Fatal(err)
		}
		replyOf(t, e) // the first segment leaves
		e.Receive(0, 1, c.ack)
		h, method := replyOf(t, e)
		if c.want == 0 {
			if h.Type == mad.RMPPAbort || e.Busy() != 1 {
				t.Errorf("%s: type %d, %d transfers", name, h.Type, e.Busy())
			}
			continue
		}
		if h.Type != mad.RMPPAbort || h.Status != c.want || method != 0x92 || e.Busy() != 0 {
			t.Errorf("%s: type %d status %d method %#x, %d transfers, want ABORT %d", name, h.Type, h.Status, method, e.Busy(), c.want)
		}
		if ended := e.Ended(); len(ended) != 1 || ended[0].Err == nil {
			t.Errorf("%s: ended %v", name, ended)
		}
	}
}

// A peer that begins transfers and never goes on costs a bounded share, and its
// transfers end with 118.
func TestNeverGoingOn(t *testing.T) {
	l := DefaultLimits()
	e := New[int](l)
	stops, aborts := 0, 0
	for tid := range 1000 {
		m := packetOf(0x14, mad.RMPPData, first, 0, 1, 0)
		binary.BigEndian.PutUint64(m[mad.OffsetTransactionID:], uint64(tid))
		e.Receive(0, 1, m)
		if h, _ := replyOf(t, e); h.Type == mad.RMPPStop && h.Status == mad.RMPPResourcesExhausted {
			stops++
		}
	}
	if e.Busy() != l.PerPeer || stops != 1000-l.PerPeer {
		t.Errorf("%d transfers under way, %d stopped, want %d and %d", e.Busy(), stops, l.PerPeer, 1000-l.PerPeer)
	}
	if due, ok := e.Deadline(); !ok || due > l.TotalTime {
		t.Errorf("deadline %v %v", due, ok)
	}
	e.Expire(l.TotalTime)
	for h, _ := replyOf(t, e); h.Type != mad.RMPPNone; h, _ = replyOf(t, e) {
		if h.Type == mad.RMPPAbort && h.Status == mad.RMPPTotalTimeTooLong {
			aborts++
		}
	}
	if e.Busy() != 0 || aborts != l.PerPeer {
		t.Errorf("%d transfers left, %d aborts with 118", e.Busy(), aborts)
	}
	if _, ok := e.Deadline(); ok {
		t.Error("a deadline with nothing under way")
	}
}

// A receiver that acknowledges the same forever keeps a sender no longer than
// TotalTime.
func TestAcknowledgingForever(t *testing.T) {
	e := New[int](DefaultLimits())
	if err := e.Send(0, 1, message(9, 100_000, rand.New(rand.NewPCG(1, 1)))); err != nil {
		t.Fatal(err)
	}
	var m [mad.Size]byte
	sent := 0
	for now := time.Duration(0); e.Busy() > 0; now += 100 * time.Millisecond {
		if now > time.Minute {
			t.Fatal("it does not end")
		}
		for {
			if _, ok := e.Next(now, &m); !ok {
				break
			}
			sent++
		}
		e.Receive(now, 1, packetOf(0x12, mad.RMPPAck, 0, 0, 0, 1))
		e.Expire(now)
	}
	if ended := e.Ended(); len(ended) != 1 || ended[0].Err == nil {
		t.Errorf("ended %v", ended)
	}
	if sent > 100 {
		t.Errorf("%d packets left for a window of 1", sent)
	}
}

func FuzzEndpoint(f *testing.F) {
	f.Add(packetOf(0x14, mad.RMPPData, first, 0, 1, 0)[:], uint16(1))
	f.Add(packetOf(0x12, mad.RMPPAck, 0, 0, 1, 40)[:], uint16(3))
	f.Add(packetOf(0x14, mad.RMPPData, first|last, 0, 1, 30)[:], uint16(9))
	f.Fuzz(func(t *testing.T, bytes []byte, steps uint16) {
		l := DefaultLimits()
		e := New[int](l)
		if err := e.Send(0, 1, message(9, 3000, rand.New(rand.NewPCG(1, 1)))); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(uint64(steps), 5))
		var m, out [mad.Size]byte
		now := time.Duration(0)
		for i := range 64 {
			// The given packets, and ones near them.
			m = *packetOf(byte(r.IntN(2))*0x80|0x12+byte(r.IntN(3)), mad.RMPPType(r.IntN(6)), mad.RMPPFlags(r.IntN(8)), 0, uint32(r.IntN(8)), uint32(r.IntN(300)))
			if len(bytes) > 0 {
				from := i * 7 % len(bytes)
				copy(m[offRMPP:], bytes[from:])
			}
			if got := e.Receive(now, 1, &m); got != nil && len(got.Body) > l.ReceiveMax {
				t.Fatalf("a message of %d bytes", len(got.Body))
			}
			for range 40 {
				if _, ok := e.Next(now, &out); !ok {
					break
				}
			}
			now += time.Duration(r.IntN(500)) * time.Millisecond
			e.Expire(now)
		}
		for range 200 {
			due, ok := e.Deadline()
			if !ok {
				break
			}
			now = max(now, due)
			e.Expire(now)
			for range repliesMax {
				if _, ok := e.Next(now, &out); !ok {
					break
				}
			}
		}
		if e.Busy() != 0 || e.bytes != 0 {
			t.Fatalf("%d transfers never end, %d bytes kept", e.Busy(), e.bytes)
		}
	})
}
