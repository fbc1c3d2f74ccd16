package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// The kinds of finding.
const (
	// Bridge: the ports of one node are in the partitions of two tenants.
	Bridge = "bridge"
	// SharedFull: a partition serves several tenants, and a tenant is a full
	// member of it, so that tenants reach each other over it.
	SharedFull = "shared-full"
	// ReusedKey: a key is taken from all who have it and given to others in
	// one go, or is given away while a port that cannot be written still
	// holds it.
	ReusedKey = "reused-key"
	// Index0: a port that carries data gets another key at index 0.
	Index0 = "index-0"
	// GuardOff: a switch port ceases to check keys.
	GuardOff = "guard-off"
	// DefaultKey: ports lose the key of the default partition, or get it.
	DefaultKey = "default-key"
)

// Finding is something that looks like a mistake, or calls for care.
type Finding struct {
	Kind string `json:"kind"`
	// Where is the node, port or partition.
	Where string        `json:"where"`
	PKeys []ib.PKeyBase `json:"pkeys"`
	// Already reports whether it was so before.
	Already bool `json:"already"`
	// Text says it in words.
	Text string `json:"text"`
}

func (x *index) findings() []Finding {
	s := x.sharing()
	return slices.Concat(s.bridges(), s.sharedFull(), x.reused(), x.defaultKey(), x.index0(), x.guardsOff())
}

// sharing tells partitions of tenants from partitions that several share.
type sharing struct {
	*index
	names  map[ib.PKeyBase]string
	after  map[ib.PKeyBase]map[int]bool // members, by index, and whether full
	bases  []ib.PKeyBase                // sorted, without the default partition
	shared map[ib.PKeyBase]bool
}

func (x *index) sharing() *sharing {
	s := &sharing{index: x, names: map[ib.PKeyBase]string{}, after: map[ib.PKeyBase]map[int]bool{}, shared: map[ib.PKeyBase]bool{}}
	for _, p := range x.in.Partitions {
		s.names[p.Base] = p.Name
	}
	for i := range x.members {
		if x.inAll(&x.members[i]) {
			continue
		}
		for _, r := range x.members[i].after {
			if r.base == ib.PKeyBaseDefault {
				continue
			}
			if s.after[r.base] == nil {
				s.after[r.base] = map[int]bool{}
				s.bases = append(s.bases, r.base)
			}
			s.after[r.base][i] = r.full
		}
	}
	slices.Sort(s.bases)
	for _, b := range s.bases {
		s.shared[b] = s.isShared(b)
	}
	return s
}

// inAll reports whether a port is the manager's, which is in all partitions where
// it is not in the default one, and so says nothing of whose they are.
func (x *index) inAll(m *member) bool {
	return m.port == x.in.Fabric.Manager() && !slices.ContainsFunc(m.after, func(r role) bool { return r.base == ib.PKeyBaseDefault })
}

// isShared reports whether a partition serves others: it has limited members,
// or most of its members come from others that hardly have one in common.
func (s *sharing) isShared(base ib.PKeyBase) bool {
	own := s.after[base]
	for _, full := range own {
		if !full {
			return true
		}
	}
	inside := map[ib.PKeyBase]int{} // members in common
	guests := 0
	for i := range own {
		guest := false
		for _, r := range s.members[i].after {
			if r.base != base && r.base != ib.PKeyBaseDefault {
				inside[r.base]++
				guest = true
			}
		}
		if guest {
			guests++
		}
	}
	var homes []ib.PKeyBase
	for _, b := range s.bases {
		if n := inside[b]; n > 0 && n < len(own) {
			homes = append(homes, b)
		}
	}
	return 2*guests > len(own) && s.someDisjoint(homes)
}

// someDisjoint reports whether two of the partitions have next to no member in
// common: less than half of the smaller, since a few may be bridges.
func (s *sharing) someDisjoint(bases []ib.PKeyBase) bool {
	for i, a := range bases {
		for _, b := range bases[i+1:] {
			common := 0
			for m := range s.after[a] {
				if _, both := s.after[b][m]; both {
					common++
				}
			}
			if 2*common < min(len(s.after[a]), len(s.after[b])) {
				return true
			}
		}
	}
	return false
}

// tenants are the partitions among roles that belong to one tenant each.
func (s *sharing) tenants(roles []role) (out []ib.PKeyBase) {
	for _, r := range roles {
		if r.base != ib.PKeyBaseDefault && !s.shared[r.base] && s.after[r.base] != nil {
			out = append(out, r.base)
		}
	}
	return out
}

// apart leaves out partitions that lie within another: a tenant may have several.
func (s *sharing) apart(bases []ib.PKeyBase) (out []ib.PKeyBase) {
	within := func(a, b ib.PKeyBase) bool {
		for m := range s.after[a] {
			if _, both := s.after[b][m]; !both {
				return false
			}
		}
		return true
	}
	for i, a := range bases {
		inner := false
		for j, b := range bases {
			if i != j && within(a, b) && (len(s.after[a]) < len(s.after[b]) || j < i) {
				inner = true
			}
		}
		if !inner {
			out = append(out, a)
		}
	}
	return out
}

func (s *sharing) name(b ib.PKeyBase) string {
	if n := s.names[b]; n != "" {
		return fmt.Sprintf("%s (%v)", n, b)
	}
	return b.String()
}

func (s *sharing) list(bases []ib.PKeyBase) string {
	out := make([]string, len(bases))
	for i, b := range bases {
		out[i] = s.name(b)
	}
	return strings.Join(out, ", ")
}

// bridges finds nodes whose ports are in partitions of two tenants.
func (s *sharing) bridges() (out []Finding) {
	type node struct{ before, after []ib.PKeyBase }
	byNode := map[*observed.Node]*node{}
	var order []*observed.Node
	for i := range s.members {
		m := &s.members[i]
		if s.inAll(m) {
			continue
		}
		n := byNode[m.port.Node]
		if n == nil {
			n = new(node)
			byNode[m.port.Node] = n
			order = append(order, m.port.Node)
		}
		n.before = append(n.before, s.tenants(m.before)...)
		n.after = append(n.after, s.tenants(m.after)...)
	}
	for _, at := range order {
		n := byNode[at]
		slices.Sort(n.before)
		slices.Sort(n.after)
		n.before, n.after = slices.Compact(n.before), s.apart(slices.Compact(n.after))
		if len(n.after) < 2 {
			continue
		}
		already := !slices.ContainsFunc(n.after, func(b ib.PKeyBase) bool { return !slices.Contains(n.before, b) })
		out = append(out, Finding{Bridge, at.Name(), n.after, already,
			fmt.Sprintf("%s joins tenants: it is in %s", at.Name(), s.list(n.after))})
	}
	return out
}

// sharedFull finds shared partitions over which two tenants reach each other.
func (s *sharing) sharedFull() (out []Finding) {
	for _, b := range s.bases {
		if !s.shared[b] {
			continue
		}
		full, any := map[ib.PKeyBase]*observed.Port{}, map[ib.PKeyBase]bool{}
		for i := range s.members {
			isFull, in := s.after[b][i]
			if !in {
				continue
			}
			for _, home := range s.tenants(s.members[i].after) {
				any[home] = true
				if isFull && full[home] == nil {
					full[home] = s.members[i].port
				}
			}
		}
		guests := make([]ib.PKeyBase, 0, len(any))
		for home := range any {
			guests = append(guests, home)
		}
		slices.Sort(guests)
		guests = s.apart(guests)
		if len(full) == 0 || len(guests) < 2 {
			continue
		}
		var homes []ib.PKeyBase
		for _, home := range s.bases {
			if full[home] != nil {
				homes = append(homes, home)
			}
		}
		out = append(out, Finding{SharedFull, s.name(b), append([]ib.PKeyBase{b}, homes...), false, fmt.Sprintf(
			"%s serves %d tenants, and full members of it are %s (for example %s): tenants reach each other over it; make them limited",
			s.name(b), len(guests), s.list(homes), full[homes[0]])})
	}
	return out
}

// reused finds keys that change hands.
func (x *index) reused() (out []Finding) {
	before, after, both := map[ib.PKeyBase]int{}, map[ib.PKeyBase]int{}, map[ib.PKeyBase]bool{}
	for i := range x.members {
		m := &x.members[i]
		for _, r := range m.before {
			before[r.base]++
			if slices.ContainsFunc(m.after, func(o role) bool { return o.base == r.base }) {
				both[r.base] = true
			}
		}
		for _, r := range m.after {
			after[r.base]++
		}
	}
	stale := x.stale()
	var bases []ib.PKeyBase
	for b := range after {
		bases = append(bases, b)
	}
	slices.Sort(bases)
	for _, b := range bases {
		if both[b] {
			continue
		}
		if n := before[b]; n > 0 {
			out = append(out, Finding{ReusedKey, b.String(), []ib.PKeyBase{b}, false, fmt.Sprintf(
				"%v is taken from all %d ports that have it and given to %d others at once; packets that the former still send with it reach the latter: take it away first and give it later", b, n, after[b])})
		}
		if p := stale[b]; p != nil {
			out = append(out, Finding{ReusedKey, b.String(), []ib.PKeyBase{b}, false, fmt.Sprintf(
				"%v is given to %d ports, and is still in the table of %s, which is not written", b, after[b], p)})
		}
	}
	return out
}

// stale are the keys in tables that the plan leaves alone: of switch ports
// that nothing was found behind.
func (x *index) stale() map[ib.PKeyBase]*observed.Port {
	out := map[ib.PKeyBase]*observed.Port{}
	for _, n := range x.in.Fabric.FromManager() {
		for i := range n.Ports {
			p := &n.Ports[i]
			if p.IsEnd() || p.Peer != nil || x.in.Desired.Port(p).PKeys != nil {
				continue
			}
			for _, r := range roles(p.PKeys) {
				if out[r.base] == nil {
					out[r.base] = p
				}
			}
		}
	}
	return out
}

// defaultKey tells how many ports under way lose the key of the default
// partition, or get it: whose index 0 changes with it is not told one by one.
func (x *index) defaultKey() (out []Finding) {
	lost, given := 0, 0
	var loser, taker *observed.Port
	for i := range x.members {
		m := &x.members[i]
		isDefault := func(r role) bool { return r.base == ib.PKeyBaseDefault }
		before, after := slices.ContainsFunc(m.before, isDefault), slices.ContainsFunc(m.after, isDefault)
		switch {
		case m.port.Info.PortState != smp.PortActive || before == after:
		case before:
			if lost++; loser == nil {
				loser = m.port
			}
		default:
			if given++; taker == nil {
				taker = m.port
			}
		}
	}
	bases := []ib.PKeyBase{ib.PKeyBaseDefault}
	if lost > 0 {
		out = append(out, Finding{DefaultKey, ib.PKeyBaseDefault.String(), bases, false, fmt.Sprintf(
			"%d ports lose the key of the default partition (for example %s): queue pairs that use it can no longer send or receive, and index 0 gets a key of the tenant",
			lost, loser)})
	}
	if given > 0 {
		out = append(out, Finding{DefaultKey, ib.PKeyBaseDefault.String(), bases, false, fmt.Sprintf(
			"%d ports get the key of the default partition, at index 0 unless the policy says otherwise (for example %s): jobs that use index 0 move to it, and hosts that forge full keys of it reach each other",
			given, taker)})
	}
	return out
}

// index0 finds ports under way whose index 0 changes, but those of defaultKey.
func (x *index) index0() (out []Finding) {
	for i := range x.members {
		p := x.members[i].port
		want := x.in.Desired.Port(p).PKeys
		now, then := at(p.PKeys, 0), at(want, 0)
		if want == nil || !now.IsValid() || now.Base() == then.Base() || p.Info.PortState != smp.PortActive {
			continue
		}
		if now.Base() == ib.PKeyBaseDefault && !holdsBase(want, now.Base()) || then.Base() == ib.PKeyBaseDefault && !holdsBase(p.PKeys, then.Base()) {
			continue
		}
		out = append(out, Finding{Index0, p.String(), []ib.PKeyBase{now.Base(), then.Base()}, false, fmt.Sprintf(
			"%s has %v at index 0 and will have %v: jobs that use index 0 change partition", p, now, then)})
	}
	return out
}

func holdsBase(table []ib.PKey, b ib.PKeyBase) bool {
	return slices.ContainsFunc(table, func(k ib.PKey) bool { return k.IsValid() && k.Base() == b })
}

// guardsOff finds switch ports that cease to check.
func (x *index) guardsOff() (out []Finding) {
	for _, n := range x.in.Fabric.FromManager() {
		for i := range n.Ports {
			p := &n.Ports[i]
			want := x.in.Desired.Port(p)
			if !p.FacesEnd() || !p.Enforces() || want.Elements&observed.ElementEnforcement == 0 ||
				want.Info.PartitionEnforcementInbound && want.Info.PartitionEnforcementOutbound {
				continue
			}
			out = append(out, Finding{GuardOff, p.String(), []ib.PKeyBase{}, false, fmt.Sprintf(
				"%s will no longer check keys: only the host's own table then holds %s to its partitions", p, p.Peer)})
		}
	}
	return out
}
