package plan

import (
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// While forwarding tables change, some switches have the old table and some the new one, and
// packets for a LID may go in a circle between them, though both routings are free of
// circles. Where that can be, a switch gets its block after the next switch on the new way
// that changes too has it: what it sends then goes the new way to the end. Where the LIDs of
// a block ask for opposite orders, the block is written more than once, each time with the
// new routes of more LIDs: nothing is lost on the way. The same order is kept where an old route
// leads to a link that is down.

// rerouting orders the writes of one block of the linear forwarding tables of all switches.
type rerouting struct {
	p     *Plan
	block int
	ops   []Op
	// at is the place in ops of a switch's write, by Node.Index; below 0 for none.
	at []int32
	// after are, for each op, those that it has to wait for, each with the LIDs, as bits,
	// for which it has to.
	after []map[int32]uint64
	// changes are the LIDs, as bits, that each op changes.
	changes []uint64

	seen  []int32 // by Node.Index: the walk in which a switch was reached
	state []int32
	walk  int32
}

// rerouted are the writes of linear forwarding tables, and others, as stages.
func (p *Plan) rerouted(ops []Op) (waves [][]Op) {
	blocks := make(map[uint32][]Op) // those of which a switch has routes
	for _, op := range ops {
		if op.Attribute == smp.AttrLinearForwardingTable && blocks[op.Modifier] == nil && routes(op) {
			blocks[op.Modifier] = []Op{}
		}
	}
	if len(blocks) == 0 {
		return [][]Op{ops}
	}
	for _, op := range ops {
		if of := blocks[op.Modifier]; of != nil && op.Attribute == smp.AttrLinearForwardingTable {
			blocks[op.Modifier] = append(of, op)
		}
	}
	n := len(p.fabric.Nodes)
	r := &rerouting{p: p, at: make([]int32, n), seen: make([]int32, n), state: make([]int32, n)}
	for i := range r.at {
		r.at[i] = -1
	}
	ordered := make(map[uint32]bool)
	waves = make([][]Op, 1)
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		if of := blocks[block]; len(of) > 1 {
			r.block, r.ops = int(block), of
			if r.constrain() {
				ordered[block] = true
				r.passes(&waves)
			}
			for _, op := range of {
				r.at[op.Port.Node.Index] = -1
			}
		}
	}
	for _, op := range ops {
		if op.Attribute != smp.AttrLinearForwardingTable || !ordered[op.Modifier] {
			waves[0] = append(waves[0], op)
		}
	}
	return waves
}

// routes reports whether a switch has routes in a block now.
func routes(op Op) bool {
	s, block := op.Port.Node.Switch, int(op.Modifier)
	first := block * smp.LIDsPerLinearBlock
	return block < len(s.LFTRead) && s.LFTRead[block] && first <= int(s.Info.LinearFDBTop) && first < len(s.LFT) &&
		slices.ContainsFunc(s.LFT[first:min(first+smp.LIDsPerLinearBlock, len(s.LFT))], func(exit ib.PortNum) bool { return exit != ib.PortNone })
}

// held is the exit that a switch has for a LID now, as far as was read.
func (r *rerouting) held(n *observed.Node, lid int) ib.PortNum {
	s := n.Switch
	if r.block >= len(s.LFTRead) || !s.LFTRead[r.block] || lid >= len(s.LFT) || lid > int(s.Info.LinearFDBTop) {
		return ib.PortNone
	}
	return s.LFT[lid]
}

// wanted is the exit that a switch is to have.
func (r *rerouting) wanted(n *observed.Node, lid int) ib.PortNum {
	if t := r.p.desired.Nodes[n.Index].LFT; lid < len(t) {
		return t[lid]
	}
	return ib.PortNone
}

// next is the switch behind an exit; nil where packets leave the switches, or are dropped.
func next(n *observed.Node, exit ib.PortNum) *observed.Node {
	if exit == 0 || int(exit) >= len(n.Ports) {
		return nil
	}
	if p := &n.Ports[exit]; p.Peer != nil && p.Peer.Node.Switch != nil && p.Peer.Node != n {
		return p.Peer.Node
	}
	return nil
}

// constrain finds for which LIDs old and new routes together lead in a circle, and which
// write has to wait for which; false if none has to.
func (r *rerouting) constrain() (some bool) {
	r.after, r.changes = make([]map[int32]uint64, len(r.ops)), make([]uint64, len(r.ops))
	for i, op := range r.ops {
		r.at[op.Port.Node.Index] = int32(i)
	}
	first := r.block * smp.LIDsPerLinearBlock
	var changed []*observed.Node
	for lid := max(first, int(ib.LIDUnicastMin)); lid < first+smp.LIDsPerLinearBlock; lid++ {
		changed = changed[:0]
		reroutes := 0
		for _, op := range r.ops {
			n := op.Port.Node
			if held := r.held(n, lid); held != r.wanted(n, lid) {
				changed = append(changed, n)
				r.changes[r.at[n.Index]] |= 1 << (lid - first)
				if held != ib.PortNone {
					reroutes++
				}
			}
		}
		if reroutes > 0 && len(changed) > 1 && (r.lost(changed, lid) || r.circles(changed, lid)) {
			for _, n := range changed {
				if next := r.nextChanged(n, lid); next != nil {
					i, j := r.at[n.Index], r.at[next.Index]
					if r.after[i] == nil {
						r.after[i] = make(map[int32]uint64)
					}
					r.after[i][j] |= 1 << (lid - first)
					some = true
				}
			}
		}
	}
	return some
}

// lost reports whether a switch whose route changes leads packets for a LID to a link that is
// down: whoever sends them there before it has the new route loses what was not lost before.
func (r *rerouting) lost(changed []*observed.Node, lid int) bool {
	return slices.ContainsFunc(changed, func(n *observed.Node) bool {
		exit := r.held(n, lid)
		return exit != 0 && int(exit) < len(n.Ports) && !n.Ports[exit].IsTrained()
	})
}

// circles reports whether packets for a LID can go in a circle over old and new routes.
func (r *rerouting) circles(changed []*observed.Node, lid int) bool {
	const open, done = 1, 2
	r.walk++
	var visit func(n *observed.Node) bool
	visit = func(n *observed.Node) bool {
		if r.seen[n.Index] == r.walk {
			return r.state[n.Index] == open
		}
		r.seen[n.Index], r.state[n.Index] = r.walk, open
		held, wanted := r.held(n, lid), r.wanted(n, lid)
		if r.at[n.Index] < 0 {
			wanted = held // nothing is written here
		}
		for i, exit := range []ib.PortNum{held, wanted} {
			if to := next(n, exit); to != nil && (i == 0 || wanted != held) && visit(to) {
				return true
			}
		}
		r.state[n.Index] = done
		return false
	}
	return slices.ContainsFunc(changed, visit)
}

// nextChanged is the first switch on the new way from n to a LID whose route changes too.
func (r *rerouting) nextChanged(n *observed.Node, lid int) *observed.Node {
	at := n
	for range len(r.p.fabric.Nodes) {
		if at = next(at, r.wanted(at, lid)); at == nil {
			return nil
		}
		if r.at[at.Index] >= 0 && r.held(at, lid) != r.wanted(at, lid) {
			return at
		}
	}
	return nil // the new routes themselves lead in a circle
}

// passes enters the writes of a block into waves: one of wave i may go after all of the
// waves before. Each pass gives LIDs, as bits, their new routes.
func (r *rerouting) passes(waves *[][]Op) {
	first, todo := 0, ^uint64(0)
	for pass := 1; todo != 0; pass++ {
		lids := todo
		wave, stuck := r.sort(lids)
		for len(stuck) > 0 {
			// Those that wait for each other in a circle are left to a later pass; where that
			// is all of them, all but one: a single LID never asks for opposite orders.
			between := uint64(0)
			for _, i := range stuck {
				for j, why := range r.after[i] {
					if slices.Contains(stuck, j) {
						between |= why & lids
					}
				}
			}
			if lids &^= between; lids == 0 {
				lids = between & -between
			}
			wave, stuck = r.sort(lids)
		}
		todo &^= lids
		last := first
		for i, op := range r.ops {
			switch {
			case r.changes[i]&lids == 0 && (pass > 1 || r.changes[i] != 0):
				continue // had all before, or begins later
			case r.changes[i]&todo != 0:
				op.Pass = uint8(pass)
				r.p.keep(op, todo)
			}
			at := first + wave[i]
			last = max(last, at)
			for len(*waves) <= at {
				*waves = append(*waves, nil)
			}
			(*waves)[at] = append((*waves)[at], op)
		}
		first = last + 1
	}
}

// keep makes a write leave LIDs of its block, as bits, as they are.
func (p *Plan) keep(op Op, lids uint64) {
	if p.kept == nil {
		p.kept = make(map[Op]uint64)
	}
	p.kept[op] = lids
}

// sort gives each write the earliest wave, for some of the LIDs, as bits; stuck are those that
// wait for each other.
func (r *rerouting) sort(lids uint64) (wave []int, stuck []int32) {
	wave = make([]int, len(r.ops))
	waits := make([]int, len(r.ops))
	before := make([][]int32, len(r.ops))
	var ready []int32
	for i, after := range r.after {
		for j, why := range after {
			if why&lids != 0 {
				waits[i]++
				before[j] = append(before[j], int32(i))
			}
		}
		if waits[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	for len(ready) > 0 {
		j := ready[0]
		ready = ready[1:]
		for _, i := range before[j] {
			wave[i] = max(wave[i], wave[j]+1)
			if waits[i]--; waits[i] == 0 {
				ready = append(ready, i)
			}
		}
	}
	for i, n := range waits {
		if n > 0 {
			stuck = append(stuck, int32(i))
		}
	}
	return wave, stuck
}

// fillLinear is the block as it is wanted, but for LIDs that a later write changes.
func (p *Plan) fillLinear(op Op) (Write, error) {
	block := int(op.Modifier)
	op.Port.Node.Switch.ReserveLFT(len(p.desired.Nodes[op.Port.Node.Index].LFT))
	t := smp.LinearForwardingTable{Ports: smp.LinearBlock(p.desired.Nodes[op.Port.Node.Index].LFT, block)}
	if kept := p.kept[op]; kept != 0 {
		held := smp.LinearBlock(op.Port.Node.Switch.LFT, block)
		for i := range t.Ports {
			if kept&(1<<i) != 0 {
				t.Ports[i] = held[i]
			}
		}
	}
	return p.encoded(Write{}, &t)
}
