package egress

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// turns is one arbitration table: its entries that can ever be served, and
// whose turn it is.
type turns struct {
	entries []smp.VLArbitrationEntry
	lanes   uint16 // bit v: VLv has an entry
	turn    uint8  // the entry in turn
	left    int32  // blocks that it may still begin with
}

// use replaces the table by those entries that have a weight and one of the
// first n data virtual lanes. The first of them is in turn next.
func (t *turns) use(table []smp.VLArbitrationEntry, n int) {
	*t = turns{entries: t.entries[:0]}
	for _, e := range table {
		if e.Weight > 0 && int(e.VL) < n {
			t.entries = append(t.entries, e)
			t.lanes |= 1 << e.VL
		}
	}
	t.turn = uint8(max(0, len(t.entries)-1))
}

// pick finds the entry to serve among virtual lanes that are ready (bit v for VLv).
// fresh reports whether it begins a new turn.
func (t *turns) pick(ready uint16) (entry uint8, fresh, ok bool) {
	if t.lanes&ready == 0 {
		return 0, false, false
	}
	if t.left > 0 && ready>>t.entries[t.turn].VL&1 != 0 {
		return t.turn, false, true
	}
	for i := int(t.turn) + 1; i < len(t.entries); i++ {
		if ready>>t.entries[i].VL&1 != 0 {
			return uint8(i), true, true
		}
	}
	for i := range t.entries[:t.turn+1] {
		if ready>>t.entries[i].VL&1 != 0 {
			return uint8(i), true, true
		}
	}
	return 0, false, false
}

// serve takes a packet of so many blocks from what the entry may send.
func (t *turns) serve(entry uint8, fresh bool, blocks uint16) {
	if fresh {
		t.turn, t.left = entry, int32(t.entries[entry].Weight)
	}
	t.left -= int32(blocks)
}

// arbiter ranks the data virtual lanes of a port.
type arbiter struct {
	high, low turns
	sent      int32 // blocks by the high table since the low one had its chance
	limit     int32 // blocks of sent at which it has its chance
}

// unlimited is a limit that sent does not reach.
const unlimited = 1<<31 - 1

func (a *arbiter) use(s *Settings) {
	a.high.use(s.High, s.DataVLs)
	a.low.use(s.Low, s.DataVLs)
	if s.DataVLs == 1 || len(s.High)+len(s.Low) == 0 {
		var each [DataLanes]smp.VLArbitrationEntry
		for v := range each {
			each[v] = smp.VLArbitrationEntry{VL: ib.VL(v), Weight: 1}
		}
		a.high.use(nil, 0)
		a.low.use(each[:], s.DataVLs)
	}
	a.sent = 0
	switch s.VLHighLimit {
	case 0:
		a.limit = 1 // any packet reaches it
	case HighUnlimited:
		a.limit = unlimited
	default:
		a.limit = int32(s.VLHighLimit) * HighLimitBlocks
	}
}

// choice is the entry to serve next.
type choice struct {
	vl    ib.VL
	entry uint8
	high  bool // it is in the high-priority table
	fresh bool // it begins a new turn
}

// pick finds the entry to serve among virtual lanes that are ready.
func (a *arbiter) pick(ready uint16) (choice, bool) {
	entry, fresh, ok := a.high.pick(ready)
	if !ok || a.sent >= a.limit {
		a.sent = 0
		if e, f, lowOK := a.low.pick(ready); lowOK {
			return choice{vl: a.low.entries[e].VL, entry: e, fresh: f}, true
		}
	}
	if !ok {
		return choice{}, false
	}
	return choice{vl: a.high.entries[entry].VL, entry: entry, high: true, fresh: fresh}, true
}

// serve counts a packet of so many blocks as sent by a choice.
func (a *arbiter) serve(c choice, blocks uint16) {
	if !c.high {
		a.low.serve(c.entry, c.fresh, blocks)
		return
	}
	a.high.serve(c.entry, c.fresh, blocks)
	if a.limit != unlimited {
		a.sent += int32(blocks)
	}
}

// restart puts both tables at their beginning.
func (a *arbiter) restart() {
	a.high.restart()
	a.low.restart()
	a.sent = 0
}

func (t *turns) restart() {
	t.turn, t.left = uint8(max(0, len(t.entries)-1)), 0
}
