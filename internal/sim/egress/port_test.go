package egress

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

func TestCredits(t *testing.T) {
	s := sender(2)
	s.Buffer[0], s.Buffer[1] = 10, 3
	p := configured(t, s)
	for h, blocks := range []uint16{4, 6, 1} {
		p.Enqueue(0, Handle(h), 0, blocks, 0)
	}
	wantLeaves(t, p, 0, 0, 1)
	if p.Free(0) != 0 || p.Free(1) != 3 {
		t.Fatalf("free %d and %d, want 0 and 3", p.Free(0), p.Free(1))
	}
	enqueue(t, p, 0, 1, 9)
	wantLeaves(t, p, 0, 9) // the virtual lanes do not share
	if !p.Credit(0, 1) {
		t.Fatal("a credit that was owed was not taken")
	}
	wantLeaves(t, p, 0, 2)
	if p.Credit(0, 11) || p.Free(0) != 10 {
		t.Fatalf("11 credits for 10 owed; free %d, want 10", p.Free(0))
	}
	if p.Credit(7, 1) || p.Credit(16, 0) || !p.Credit(ib.VLManagement, 4) {
		t.Fatal("credits of a VL that owes nothing")
	}

	// A smaller buffer holds what was sent and lets nothing follow.
	p.Enqueue(0, 3, 0, 6, 0)
	p.Enqueue(0, 4, 0, 1, 0)
	s.Buffer[0] = 6
	wantLeaves(t, p, 0, 3, 4)
	if err := p.Configure(&s); err != nil {
		t.Fatal(err)
	}
	enqueue(t, p, 0, 0, 5)
	wantLeaves(t, p, 0)
	if p.Free(0) != -1 {
		t.Fatalf("free %d, want -1", p.Free(0))
	}
	p.Credit(0, 2)
	wantLeaves(t, p, 0, 5)
}

func TestResetGivesEverythingBack(t *testing.T) {
	s := exit()
	s.DataVLs, s.HOQLife, s.VLStallCount, s.Buffer[1] = 2, 0, 1, 1
	p := configured(t, s)
	enqueue(t, p, 0, 1, 1)
	wantLeaves(t, p, 0, 1)
	dropHeads(t, p, 0, 1)
	refused(t, p, nominal(0), 0, Stalled)
	enqueue(t, p, nominal(0), ib.VLManagement, 2)
	enqueue(t, p, nominal(0), 1, 3, 4)
	var out []Handle
	p.Reset(func(h Handle) { out = append(out, h) })
	if !slices.Equal(out, []Handle{3, 4, 2}) || p.Len() != 0 || p.Free(1) != 1 {
		t.Fatalf("Reset gave %v, left %d and %d credits; want [3 4 2], 0 and 1", out, p.Len(), p.Free(1))
	}
	enqueue(t, p, nominal(0), 0, 5) // not stalled any more
	enqueue(t, p, nominal(0), 1, 6)
	wantLeaves(t, p, nominal(0), 6)
}

func TestClosedLane(t *testing.T) {
	s := sender(4)
	p := configured(t, s)
	enqueue(t, p, 5, 3, 1, 2)
	enqueue(t, p, 5, 0, 3)
	refused(t, p, 5, 4, LaneClosed)
	refused(t, p, 5, 16, LaneClosed)
	s.DataVLs = 2
	if err := p.Configure(&s); err != nil {
		t.Fatal(err)
	}
	refused(t, p, 5, 3, LaneClosed)
	if at, ok := p.Deadline(); !ok || at > 5 {
		t.Fatalf("due at %v (%v), want at once", at, ok)
	}
	wantLeaves(t, p, 5, 3)
	expect(t, p, 5, "1 VL not in operation", "2 VL not in operation")
}

func TestFullLane(t *testing.T) {
	p := configured(t, sender(1))
	for h := range Handle(WaitingLimit) {
		enqueue(t, p, 0, 0, h)
	}
	refused(t, p, 0, 0, LaneFull)
	if h, _, ok := p.Next(0); !ok || h != 0 {
		t.Fatalf("packet %d leaves (%v), want 0", h, ok)
	}
	enqueue(t, p, 0, 0, WaitingLimit)
	for h := range Handle(WaitingLimit) {
		if got, _, ok := p.Next(0); !ok || got != h+1 {
			t.Fatalf("packet %d leaves (%v), want %d", got, ok, h+1)
		}
	}
}

func TestConfigureRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.DataVLs = 16 }, "16 data VLs: want 0 to 15"},
		{func(s *Settings) { s.DataVLs = -1 }, "-1 data VLs: want 0 to 15"},
		{func(s *Settings) { s.HOQLife = 32 }, "HOQLife 32: want 0 to 31"},
		{func(s *Settings) { s.LifeTimeValue = 32 }, "LifeTimeValue 32: want 0 to 31"},
		{func(s *Settings) { s.VLStallCount = 8 }, "VLStallCount 8: want 0 to 7"},
		{func(s *Settings) { s.High = table(0, 1, 15, 1) }, "high-priority entry 1: VL15"},
		{func(s *Settings) { s.Low = make([]smp.VLArbitrationEntry, 65) }, "low-priority table of 65 entries: want at most 64"},
	} {
		p := configured(t, sender(1))
		s := sender(3)
		c.change(&s)
		if err := p.Configure(&s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		refused(t, p, 0, 2, LaneClosed) // nothing changed
	}
}

// TestIdlePortIsSmall: a fabric has a hundred thousand ports.
func TestIdlePortIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Port{}); size > 256 {
		t.Errorf("an idle port takes %d bytes, want at most 256", size)
	}
	if size := unsafe.Sizeof(lane{}); size > 64 {
		t.Errorf("a VL takes %d bytes, want at most 64", size)
	}
}

func TestNothingIsAllocatedUnderWay(t *testing.T) {
	p, step := traffic(t)
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations for a packet, want none", n)
	}
	if p.Len() == 0 {
		t.Error("nothing waits: the run did not show anything")
	}
}

// traffic is a switch exit of 8 data virtual lanes with all limits on and 8 packets
// waiting in each; step takes one packet through it.
func traffic(t testing.TB) (*Port, func()) {
	s := sender(8)
	s.Exit, s.HOQLife, s.LifeTimeValue, s.VLStallCount, s.VLHighLimit = true, 18, 19, 7, 4
	for vl := range 8 {
		s.High = append(s.High, table(vl, 16)...)
		s.Low = append(s.Low, table(7-vl, 64)...)
	}
	p := configured(t, s)
	for vl := range ib.VL(8) {
		enqueue(t, p, 0, vl, 1, 2, 3, 4, 5, 6, 7, 8)
	}
	none := func(Handle, Reason) { panic("dropped") }
	now := nominal(0)
	return p, func() {
		now++
		if at, ok := p.Deadline(); ok && at <= now {
			p.Expire(now, none)
		}
		h, vl, ok := p.Next(now)
		if !ok {
			panic("nothing to send")
		}
		p.Credit(vl, 1)
		p.Enqueue(now, h, vl, 1, now)
	}
}

// BenchmarkPacket is Deadline, Next, Credit and Enqueue once each, with
// eight virtual lanes busy.
func BenchmarkPacket(b *testing.B) {
	_, step := traffic(b)
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}

// BenchmarkEnqueueNext is a packet through a port where it meets no other.
func BenchmarkEnqueueNext(b *testing.B) {
	s := sender(1)
	p := configured(b, s)
	b.ReportAllocs()
	for b.Loop() {
		p.Enqueue(0, 1, 0, 1, 0)
		_, vl, _ := p.Next(0)
		p.Credit(vl, 1)
	}
}
