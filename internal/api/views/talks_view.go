package views

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Limits of a matrix.
const (
	classesMost = 100 // classes of ports that have a party of their own
	wholeMost   = 128 // parties up to which every cell is listed
)

// view is the fabric as a caller sees it: his parties, and who is in them.
type view struct {
	whole   bool // the provider's
	names   map[ib.PKeyBase]string
	parties []MatrixParty
	group   []int // by end port: its party, -1 for none
	ports   []*observed.Port
	visible map[*observed.Port]bool // of a tenant
}

// name is that of a partition; false for one that the caller does not know.
func (v *view) name(k ib.PKeyBase) (string, bool) {
	if name := v.names[k]; name != "" {
		return name, true
	}
	return k.String(), v.whole
}

func (v *view) seesPort(p *observed.Port) bool { return v.whole || v.visible[p] }

// viewOf sorts the end ports into parties, as a caller sees them.
func viewOf(s *resource.State, c resource.Caller, f *MatrixFacts) *view {
	v := &view{whole: c.IsProvider() && c.Keys.First == 0, names: map[ib.PKeyBase]string{}, ports: f.Snapshot.Fabric.EndPorts(), visible: map[*observed.Port]bool{}}
	see := WhyView(s, c, f.Snapshot, nil, 0)
	maps.Copy(v.names, see.Names)
	if v.whole {
		for _, p := range f.Allowed {
			v.names[p.Base] = p.Name
		}
	}
	v.names[ib.PKeyBaseDefault] = cmp.Or(v.names[ib.PKeyBaseDefault], "default")
	v.group = make([]int, len(v.ports))
	tenants, classes := map[string][]int{}, map[string][]int{}
	var manager, others []int
	master := f.Snapshot.Fabric.Manager()
	for i, p := range v.ports {
		owner, sight := s.Owner(p.GUID), s.SightOf(c, p.GUID)
		switch {
		case sight == resource.SightWhole && owner != "" && owner != resource.Provider:
			tenants[owner] = append(tenants[owner], i)
			v.visible[p] = true
		case sight != resource.SightNone:
			label := v.label(p, see.Sees)
			classes[label] = append(classes[label], i)
			v.visible[p] = true
		case p == master:
			manager = append(manager, i) // with whom every port talks, or none would be on the fabric
		default:
			others = append(others, i)
		}
	}
	if !v.whole && len(tenants) == 0 {
		tenants[c.Tenant] = nil
	}
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		v.add(MatrixParty{Name: name, Kind: kindTenant, Owner: name}, tenants[name], see.Sees)
	}
	v.addClasses(classes, master, see.Sees)
	if !v.whole {
		if len(manager) > 0 {
			v.addHidden(MatrixParty{Name: "the subnet manager", Kind: kindManager}, manager)
		}
		v.addHidden(MatrixParty{Name: "all others", Kind: kindOthers}, others)
	}
	return v
}

// addHidden adds a party of which a tenant is told neither ports nor their number.
func (v *view) addHidden(p MatrixParty, ports []int) {
	v.add(p, ports, func(*observed.Port, ib.PKeyBase) bool { return false })
	last := &v.parties[len(v.parties)-1]
	last.Ports, last.Example = 0, ""
}

// hidden reports whether a party is one of addHidden.
func (p *MatrixParty) hidden() bool { return p.Kind == kindManager || p.Kind == kindOthers }

// seesPort reports which keys of a port a caller knows of; nil for all.
type seesPort = func(*observed.Port, ib.PKeyBase) bool

// held are the keys of a port that the caller knows of: by partition, whether it is full.
func held(p *observed.Port, see seesPort) map[ib.PKeyBase]bool {
	out := map[ib.PKeyBase]bool{}
	for _, k := range p.ReadPKeys() {
		if k.IsValid() && (see == nil || see(p, k.Base())) {
			out[k.Base()] = out[k.Base()] || k.IsFull()
		}
	}
	return out
}

// labelled bounds the partitions in the name of a party.
const labelled = 4

// label says what a port is by its keys. Ports with the same keys have the same label, and
// those of which the keys are not known whole have one that says so.
func (v *view) label(p *observed.Port, see seesPort) string {
	keys := held(p, see)
	var words []string
	rest := ""
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		name, _ := v.name(k)
		switch {
		case keys[k]:
			words = append(words, name)
		case k != ib.PKeyBaseDefault:
			words = append(words, name+" (limited)")
		}
		if len(words) > labelled {
			rest += fmt.Sprintf(" %s", name)
		}
	}
	_, limited := keys[ib.PKeyBaseDefault]
	kind := "ports"
	if p.Node.Switch != nil {
		kind = "switches"
	}
	text := kind + " without keys"
	switch {
	case len(words) > labelled:
		text = fmt.Sprintf("%s in %s and %d more", kind, strings.Join(words[:labelled], ", "), len(words)-labelled)
	case len(words) > 0:
		text = kind + " in " + strings.Join(words, ", ")
	case limited:
		text = kind + " in default (limited) alone"
	}
	if !p.InfoRead || !p.PKeysKnown() {
		text += ", not read whole"
	}
	return text + labelEnd + rest
}

// labelEnd stands between the name of a class and what else tells it from others.
const labelEnd = "\x00"

// addClasses adds the parties of ports that belong to no tenant, by their labels: the
// largest, and one for what remains.
func (v *view) addClasses(classes map[string][]int, manager *observed.Port, see seesPort) {
	labels := slices.Sorted(maps.Keys(classes))
	slices.SortStableFunc(labels, func(a, b string) int { return cmp.Compare(len(classes[b]), len(classes[a])) })
	var remain []int
	if len(labels) > classesMost {
		for _, l := range labels[classesMost:] {
			remain = append(remain, classes[l]...)
		}
		labels = labels[:classesMost]
	}
	slices.Sort(labels)
	taken := map[string]int{}
	for _, l := range labels {
		name, _, _ := strings.Cut(l, labelEnd)
		if list := classes[l]; v.whole && len(list) == 1 && v.ports[list[0]] == manager {
			name = "the subnet manager, " + name
		}
		if taken[name]++; taken[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, taken[name])
		}
		v.add(MatrixParty{Name: name, Kind: kindPorts, Owner: v.provider()}, classes[l], see)
	}
	if len(remain) > 0 {
		slices.Sort(remain)
		v.add(MatrixParty{Name: "all other ports", Kind: kindPorts, Owner: v.provider()}, remain, see)
	}
}

// provider is the owner of ports that belong to no tenant. A tenant is not told whose the
// ports of others are.
func (v *view) provider() string {
	if v.whole {
		return resource.Provider
	}
	return ""
}

// add adds a party with these end ports.
func (v *view) add(p MatrixParty, ports []int, see seesPort) {
	bases := map[ib.PKeyBase]bool{}
	for _, i := range ports {
		v.group[i] = len(v.parties)
		maps.Copy(bases, held(v.ports[i], see))
	}
	p.Ports, p.Partitions = len(ports), append([]string{}, v.named(slices.Sorted(maps.Keys(bases)))...)
	if len(ports) > 0 {
		p.Example = v.ports[ports[0]].GUID.String()
	}
	v.parties = append(v.parties, p)
}

// cells are those of all parties, or of a tenant with each other.
func (v *view) cells(p *isolation.Parties) (out []MatrixCell, sparse bool) {
	sparse = len(v.parties) > wholeMost
	out = []MatrixCell{}
	rows := len(v.parties)
	if !v.whole {
		rows = 1 // how others stand to each other is theirs
	}
	for a := range rows {
		for b := a; b < len(v.parties); b++ {
			if v.parties[b].hidden() {
				out = append(out, v.against(p, a, b))
				continue
			}
			between := p.Between(a, b)
			if sparse && between.Talking == 0 && between.Verdict == isolation.Isolated && a != b {
				continue
			}
			out = append(out, v.cell(a, b, &between))
		}
	}
	return out, sparse
}

func (v *view) cell(a, b int, x *isolation.Between) MatrixCell {
	c := MatrixCell{
		A: a, B: b, Talk: talk(x.Pairs, x.Talking, x.Unread), Pairs: x.Pairs, Talking: x.Talking, Unread: x.Unread, Allowed: &x.Allowed,
		Violations: x.Violations, Verdict: word(x.Verdict), Partitions: v.named(x.Over), Reason: v.reason(x),
	}
	if w := x.Witness; w != nil {
		c.Witness = &MatrixWitness{From: w.From.GUID.String(), To: w.To.GUID.String(), PKey: v.key(w.Key, x.Violations > 0)}
	}
	return c
}

// key is a key that two ports share. A tenant is told of those of partitions that it
// knows, and of one over which it is not kept apart, as in GET /proof.
func (v *view) key(k ib.PKey, violated bool) string {
	if _, knows := v.name(k.Base()); !knows && !violated {
		return ""
	}
	return k.String()
}

// against is how the ports of a tenant stand to the subnet manager, or to all others that it does
// not see: nothing that counts these or names them.
func (v *view) against(p *isolation.Parties, a, b int) MatrixCell {
	x := p.Between(a, b)
	talking, unread, violating := p.Reach(a, b)
	n := v.parties[a].Ports
	c := MatrixCell{
		A: a, B: b, Talk: talk(n, talking, unread), Pairs: n, Talking: talking, Unread: unread, Violations: violating,
		Verdict: word(x.Verdict), Partitions: v.named(x.Over),
	}
	over := v.joined(c.Partitions)
	if over == "" {
		over = "a partition that is not told"
	}
	with := "ports of others"
	if v.parties[b].Kind == kindManager {
		with = "the subnet manager"
	}
	switch {
	case talking > 0:
		c.Reason = fmt.Sprintf("%d of %d ports can talk with %s, over %s", talking, n, with, over)
	case unread > 0:
		c.Reason = fmt.Sprintf("of %d of %d ports it was not read whether they can talk with %s", unread, n, with)
	default:
		c.Reason = "none can talk with " + with
	}
	if x.Verdict == isolation.Violated {
		w := x.Witness
		c.Witness = &MatrixWitness{From: w.From.GUID.String(), PKey: w.Key.String()}
		c.Reason += fmt.Sprintf("; that of %d the policy does not allow", violating)
	} else if x.Verdict > isolation.Isolated && x.Cause != "" {
		c.Reason += "; " + v.cause(&x)
	}
	return c
}
