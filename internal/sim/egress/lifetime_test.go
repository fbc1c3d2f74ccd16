package egress

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// nominal is what a code of LifeTimeValue or HOQLife stands for, told here once
// more so that the code under test has a judge: 4.096 us, doubled code times.
func nominal(code int) time.Duration {
	d := 4096 * time.Nanosecond
	for range code {
		d *= 2
	}
	return d
}

// The window that the texts allow, in thousandths of the nominal value.
func earliest(code int) time.Duration { return nominal(code) / 1000 * 450 }
func latest(code int) time.Duration   { return nominal(code) * 1050 / 1000 }

const never ib.TimeValue = 20

// exit is an external port of a slow switch: one data virtual lane with room for
// nothing, and no limits.
func exit() Settings {
	return Settings{DataVLs: 1, Exit: true, HOQLife: never, LifeTimeValue: never}
}

func configured(t testing.TB, s Settings) *Port {
	t.Helper()
	p := new(Port)
	if err := p.Configure(&s); err != nil {
		t.Fatal(err)
	}
	return p
}

func enqueue(t testing.TB, p *Port, now time.Duration, vl ib.VL, handles ...Handle) {
	t.Helper()
	for _, h := range handles {
		if ok, reason := p.Enqueue(now, h, vl, 1, now); !ok {
			t.Fatalf("at %v VL%d refused packet %d: %v", now, vl, h, reason)
		}
	}
}

func refused(t *testing.T, p *Port, now time.Duration, vl ib.VL, want Reason) {
	t.Helper()
	if ok, reason := p.Enqueue(now, 99, vl, 1, now); ok || reason != want {
		t.Fatalf("at %v VL%d took a packet: %v, %v; want %v", now, vl, ok, reason, want)
	}
}

// expire lists what goes at now, as "handle reason".
func expire(p *Port, now time.Duration) []string {
	var out []string
	p.Expire(now, func(h Handle, r Reason) { out = append(out, fmt.Sprint(h, " ", r)) })
	return out
}

func expect(t *testing.T, p *Port, now time.Duration, want ...string) {
	t.Helper()
	if got := expire(p, now); !slices.Equal(got, want) {
		t.Fatalf("at %v dropped %q, want %q", now, got, want)
	}
}

// leaves lists what Next gives, until it gives nothing.
func leaves(p *Port, now time.Duration) []Handle {
	var out []Handle
	for h, _, ok := p.Next(now); ok; h, _, ok = p.Next(now) {
		out = append(out, h)
	}
	return out
}

func wantLeaves(t *testing.T, p *Port, now time.Duration, want ...Handle) {
	t.Helper()
	if got := leaves(p, now); !slices.Equal(got, want) {
		t.Fatalf("at %v packets %v leave, want %v", now, got, want)
	}
}

// inWindow puts a packet into p at 1 s and checks that it is dropped within the
// window that code allows, at the time that Deadline told.
func inWindow(t *testing.T, p *Port, code int, why Reason) {
	t.Helper()
	start := time.Second
	enqueue(t, p, start, 0, 1)
	at, ok := p.Deadline()
	if !ok || at < start+earliest(code) || at > start+latest(code) {
		t.Fatalf("code %d: due %v after it came (%v), want %v to %v", code, at-start, ok, earliest(code), latest(code))
	}
	expect(t, p, start+earliest(code)-1)
	expect(t, p, at-1)
	expect(t, p, at, fmt.Sprint("1 ", why))
	expect(t, p, start+latest(code))
}

func TestSI21SwitchLifetimeLimit(t *testing.T) {
	for code := range 20 {
		s := exit()
		s.LifeTimeValue = ib.TimeValue(code)
		inWindow(t, configured(t, s), code, TooOld)
	}
}

func TestSI23HeadOfQueueLimit(t *testing.T) {
	for code := range 20 {
		s := exit()
		s.HOQLife = ib.TimeValue(code)
		inWindow(t, configured(t, s), code, HeadTooOld)
	}
}

// TestInfiniteLimits: codes above 19 let packets wait for ever.
func TestInfiniteLimits(t *testing.T) {
	infinite := func(t *testing.T, s Settings) {
		p := configured(t, s)
		enqueue(t, p, 0, 0, 1, 2)
		if at, ok := p.Deadline(); ok {
			t.Fatalf("%+v: due at %v", s, at)
		}
		expect(t, p, 100*365*24*time.Hour)
		s.Buffer[0] = 2
		if err := p.Configure(&s); err != nil {
			t.Fatal(err)
		}
		wantLeaves(t, p, 100*365*24*time.Hour, 1, 2)
	}
	for code := never; code <= 31; code++ {
		t.Run(fmt.Sprintf("SI-22/%d", code), func(t *testing.T) {
			s := exit()
			s.LifeTimeValue = code
			infinite(t, s)
		})
		t.Run(fmt.Sprintf("SI-24/%d", code), func(t *testing.T) {
			s := exit()
			s.HOQLife = code
			infinite(t, s)
		})
	}
	t.Run("end ports have no limits", func(t *testing.T) {
		infinite(t, Settings{DataVLs: 1, HOQLife: 0, LifeTimeValue: 0, VLStallCount: 1})
	})
}

func TestSI25HeadIsDroppedAndTheNextIsHead(t *testing.T) {
	const code = 3
	s := exit()
	s.HOQLife = code
	t.Run("no credits", func(t *testing.T) {
		p := configured(t, s)
		enqueue(t, p, 0, 0, 1, 2)
		first, _ := p.Deadline()
		expect(t, p, first, "1 head-of-queue limit")
		second, ok := p.Deadline()
		if wait := second - first; !ok || wait < earliest(code) || wait > latest(code) {
			t.Fatalf("the second packet is due %v after the first, want %v to %v", wait, earliest(code), latest(code))
		}
		expect(t, p, second, "2 head-of-queue limit")
	})
	t.Run("behind the head does not count", func(t *testing.T) {
		s := s
		s.Buffer[0] = 1
		p := configured(t, s)
		enqueue(t, p, 0, 0, 1, 2)
		sent := earliest(code) - 1
		wantLeaves(t, p, sent, 1)
		expect(t, p, sent+earliest(code)-1)
		expect(t, p, sent+latest(code), "2 head-of-queue limit")
	})
	t.Run("credits in time", func(t *testing.T) {
		s := s
		s.Buffer[0] = 1
		p := configured(t, s)
		enqueue(t, p, 0, 0, 1, 2)
		wantLeaves(t, p, 0, 1)
		p.Credit(0, 1)
		wantLeaves(t, p, earliest(code)-1, 2)
	})
	t.Run("not sent too late", func(t *testing.T) {
		s := s
		s.Buffer[0] = 10
		p := configured(t, s)
		enqueue(t, p, 0, 0, 1)
		wantLeaves(t, p, latest(code)) // nobody called Expire
		expect(t, p, latest(code), "1 head-of-queue limit")
	})
	t.Run("late Expire", func(t *testing.T) {
		p := configured(t, s)
		enqueue(t, p, 0, 0, 1, 2, 3)
		expect(t, p, 2*latest(code), "1 head-of-queue limit", "2 head-of-queue limit")
	})
}

// stalling is a port of two data virtual lanes that stalls after 3 drops and has no
// credits in VL0 and plenty in VL1.
func stalling(t *testing.T, code int) *Port {
	s := exit()
	s.DataVLs, s.HOQLife, s.VLStallCount = 2, ib.TimeValue(code), 3
	s.Buffer[1] = 1000
	return configured(t, s)
}

// dropHeads lets n packets of VL0 go by the head-of-queue limit, with
// nothing behind them, and tells when the last one went.
func dropHeads(t *testing.T, p *Port, now time.Duration, n int) time.Duration {
	t.Helper()
	for range n {
		enqueue(t, p, now, 0, 7)
		at, ok := p.Deadline()
		if !ok {
			t.Fatal("a packet without credits is never due")
		}
		expect(t, p, at, "7 head-of-queue limit")
		now = at
	}
	return now
}

func TestSI26StalledLaneDropsAtOnce(t *testing.T) {
	const code = 2
	p := stalling(t, code)
	enqueue(t, p, 0, 0, 1, 2, 3, 4, 5)
	for _, want := range []string{"1 head-of-queue limit", "2 head-of-queue limit"} {
		at, _ := p.Deadline()
		expect(t, p, at, want)
	}
	at, _ := p.Deadline()
	expect(t, p, at, "3 head-of-queue limit", "4 VL stalled", "5 VL stalled")
	refused(t, p, at, 0, Stalled)
	refused(t, p, at+nominal(code), 0, Stalled)
	if p.Len() != 0 {
		t.Fatalf("%d packets wait in a stalled VL", p.Len())
	}
	// The other virtual lane goes on.
	enqueue(t, p, at, 1, 6)
	wantLeaves(t, p, at, 6)
}

func TestSI27DropsInARowStall(t *testing.T) {
	const code = 2
	t.Run("third", func(t *testing.T) {
		p := stalling(t, code)
		now := dropHeads(t, p, 0, 2)
		enqueue(t, p, now, 0, 1) // two do not
		at, _ := p.Deadline()
		expect(t, p, at, "1 head-of-queue limit")
		refused(t, p, at, 0, Stalled)
	})
	t.Run("two and a success", func(t *testing.T) {
		s := exit()
		s.DataVLs, s.HOQLife, s.VLStallCount = 2, code, 3
		p := configured(t, s)
		now := dropHeads(t, p, 0, 2)
		s.Buffer[0] = 1
		if err := p.Configure(&s); err != nil {
			t.Fatal(err)
		}
		enqueue(t, p, now, 0, 1)
		wantLeaves(t, p, now, 1)
		now = dropHeads(t, p, now, 2)
		enqueue(t, p, now, 0, 2)
	})
	t.Run("each VL for itself", func(t *testing.T) {
		s := exit()
		s.DataVLs, s.HOQLife, s.VLStallCount = 2, code, 3
		p := configured(t, s)
		now := dropHeads(t, p, 0, 2)
		enqueue(t, p, now, 1, 1)
		at, _ := p.Deadline()
		expect(t, p, at, "1 head-of-queue limit")
		enqueue(t, p, at, 0, 2)
		enqueue(t, p, at, 1, 3)
	})
	t.Run("count 0 never", func(t *testing.T) {
		s := exit()
		s.HOQLife = code
		p := configured(t, s)
		enqueue(t, p, dropHeads(t, p, 0, 300), 0, 1)
	})
	t.Run("count 7", func(t *testing.T) {
		s := exit()
		s.HOQLife, s.VLStallCount = code, 7
		p := configured(t, s)
		now := dropHeads(t, p, 0, 6)
		refused(t, p, dropHeads(t, p, now, 1), 0, Stalled)
	})
	t.Run("drops for age do not count", func(t *testing.T) {
		s := exit()
		s.LifeTimeValue, s.VLStallCount = code, 1
		p := configured(t, s)
		enqueue(t, p, 0, 0, 1)
		at, _ := p.Deadline()
		expect(t, p, at, "1 switch lifetime limit")
		enqueue(t, p, at, 0, 2)
	})
}

func TestSI28StalledLaneRecovers(t *testing.T) {
	for _, code := range []int{0, 5, 19} {
		s := exit()
		s.HOQLife, s.VLStallCount, s.Buffer[0] = ib.TimeValue(code), 3, 1
		p := configured(t, s)
		enqueue(t, p, 0, 0, 1)
		wantLeaves(t, p, 0, 1) // the only credit is out
		now := dropHeads(t, p, 0, 3)
		p.Credit(0, 1)
		refused(t, p, now, 0, Stalled)
		refused(t, p, now+8*earliest(code), 0, Stalled)
		refused(t, p, now+8*nominal(code)-1, 0, Stalled)
		enqueue(t, p, now+8*nominal(code), 0, 2)
		wantLeaves(t, p, now+8*nominal(code), 2)
	}
	t.Run("the row begins again", func(t *testing.T) {
		const code = 1
		p := stalling(t, code)
		now := dropHeads(t, p, 0, 3) + 8*nominal(code)
		now = dropHeads(t, p, now, 2)
		enqueue(t, p, now, 0, 1)
	})
}

// aged is a port with credits whose wire is busy: packets grow old.
func aged(t *testing.T, code ib.TimeValue, promises, drops bool) *Port {
	s := exit()
	s.LifeTimeValue, s.PromisesTransit, s.DropsAged, s.Buffer[0] = code, promises, drops, 1000
	return configured(t, s)
}

func TestSI30SlowSwitchDropsAged(t *testing.T) {
	const code = 4
	for _, option := range []bool{false, true} { // the option is for fast ones
		p := aged(t, code, false, option)
		first := time.Second
		arrived := first + earliest(code)/2
		for h := range Handle(3) {
			if ok, reason := p.Enqueue(arrived, h, 0, 1, first+time.Duration(h)); !ok {
				t.Fatal(reason)
			}
		}
		expect(t, p, first+earliest(code)-1)
		at, ok := p.Deadline()
		if !ok || at > first+latest(code) {
			t.Fatalf("due %v after the first bit (%v), want at most %v", at-first, ok, latest(code))
		}
		wantLeaves(t, p, first+latest(code)) // too old, and nobody called Expire
		expect(t, p, first+latest(code),
			"0 switch lifetime limit", "1 switch lifetime limit", "2 switch lifetime limit")
	}
	t.Run("behind the head", func(t *testing.T) {
		p := aged(t, code, false, false)
		for h, firstBit := range []time.Duration{300, 100, 200} {
			if ok, reason := p.Enqueue(400, Handle(h), 0, 1, firstBit); !ok {
				t.Fatal(reason)
			}
		}
		for _, want := range []struct {
			firstBit time.Duration
			out      string
		}{{100, "1 switch lifetime limit"}, {200, "2 switch lifetime limit"}, {300, "0 switch lifetime limit"}} {
			at, _ := p.Deadline()
			if at != want.firstBit+nominal(code) {
				t.Fatalf("due at %v, want %v", at, want.firstBit+nominal(code))
			}
			expect(t, p, at, want.out)
		}
	})
	t.Run("too old when it comes", func(t *testing.T) {
		s := exit()
		s.HOQLife, s.LifeTimeValue = code, code
		p := configured(t, s)
		now := 100 * nominal(code)
		if ok, reason := p.Enqueue(now, 1, 0, 1, 0); !ok {
			t.Fatal(reason)
		}
		enqueue(t, p, now, 0, 2)
		expect(t, p, now, "1 switch lifetime limit")
		expect(t, p, now+earliest(code)-1) // the next is at the head from now
	})
	t.Run("in time", func(t *testing.T) {
		p := aged(t, code, false, false)
		enqueue(t, p, 0, 0, 1)
		wantLeaves(t, p, earliest(code)-1, 1)
	})
	t.Run("VL15 too", func(t *testing.T) {
		p := aged(t, code, false, false)
		enqueue(t, p, 0, ib.VLManagement, 1)
		expect(t, p, latest(code), "1 switch lifetime limit")
	})
}

func TestSI31FastSwitchMayDropAged(t *testing.T) {
	const code = 4
	t.Run("does", func(t *testing.T) {
		p := aged(t, code, true, true)
		enqueue(t, p, 0, 0, 1)
		expect(t, p, earliest(code)-1)
		expect(t, p, latest(code), "1 switch lifetime limit")
	})
	t.Run("does not", func(t *testing.T) {
		p := aged(t, code, true, false)
		enqueue(t, p, 0, 0, 1)
		if at, ok := p.Deadline(); ok {
			t.Fatalf("due at %v", at)
		}
		expect(t, p, time.Hour)
		wantLeaves(t, p, time.Hour, 1)
	})
}
