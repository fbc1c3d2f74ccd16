package server

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// source is what a port's keys were worked out from.
type source struct {
	// given are the keys that the policy gives, by partition, each partition once.
	given []ib.PKey
	// table and read are the P_Key table as it was read.
	table []ib.PKey
	read  []bool
	// due reports whether the keys are to be worked out.
	due bool
}

// followPolicy takes over what the policy says of the ports that there are, and their
// tables. old is the view that the ports are of, nil where they are new.
func (v *View) followPolicy(old *View) {
	byBase := func(a, b observed.Partition) int { return cmp.Compare(a.Base, b.Base) }
	if !slices.IsSortedFunc(v.Partitions, byBase) {
		v.Partitions = slices.SortedStableFunc(slices.Values(v.Partitions), byBase)
	}
	if old == nil || !maps.EqualFunc(old.Aliases, v.Aliases, slices.Equal) {
		v.enterAliases()
	}
	if old == nil || !slices.EqualFunc(old.Partitions, v.Partitions, func(a, b observed.Partition) bool { return a.Base == b.Base }) {
		v.enterPlaces()
	}
	if old == nil || !areDistinct(old.Partitions) {
		for _, p := range v.Ports {
			p.given, p.due = nil, true
		}
		old = nil
	}
	v.giveKeys(old)
	for _, p := range v.Ports {
		if p.due || !sameTable(p.table, p.Port.PKeys) || !slices.Equal(p.read, p.PKeysRead) {
			p.workOut()
		}
	}
}

// areDistinct reports whether no two of these sorted partitions have the same number.
func areDistinct(list []observed.Partition) bool {
	for i := 1; i < len(list); i++ {
		if list[i].Base == list[i-1].Base {
			return false
		}
	}
	return true
}

func (v *View) enterAliases() {
	v.named = make(map[ib.PortGUID]ib.PortGUID)
	for port, list := range v.Aliases {
		for _, g := range list {
			if g != 0 {
				v.named[g] = port
			}
		}
	}
}

func (v *View) enterPlaces() {
	v.places = make([]int32, int(ib.PKeyBaseMax)+1)
	for i := range v.Partitions {
		if base := v.Partitions[i].Base; base.IsValid() {
			v.places[base] = int32(i) + 1
		}
	}
}

// giveKeys takes over the members of each partition whose members are others than in
// old; nil for a view in which no port has any.
func (v *View) giveKeys(old *View) {
	var was []observed.Partition
	if old != nil {
		was = old.Partitions
	}
	for now := v.Partitions; len(was) > 0 || len(now) > 0; {
		var a, b *observed.Partition
		if len(now) == 0 || len(was) > 0 && was[0].Base <= now[0].Base {
			a = &was[0]
		}
		if len(was) == 0 || len(now) > 0 && now[0].Base <= was[0].Base {
			b = &now[0]
		}
		switch {
		case a == nil:
			v.give(b)
			now = now[1:]
		case b == nil:
			v.replace(a, &observed.Partition{Base: a.Base})
			was = was[1:]
		default:
			if !slices.Equal(a.Full, b.Full) || !slices.Equal(a.Limited, b.Limited) {
				v.replace(a, b)
			}
			now, was = now[1:], was[1:]
		}
	}
}

// give gives the key of a partition to its members. A full member may be a limited one
// too.
func (v *View) give(part *observed.Partition) {
	if !part.Base.IsValid() {
		return
	}
	v.eachMember(part, func(p *Port, key ib.PKey) {
		if i, has := p.place(part.Base); !has {
			p.given, p.due = slices.Insert(p.given, i, key), true
		}
	})
}

// replace gives the key of a partition to the members that it has now, and takes it from
// those that it had.
func (v *View) replace(was, now *observed.Partition) {
	keys := func(part *observed.Partition) map[*Port]ib.PKey {
		out := make(map[*Port]ib.PKey, len(part.Full)+len(part.Limited))
		v.eachMember(part, func(p *Port, key ib.PKey) { out[p] |= key })
		return out
	}
	before, after := keys(was), keys(now)
	for p, key := range before {
		i, has := p.place(was.Base)
		switch next, stays := after[p]; {
		case !has || next == key:
		case stays:
			p.given[i], p.due = next, true
		default:
			p.given, p.due = slices.Delete(p.given, i, i+1), true
		}
	}
	v.give(now)
}

// eachMember calls yield with the ports of a partition, the full members first.
func (v *View) eachMember(part *observed.Partition, yield func(*Port, ib.PKey)) {
	for _, g := range part.Full {
		if p := v.byGUID[g]; p != nil {
			yield(p, part.Base.Full())
		}
	}
	for _, g := range part.Limited {
		if p := v.byGUID[g]; p != nil {
			yield(p, part.Base.Limited())
		}
	}
}

// place is where the key of a partition is among those that a port is given, or has to
// be.
func (x *source) place(base ib.PKeyBase) (int, bool) {
	return slices.BinarySearchFunc(x.given, base, func(k ib.PKey, b ib.PKeyBase) int { return cmp.Compare(k.Base(), b) })
}

// sameTable reports whether two P_Key tables are equal. It compares whole blocks, which
// is several times as fast as slices.Equal.
func sameTable(a, b []ib.PKey) bool {
	if len(a) != len(b) {
		return false
	}
	for ; len(a) >= smp.PKeysPerBlock; a, b = a[smp.PKeysPerBlock:], b[smp.PKeysPerBlock:] {
		if *(*[smp.PKeysPerBlock]ib.PKey)(a) != *(*[smp.PKeysPerBlock]ib.PKey)(b) {
			return false
		}
	}
	return slices.Equal(a, b)
}

// workOut works out which keys a port can use: those that it is given and that its table
// holds.
func (p *Port) workOut() {
	p.due = false
	p.table, p.read = append(p.table[:0], p.Port.PKeys...), append(p.read[:0], p.PKeysRead...)
	held := appendHeld(make([]ib.PKey, 0, len(p.table)), p.Port)
	p.Keys = nil // the old list may be in use
	for _, k := range p.given {
		has := ib.PKey(0) // the full key where both of the partition are there
		for _, h := range held {
			if h.Base() == k.Base() {
				has |= h
			}
		}
		if has.IsValid() {
			p.Keys = append(p.Keys, has&k)
		}
	}
}

// appendHeld adds the keys in the blocks of a table that were read.
func appendHeld(keys []ib.PKey, p *observed.Port) []ib.PKey {
	for _, k := range p.ReadPKeys() {
		if k.IsValid() {
			keys = append(keys, k)
		}
	}
	return keys
}
