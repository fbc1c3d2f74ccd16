package isolation

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// PortVerdicts are the verdict on each end port.
type PortVerdicts struct {
	// Ports are the end ports, by GUID. Proofs of one Prover share the list.
	Ports []ib.PortGUID
	// Found is what was found against each; 0 for nothing.
	Found []Verdict
}

// VerdictOn is the verdict on the end ports with a GUID, the worst of several: Violated for
// one that can talk to another against the policy, or that another can; Unknown where
// something of it was not read, where somebody unknown may have its keys, and for a port
// that the proof is not about; ByEndPorts where nothing but its own table, or that of
// another, keeps it apart; else Isolated.
func (p *Proof) VerdictOn(port ib.PortGUID) Verdict {
	i, there := slices.BinarySearch(p.Ports.Ports, port)
	if !there {
		return Unknown
	}
	worst := Isolated
	for ; i < len(p.Ports.Ports) && p.Ports.Ports[i] == port; i++ {
		worst = max(worst, p.Ports.Found[i])
	}
	return worst
}

// mark makes the verdict on an end port as bad as this.
func (p *prover) mark(i int32, v Verdict) {
	found := p.proof.Ports.Found
	found[i] = max(found[i], v)
}

// doubt notes partitions whose keys somebody unknown may have.
func (p *prover) doubt(parts []int) {
	if p.doubted == nil {
		p.doubted = make([]bool, len(p.policy.parts))
	}
	for _, x := range parts {
		p.doubted[x] = true
	}
}

// markDoubted marks the end ports of those partitions.
func (p *prover) markDoubted() {
	if p.doubted == nil {
		return
	}
	for i, grant := range p.policy.grant {
		if slices.ContainsFunc(p.policy.partsOf(grant), func(x int) bool { return p.doubted[x] }) {
			p.mark(int32(i), Unknown)
		}
	}
}

// markClass marks the end ports of a class, once for each verdict.
func (p *prover) markClass(c *class, v Verdict, done map[*class]bool) {
	if done[c] {
		return
	}
	done[c] = true
	for _, i := range c.ports {
		p.mark(i, v)
	}
}
