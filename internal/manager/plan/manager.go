package plan

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Hosts ask subnet administration over a key that the manager's port has in
// common with them, while their keys change too. So the manager gets keys before
// anybody else and loses them after everybody else, wherever that lets nobody
// talk over a partition who does not do so before the plan or after it: a key
// that no other port loses may come early, one that no other port gains may go
// late. The default partition, over which all ask where there is one, is for the
// same reason taken from switch ports after the hosts have their new tables, and
// given to them before, where it only goes or only comes.

// moves records of each partition whether ports gain or lose it.
type moves struct {
	gained, lost map[ib.PKeyBase]bool
	// unread reports whether some table was not read: what it loses is not known.
	unread bool
}

func newMoves() moves {
	return moves{gained: map[ib.PKeyBase]bool{}, lost: map[ib.PKeyBase]bool{}}
}

func (m *moves) add(port *observed.Port, want []ib.PKey) {
	if want == nil || !port.Reached {
		return
	}
	// A write may be under way that gave what the table is not known to hold.
	m.unread = m.unread || !port.PKeysKnown()
	if holdsExactly(port.PKeys, want) {
		return
	}
	for _, k := range want {
		if k.IsValid() && Permitted(port.PKeys, k) != k {
			m.gained[k.Base()] = true
		}
	}
	kept := inUse(want)
	for _, k := range port.PKeys {
		if k.IsValid() && Permitted(kept, k) != k {
			m.lost[k.Base()] = true
		}
	}
}

// holdsExactly reports whether a table, as far as it was read, is another one,
// which ends before entries that are empty.
func holdsExactly(now, want []ib.PKey) bool {
	if len(now) < len(want) || !slices.Equal(now[:len(want)], want) {
		return false
	}
	return !slices.ContainsFunc(now[len(want):], func(k ib.PKey) bool { return k != 0 })
}

// comes and goes report whether a partition is only given, or only taken away.
func (m *moves) comes(b ib.PKeyBase) bool { return m.gained[b] && !m.lost[b] && !m.unread }
func (m *moves) goes(b ib.PKeyBase) bool  { return m.lost[b] && !m.gained[b] && !m.unread }

// managersPorts are the manager's port and, if there is one whose table was read,
// the switch port before it; none when the manager's port carries no data or its
// table was not read.
func managersPorts(f *observed.Fabric) []*observed.Port {
	self := f.Self
	if self == nil || !self.Reached || !carriesData(self) || !self.PKeysKnown() {
		return nil
	}
	out := []*observed.Port{self}
	if guard := self.Peer; guard != nil && guard.FacesEnd() && guard.Reached && guard.PKeysKnown() {
		out = append(out, guard)
	}
	return out
}

// interim is what a port of the manager's holds while others are written: ready
// before anything is written elsewhere, then when everybody gets new tables.
type interim struct{ ready, then []ib.PKey }

// prepare computes what the order of the writes depends on; at are the only
// ports with something to write, or nil for any.
func (p *Plan) prepare(at []*observed.Port) {
	if at == nil {
		for _, n := range p.fabric.Nodes {
			for i := range n.Ports {
				at = append(at, &n.Ports[i])
			}
		}
	}
	own := managersPorts(p.fabric)
	others, all := newMoves(), newMoves()
	for _, port := range at {
		want := p.desired.Port(port).PKeys
		all.add(port, want)
		if !slices.Contains(own, port) {
			others.add(port, want)
		}
	}
	p.comes, p.goes = all.comes(ib.PKeyBaseDefault), all.goes(ib.PKeyBaseDefault)
	p.interims = make(map[*observed.Port]interim)
	for _, port := range own {
		want := p.desired.Port(port).PKeys
		if want == nil || holdsExactly(port.PKeys, want) {
			continue
		}
		ready := make([]ib.PKey, len(want))
		for i, k := range want {
			if ready[i] = k; others.lost[k.Base()] || others.unread {
				ready[i] = Permitted(port.PKeys, k)
			}
		}
		p.interims[port] = interim{
			ready: union(port.PKeys, ready, want, port.PKeyCap(), &others), then: union(port.PKeys, want, want, port.PKeyCap(), &others),
		}
	}
}

// KeepManagers lets d, which is a part of what full wants of f, leave to the
// manager's port what it is to lose and nobody else is to get, so that those who
// are not in d yet can still ask subnet administration.
func KeepManagers(f *observed.Fabric, full, d *observed.Desired) {
	own, others := managersPorts(f), newMoves()
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if port := &n.Ports[i]; !slices.Contains(own, port) {
				others.add(port, full.Port(port).PKeys)
			}
		}
	}
	for _, port := range own {
		if want := d.Port(port); want.PKeys != nil {
			want.PKeys = union(port.PKeys, want.PKeys, full.Port(port).PKeys, port.PKeyCap(), &others)
		}
	}
}

// union is a table with all that after holds, and of now what it lacks and no
// other port is to get: a full key in place of a limited one, else at the same index, or in an entry that is empty in now
// and in last as well. What finds no room is left out.
func union(now, after, last []ib.PKey, size int, others *moves) []ib.PKey {
	out := make([]ib.PKey, size)
	copy(out, after)
	empty := func(t []ib.PKey, i int) bool { return i >= len(t) || !t[i].IsValid() }
	gap := 0
	for i, k := range now[:min(len(now), size)] {
		if !k.IsValid() || others.gained[k.Base()] || others.unread {
			continue
		}
		if has := slices.IndexFunc(out, func(o ib.PKey) bool { return o.IsValid() && o.Base() == k.Base() }); has >= 0 {
			if k.IsFull() {
				out[has] = k
			}
			continue
		}
		if empty(out, i) && empty(last, i) {
			out[i] = k
			continue
		}
		for gap < size && !(empty(out, gap) && empty(now, gap) && empty(last, gap)) {
			gap++
		}
		if gap < size {
			out[gap] = k
		}
	}
	return out
}

// holdsDefault reports whether a table has a key of the default partition.
func holdsDefault(table []ib.PKey) bool { return Permitted(table, ib.PKeyDefaultLimited).IsValid() }

// between is what a port holds after the narrowing, before it gets what the plan gives:
// of its new keys only what is permitted already. A switch port that is to lose the
// default partition keeps it so long if the plan only removes it, and one that is to get
// it has it already if the plan only adds it.
func (p *Plan) between(port *observed.Port) []ib.PKey {
	now, after := port.PKeys, p.desired.Port(port).PKeys
	out := make([]ib.PKey, max(len(after), port.PKeyCap()))
	for i, k := range after {
		out[i] = Permitted(now, k)
		if p.comes && port.FacesEnd() && k.IsValid() && k.Base() == ib.PKeyBaseDefault {
			out[i] = k
		}
	}
	if !p.goes || !port.FacesEnd() || !holdsDefault(now) || holdsDefault(after) {
		return out
	}
	if !slices.ContainsFunc(now, func(k ib.PKey) bool {
		return k.IsValid() && k.Base() != ib.PKeyBaseDefault && Permitted(after, k) != k
	}) {
		return now // nothing else is lost
	}
	kept := slices.IndexFunc(now, func(k ib.PKey) bool { return k.IsValid() && k.Base() == ib.PKeyBaseDefault })
	return union(now[kept:kept+1], out, after, len(out), &moves{})
}

// diffInterim adds the writes of a port of the manager's.
func (p *Plan) diffInterim(port *observed.Port, x interim, add addFunc) {
	ready, then, last := ReadyEnd, EndKeys, LeaveEnd
	switch {
	case !port.IsEnd():
		ready, then, last = ReadySwitch, SwitchKeys, LeaveSwitch
	case p.guarded(port):
		then = GuardedEndKeys
	}
	want := p.desired.Port(port).PKeys
	for block := range port.PKeyBlocks() {
		at := smp.PKeyBlock(port.PKeys, block)
		for _, step := range []struct {
			kind  Kind
			table []ib.PKey
		}{{ready, x.ready}, {then, x.then}, {last, want}} {
			if b := smp.PKeyBlock(step.table, block); b != at {
				add(step.kind, port, smp.AttrPKeyTable, keyModifier(port, block))
				at = b
			}
		}
	}
}

// keysOf are the keys that an operation writes to its port.
func (p *Plan) keysOf(op Op) []ib.PKey {
	x, own := p.interims[op.Port]
	switch {
	case own && (op.Kind == ReadyEnd || op.Kind == ReadySwitch):
		return x.ready
	case own && op.Kind != LeaveEnd && op.Kind != LeaveSwitch:
		return x.then
	case op.Kind == NarrowSwitch, op.Kind == NarrowEnd:
		return p.between(op.Port)
	}
	return p.desired.Port(op.Port).PKeys
}

func keyModifier(port *observed.Port, block int) uint32 {
	selector := ib.PortNum(0)
	if port.Node.Switch != nil {
		selector = port.Num
	}
	return smp.PKeyModifier(selector, uint16(block))
}
