package isolation

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// MulticastProver judges multicast forwarding tables again and again. It keeps what it
// was shown, compares that with what it is shown next, and judges the multicast LIDs
// whose grounds have changed; its proof is that of ProveMulticast. The zero value has
// seen nothing.
type MulticastProver struct {
	reading reading
	given   given
	groups  []Group
	// missing are, by group, the receivers that packets do not reach; known the group
	// of a multicast LID, by its number.
	missing []int
	known   map[ib.LID]int
	spreads map[ib.LID]Spread
	// Scratch, by partition.
	members []int
	full    []bool
}

// given is what a policy gives to the end ports that multicast packets get to.
type given struct {
	allowed []observed.Partition // Name, Base, Full and Limited of those that are valid
	parts   []part
	// holds are, by end port, the partitions that it is in; each end port that
	// packets get to has an entry.
	holds map[ib.PortGUID][]held
}

// held is a partition, by its place, and whether the end port is a full member.
type held struct {
	part int
	full bool
}

// Prove judges the multicast forwarding tables, as ProveMulticast does. It keeps
// neither allowed nor groups.
func (p *MulticastProver) Prove(f *observed.Fabric, allowed []observed.Partition, groups []Group) *Multicast {
	again := !p.reading.reads(f)
	if again {
		p.reading = read(f)
	}
	changed, all := p.given.follow(allowed, p.reading.led, again)
	if again || all {
		p.spreads = nil
	}
	for _, g := range changed {
		for _, mlid := range p.reading.led[g] {
			delete(p.spreads, mlid)
		}
	}
	p.follow(groups, again)
	return p.conclude()
}

// conclude judges what is not judged yet, and sums up.
func (p *MulticastProver) conclude() *Multicast {
	m := &Multicast{Verdict: Isolated, Spreads: []Spread{}, Reasons: []string{}, LIDs: len(p.reading.mlids)}
	var t tally
	for _, x := range p.reading.sights {
		reason, bad := sightReasons[x.what]
		if !bad {
			continue
		}
		t.add(reason, x.exit.String())
		if v := Unknown; x.what != sightDefault {
			m.Verdict = max(m.Verdict, v)
		} else {
			m.Verdict = Violated
		}
	}
	for _, n := range p.missing {
		m.Missing += n
	}
	if p.spreads == nil {
		p.spreads = make(map[ib.LID]Spread, len(p.reading.mlids))
	}
	for _, mlid := range p.reading.mlids {
		s, judged := p.spreads[mlid]
		if !judged {
			s = p.judge(mlid)
			p.spreads[mlid] = s
		}
		if s.Verdict != Isolated {
			t.add(s.Reason, fmt.Sprintf("0x%04x", uint16(mlid)))
		}
		m.Verdict = max(m.Verdict, s.Verdict)
		if len(m.Spreads) < MaxSpreads {
			s.Partitions = slices.Clone(s.Partitions)
			m.Spreads = append(m.Spreads, s)
		}
	}
	m.Reasons = append(m.Reasons, t.lines("")...)
	return m
}

// follow takes over groups; again says that packets go otherwise than they did.
func (p *MulticastProver) follow(groups []Group, again bool) {
	same := func(a, b Group) bool {
		return a.MLID == b.MLID && a.Base == b.Base && slices.Equal(a.Receivers, b.Receivers)
	}
	if !again && slices.EqualFunc(p.groups, groups, same) {
		return
	}
	known := make(map[ib.LID]int, len(groups))
	for i := range groups {
		known[groups[i].MLID] = i
	}
	for _, mlid := range p.reading.mlids {
		i, is := known[mlid]
		j, was := p.known[mlid]
		if is != was || is && groups[i].Base != p.groups[j].Base {
			delete(p.spreads, mlid)
		}
	}
	p.missing = make([]int, len(groups))
	kept := make([]Group, len(groups))
	for i, g := range groups {
		kept[i] = Group{g.MLID, g.Base, slices.Clone(g.Receivers)}
		p.missing[i] = p.reading.missing(&g)
	}
	p.groups, p.known = kept, known
}

// missing counts the receivers of a group that its packets do not reach.
func (r *reading) missing(g *Group) (n int) {
	l := r.leads[g.MLID]
	for _, guid := range g.Receivers {
		if l == nil {
			n++
		} else if _, found := slices.BinarySearch(l.ends, guid); !found {
			n++
		}
	}
	return n
}

// follow takes over what is allowed, for the end ports of led, which are others than
// before where moved says so. changed are those whose partitions may be others than
// before, all says that these are all.
func (x *given) follow(allowed []observed.Partition, led map[ib.PortGUID][]ib.LID, moved bool) (changed []ib.PortGUID, all bool) {
	valid := make([]*observed.Partition, 0, len(allowed))
	for i := range allowed {
		if allowed[i].Base.IsValid() {
			valid = append(valid, &allowed[i])
		}
	}
	same := len(valid) == len(x.allowed) && len(valid) == len(x.parts) // no base twice
	for i := 0; same && i < len(valid); i++ {
		same = valid[i].Base == x.allowed[i].Base && valid[i].Name == x.allowed[i].Name
	}
	if moved {
		for g := range led {
			_, have := x.holds[g]
			same = same && have
		}
	}
	if !same {
		x.enter(valid, led)
		return nil, true
	}
	for i, v := range valid {
		old := &x.allowed[i]
		if !slices.Equal(v.Full, old.Full) || !slices.Equal(v.Limited, old.Limited) {
			changed = append(changed, x.renew(i, v)...)
		}
	}
	return changed, false
}

// enter takes all of it over.
func (x *given) enter(valid []*observed.Partition, led map[ib.PortGUID][]ib.LID) {
	*x = given{holds: make(map[ib.PortGUID][]held, len(led))}
	for g := range led {
		x.holds[g] = nil
	}
	at := make(map[ib.PKeyBase]int, len(valid))
	for _, v := range valid {
		x.allowed = append(x.allowed, keep(v))
		i, known := at[v.Base] // those of one base are one
		if !known {
			i = len(x.parts)
			at[v.Base] = i
			x.parts = append(x.parts, part{v.Name, v.Base})
		}
		x.give(i, v)
	}
}

// keep is a copy of what counts of a partition.
func keep(v *observed.Partition) observed.Partition {
	return observed.Partition{Name: v.Name, Base: v.Base, Full: slices.Clone(v.Full), Limited: slices.Clone(v.Limited)}
}

// give enters the members of a partition.
func (x *given) give(i int, v *observed.Partition) {
	if len(x.holds) == 0 {
		return
	}
	for k, guids := range [][]ib.PortGUID{v.Full, v.Limited} {
		for _, g := range guids {
			list, counts := x.holds[g]
			if !counts {
				continue
			}
			n, found := slices.BinarySearchFunc(list, i, func(h held, i int) int { return h.part - i })
			if !found {
				list = slices.Insert(list, n, held{part: i})
				x.holds[g] = list
			}
			list[n].full = list[n].full || k == 0
		}
	}
}

// renew puts the members of a partition in the place of those that it had, and returns
// both where packets get to them.
func (x *given) renew(i int, v *observed.Partition) (touched []ib.PortGUID) {
	old := x.allowed[i]
	for _, guids := range [][]ib.PortGUID{old.Full, old.Limited, v.Full, v.Limited} {
		for _, g := range guids {
			list, counts := x.holds[g]
			if !counts {
				continue
			}
			touched = append(touched, g)
			if n, found := slices.BinarySearchFunc(list, i, func(h held, i int) int { return h.part - i }); found {
				x.holds[g] = slices.Delete(list, n, n+1)
			}
		}
	}
	x.allowed[i] = keep(v)
	x.give(i, v)
	return touched
}

// judge holds the end ports that a multicast LID leads to against the partitions.
func (p *MulticastProver) judge(mlid ib.LID) Spread {
	l, parts := p.reading.leads[mlid], p.given.parts
	base := ib.PKeyBase(0) // of its group
	i, isKnown := p.known[mlid]
	if isKnown {
		base = p.groups[i].Base
	}
	s := Spread{MLID: mlid, Ports: len(l.ends), Partitions: []string{}, Verdict: Isolated}
	if len(l.ends) > 0 {
		s.First = l.ends[0]
	}
	for _, i := range p.common(l.ends) {
		switch {
		case isKnown && parts[i].base != base:
		case p.full[i] || isKnown || len(l.ends) < 2:
			s.Partitions = append(s.Partitions, parts[i].name)
		}
	}
	switch {
	case l.circle:
		s.Verdict, s.Reason = Violated, "packets go in a circle, or come twice"
	case len(l.ends) > 0 && len(s.Partitions) == 0:
		s.Verdict, s.Reason = Violated, "packets are led to end ports that no partition holds together"
		if isKnown {
			s.Reason = "packets are led out of the partition of their group"
		}
	}
	return s
}

// common lists the partitions that hold all of some end ports, by their place; p.full
// then tells of each whether one of the end ports is a full member.
func (p *MulticastProver) common(ends []ib.PortGUID) (out []int) {
	if len(p.members) != len(p.given.parts) {
		p.members, p.full = make([]int, len(p.given.parts)), make([]bool, len(p.given.parts))
	}
	clear(p.members)
	clear(p.full)
	for _, g := range ends {
		for _, h := range p.given.holds[g] {
			p.members[h.part]++
			p.full[h.part] = p.full[h.part] || h.full
		}
	}
	for i, n := range p.members {
		if n == len(ends) {
			out = append(out, i)
		}
	}
	return out
}
