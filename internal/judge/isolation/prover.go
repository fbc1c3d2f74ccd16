package isolation

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Prover keeps what a proof rests on, so that after a change only the ports
// that changed are looked at again.
//
// It holds for the devices, cables and end ports that the fabric had when it
// was made; when a sweep finds others, make a new one.
type Prover struct {
	ports  []*observed.Port // end ports by GUID
	guids  []ib.PortGUID    // theirs
	at     map[*observed.Port]int
	sets   *keySets
	policy *policy

	// By end port: what stands before it, the keys in its table, the keys that
	// it can use when it forges its table, and what else is to be said.
	guards []guard
	tables []holding
	reach  []holding
	notes  []note
	noted  []bool

	// How this proof treats raw packets, how they pass by end port, and how many end
	// ports can send and receive them.
	rawPackets    Raw
	raw           []rawGap
	rawIn, rawOut int

	byTables, byGuards *relation
	// shared knows the shared ports of byTables, listed how sets are listed there;
	// wereShared is how many the last proof counted.
	shared     *sharedSearch
	listed     map[int32]shown
	wereShared int
	// open are the ports whose link leads to no device that was found.
	open []*observed.Port

	scratch []ib.PKey
}

// note is what is to be said of one end port.
type note struct {
	lacks   []lacking
	foreign []Entry
	missing []MissingKey
}

// lacking is why a proof cannot tell.
type lacking struct {
	at   *observed.Port
	what string
}

// NewProver looks at the whole of a fabric. Raw packets are left out of its
// proofs unless raw says otherwise; of several the last counts.
func NewProver(f *observed.Fabric, allowed []observed.Partition, raw ...Raw) *Prover {
	p := &Prover{ports: f.EndPorts(), sets: newKeySets()}
	for _, r := range raw {
		p.rawPackets = r
	}
	p.policy = newPolicy(allowed, p.ports, p.sets)
	p.policy.self = slices.Index(p.ports, f.Manager())
	n := len(p.ports)
	p.at = make(map[*observed.Port]int, n)
	p.guids = make([]ib.PortGUID, n)
	p.guards, p.tables, p.reach = make([]guard, n), make([]holding, n), make([]holding, n)
	p.notes, p.noted, p.raw = make([]note, n), make([]bool, n), make([]rawGap, n)
	p.byTables, p.byGuards = newRelation(p.policy), newRelation(p.policy)
	p.shared, p.listed = newSharedSearch(p.sets), make(map[int32]shown)
	p.byTables.shared = p.shared
	for i, port := range p.ports {
		p.at[port], p.guids[i] = i, port.GUID
		p.judge(i)
	}
	for _, n := range f.Nodes {
		for i := 1; i < len(n.Ports); i++ {
			s := &n.Ports[i]
			if named := s.Peer != nil && (s.Peer.Reached || s.Peer.Node.Switch != nil); s.Reached && !named {
				p.open = append(p.open, s)
			}
		}
	}
	return p
}

// Changed looks again at ports of which something was read: end ports, or
// switch ports. Where a SwitchInfo was read, all ports of the switch are meant.
func (p *Prover) Changed(ports ...*observed.Port) {
	for _, port := range ports {
		if i, known := p.at[port]; known {
			p.again(i)
		}
		if i, known := p.at[port.Peer]; known && !port.IsEnd() {
			p.again(i)
		}
	}
}

// Allow changes what the policy gives to the end ports with this GUID: one key
// for each partition, full or limited. Partitions that the policy did not have
// when the Prover was made give nothing.
func (p *Prover) Allow(port ib.PortGUID, keys []ib.PKey) {
	var known []ib.PKey
	for _, k := range keys {
		if slices.ContainsFunc(p.policy.parts, func(q part) bool { return q.base == k.Base() }) {
			known = append(known, k)
		}
	}
	grant := p.sets.id(newKeySet(known))
	i, _ := slices.BinarySearchFunc(p.ports, port, func(q *observed.Port, g ib.PortGUID) int {
		return compareGUIDs(q.GUID, g)
	})
	for ; i < len(p.ports) && p.ports[i].GUID == port; i++ {
		p.policy.regrant(i, grant)
		p.again(i)
	}
}

func (p *Prover) again(i int) {
	p.byTables.remove(int32(i), p.tables[i])
	p.byGuards.remove(int32(i), p.reach[i])
	p.judge(i)
}

// judge notes what was read of an end port and of its guard.
func (p *Prover) judge(i int) {
	port, grant := p.ports[i], p.policy.grant[i]
	p.notes[i] = note{}
	n := &p.notes[i]
	g := guardOf(port)
	p.guards[i] = g
	own, complete := p.tableOf(port), isKnown(port)
	p.compare(n, port, port.GUID, own, grant, grant, complete)
	if isShut(port) {
		p.shutOff(i)
		return
	}
	p.tables[i] = holding{keys: own, may: grant, grant: grant}
	if !complete {
		n.lacks = append(n.lacks, lacking{port, "P_KeyTable" + unread})
	}
	if !port.InfoRead {
		n.lacks = append(n.lacks, lacking{port, "PortInfo" + unread})
	}
	if p.sharesGUID(i) {
		n.lacks = append(n.lacks, lacking{port, shared})
	}
	for _, what := range g.unread {
		n.lacks = append(n.lacks, lacking{g.at, what + unread})
	}
	// An end port without a guard is listed as such; here it counts with what its table
	// holds, since others can reach it.
	usable := p.sets.lift(own)
	p.reach[i] = holding{keys: usable, may: usable, grant: grant}
	if g.at != port {
		table, may := p.sets.lift(p.tableOf(g.at)), p.sets.lift(grant)
		p.compare(n, g.at, port.GUID, table, grant, may, g.enforced)
		if g.enforced {
			p.reach[i] = holding{keys: table, may: may, grant: grant}
		}
	}
	p.noteRaw(i)
	p.noted[i] = g.gap != "" || n.lacks != nil || n.foreign != nil || n.missing != nil
	p.byTables.add(int32(i), p.tables[i])
	p.byGuards.add(int32(i), p.reach[i])
}

// shutOff notes that an end port reaches nobody, and that nobody reaches it: its
// switch port lets nothing pass, whatever the end port holds.
func (p *Prover) shutOff(i int) {
	none := holding{keys: p.sets.id(nil), may: p.policy.grant[i], grant: p.policy.grant[i]}
	n := &p.notes[i]
	p.compare(n, p.guards[i].at, p.ports[i].GUID, none.keys, none.grant, none.grant, true)
	p.tables[i], p.reach[i], p.noted[i] = none, none, n.foreign != nil || n.missing != nil
	p.byTables.add(int32(i), none)
	p.byGuards.add(int32(i), none)
}

// unread is said of an attribute, shared of a port: which of those that claim
// its GUID the policy means cannot be told.
const (
	unread = " was not read"
	shared = "its GUID is claimed by another port too"
)

// sharesGUID reports whether another end port claims the GUID of end port i.
func (p *Prover) sharesGUID(i int) bool {
	g := p.ports[i].GUID
	return i > 0 && p.ports[i-1].GUID == g || i+1 < len(p.ports) && p.ports[i+1].GUID == g
}

// tableOf is the set of the keys that were read of a table.
func (p *Prover) tableOf(port *observed.Port) int32 {
	p.scratch = readKeys(p.scratch[:0], port)
	return p.sets.id(newKeySet(p.scratch))
}

// compare notes what the table of a port holds beyond may, and what it lacks
// of want, which may covers, when it is complete.
func (p *Prover) compare(n *note, at *observed.Port, end ib.PortGUID, table, want, may int32, complete bool) {
	if table == may {
		return
	}
	held, limit := p.sets.sets[table], p.sets.sets[may]
	if slices.ContainsFunc(held, func(k ib.PKey) bool { return !limit.covers(k) }) {
		entries(at, func(index int, k ib.PKey) {
			if !limit.covers(k) {
				n.foreign = append(n.foreign, Entry{placeOf(at), end, index, k})
			}
		})
	}
	for _, k := range p.sets.sets[want] {
		if complete && !held.covers(k) {
			n.missing = append(n.missing, MissingKey{placeOf(at), end, k})
		}
	}
}
