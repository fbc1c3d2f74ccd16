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
	// Manager reports whether it is the subnet manager's own port.
	Manager bool `json:"manager"`
}

// listSharedPorts enters the shared ports into the proof.
func (p *prover) listSharedPorts() {
	p.shared.look()
	p.proof.SharedPorts = slices.Grow(p.proof.SharedPorts, min(p.wereShared, MaxListed))
	for i, c := range p.byTables.of {
		if c == nil || c.reason.a == nil || !counted(&p.proof.Counts.SharedPorts, MaxListed) {
			continue
		}
		port, x := p.ports[i], p.shown(c.keys)
		p.proof.SharedPorts = append(p.proof.SharedPorts, SharedPort{
			placeOf(port), port.GUID, x.keys, x.names, i == p.policy.self,
		})
	}
	p.wereShared = p.proof.Counts.SharedPorts
	if p.shared.gaveUp {
		p.proof.Caveats = append(p.proof.Caveats, "the tables differ too much to find all shared ports")
	}
}

// shown is how a set of keys is listed: the keys, and the names of their partitions.
type shown struct {
	keys  []ib.PKey
	names []string
}

func (p *Prover) shown(set int32) shown {
	x, known := p.listed[set]
	if !known {
		x = shown{slices.Clone(p.sets.sets[set]), []string{}}
		for _, n := range p.policy.partsOf(set) {
			x.names = append(x.names, p.policy.parts[n].name)
		}
		p.listed[set] = x
	}
	return x
}

// maxComparisons bounds the pairs of classes that are compared to find shared
// ports: hostile tables can make as many classes as ports.
const maxComparisons = 1 << 22

// maxMade is the number of new classes from which on all are searched again.
const maxMade = 64

// sharedSearch knows which classes of a relation are shared ports, and why. After a
// change it searches those again whose reason has gone. Where it gives up it knows
// nothing, and begins again.
type sharedSearch struct {
	sets    *keySets
	classes []*class // in no order that matters
	holders map[ib.PKeyBase]*holders
	// made are the classes that are new, or have several ports where they had one,
	// since the last look; changed says that there is anything new, or gone.
	made    []*class
	changed bool
	gaveUp  bool

	most   int // comparisons of one look; see maxComparisons
	left   int // of them
	number int // of the class in turn
	near   []*class
}

// holders are the classes with a key of one partition; full counts the full members.
type holders struct {
	list []holder
	full int
}

// reason is why a class is one of shared ports, or why not.
type reason struct {
	known bool
	// a and b are two classes that the class can talk to and that cannot talk to each
	// other; without b the ports of a cannot talk among themselves. Without a
	// there is no such pair.
	a, b *class
	// hub is a partition of which all that the class can talk to are full members; 0
	// for none.
	hub ib.PKeyBase
}

func newSharedSearch(sets *keySets) *sharedSearch {
	return &sharedSearch{sets: sets, most: maxComparisons, holders: make(map[ib.PKeyBase]*holders)}
}

// enter takes in a class that is new.
func (m *sharedSearch) enter(c *class) {
	c.among = len(m.classes)
	m.classes = append(m.classes, c)
	for _, k := range m.sets.sets[c.keys] {
		h := m.holders[k.Base()]
		if h == nil {
			h = new(holders)
			m.holders[k.Base()] = h
		}
		h.list = append(h.list, holder{class: c, key: k})
		if k.IsFull() {
			h.full++
		}
	}
	m.grown(c)
}

// leave drops a class that has no ports any more.
func (m *sharedSearch) leave(c *class) {
	c.gone, m.changed = true, true
	last := m.classes[len(m.classes)-1]
	m.classes[c.among], last.among = last, c.among
	m.classes = m.classes[:len(m.classes)-1]
	for _, k := range m.sets.sets[c.keys] {
		h := m.holders[k.Base()]
		i := slices.IndexFunc(h.list, func(x holder) bool { return x.class == c })
		h.list = slices.Delete(h.list, i, i+1)
		if k.IsFull() {
			h.full--
		}
	}
}

// grown notes that others can talk to more than before: to a class that is new, or has
// several ports.
func (m *sharedSearch) grown(c *class) {
	m.made, m.changed = append(m.made, c), true
}

// shrunk notes that a class has a single port left.
func (m *sharedSearch) shrunk() { m.changed = true }

// look finds the shared ports as things stand.
func (m *sharedSearch) look() {
	if !m.changed {
		return
	}
	again := m.gaveUp || len(m.made) > maxMade
	if !again {
		m.search(false)
	}
	if again || m.left < 0 {
		m.search(true)
	}
	m.gaveUp = m.left < 0
	m.made, m.changed = m.made[:0], false
}

// search looks for a reason where there is none, or for all classes again.
func (m *sharedSearch) search(again bool) {
	m.left = m.most
	for _, c := range m.classes {
		if again || !m.stands(c) {
			c.reason = m.reasonFor(c)
		}
	}
}

// stands reports whether the reason that is known of a class is one still.
func (m *sharedSearch) stands(c *class) bool {
	r := &c.reason
	switch {
	case !r.known:
		return false
	case r.b != nil:
		return !r.a.gone && !r.b.gone
	case r.a != nil:
		return !r.a.gone && len(r.a.ports) > 1
	}
	// What went away makes no pair; what is new may.
	keys := m.sets.sets[c.keys]
	return !slices.ContainsFunc(m.made, func(x *class) bool {
		if x == c || x.gone || !matches(keys, m.sets.sets[x.keys]) {
			return false
		}
		return r.hub == 0 || !m.sets.sets[x.keys].covers(r.hub.Full())
	})
}

// reasonFor looks for two that ports of a class can talk to and that cannot talk to
// each other.
func (m *sharedSearch) reasonFor(c *class) reason {
	m.number++
	m.near = m.near[:0]
	keys := m.sets.sets[c.keys]
	// First of the partition with the most full members: most of the others that
	// the class can talk to are among these, and can talk to each other.
	first := 0
	for i, k := range keys {
		if m.holders[k.Base()].full > m.holders[keys[first].Base()].full {
			first = i
		}
	}
	for i := range keys {
		k := keys[(first+i)%len(keys)]
		for _, h := range m.holders[k.Base()].list {
			x := h.class
			// Others of the same class can talk to all that this one can.
			if x == c || x.seen == m.number || !k.Matches(h.key) {
				continue
			}
			x.seen = m.number
			switch {
			case len(x.ports) > 1 && !slices.ContainsFunc(m.sets.sets[x.keys], ib.PKey.IsFull):
				return reason{known: true, a: x}
			case i > 0 && len(m.near) > 0 && !matches(m.sets.sets[m.near[0].keys], m.sets.sets[x.keys]):
				return reason{known: true, a: m.near[0], b: x}
			}
			m.near = append(m.near, x)
		}
	}
	if hub, ok := m.hubOf(c); ok {
		return reason{known: true, hub: hub}
	}
	for i, a := range m.near {
		for _, b := range m.near[i+1:] {
			if m.left--; m.left < 0 {
				return reason{}
			}
			if !matches(m.sets.sets[a.keys], m.sets.sets[b.keys]) {
				return reason{known: true, a: a, b: b}
			}
		}
	}
	return reason{known: true}
}

// hubOf is a partition of which all of near are full members, which saves comparing
// them.
func (m *sharedSearch) hubOf(c *class) (ib.PKeyBase, bool) {
	for _, k := range m.sets.sets[c.keys] {
		full := m.holders[k.Base()].full
		if k.IsFull() {
			full-- // the class itself
		}
		if full == len(m.near) {
			return k.Base(), true
		}
	}
	return 0, false
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
