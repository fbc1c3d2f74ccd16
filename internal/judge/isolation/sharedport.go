package isolation

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// SharedPort is an end port that, by the current tables of the end ports, can talk to
// two others which cannot talk to each other. Only such a port can relay between them.
// The manager's own port is one, and so are the ports that
// offer a service to several tenants, and those that use two services whose
// ports cannot talk to each other.
type SharedPort struct {
	Place
	EndPort ib.PortGUID `json:"end_port"`
	// PKeys are the keys of the port, one for each partition.
	PKeys []ib.PKey `json:"pkeys"`
	// Partitions are the names of those of them that the policy knows.
	Partitions []string `json:"partitions"`
	// Manager tells that it is the subnet manager's own port.
	Manager bool `json:"manager"`
}

// maxComparisons bounds the pairs of classes that are compared to find shared
// ports: hostile tables can make as many classes as ports.
const maxComparisons = 1 << 22

// listSharedPorts enters the shared ports into the proof.
func (p *prover) listSharedPorts() {
	if !p.shared.holdFor(p.byTables) {
		p.shared = p.findShared()
	}
	var found []int32
	for _, h := range p.shared.at {
		found = append(found, p.byTables.known[h].ports...)
	}
	slices.Sort(found)
	for _, i := range found {
		if !counted(&p.proof.Counts.SharedPorts, MaxListed) {
			continue
		}
		port, keys := p.ports[i], p.tables[i].keys
		names := []string{}
		for _, n := range p.policy.partsOf(keys) {
			names = append(names, p.policy.parts[n].name)
		}
		p.proof.SharedPorts = append(p.proof.SharedPorts, SharedPort{
			placeOf(port), port.GUID, slices.Clone(p.sets.sets[keys]), names, int(i) == p.policy.self,
		})
	}
	if p.shared.gaveUp {
		p.proof.Caveats = append(p.proof.Caveats, "the tables differ too much to find all shared ports")
	}
}

// sharedClasses are the classes of shared ports, valid while the classes of
// a relation do not change.
type sharedClasses struct {
	// several tells of each class whether it has more than one port.
	several map[holding]bool
	at      []holding
	gaveUp  bool
}

// holdFor reports whether the classes of r are unchanged.
func (m *sharedClasses) holdFor(r *relation) bool {
	if len(m.several) != len(r.known) {
		return false
	}
	for h, c := range r.known {
		if several, known := m.several[h]; !known || several != (len(c.ports) > 1) {
			return false
		}
	}
	return true
}

func (p *Prover) findShared() sharedClasses {
	out := sharedClasses{several: make(map[holding]bool, len(p.byTables.known))}
	classes, holders := p.byTables.sorted()
	m := sharedSearch{sets: p.sets.sets, holders: holders, seen: make([]int, len(classes)), left: maxComparisons}
	for i, c := range classes {
		out.several[c.holding] = len(c.ports) > 1
		if m.isShared(c, i+1) {
			out.at = append(out.at, c.holding)
		}
	}
	out.gaveUp = m.left < 0
	return out
}

// sharedSearch is the search for them.
type sharedSearch struct {
	sets    []keySet
	holders map[ib.PKeyBase][]holder
	// seen is, by class, the number of the last search that found it.
	seen []int
	left int
	near []*class
}

// isShared reports whether the ports of a class can talk to two others that cannot
// talk to each other. number is the number of the search, from 1.
func (m *sharedSearch) isShared(c *class, number int) bool {
	m.near = m.near[:0]
	for _, k := range m.sets[c.keys] {
		for _, h := range m.holders[k.Base()] {
			// Others of the same class can talk to all that this one can.
			if h.class != c && k.Matches(h.key) && m.seen[h.class.place] != number {
				m.seen[h.class.place] = number
				m.near = append(m.near, h.class)
			}
		}
	}
	if m.allFull(c) {
		return false
	}
	for i, a := range m.near {
		keys := m.sets[a.keys]
		if len(a.ports) > 1 && !slices.ContainsFunc(keys, ib.PKey.IsFull) {
			return true
		}
		for _, b := range m.near[i+1:] {
			if m.left--; m.left < 0 {
				return false
			}
			if !matches(keys, m.sets[b.keys]) {
				return true
			}
		}
	}
	return false
}

// allFull reports whether all that a class can talk to are full members of one
// partition, which saves comparing them.
func (m *sharedSearch) allFull(c *class) bool {
	return slices.ContainsFunc(m.sets[c.keys], func(k ib.PKey) bool {
		full := 0
		for _, h := range m.holders[k.Base()] {
			if h.class != c && h.key.IsFull() {
				full++
			}
		}
		return full == len(m.near)
	})
}

// matches reports whether two ports with these keys can talk.
func matches(a, b keySet) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].Base() < b[0].Base():
			a = a[1:]
		case a[0].Base() > b[0].Base():
			b = b[1:]
		case a[0].IsFull() || b[0].IsFull():
			return true
		default:
			a, b = a[1:], b[1:]
		}
	}
	return false
}
