package egress

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// TestEveryHandleComesOutOnce drives ports at random and keeps its own books:
// what went in comes out once, by one of the three doors, and nothing else does.
func TestEveryHandleComesOutOnce(t *testing.T) {
	for seed := range uint64(300) {
		if !runRandom(t, seed, 400) {
			t.Fatalf("seed %d", seed)
		}
	}
}

// books is what the test knows of a port by itself.
type books struct {
	t    *testing.T
	in   map[Handle]ib.VL
	owed [16]int
	size map[Handle]uint16
	last Handle
	vls  int // how many virtual lanes the run uses
}

func (b *books) out(h Handle, door string) ib.VL {
	b.t.Helper()
	vl, here := b.in[h]
	if !here {
		b.t.Errorf("packet %d came out by %s and was not in", h, door)
	}
	delete(b.in, h)
	return vl
}

func runRandom(t *testing.T, seed uint64, steps int) bool {
	r := rand.New(rand.NewPCG(seed, 1))
	var p Port
	b := &books{t: t, in: map[Handle]ib.VL{}, size: map[Handle]uint16{}, vls: 1 + r.IntN(17)}
	s := randomSettings(r)
	if err := p.Configure(&s); err != nil {
		t.Error(err)
	}
	now := time.Duration(0)
	for range steps {
		now += time.Duration(r.IntN(3000))
		b.step(r, &p, &s, now)
		if p.Len() != len(b.in) {
			t.Errorf("Len %d, %d are in", p.Len(), len(b.in))
		}
		sum := 0
		for vl := range ib.VL(16) {
			sum += p.Waiting(vl)
		}
		if sum != p.Len() {
			t.Errorf("Len %d, the VLs hold %d", p.Len(), sum)
		}
		if t.Failed() {
			return false
		}
	}
	p.Reset(func(h Handle) { b.out(h, "Reset") })
	if len(b.in) > 0 || p.Len() != 0 {
		t.Errorf("%d packets left behind, Len %d", len(b.in), p.Len())
	}
	return !t.Failed()
}

func (b *books) step(r *rand.Rand, p *Port, s *Settings, now time.Duration) {
	if r.IntN(4) > 0 { // else the caller forgets
		if at, ok := p.Deadline(); ok && at <= now {
			p.Expire(now, func(h Handle, _ Reason) { b.out(h, "Expire") })
			if at, ok := p.Deadline(); ok && at <= now {
				b.t.Errorf("at %v still due at %v after Expire", now, at)
			}
		}
	}
	switch n := r.IntN(100); {
	case n < 50:
		b.last++
		vl, size := ib.VL(r.IntN(b.vls)), uint16(r.IntN(70))
		if ok, reason := p.Enqueue(now, b.last, vl, size, randomFirstBit(r, now)); ok != (reason == Accepted) {
			b.t.Errorf("Enqueue says %v and %v", ok, reason)
		} else if ok {
			b.in[b.last], b.size[b.last] = vl, max(1, size)
		}
	case n < 80:
		if h, vl, ok := p.Next(now); ok {
			if was := b.out(h, "Next"); was != vl {
				b.t.Errorf("packet %d went into VL%d and out of VL%d", h, was, vl)
			}
			if vl < ib.VLManagement {
				b.owed[vl] += int(b.size[h])
				if b.owed[vl] > int(s.Buffer[vl]) {
					b.t.Errorf("VL%d: %d blocks sent into a buffer of %d", vl, b.owed[vl], s.Buffer[vl])
				}
			}
		}
	case n < 95:
		vl := ib.VL(r.IntN(15))
		back := r.IntN(b.owed[vl] + 1)
		b.owed[vl] -= back
		if !p.Credit(vl, uint16(back)) {
			b.t.Errorf("VL%d: %d blocks were owed and not taken", vl, back)
		}
	case n < 98:
		*s = randomSettings(r)
		if err := p.Configure(s); err != nil {
			b.t.Error(err)
		}
	default:
		p.Reset(func(h Handle) { b.out(h, "Reset") })
		b.owed = [16]int{}
	}
}

func randomSettings(r *rand.Rand) Settings {
	s := Settings{
		DataVLs: r.IntN(16), Exit: r.IntN(4) > 0,
		HOQLife: ib.TimeValue(r.IntN(4)), LifeTimeValue: ib.TimeValue(r.IntN(8)), VLStallCount: uint8(r.IntN(8)),
		PromisesTransit: r.IntN(2) == 0, DropsAged: r.IntN(2) == 0,
		High: randomTable(r), Low: randomTable(r), VLHighLimit: []uint8{0, 1, 2, 255}[r.IntN(4)],
	}
	if r.IntN(4) == 0 {
		s.HOQLife = 20
	}
	for vl := range s.Buffer {
		s.Buffer[vl] = uint16(r.IntN(200))
	}
	return s
}

// randomFirstBit is before now, mostly so little that virtual lanes keep their order,
// sometimes so much that the packet comes too old.
func randomFirstBit(r *rand.Rand, now time.Duration) time.Duration {
	return now - time.Duration(r.IntN([]int{1, 2000, 300_000}[r.IntN(3)]))
}

func randomTable(r *rand.Rand) []smp.VLArbitrationEntry {
	t := make([]smp.VLArbitrationEntry, r.IntN(20))
	for i := range t {
		t[i] = smp.VLArbitrationEntry{VL: ib.VL(r.IntN(15)), Weight: uint8(r.IntN(4) * r.IntN(80))}
	}
	return t
}
