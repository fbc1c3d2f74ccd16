package server

import (
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// A record matches when all components that the query names are equal, bit by bit,
// whatever stands in the others.
func TestMatch(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for id, bits := range widths {
		owner := []int{} // component of each bit
		for i, w := range bits {
			for range w {
				owner = append(owner, i)
			}
		}
		if len(owner) > sa.DataSize*8 {
			t.Errorf("%s: components of %d bits", sa.AttributeName(id), len(owner))
			continue
		}
		for range 200 {
			mask := sa.ComponentMask(r.Uint64() & r.Uint64() & (1<<len(bits) - 1))
			record := make([]byte, sa.DataSize)
			for i := range record {
				record[i] = byte(r.Uint32())
			}
			query := append([]byte{}, record...)
			m, err := NewMatch(id, mask, query)
			if err != nil {
				t.Fatal(err)
			}
			if !m.Matches(record) {
				t.Fatalf("seed %d: %s, mask %#x: a record does not match itself", seed, sa.AttributeName(id), uint64(mask))
			}
			bit := r.IntN(len(owner))
			record[bit/8] ^= 0x80 >> (bit % 8)
			if asked := mask&(1<<owner[bit]) != 0; m.Matches(record) == asked {
				t.Fatalf("seed %d: %s, mask %#x: bit %d of component %d differs, and it matches: %v", seed, sa.AttributeName(id), uint64(mask), bit, owner[bit], asked)
			}
			if m.Has(1<<owner[bit]) != (mask&(1<<owner[bit]) != 0) {
				t.Fatalf("component %d", owner[bit])
			}
		}
	}
}

// Components that do not exist, and components that the query does not hold, are errors.
func TestNoMatch(t *testing.T) {
	for _, x := range []struct {
		id   mad.AttributeID
		mask sa.ComponentMask
		size int
		ok   bool
	}{
		{sa.AttrLinkRecord, 0b1111, sa.DataSize, true},
		{sa.AttrLinkRecord, 0b10000, sa.DataSize, false},
		{sa.AttrLinkRecord, 0b1111, 6, true},
		{sa.AttrLinkRecord, 0b1111, 5, false},
		{sa.AttrLinkRecord, 0b0001, 2, true},
		{0xFFFF, 0, 0, true},
		{0xFFFF, 1, sa.DataSize, false},
		{sa.AttrPortInfoRecord, 1 << 63, sa.DataSize, false},
	} {
		if _, err := NewMatch(x.id, x.mask, make([]byte, x.size)); (err == nil) != x.ok {
			t.Errorf("attribute %#x, mask %#x, %d bytes: %v", uint16(x.id), uint64(x.mask), x.size, err)
		}
	}
}

// A path carries every MTU up to its own, every rate up to its own, and lives no
// longer than it does: what is asked for is given where that is so, and else nothing.
func TestSelectors(t *testing.T) {
	const none = 0
	for _, x := range []struct {
		selector sa.Selector
		want     uint8
		ok       bool
		got      uint8
	}{
		{sa.SelectGreater, uint8(ib.MTU1024), true, uint8(ib.MTU2048)}, {sa.SelectGreater, uint8(ib.MTU2048), false, none},
		{sa.SelectLess, uint8(ib.MTU4096), true, uint8(ib.MTU2048)}, {sa.SelectLess, uint8(ib.MTU2048), true, uint8(ib.MTU1024)},
		{sa.SelectLess, uint8(ib.MTU256), false, none}, {sa.SelectLess, 0, false, none}, {sa.SelectLess, 6, false, none},
		{sa.SelectExactly, uint8(ib.MTU512), true, uint8(ib.MTU512)}, {sa.SelectExactly, uint8(ib.MTU4096), false, none},
		{sa.SelectExactly, 0, false, none}, {sa.SelectExactly, 6, false, none}, {sa.SelectBest, 0, true, uint8(ib.MTU2048)},
	} {
		var r sa.PathRecord
		r.MTU = ib.MTU2048
		if ok := takeMTU(&r, x.selector, ib.MTU(x.want)); ok != x.ok || ok && uint8(r.MTU) != x.got {
			t.Errorf("MTU 2048, selector %d of %d: %v, %d", x.selector, x.want, ok, r.MTU)
		}
	}
	for own := ib.Rate(0); own < 64; own++ {
		for want := ib.Rate(0); want < 64; want++ {
			if !own.IsValid() {
				continue
			}
			for _, s := range []sa.Selector{sa.SelectGreater, sa.SelectLess, sa.SelectExactly} {
				var r sa.PathRecord
				r.Rate = own
				if !takeRate(&r, s, want) {
					if s == sa.SelectExactly && want.IsValid() && want.Tenths() <= own.Tenths() || s == sa.SelectGreater && own.Tenths() > want.Tenths() {
						t.Errorf("rate %s, selector %d of %s is refused", own, s, want)
					}
					continue
				}
				got := r.Rate.Tenths()
				if good := map[sa.Selector]bool{sa.SelectGreater: got > want.Tenths(), sa.SelectLess: got < want.Tenths(), sa.SelectExactly: got == want.Tenths()}[s]; !good || got > own.Tenths() || !r.Rate.IsValid() {
					t.Errorf("rate %s, selector %d of %s gives %s", own, s, want, r.Rate)
				}
			}
		}
	}
	for _, x := range []struct {
		selector sa.Selector
		want     ib.TimeValue
		ok       bool
		got      ib.TimeValue
	}{
		{sa.SelectGreater, 17, true, 18}, {sa.SelectGreater, 18, false, 0}, {sa.SelectLess, 19, true, 18}, {sa.SelectLess, 18, false, 0},
		{sa.SelectExactly, 17, false, 0}, {sa.SelectExactly, 18, true, 18}, {sa.SelectExactly, 20, true, 20},
	} {
		var r sa.PathRecord
		r.PacketLifeTime = 18
		if ok := takeLifetime(&r, x.selector, x.want); ok != x.ok || ok && r.PacketLifeTime != x.got {
			t.Errorf("lifetime 18, selector %d of %d: %v, %d", x.selector, x.want, ok, r.PacketLifeTime)
		}
	}
}

// However much one turn may look at, all turns together go over everything once.
func TestWalk(t *testing.T) {
	const all = 10
	for most := range 12 {
		w := Walk{Most: most}
		var seen []int
		turns := 0
		for turn := true; turn; turn = w.More() {
			turns++
			w.begin()
			for i := w.at; i < all && !w.ended(i); i++ {
				seen = append(seen, i)
			}
		}
		for i := range all {
			if len(seen) != all || seen[i] != i {
				t.Fatalf("%d in a turn: %v", most, seen)
			}
		}
		want := 1
		if most > 0 {
			want = (all + most - 1) / most
		}
		if turns != want {
			t.Errorf("%d in a turn: %d turns, want %d", most, turns, want)
		}
	}
	w := Walk{Most: 2}
	w.begin()
	w.ended(0)
	w.ended(1)
	w.ended(2)
	if w.Restart(); w.at != 0 || w.More() {
		t.Error("it does not begin again")
	}
}
