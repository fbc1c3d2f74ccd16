package isolation

import (
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/subnet"
)

// Prove judges what was read from a subnet against what a policy allows, the
// default partition included. The fabric is not changed.
func Prove(f *subnet.Fabric, allowed []Partition) *Proof {
	p := newProver(f, allowed)
	for i := range p.ports {
		p.judgePort(i)
	}
	p.findStrangers(f)
	p.pairs.settle()

	byTables := newRelation(p.policy, p.tables)
	byGuards := newRelation(p.policy, p.reach)
	p.gather(byTables, Violated, &p.proof.Violations, &p.proof.Counts.Violations,
		func(i int32) *subnet.Port { return p.ports[i] })
	p.gather(byGuards, ByEndPorts, &p.proof.Exposed, &p.proof.Counts.Exposed,
		func(i int32) *subnet.Port { return p.guards[i].at })
	p.conclude()
	return p.proof
}

type prover struct {
	ports  []*subnet.Port // end ports by GUID
	sets   *keySets
	policy *policy
	pairs  *pairTable
	proof  *Proof

	// By end port: what stands before it, the keys in its table, and the keys
	// that it can use when it forges its table.
	guards []guard
	tables []holding
	reach  []holding

	scratch []ib.PKey
	gaps    tally
	unread  tally
	first   [Violated + 1]witness // by verdict, of the end ports
}

func newProver(f *subnet.Fabric, allowed []Partition) *prover {
	p := &prover{ports: f.EndPorts(), sets: newKeySets()}
	p.policy = newPolicy(allowed, p.ports, p.sets)
	p.pairs = newPairTable(p.policy.parts)
	p.guards = make([]guard, len(p.ports))
	p.tables = make([]holding, len(p.ports))
	p.reach = make([]holding, len(p.ports))
	p.proof = &Proof{
		Reasons: []string{}, Caveats: []string{}, Violations: []Violation{}, Exposed: []Violation{},
		Missing: []MissingKey{}, Foreign: []Entry{}, Unenforced: []Finding{}, Unknown: []Finding{},
	}
	return p
}

// judgePort enters what was read of an end port and of its guard.
func (p *prover) judgePort(i int) {
	port, grant := p.ports[i], p.policy.grant[i]
	own, complete := p.tableOf(port), isKnown(port)
	p.tables[i] = holding{keys: own, may: grant, grant: grant}
	p.compare(port, port.GUID, own, grant, grant, complete)

	parts := p.policy.partsOf(grant)
	if !complete {
		p.lack(port, "P_KeyTable", parts)
	}
	if !port.InfoRead {
		p.lack(port, "PortInfo", parts)
	}

	g := guardOf(port)
	p.guards[i] = g
	for _, what := range g.unread {
		p.lack(g.at, what, parts)
	}
	if g.gap != "" {
		p.pairs.rest(parts, ByEndPorts, g.at, "no partition enforcement: "+g.gap)
		p.gaps.add(g.gap, g.at.String())
		if counted(&p.proof.Counts.Unenforced, MaxListed) {
			p.proof.Unenforced = append(p.proof.Unenforced, Finding{placeOf(g.at), g.gap})
		}
	}
	// An end port without a guard is named as such; here it counts with what
	// its table holds, as somebody whom others can reach.
	usable := p.sets.lift(own)
	p.reach[i] = holding{keys: usable, may: usable, grant: grant}
	if g.at != port {
		table, may := p.sets.lift(p.tableOf(g.at)), p.sets.lift(grant)
		p.compare(g.at, port.GUID, table, grant, may, g.enforced)
		if g.enforced {
			p.reach[i] = holding{keys: table, may: may, grant: grant}
		}
	}
}

// tableOf is the set of the keys that were read of a table.
func (p *prover) tableOf(port *subnet.Port) int32 {
	p.scratch = readKeys(p.scratch[:0], port)
	return p.sets.id(newKeySet(p.scratch))
}

// compare lists what the table of a port holds beyond may, and what it lacks
// of want, which may covers, when it is complete.
func (p *prover) compare(at *subnet.Port, end ib.PortGUID, table, want, may int32, complete bool) {
	if table == may {
		return
	}
	held, limit := p.sets.sets[table], p.sets.sets[may]
	if slices.ContainsFunc(held, func(k ib.PKey) bool { return !limit.covers(k) }) {
		entries(at, func(index int, k ib.PKey) {
			if !limit.covers(k) && counted(&p.proof.Counts.Foreign, MaxListed) {
				p.proof.Foreign = append(p.proof.Foreign, Entry{placeOf(at), end, index, k})
			}
		})
	}
	for _, k := range p.sets.sets[want] {
		if complete && !held.covers(k) && counted(&p.proof.Counts.Missing, MaxListed) {
			p.proof.Missing = append(p.proof.Missing, MissingKey{placeOf(at), end, k})
		}
	}
}

// lack enters a read that was needed for what is said of these partitions.
func (p *prover) lack(at *subnet.Port, what string, parts []int) {
	p.pairs.rest(parts, Unknown, at, what+" was not read")
	p.unread.add(what+" was not read", at.String())
	if counted(&p.proof.Counts.Unknown, MaxListed) {
		p.proof.Unknown = append(p.proof.Unknown, Finding{placeOf(at), what + " was not read"})
	}
}

// findStrangers looks for links that lead to a device whose tables were not
// read. Such a device may belong to any partition, unless the link carries no
// data or a switch holds it to the partitions of a table.
func (p *prover) findStrangers(f *subnet.Fabric) {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			s := &n.Ports[i]
			named := s.Peer != nil && (s.Peer.Reached || s.Peer.Node.Switch != nil)
			if i == 0 || !s.Reached || named {
				continue
			}
			switch {
			case !s.InfoRead && !s.IsEnd():
				p.lack(s, "PortInfo", p.allParts())
			case s.InfoRead && !carriesData(s):
			case s.IsEnd() || !guardAt(s).enforced:
				p.lack(s, stranger, p.allParts())
			default:
				if table := p.tableOf(s); table != 0 {
					p.lack(s, stranger, p.policy.partsOf(table))
				}
			}
		}
	}
}

const stranger = "the device behind the link"

func (p *prover) allParts() []int {
	out := make([]int, len(p.policy.parts))
	for i := range out {
		out[i] = i
	}
	return out
}

// gather raises the pairs of partitions between which a relation goes beyond
// the policy, counts the pairs of end ports and lists some of them. table is
// the table at fault of an end port.
func (p *prover) gather(r *relation, v Verdict, list *[]Violation, count *int, table func(int32) *subnet.Port) {
	var culprit *class
	var over ib.PKey
	budget := 0
	r.excess(p.policy, func(from, to *class, key ib.PKey) {
		*count += pairs(from, to)
		if from != culprit || key != over {
			culprit, over, budget = from, key, MaxWitnessesPerKey
		}
		first := true
		eachPair(from, to, func(a, b int32) bool {
			if first {
				p.raise(from, to, witness{v, p.ports[a], p.ports[b], key})
				first = false
			}
			if budget == 0 || len(*list) == MaxWitnesses {
				return false
			}
			budget--
			*list = append(*list, p.violation(a, b, key, table(a)))
			return true
		})
	})
}

func (p *prover) raise(from, to *class, w witness) {
	if p.first[w.verdict].from == nil {
		p.first[w.verdict] = w
	}
	for _, x := range from.parts {
		for _, y := range to.parts {
			p.pairs.raise(x, y, w)
		}
	}
}

// violation describes how two end ports can talk over key, which the table at
// fault lets the first of them use.
func (p *prover) violation(a, b int32, key ib.PKey, fault *subnet.Port) Violation {
	from, to := p.ports[a], p.ports[b]
	v := Violation{From: from.GUID, To: to.GUID, PKey: key}
	v.At = Entry{placeOf(fault), from.GUID, -1, 0}
	entries(fault, func(index int, k ib.PKey) {
		if k == key || (v.At.Index < 0 && k.Base() == key.Base()) {
			v.At.Index, v.At.PKey = index, k
		}
	})
	var notes []string
	switch {
	case p.guards[a].enforced && !p.usable(a).covers(key):
		notes = append(notes, "stopped inbound at "+p.guards[a].at.String())
	case p.guards[b].enforced && !p.usable(b).covers(key):
		notes = append(notes, "stopped outbound at "+p.guards[b].at.String())
	}
	path, err := route(from, to)
	if err != nil {
		notes = append(notes, err.Error())
	}
	v.Path, v.Note = path, strings.Join(notes, "; ")
	return v
}

func (p *prover) usable(i int32) keySet { return p.sets.sets[p.reach[i].keys] }
