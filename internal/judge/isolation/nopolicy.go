package isolation

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ProveWithoutPolicy says what the tables let the hosts of a fabric do where nobody said
// who may talk with whom. Partitions and members are those of AsTables. Nothing can be
// against a policy that was not given, so nothing is isolated either: the verdict is Open
// where all can talk with all, NoPolicy where some cannot, and Unknown where that was not
// read. What Prove finds of guards, raw packets and the hosts is there as with a policy.
func ProveWithoutPolicy(f *observed.Fabric) *Proof {
	p := NewProver(f, AsTables(f), RawDenied)
	proof := p.Proof()
	if !proof.Verdict.Holds() {
		return proof
	}
	hosts, kinds, common, open := p.openly()
	reason := fmt.Sprintf("no policy was given to compare with: the ports of hosts, %d, use %d different sets of keys, and not all can talk with all", hosts, kinds)
	switch proof.Verdict = NoPolicy; {
	case open && common != 0:
		proof.Verdict = Open
		reason = fmt.Sprintf("no policy was given, and each of the ports of hosts, %d, can talk with every other, over %s", hosts, common)
	case open:
		proof.Verdict = Open
		reason = fmt.Sprintf("no policy was given, and each of the ports of hosts, %d, can talk with every other, over different partitions", hosts)
	}
	proof.Reasons = append([]string{reason}, proof.Reasons...)
	return proof
}

// openly reports whether the keys let every host talk with every other: hosts counts the
// ports of CAs and routers, kinds the different sets of keys that they can use, and common
// is the first partition by which all can, 0 for none. One port alone talks with nobody.
func (p *Prover) openly() (hosts, kinds int, common ib.PKeyBase, open bool) {
	ports := make(map[int32]int) // by set
	for i, port := range p.ports {
		if port.Node.Switch == nil {
			ports[p.usedBy(i)]++
			hosts++
		}
	}
	type holding struct {
		set  int32
		full bool
	}
	holders := make(map[ib.PKeyBase][]holding)
	limited := make(map[ib.PKeyBase]int) // ports
	all := make(map[ib.PKeyBase]int)     // ports
	for set, n := range ports {
		for _, k := range p.sets.sets[set] {
			holders[k.Base()] = append(holders[k.Base()], holding{set, k.IsFull()})
			if all[k.Base()] += n; !k.IsFull() {
				limited[k.Base()] += n
			}
		}
	}
	if hosts < 2 {
		return hosts, len(ports), 0, false
	}
	for base, n := range all {
		if n == hosts && limited[base] < 2 && (common == 0 || base < common) {
			common = base
		}
	}
	if common != 0 {
		return hosts, len(ports), common, true
	}
	for set, n := range ports {
		reached := make(map[int32]bool, len(ports))
		for _, k := range p.sets.sets[set] {
			for _, h := range holders[k.Base()] {
				if k.IsFull() || h.full {
					reached[h.set] = true
				}
			}
		}
		if n == 1 {
			reached[set] = true // nobody else is like it
		}
		if len(reached) < len(ports) {
			return hosts, len(ports), 0, false
		}
	}
	return hosts, len(ports), 0, true
}

// usedBy is the set of keys that end port i can use as its switch port stands: those of
// its table, as far as a switch port that enforces partitions has them too.
func (p *Prover) usedBy(i int) int32 {
	own := p.tables[i].keys
	if !p.guards[i].enforced {
		return own
	}
	passed := p.sets.sets[p.reach[i].keys] // each partition of the switch port, as full
	var keys []ib.PKey
	for _, k := range p.sets.sets[own] {
		if keySet(passed).covers(k) {
			keys = append(keys, k)
		}
	}
	return p.sets.id(newKeySet(keys))
}
