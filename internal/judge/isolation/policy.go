package isolation

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// policy is what is allowed, port by port.
type policy struct {
	sets  *keySets
	parts []part // ordered by base
	// grant is the set of keys that each end port is given.
	grant []int32
	// members tells the grants that hold a partition.
	members map[ib.PKeyBase]*members
	entered map[int32]bool // grants that are in members
	ports   []*observed.Port
	counts  []partCount    // by partition
	live    map[int32]kind // by grant
	// placed remembers the answers of partsOf by set.
	placed map[int32][]int
	// mark and from answer with: mark[h] is from for every grant h that grant
	// from-1 may talk to.
	mark []int32
	from int32
	// self is the subnet manager's port, or -1.
	self int
}

// partCount counts the limited members of a partition, and those of them that
// are hosts.
type partCount struct{ limited, hosts int }

type part struct {
	name string
	base ib.PKeyBase
}

// has reports whether there is a partition.
func (p *policy) has(base ib.PKeyBase) bool {
	_, found := slices.BinarySearchFunc(p.parts, base, func(x part, base ib.PKeyBase) int { return cmp.Compare(x.base, base) })
	return found
}

func compareGUIDs(a, b ib.PortGUID) int { return cmp.Compare(a, b) }

type members struct{ all, full []int32 }

// newPolicy works out what each of ports, which are ordered by GUID, is given.
func newPolicy(allowed []observed.Partition, ports []*observed.Port, sets *keySets) *policy {
	p := &policy{
		sets: sets, grant: make([]int32, len(ports)), ports: ports, entered: make(map[int32]bool),
		members: make(map[ib.PKeyBase]*members), placed: make(map[int32][]int), live: make(map[int32]kind), self: -1,
	}
	given := make([][]ib.PKey, len(ports))
	give := func(guids []ib.PortGUID, k ib.PKey) {
		for _, g := range guids {
			i, _ := slices.BinarySearchFunc(ports, g, func(q *observed.Port, g ib.PortGUID) int {
				return compareGUIDs(q.GUID, g)
			})
			for ; i < len(ports) && ports[i].GUID == g; i++ {
				given[i] = append(given[i], k)
			}
		}
	}
	for _, a := range allowed {
		if a.Base.IsValid() {
			p.parts = append(p.parts, part{a.Name, a.Base})
			give(a.Limited, a.Base.Limited())
			give(a.Full, a.Base.Full())
		}
	}
	slices.SortStableFunc(p.parts, func(a, b part) int { return cmp.Compare(a.base, b.base) })
	p.parts = slices.CompactFunc(p.parts, func(a, b part) bool { return a.base == b.base })
	for i := range ports {
		p.grant[i] = sets.id(newKeySet(given[i]))
	}
	p.enroll()
	return p
}

// enroll fills members from the distinct grants.
func (p *policy) enroll() {
	grants := slices.Clone(p.grant)
	slices.Sort(grants)
	for _, g := range slices.Compact(grants) {
		p.enter(g)
	}
	p.counts = make([]partCount, len(p.parts))
	for i := range p.ports {
		p.count(i, 1)
	}
}

// enter puts a grant into members.
func (p *policy) enter(g int32) {
	p.entered[g] = true
	for _, k := range p.sets.sets[g] {
		m := p.members[k.Base()]
		if m == nil {
			m = new(members)
			p.members[k.Base()] = m
		}
		m.all = append(m.all, g)
		if k.IsFull() {
			m.full = append(m.full, g)
		}
	}
}

// count adds by to what is counted of the grant and the partitions of end port i.
func (p *policy) count(i, by int) {
	grant := p.grant[i]
	k := p.live[grant]
	k.ports += by
	if p.ports[i].Node.Switch == nil {
		k.hosts += by
	}
	p.live[grant] = k
	for n, part := range p.partsOf(grant) {
		if p.sets.sets[grant][n].IsFull() {
			continue
		}
		p.counts[part].limited += by
		if p.ports[i].Node.Switch == nil {
			p.counts[part].hosts += by
		}
	}
}

// regrant gives another set to end port i.
func (p *policy) regrant(i int, grant int32) {
	p.count(i, -1)
	p.grant[i] = grant
	p.count(i, 1)
	if !p.entered[grant] {
		p.enter(grant)
	}
	p.from = 0 // what ask has marked no longer counts
}

// partsOf lists the partitions of a set by their place in parts; partitions
// that the policy does not know are left out.
func (p *policy) partsOf(set int32) []int {
	out, known := p.placed[set]
	if known {
		return out
	}
	for _, k := range p.sets.sets[set] {
		i, found := slices.BinarySearchFunc(p.parts, k.Base(), func(q part, b ib.PKeyBase) int {
			return cmp.Compare(q.base, b)
		})
		if found {
			out = append(out, i)
		}
	}
	p.placed[set] = out
	return out
}

// ask chooses the grant that may answers for.
func (p *policy) ask(grant int32) {
	if len(p.mark) < len(p.sets.sets) {
		p.mark, p.from = make([]int32, len(p.sets.sets)), 0
	}
	if p.from == grant+1 {
		return
	}
	p.from = grant + 1
	for _, k := range p.sets.sets[grant] {
		with := p.members[k.Base()].full
		if k.IsFull() {
			with = p.members[k.Base()].all
		}
		for _, h := range with {
			p.mark[h] = p.from
		}
	}
}

// may reports whether two ports, one of the grant last asked for and one of
// this grant, are allowed to talk.
func (p *policy) may(grant int32) bool { return p.mark[grant] == p.from }

// joined tells for each partition, as bits, which others the policy joins it
// to, at other ports than the manager's own; nil when there are more than MaxPartitionsListed.
func (p *policy) joined() []uint64 {
	n := len(p.parts)
	if n > MaxPartitionsListed {
		return nil
	}
	// Bit r of any[q]: partitions q and r share a port; of full[q]: one that
	// is a full member of r.
	sharing, full, out := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	grants := slices.Clone(p.grant)
	if p.self >= 0 {
		grants = slices.Delete(grants, p.self, p.self+1)
	}
	slices.Sort(grants)
	for _, g := range slices.Compact(grants) {
		parts := p.partsOf(g)
		for _, q := range parts {
			for i, r := range parts {
				sharing[q] |= 1 << r
				if p.sets.sets[g][i].IsFull() {
					full[q] |= 1 << r
				}
			}
		}
	}
	for q := range n {
		out[q] = sharing[q]
		for r := range n {
			if sharing[q]&full[r] != 0 || full[q]&sharing[r] != 0 {
				out[q] |= 1 << r
			}
		}
	}
	return out
}
