package egress

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// model is a second opinion on lifetimes and credits: plain slices, every
// packet looked at every time, no bounds kept. It takes arbitration as it
// comes and checks only that it picked something that it could pick.
type model struct {
	lanes   [16][]modelPacket
	drops   [16]int
	stalled [16]time.Duration
	owed    [16]int
	head    time.Duration // limits; below 0 for ever
	age     time.Duration
	set     Settings
}

type modelPacket struct {
	handle           Handle
	blocks           int
	firstBit, headAt time.Duration
}

// due is when the model's next packet goes, and why.
func (m *model) due(vl int) (at time.Duration, which int, why Reason) {
	which = -1
	for i, w := range m.lanes[vl] {
		if m.age >= 0 && (which < 0 || w.firstBit+m.age < at) {
			at, which, why = w.firstBit+m.age, i, TooOld
		}
	}
	if len(m.lanes[vl]) > 0 && m.head >= 0 && (which < 0 || m.lanes[vl][0].headAt+m.head < at) {
		at, which, why = m.lanes[vl][0].headAt+m.head, 0, HeadTooOld
	}
	return at, which, why
}

// remove takes a packet out; the one behind a head comes to the head at now.
func (m *model) remove(vl, i int, now time.Duration) {
	m.lanes[vl] = slices.Delete(m.lanes[vl], i, i+1)
	if i == 0 && len(m.lanes[vl]) > 0 {
		m.lanes[vl][0].headAt = now
	}
}

func (m *model) expire(now time.Duration) []string {
	var out []string
	for vl := range m.lanes {
		for {
			at, i, why := m.due(vl)
			if i < 0 || at > now {
				break
			}
			out = append(out, fmt.Sprint(m.lanes[vl][i].handle, " ", why))
			m.remove(vl, i, max(at, m.lanes[vl][0].headAt))
			if why != HeadTooOld {
				continue
			}
			if m.drops[vl]++; m.set.VLStallCount > 0 && m.drops[vl] >= int(m.set.VLStallCount) {
				for _, w := range m.lanes[vl] {
					out = append(out, fmt.Sprint(w.handle, " ", Stalled))
				}
				m.lanes[vl], m.drops[vl], m.stalled[vl] = nil, 0, at+8*m.head
			}
		}
	}
	return out
}

func (m *model) enqueue(now time.Duration, h Handle, vl, blocks int, firstBit time.Duration) Reason {
	switch {
	case vl >= m.set.DataVLs && vl != 15:
		return LaneClosed
	case now < m.stalled[vl]:
		return Stalled
	}
	m.lanes[vl] = append(m.lanes[vl], modelPacket{h, blocks, firstBit, now})
	return Accepted
}

// mayLeave reports whether a virtual lane has a packet that has its credits and an entry.
func (m *model) mayLeave(vl int) bool {
	if len(m.lanes[vl]) == 0 {
		return false
	}
	if vl == 15 {
		return true
	}
	listed := m.set.DataVLs == 1 || len(m.set.High)+len(m.set.Low) == 0
	for _, e := range slices.Concat(m.set.High, m.set.Low) {
		listed = listed || int(e.VL) == vl && e.Weight > 0
	}
	return listed && m.owed[vl]+m.lanes[vl][0].blocks <= int(m.set.Buffer[vl])
}

// leave checks what Next gave and takes it out.
func (m *model) leave(t *testing.T, now time.Duration, h Handle, vl ib.VL, ok bool) {
	t.Helper()
	could := false
	for v := range m.lanes {
		could = could || m.mayLeave(v)
	}
	switch {
	case ok != could:
		t.Fatalf("at %v Next gives %v, model %v", now, ok, could)
	case !ok:
		return
	case !m.mayLeave(int(vl)) || m.lanes[vl][0].handle != h || m.mayLeave(15) && vl != 15:
		t.Fatalf("at %v packet %d leaves VL%d; model has %v", now, h, vl, m.lanes[vl])
	}
	if vl != 15 {
		m.owed[vl] += m.lanes[vl][0].blocks
	}
	m.drops[vl] = 0
	m.remove(int(vl), 0, now)
}

// TestAgainstModel runs ports whose caller keeps the rules beside the model.
func TestAgainstModel(t *testing.T) {
	drops := map[Reason]int{}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runModel(t, r, drops) })
	}
	for _, why := range []Reason{HeadTooOld, TooOld, Stalled} {
		if drops[why] < 100 {
			t.Errorf("%d packets went for %v: the runs hardly touch it", drops[why], why)
		}
	}
}

func runModel(t *testing.T, r *rand.Rand, drops map[Reason]int) {
	s := randomSettings(r)
	p, m := configured(t, s), &model{set: s, head: -1, age: -1}
	if s.Exit && s.HOQLife < 20 {
		m.head = nominal(int(s.HOQLife))
	}
	if s.Exit && s.LifeTimeValue < 20 && (!s.PromisesTransit || s.DropsAged) {
		m.age = nominal(int(s.LifeTimeValue))
	}
	expire := func(now time.Duration) {
		var got []string
		p.Expire(now, func(h Handle, why Reason) {
			drops[why]++
			got = append(got, fmt.Sprint(h, " ", why))
		})
		want := m.expire(now)
		// Packets of one age may go in either order.
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("at %v dropped %q, model %q", now, got, want)
		}
	}
	vls := 1 + r.IntN(16)
	var now, next time.Duration
	for h := range Handle(300) {
		next += time.Duration(r.IntN(4000))
		for at, ok := p.Deadline(); ok && at <= next; at, ok = p.Deadline() {
			now = max(now, at)
			expire(now)
		}
		now = next
		expire(now)
		switch n := r.IntN(10); {
		case n < 6:
			vl, blocks, firstBit := r.IntN(vls), 1+r.IntN(66), randomFirstBit(r, now)
			_, got := p.Enqueue(now, h, ib.VL(vl), uint16(blocks), firstBit)
			if want := m.enqueue(now, h, vl, blocks, firstBit); got != want {
				t.Fatalf("at %v VL%d says %v, model %v", now, vl, got, want)
			}
			if r.IntN(2) == 0 {
				expire(now) // else one that came too old goes with the next step
			}
		case n < 8:
			got, vl, ok := p.Next(now)
			m.leave(t, now, got, vl, ok)
		default:
			vl := r.IntN(15)
			back := r.IntN(m.owed[vl] + 1)
			m.owed[vl] -= back
			p.Credit(ib.VL(vl), uint16(back))
		}
	}
}
