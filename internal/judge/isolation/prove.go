package isolation

import (
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Prove judges what was read from a subnet against what a policy allows, the
// default partition included, and raw packets too when raw says so. The fabric is
// not changed.
func Prove(f *observed.Fabric, allowed []observed.Partition, raw ...Raw) *Proof {
	return NewProver(f, allowed, raw...).Proof()
}

// Proof is the proof as things stand, the same as Prove gives.
func (p *Prover) Proof() *Proof {
	q := &prover{
		Prover: p, pairs: newPairTable(p.policy.parts),
		proof: &Proof{
			Reasons: []string{}, Caveats: []string{}, Violations: []Violation{}, Exposed: []Violation{},
			Missing: []MissingKey{}, Foreign: []Entry{}, Unenforced: []Finding{}, Raw: []Finding{}, Changeable: []Finding{}, Unknown: []Finding{}, SharedPorts: []SharedPort{},
			Ports: PortVerdicts{p.guids, make([]Verdict, len(p.guids))},
		},
	}
	for i, some := range p.noted {
		if some {
			q.enter(i)
		}
	}
	q.findStrangers()
	q.markDoubted()
	q.findRaw()
	q.pairs.settle()
	q.gather(p.byTables, Violated, &q.proof.Violations, &q.proof.Counts.Violations,
		func(i int32) *observed.Port { return p.ports[i] })
	q.gather(p.byGuards, ByEndPorts, &q.proof.Exposed, &q.proof.Counts.Exposed,
		func(i int32) *observed.Port { return p.guards[i].at })
	q.conclude()
	return q.proof
}

// prover is the work on one proof.
type prover struct {
	*Prover
	pairs *pairTable
	proof *Proof
	gaps  tally
	// rawGaps are the places that raw packets pass.
	rawGaps tally
	unread  tally
	first   [Violated + 1]witness // by verdict, of the end ports
	// doubted are the partitions whose keys somebody unknown may have; nil for none.
	doubted []bool
}

// enter takes over what was noted of an end port.
func (p *prover) enter(i int) {
	n, parts := &p.notes[i], p.policy.partsOf(p.policy.grant[i])
	for _, l := range n.lacks {
		p.lack(l.at, l.what, parts)
		p.mark(int32(i), Unknown)
	}
	if g := p.guards[i]; g.gap != "" {
		p.pairs.rest(parts, ByEndPorts, g.at, "no partition enforcement: "+g.gap)
		p.gaps.add(g.gap, g.at.String())
		p.mark(int32(i), ByEndPorts)
		if counted(&p.proof.Counts.Unenforced, MaxListed) {
			p.proof.Unenforced = append(p.proof.Unenforced, Finding{placeOf(g.at), g.gap})
		}
	}
	for _, e := range n.foreign {
		if counted(&p.proof.Counts.Foreign, MaxListed) {
			p.proof.Foreign = append(p.proof.Foreign, e)
		}
	}
	k := &p.proof.Counts.Keys
	if len(n.missing) > 0 {
		k.Missing++
	}
	if len(n.foreign) > 0 {
		k.Unexpected++
	}
	if slices.ContainsFunc(n.foreign, func(e Entry) bool { return !p.policy.has(e.PKey.Base()) }) {
		k.Unknown++
	}
	for _, m := range n.missing {
		if counted(&p.proof.Counts.Missing, MaxListed) {
			p.proof.Missing = append(p.proof.Missing, m)
		}
	}
}

// lack enters why nothing can be said of these partitions.
func (p *prover) lack(at *observed.Port, reason string, parts []int) {
	p.pairs.rest(parts, Unknown, at, reason)
	p.unread.add(reason, at.String())
	if counted(&p.proof.Counts.Unknown, MaxListed) {
		p.proof.Unknown = append(p.proof.Unknown, Finding{placeOf(at), reason})
	}
}

// findStrangers looks for links that lead to a device whose tables were not
// read. Such a device may belong to any partition, unless the link carries no
// data or a switch holds it to the partitions of a table.
func (p *prover) findStrangers() {
	for _, s := range p.open {
		switch all, some := p.stranger(s); {
		case all && !s.InfoRead && !s.IsEnd():
			p.lackStranger(s, "PortInfo"+unread, p.allParts())
		case all:
			p.lackStranger(s, stranger, p.allParts())
		case some != 0:
			p.lackStranger(s, stranger, p.policy.partsOf(some))
		}
	}
}

// lackStranger enters that nobody knows who is behind a link and has the keys of these
// partitions.
func (p *prover) lackStranger(at *observed.Port, reason string, parts []int) {
	p.lack(at, reason, parts)
	p.doubt(parts)
}

// stranger says to which partitions the device behind a link may belong that was not read:
// to all, or to those of a set; 0 for none.
func (p *prover) stranger(s *observed.Port) (all bool, some int32) {
	switch {
	case !s.InfoRead && !s.IsEnd():
		return true, 0
	case s.InfoRead && !carriesData(s):
		return false, 0
	case s.IsEnd() || !guardAt(s).enforced:
		return true, 0
	}
	return false, p.tableOf(s)
}

const stranger = "the device behind the link" + unread

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
func (p *prover) gather(r *relation, v Verdict, list *[]Violation, count *int, table func(int32) *observed.Port) {
	var culprit *class
	var over ib.PKey
	budget, marked := 0, map[*class]bool{}
	r.tooMuch(func(from, to *class, key ib.PKey) {
		p.markClass(from, v, marked)
		p.markClass(to, v, marked)
		p.over(key.Base(), v)
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

// over notes what was found over the keys of a partition.
func (p *prover) over(k ib.PKeyBase, v Verdict) {
	if p.proof.Over == nil {
		p.proof.Over = map[ib.PKeyBase]Verdict{}
	}
	p.proof.Over[k] = max(p.proof.Over[k], v)
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
func (p *prover) violation(a, b int32, key ib.PKey, fault *observed.Port) Violation {
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
