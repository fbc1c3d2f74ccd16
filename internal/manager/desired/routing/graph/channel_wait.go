package graph

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// Waits is what packets wait for: who holds a virtual lane of one channel can wait for
// one of the next. It never has a circle.
type Waits struct {
	net   *Channels
	class []uint8 // by channel
	// lane is the virtual lane by the classes of the channel before and of the channel
	// taken, and by the layer, as graph.Lanes has it.
	lane [][][]ib.VL
	vls  int32
	// after lists, for channel*vls + lane, those that its packets can wait for.
	after   [][]int32
	refused map[waitStep]bool
	// For the search at hand:
	seen  []uint32
	round uint32
	stack []int32
	steps []waitStep
}

// waitStep is from a lane of a channel to that of the next.
type waitStep struct{ from, to int32 }

// NewWaits returns no waits. The channels have classes, the same in both directions,
// and lane says which virtual lane is taken, below vls; class 0 is that of the ports of
// hosts.
func NewWaits(n *Channels, class []uint8, lane [][][]ib.VL, vls int) *Waits {
	size := len(n.To) * vls
	return &Waits{
		net: n, class: class, lane: lane, vls: int32(vls), after: make([][]int32, size),
		refused: map[waitStep]bool{}, seen: make([]uint32, size),
	}
}

// Add says that packets in lane of channel c can wait for lane2 of channel c2. The
// caller knows that this closes no circle.
func (w *Waits) Add(c int32, lane ib.VL, c2 int32, lane2 ib.VL) {
	from, to := c*w.vls+int32(lane), c2*w.vls+int32(lane2)
	if !slices.Contains(w.after[from], to) {
		w.after[from] = append(w.after[from], to)
	}
}

// Take enters paths, each the channels that a packet takes one after the other, if in this
// layer they close no circle. It reports whether it did.
func (w *Waits) Take(layer uint8, paths ...[]int32) bool {
	w.steps = w.steps[:0]
	for _, path := range paths {
		before, in := int32(-1), uint8(0)
		for _, c := range path {
			out := w.class[c]
			x := c*w.vls + int32(w.lane[in][out][layer])
			if before >= 0 && !slices.Contains(w.after[before], x) {
				if w.refused[waitStep{before, x}] {
					return false
				}
				w.steps = append(w.steps, waitStep{before, x})
			}
			before, in = x, out
		}
	}
	for i, s := range w.steps {
		if slices.Contains(w.after[s.from], s.to) {
			w.steps[i].from = -1 // twice in these paths
			continue
		}
		if w.leads(s.to, s.from) {
			if i == 0 {
				// What is there alone forbids it, and only ever grows.
				w.refused[s] = true
			}
			w.withdraw(w.steps[:i])
			return false
		}
		w.after[s.from] = append(w.after[s.from], s.to)
	}
	return true
}

// withdraw takes steps back that were the last to be entered.
func (w *Waits) withdraw(steps []waitStep) {
	for i := len(steps) - 1; i >= 0; i-- {
		if f := steps[i].from; f >= 0 {
			w.after[f] = w.after[f][:len(w.after[f])-1]
		}
	}
}

// leads reports whether packets in a wait, in turn, for what is held in b.
func (w *Waits) leads(a, b int32) bool {
	if a == b {
		return true
	}
	w.round++
	w.seen[a] = w.round
	w.stack = append(w.stack[:0], a)
	for len(w.stack) > 0 {
		x := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		for _, y := range w.after[x] {
			if y == b {
				return true
			}
			if w.seen[y] != w.round {
				w.seen[y] = w.round
				w.stack = append(w.stack, y)
			}
		}
	}
	return false
}
