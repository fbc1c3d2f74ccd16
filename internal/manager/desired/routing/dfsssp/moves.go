package dfsssp

import "github.com/ibwarden/ibwarden/ib"

// step is a turn that a path of a layer took or dropped.
type step struct {
	set   *acyclic
	turn  int32
	taken bool
}

// change is a new layer of the pair of a switch and the root.
type change struct {
	s     uint16
	layer uint8
}

// fits lets switch order[i] send by l if all paths by it have a layer then, and reports
// whether they have.
func (v *evener) fits(i int, l int32) bool {
	t := v.t
	s := t.order[i]
	was := t.exit[s]
	v.subtree(i)
	v.log, v.moves = v.log[:0], v.moves[:0]
	for _, u := range v.subs {
		v.dropOn(u)
	}
	v.lead(s, l)
	for _, u := range v.subs {
		if !v.takeOn(u) && !v.change(u) {
			v.undo(0)
			v.lead(s, was)
			return false
		}
	}
	for _, c := range v.moves {
		v.layer[c.s][t.root], v.layer[t.root][c.s] = c.layer, c.layer
	}
	f := v.flow[s]
	v.carry(was, -f)
	v.carry(l, f)
	return true
}

// carry adds CAs, or takes some away, to what passes a link and the way on to the root.
func (v *evener) carry(l int32, cas uint32) {
	for {
		v.load[l] += uint64(int32(cas))
		at := v.To[l]
		if at == v.t.root {
			return
		}
		v.flow[at] += cas
		l = v.t.exit[at]
	}
}

// lead makes a link the exit of s.
func (v *evener) lead(s uint16, l int32) {
	v.t.exit[s] = l
	v.linear[v.Nodes[s].Index][v.t.lid] = v.Port[l]
}

// subtree finds the switches that send by switch order[i].
func (v *evener) subtree(i int) {
	t := v.t
	s := t.order[i]
	v.subs = append(v.subs[:0], s)
	v.below[s], v.in[s] = true, noLink
	for _, u := range t.order[i+1:] {
		x := t.exit[u]
		p := v.To[x]
		if p == t.root || !v.below[p] {
			continue
		}
		v.below[u], v.in[u] = true, v.in[p]
		if p == s {
			v.in[u] = x
		}
		v.subs = append(v.subs, u)
	}
	for _, u := range v.subs {
		v.below[u] = false
	}
}

// dropOn drops the turns of the path of u from the switch to be moved on.
func (v *evener) dropOn(u uint16) {
	v.along(u, func(turn int32) bool {
		v.drop(v.sets[v.layer[u][v.t.root]], turn)
		return true
	})
}

// takeOn takes them, all or none.
func (v *evener) takeOn(u uint16) bool {
	mark := len(v.log)
	if v.along(u, func(turn int32) bool { return v.take(v.sets[v.layer[u][v.t.root]], turn) }) {
		return true
	}
	v.undo(mark)
	return false
}

// along visits the turns of the path of u from the switch to be moved on.
func (v *evener) along(u uint16, visit func(turn int32) bool) bool {
	t := v.t
	x := v.in[u]
	if x == noLink {
		x = t.exit[u]
	}
	for at := v.To[x]; at != t.root; at = v.To[x] {
		if !visit(v.turnOf(x, t.exit[at])) {
			return false
		}
		x = t.exit[at]
	}
	return true
}

// change moves the pair of u and the root into another layer.
func (v *evener) change(u uint16) bool {
	t := v.t
	r := t.root
	mark := len(v.log)
	old := v.layer[u][r]
	set := v.sets[old]
	// the path to the LID at hand, up to the switch to be moved
	for x := t.exit[u]; v.in[u] != noLink && x != v.in[u]; {
		y := t.exit[v.To[x]]
		v.drop(set, v.turnOf(x, y))
		x = y
	}
	v.each(u, r, func(lid ib.LID, turn int32) bool {
		if lid != t.lid {
			v.drop(set, turn)
		}
		return true
	})
	between := len(v.log)
	for k := range v.sets {
		if k == int(old) {
			continue
		}
		if v.each(u, r, func(_ ib.LID, turn int32) bool { return v.take(v.sets[k], turn) }) {
			v.moves = append(v.moves, change{u, uint8(k)})
			return true
		}
		v.undo(between)
	}
	v.undo(mark)
	return false
}

// each visits the turns of all paths between two switches.
func (v *evener) each(s, r uint16, visit func(lid ib.LID, turn int32) bool) bool {
	for range 2 {
		for _, lid := range v.lids[r] {
			l := v.exitOf(v.linear, s, lid)
			for at := v.To[l]; at != r; at = v.To[l] {
				m := v.exitOf(v.linear, at, lid)
				if !visit(lid, v.turnOf(l, m)) {
					return false
				}
				l = m
			}
		}
		s, r = r, s
	}
	return true
}

func (v *evener) take(set *acyclic, turn int32) bool {
	if !set.takeNear(turn) {
		return false
	}
	v.log = append(v.log, step{set, turn, true})
	return true
}

func (v *evener) drop(set *acyclic, turn int32) {
	set.drop(turn)
	v.log = append(v.log, step{set, turn, false})
}

// undo takes back all that was done after the log had so many steps.
func (v *evener) undo(mark int) {
	for i := len(v.log) - 1; i >= mark; i-- {
		s := v.log[i]
		if s.taken {
			s.set.drop(s.turn)
		} else {
			s.set.retake(s.turn)
		}
	}
	v.log = v.log[:mark]
}
