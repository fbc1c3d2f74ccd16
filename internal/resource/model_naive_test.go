package resource_test

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// want is what somebody wants a port to be in a partition.
type want struct {
	as     policy.Membership
	index0 bool
}

// mem is a port in a partition: what both owners agreed to, and what one of them
// asks for.
type mem struct {
	k      ib.PKeyBase
	port   ib.PortGUID
	agreed want
	ask    want
	byPart bool // the owner of the partition asks
}

type part struct {
	k           ib.PKeyBase
	name, owner string
	sl          ib.SL
	ipoib       bool
}

type tomb struct {
	owner string
	rev   uint64
	at    time.Time
}

type token struct {
	tenant, maker, by string
	keys              resource.KeyRange
	expires           time.Time
}

type pool struct {
	first, last ib.PortGUID
	owner       string
	rev         uint64
}

type port struct {
	owner string
	place int
	rev   uint64
}

type waits struct {
	by, maker, tenant string
	from              string // who offers ports; then the change is MovePorts to tenant
	keys              resource.KeyRange
	expires           time.Time
	change            resource.Change
	seen, rev         uint64
}

// filePart is a partition of the policy file of the test.
type filePart struct {
	name   string
	stated ib.PKeyBase
	all    bool
	guids  []ib.PortGUID
}

type fileSpec struct {
	dflt  policy.Membership
	parts []filePart
}

type slot struct {
	k ib.PKeyBase
	g ib.PortGUID
}

// ack is an alarm that a tenant knows of.
type ack struct{ tenant, alarm string }

// model is the whole of it. Everything is looked for in lists.
type model struct {
	rev      uint64
	tenants  map[string]resource.Tenant
	tokens   map[string]token
	parts    []part
	mems     []mem
	ports    map[ib.PortGUID]port
	pools    []pool
	drains   map[ib.NodeGUID]bool
	acks     map[ack]time.Time // until when
	tombs    map[slot]tomb
	waiting  map[string]waits
	accepted map[string][]time.Time
	file     fileSpec
	numbers  map[string]ib.PKeyBase // of the file's partitions
	// partRev and memRev are when a partition, and a member, last changed; touched
	// when anything of a partition did.
	partRev map[ib.PKeyBase]uint64
	memRev  map[slot]uint64
	touched map[ib.PKeyBase]uint64
}

func newModel() *model {
	return &model{
		tenants: map[string]resource.Tenant{"provider": {Name: "provider"}}, tokens: map[string]token{}, ports: map[ib.PortGUID]port{}, drains: map[ib.NodeGUID]bool{},
		acks:  map[ack]time.Time{},
		tombs: map[slot]tomb{}, waiting: map[string]waits{}, accepted: map[string][]time.Time{}, file: fileSpec{dflt: policy.Limited}, numbers: map[string]ib.PKeyBase{},
		partRev: map[ib.PKeyBase]uint64{}, memRev: map[slot]uint64{}, touched: map[ib.PKeyBase]uint64{},
	}
}

func copyMap[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (m *model) copy() *model {
	n := *m
	n.tenants, n.tokens, n.ports, n.tombs, n.waiting = copyMap(m.tenants), copyMap(m.tokens), copyMap(m.ports), copyMap(m.tombs), copyMap(m.waiting)
	n.drains, n.acks = copyMap(m.drains), copyMap(m.acks)
	n.accepted, n.numbers = copyMap(m.accepted), copyMap(m.numbers)
	n.partRev, n.memRev, n.touched = copyMap(m.partRev), copyMap(m.memRev), copyMap(m.touched)
	n.parts, n.mems, n.pools = slices.Clone(m.parts), slices.Clone(m.mems), slices.Clone(m.pools)
	return &n
}

func (m *model) part(k ib.PKeyBase) *part {
	for i := range m.parts {
		if m.parts[i].k == k {
			return &m.parts[i]
		}
	}
	return nil
}

func (m *model) mem(k ib.PKeyBase, g ib.PortGUID) *mem {
	for i := range m.mems {
		if m.mems[i].k == k && m.mems[i].port == g {
			return &m.mems[i]
		}
	}
	return nil
}

// owner is whose a port is.
func (m *model) owner(g ib.PortGUID) string {
	if p, said := m.ports[g]; said {
		return p.owner
	}
	for _, p := range m.pools {
		if p.first <= g && g <= p.last {
			return p.owner
		}
	}
	return "provider"
}

// sees reports whether somebody may know of a partition.
func (m *model) sees(tenant string, keys resource.KeyRange, k ib.PKeyBase) bool {
	p := m.part(k)
	if p == nil || keys.First != 0 && (k < keys.First || k > keys.Last) {
		return false
	}
	for _, x := range m.mems {
		if x.k == k && m.owner(x.port) == tenant {
			return true
		}
	}
	return tenant == "provider" || p.owner == tenant
}

func (m *model) seesMem(tenant string, keys resource.KeyRange, x mem) bool {
	return m.sees(tenant, keys, x.k) && (tenant == "provider" || m.part(x.k).owner == tenant || m.owner(x.port) == tenant)
}

// sight is how much of a port somebody may know.
func (m *model) sight(tenant string, keys resource.KeyRange, g ib.PortGUID) resource.Sight {
	switch {
	case tenant == "provider" && keys.First == 0, m.owner(g) == tenant:
		return resource.SightWhole
	case keys.First != 0:
		return resource.SightNone
	}
	for _, x := range m.mems {
		if x.port == g && x.agreed.as != 0 && m.part(x.k).owner == tenant {
			return resource.SightMember
		}
	}
	return resource.SightNone
}

// keySeen reports whether somebody may know that a port has the key of a partition.
func (m *model) keySeen(tenant string, keys resource.KeyRange, g ib.PortGUID, k ib.PKeyBase) bool {
	if tenant == "provider" && keys.First == 0 {
		return true
	}
	if m.owner(g) == tenant {
		return m.sees(tenant, keys, k)
	}
	x := m.mem(k, g)
	return x != nil && x.agreed.as != 0 && keys.First == 0 && m.part(k).owner == tenant
}

// takesPart reports whether somebody may know how a partition is kept apart.
func (m *model) takesPart(tenant string, keys resource.KeyRange, k ib.PKeyBase) bool {
	if !m.sees(tenant, keys, k) {
		return false
	}
	for _, x := range m.mems {
		if x.k == k && x.agreed.as != 0 && m.owner(x.port) == tenant {
			return true
		}
	}
	return tenant == "provider" || m.part(k).owner == tenant
}

// lastSeen is the last change of a partition that a tenant may know of.
func (m *model) lastSeen(tenant string, keys resource.KeyRange, k ib.PKeyBase) uint64 {
	if !m.sees(tenant, keys, k) {
		return 0
	}
	if tenant == "provider" || m.part(k).owner == tenant {
		return m.touched[k]
	}
	last := m.partRev[k]
	for _, x := range m.mems {
		if x.k == k && m.owner(x.port) == tenant {
			last = max(last, m.memRev[slot{k, x.port}])
		}
	}
	for s, t := range m.tombs {
		if s.k == k && s.g != 0 && m.owner(s.g) == tenant {
			last = max(last, t.rev)
		}
	}
	return last
}

// claims are the numbers of the file's partitions.
func (m *model) claims() map[ib.PKeyBase]string {
	out := map[ib.PKeyBase]string{}
	for _, p := range m.file.parts {
		if p.stated != 0 {
			out[p.stated] = p.name
		} else {
			out[m.numbers[p.name]] = p.name
		}
	}
	return out
}

// waitsFor are the members that wait for a tenant.
func (m *model) waitsFor(tenant string) (out []slot) {
	for _, x := range m.mems {
		if x.ask.as == 0 {
			continue
		}
		whom := m.part(x.k).owner
		if x.byPart {
			whom = m.owner(x.port)
		}
		if whom == tenant {
			out = append(out, slot{x.k, x.port})
		}
	}
	return out
}

// keys are what a port of the fabric has: partitions with what it is in them.
func (m *model) keys(g ib.PortGUID) map[ib.PKeyBase]policy.Membership {
	out := map[ib.PKeyBase]policy.Membership{}
	own := m.owner(g) == "provider"
	switch {
	case m.file.dflt == policy.Full && own:
		out[ib.PKeyBaseDefault] = policy.Full
	case m.file.dflt != policy.None:
		out[ib.PKeyBaseDefault] = policy.Limited
	}
	// A port that is bound to another place than the one that it is cabled to is not
	// taken for itself.
	at := m.ports[g].place
	for _, x := range m.mems {
		if x.port == g && x.agreed.as != 0 && (at == 0 || at == int(g)) {
			out[x.k] = x.agreed.as
		}
	}
	for k, name := range m.claims() {
		for _, p := range m.file.parts {
			if p.name == name && own && (p.all || slices.Contains(p.guids, g)) {
				out[k] = policy.Full
			}
		}
	}
	return out
}

// waitSeen reports whether somebody may know of what waits.
func waitSeen(tenant string, keys resource.KeyRange, w waits) bool {
	return keys.First == 0 && (tenant == "provider" || tenant == w.tenant || w.from != "" && tenant == w.from)
}

// portRev is when it was last said whose a port is.
func (m *model) portRev(g ib.PortGUID) uint64 {
	if p, said := m.ports[g]; said {
		return p.rev
	}
	for _, p := range m.pools {
		if p.first <= g && g <= p.last {
			return p.rev
		}
	}
	return 0
}

// commit enters what try made, under the next revision.
func (m *model) commit(n *model, tenant string, at time.Time) {
	old := m.copy()
	*m = *n
	m.rev = old.rev + 1
	m.accepted[tenant] = append(slices.Clone(m.accepted[tenant]), at)
	for _, p := range m.parts {
		if was := old.part(p.k); was == nil || *was != p {
			m.partRev[p.k], m.touched[p.k] = m.rev, m.rev
		}
	}
	for _, p := range old.parts {
		if m.part(p.k) == nil {
			m.touched[p.k] = m.rev
		}
	}
	for _, x := range m.mems {
		// A port that moved to the owner of a partition in which it was is in it by another consent.
		if was := old.mem(x.k, x.port); was == nil || *was != x || old.owner(x.port) != m.owner(x.port) {
			m.memRev[slot{x.k, x.port}], m.touched[x.k] = m.rev, m.rev
		}
	}
	for _, x := range old.mems {
		if m.mem(x.k, x.port) == nil {
			m.touched[x.k] = m.rev
		}
	}
	for s, t := range m.tombs {
		if was, is := old.tombs[s]; !is || was != t {
			t.rev = m.rev
			m.tombs[s] = t
			m.touched[s.k] = m.rev
		}
	}
	for g, p := range m.ports {
		if was, is := old.ports[g]; !is || was != p {
			p.rev = m.rev
			m.ports[g] = p
		}
	}
	for i, p := range m.pools {
		if !slices.Contains(old.pools, p) {
			m.pools[i].rev = m.rev
		}
	}
}
