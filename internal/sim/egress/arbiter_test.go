package egress

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// table makes one of pairs of virtual lane and weight.
func table(pairs ...int) []smp.VLArbitrationEntry {
	var t []smp.VLArbitrationEntry
	for i := 0; i < len(pairs); i += 2 {
		t = append(t, smp.VLArbitrationEntry{VL: ib.VL(pairs[i]), Weight: uint8(pairs[i+1])})
	}
	return t
}

// sender is an end port with n data virtual lanes and all the room in the world.
func sender(n int) Settings {
	s := Settings{DataVLs: n, VLHighLimit: HighUnlimited}
	for vl := range s.Buffer {
		s.Buffer[vl] = 1 << 15
	}
	return s
}

// saturated sends n packets of so many blocks while each of virtual lanes always has
// packets waiting, gives their credits back, and tells the virtual lanes in the order
// of sending.
func saturated(t *testing.T, s Settings, n int, blocks uint16, lanes ...ib.VL) []ib.VL {
	t.Helper()
	p := configured(t, s)
	for _, vl := range lanes {
		if ok, reason := p.Enqueue(0, 0, vl, blocks, 0); !ok {
			t.Fatal(reason)
		}
	}
	var order []ib.VL
	for range n {
		_, vl, ok := p.Next(0)
		if !ok {
			break
		}
		order = append(order, vl)
		p.Credit(vl, blocks)
		p.Enqueue(0, 0, vl, blocks, 0)
	}
	return order
}

func count(order []ib.VL, vl ib.VL) (n int) {
	for _, v := range order {
		if v == vl {
			n++
		}
	}
	return n
}

func wantOrder(t *testing.T, got []ib.VL, want ...ib.VL) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("VLs %v, want %v", got, want)
	}
}

func TestVA02Weights(t *testing.T) {
	for _, c := range []struct {
		name   string
		low    []smp.VLArbitrationEntry
		blocks uint16
	}{
		{"1 to 4 by blocks", table(0, 1, 1, 4), 1},
		{"32 to 128 by large packets", table(0, 32, 1, 128), 16},
		{"the same in several entries", table(0, 16, 1, 64, 0, 16, 1, 64), 16},
		{"one VL in several entries", table(1, 64, 0, 32, 1, 64), 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sender(2)
			s.Low = c.low
			order := saturated(t, s, 1000, c.blocks, 0, 1)
			if a, b := count(order, 0), count(order, 1); a != 200 || b != 800 {
				t.Fatalf("VL0 sent %d packets and VL1 %d, want 200 and 800", a, b)
			}
		})
	}
	t.Run("a turn is in one piece", func(t *testing.T) {
		s := sender(2)
		s.Low = table(0, 2, 1, 3)
		wantOrder(t, saturated(t, s, 7, 1, 0, 1), 0, 0, 1, 1, 1, 0, 0)
	})
	t.Run("the last packet overdraws", func(t *testing.T) {
		s := sender(2)
		s.Low = table(0, 1, 1, 5)
		wantOrder(t, saturated(t, s, 6, 4, 0, 1), 0, 1, 1, 0, 1, 1)
	})
}

func TestTableEntries(t *testing.T) {
	t.Run("weight 0 is skipped", func(t *testing.T) {
		s := sender(4)
		s.Low = table(0, 1, 1, 0, 2, 1)
		wantOrder(t, saturated(t, s, 4, 1, 0, 1, 2), 0, 2, 0, 2)
	})
	t.Run("VLs not in operation are skipped", func(t *testing.T) {
		s := sender(2)
		s.High = table(7, 200)
		s.Low = table(5, 9, 0, 1, 14, 3, 1, 1)
		s.VLHighLimit = 0
		wantOrder(t, saturated(t, s, 4, 1, 0, 1), 0, 1, 0, 1)
	})
	t.Run("a VL without packets passes its turn on", func(t *testing.T) {
		s := sender(4)
		s.Low = table(0, 1, 1, 200, 2, 1)
		wantOrder(t, saturated(t, s, 4, 1, 0, 2), 0, 2, 0, 2)
	})
	t.Run("a VL without credits passes its turn on", func(t *testing.T) {
		s := sender(4)
		s.Low = table(0, 1, 1, 200, 2, 1)
		s.Buffer[1] = 3
		wantOrder(t, saturated(t, s, 4, 4, 0, 1, 2), 0, 2, 0, 2)
	})
	t.Run("a VL in no table waits", func(t *testing.T) {
		s := sender(4)
		s.Low = table(0, 1)
		wantOrder(t, saturated(t, s, 2, 1, 0, 3), 0, 0)
		wantOrder(t, saturated(t, s, 2, 1, 3))
	})
	t.Run("empty low table", func(t *testing.T) {
		s := sender(2)
		s.High, s.VLHighLimit = table(0, 1, 1, 1), 0
		wantOrder(t, saturated(t, s, 4, 1, 0, 1), 0, 1, 0, 1)
	})
	t.Run("tables never written", func(t *testing.T) {
		wantOrder(t, saturated(t, sender(4), 6, 65, 0, 2, 3), 0, 2, 3, 0, 2, 3)
	})
	t.Run("written and all weights 0", func(t *testing.T) {
		s := sender(4)
		s.Low = table(0, 0, 1, 0)
		wantOrder(t, saturated(t, s, 2, 1, 0, 1))
	})
	t.Run("one VL needs no table", func(t *testing.T) {
		s := sender(1)
		s.Low = table(0, 0, 1, 5)
		wantOrder(t, saturated(t, s, 2, 1, 0), 0, 0)
	})
	t.Run("64 entries", func(t *testing.T) {
		s := sender(15)
		for i := range 64 {
			s.Low = append(s.Low, table(i%15, 1)...)
		}
		order := saturated(t, s, 65, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
		for i, vl := range order {
			if want := s.Low[i%64].VL; vl != want {
				t.Fatalf("packet %d is of VL%d, want VL%d", i, vl, want)
			}
		}
	})
}

func TestVA11HighLimit(t *testing.T) {
	both := func(limit uint8) Settings {
		s := sender(4)
		s.High, s.Low, s.VLHighLimit = table(0, 1, 1, 1), table(2, 1, 3, 1), limit
		return s
	}
	t.Run("0 is one packet", func(t *testing.T) {
		wantOrder(t, saturated(t, both(0), 8, 1, 0, 1, 2, 3), 0, 2, 1, 3, 0, 2, 1, 3)
	})
	t.Run("units of 4096 bytes", func(t *testing.T) {
		for _, c := range []struct {
			limit  uint8
			blocks uint16
			want   string // H for a packet of the high-priority table
		}{
			{1, 16, "HHHHLHHHHL"}, // 4 * 16 * 64 bytes
			{1, 64, "HLHLHL"},
			{1, 65, "HLHL"},
			{1, 33, "HHLHHLHHL"}, // below the limit one more may begin
			{3, 64, "HHHLHHHL"},
			{254, 64, strings.Repeat("H", 254) + "L" + strings.Repeat("H", 254) + "L"},
		} {
			got := ""
			for _, vl := range saturated(t, both(c.limit), len(c.want), c.blocks, 0, 1, 2, 3) {
				got += map[bool]string{true: "H", false: "L"}[vl < 2]
			}
			if got != c.want {
				t.Errorf("limit %d, packets of %d blocks: %s, want %s", c.limit, c.blocks, got, c.want)
			}
		}
	})
	t.Run("255 is without limit", func(t *testing.T) {
		order := saturated(t, both(HighUnlimited), 100_000, 65, 0, 1, 2, 3)
		if n := count(order, 2) + count(order, 3); n != 0 || len(order) != 100_000 {
			t.Fatalf("%d of %d packets are of the low-priority table", n, len(order))
		}
	})
	t.Run("the low table keeps its place and its weight", func(t *testing.T) {
		s := both(0)
		s.Low = table(2, 2, 3, 1)
		wantOrder(t, saturated(t, s, 8, 1, 0, 2, 3), 0, 2, 0, 2, 0, 3, 0, 2)
	})
	t.Run("a VL in both tables", func(t *testing.T) {
		s := both(0)
		s.High, s.Low = table(0, 1), table(0, 1, 1, 1)
		wantOrder(t, saturated(t, s, 6, 1, 0, 1), 0, 0, 0, 1, 0, 0)
	})
	t.Run("a low table with nothing to send does not hold up", func(t *testing.T) {
		wantOrder(t, saturated(t, both(0), 4, 1, 0, 1), 0, 1, 0, 1)
	})
	t.Run("a pause begins the count again", func(t *testing.T) {
		p := configured(t, both(1))
		send := func(vl ib.VL, blocks uint16) {
			t.Helper()
			p.Enqueue(0, 0, vl, blocks, 0)
			if _, got, ok := p.Next(0); !ok || got != vl {
				t.Fatalf("VL%d leaves (%v), want VL%d", got, ok, vl)
			}
		}
		send(0, 64) // the limit
		if _, _, ok := p.Next(0); ok {
			t.Fatal("a packet from nowhere")
		}
		enqueue(t, p, 0, 2, 5)
		send(0, 1)
	})
}

func TestVL15GoesFirst(t *testing.T) {
	s := sender(2)
	s.High, s.Low, s.VLHighLimit = table(0, 255), table(1, 255), 0
	p := configured(t, s)
	enqueue(t, p, 0, 0, 1)
	enqueue(t, p, 0, 1, 2)
	enqueue(t, p, 0, ib.VLManagement, 3, 4)
	wantLeaves(t, p, 0, 3, 4, 1, 2)

	// Without a credit anywhere, and before anything was configured.
	p = configured(t, Settings{DataVLs: 1})
	enqueue(t, p, 0, 0, 1)
	enqueue(t, p, 0, ib.VLManagement, 2)
	wantLeaves(t, p, 0, 2)
	p = new(Port)
	enqueue(t, p, 0, ib.VLManagement, 3)
	refused(t, p, 0, 0, LaneClosed)
	if at, ok := p.Deadline(); ok {
		t.Fatalf("due at %v", at)
	}
	wantLeaves(t, p, 0, 3)
}
