// verdict*.go: shows each caller of the API as much of a proof as concerns him.

package views

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Proof is the verdict as a caller sees it.
type Proof struct {
	Verdict     string       `json:"verdict" doc:"of the fabric; for a tenant, of its own ports and partitions, and no better than what the fabric lacks allows"`
	Holds       bool         `json:"holds" doc:"tenants are kept apart"`
	ReadAt      time.Time    `json:"read_at" doc:"when the fabric was read whole, or changed, and proved"`
	CheckedAt   *time.Time   `json:"checked_at,omitempty" doc:"since then every table that isolates was read back, and was as it was proved; absent before the first time"`
	Reasons     []string     `json:"reasons" doc:"why it does not hold; for the provider"`
	Caveats     []string     `json:"caveats" doc:"what the verdict leaves to hosts; for a tenant, where that concerns its own ports"`
	Violations  []Violation  `json:"violations" doc:"ports that can talk and may not, at most 100; a tenant sees those of its own ports and partitions, each of its ports once for each key"`
	SharedPorts []SharedPort `json:"shared_ports" doc:"end ports that can talk with others which cannot talk with each other, at most 100; for the provider"`
	Counts      ProofCounts  `json:"counts"`
}

// ProofCounts is the size of what was judged and found. For a tenant it follows from its own
// ports and partitions only.
type ProofCounts struct {
	EndPorts    int `json:"end_ports" doc:"for a tenant, its own"`
	Partitions  int `json:"partitions" doc:"for a tenant, its own"`
	Pairs       int `json:"pairs" doc:"of partitions; for a tenant, each two that it sees, and each of these with all others"`
	Violations  int `json:"violations" doc:"pairs of ports; for a tenant, its own ports, each once for each key"`
	Exposed     int `json:"exposed" doc:"for the provider"`
	Unknown     int `json:"unknown" doc:"for the provider"`
	SharedPorts int `json:"shared_ports" doc:"for the provider"`
}

// Violation is two ports that can talk and may not.
type Violation struct {
	From string `json:"from,omitempty" doc:"a tenant is told of its own port alone"`
	To   string `json:"to,omitempty" doc:"a tenant is told of its own port alone"`
	PKey string `json:"pkey,omitempty" doc:"absent where a tenant's port is one of too many to list"`
	Note string `json:"note,omitempty" doc:"what stops the packets today"`
}

// SharedPort is an end port that can talk with two others which cannot talk with each other.
type SharedPort struct {
	GUID       string   `json:"guid"`
	Name       string   `json:"name" doc:"what its node says of itself, and the number of the port"`
	PKeys      []string `json:"pkeys" doc:"its keys"`
	Partitions []string `json:"partitions" doc:"names of those of its partitions that the policy has"`
	Manager    bool     `json:"manager" doc:"it is the subnet manager's own port"`
}

// Bounds of the lists of a Proof.
const (
	violationsMost  = 100
	sharedPortsMost = 100
)

// stoppedToday is the note for a tenant: where packets are stopped is the provider's.
const stoppedToday = "the packets are stopped on the way today"

// VerdictFor is the verdict of a proof for a caller. A tenant's is that on its own ports, and on what
// others can do over keys of its own partitions: what others can do to each other is theirs. What
// is not known or not guarded of the fabric weighs on everybody.
func VerdictFor(s *resource.State, c resource.Caller, p *isolation.Proof) isolation.Verdict {
	if c.IsProvider() {
		return cmp.Or(p.Verdict, isolation.Unknown)
	}
	return tenantOf(s, c, p).verdict()
}

// tenant is what of a proof concerns a tenant.
type tenant struct {
	s *resource.State
	c resource.Caller
	p *isolation.Proof
	// ports are the verdicts on its end ports, partitions those on what others can do over
	// keys of its own, where they are worse than isolated.
	ports      map[ib.PortGUID]isolation.Verdict
	partitions map[ib.PKeyBase]isolation.Verdict
}

func tenantOf(s *resource.State, c resource.Caller, p *isolation.Proof) *tenant {
	t := &tenant{s: s, c: c, p: p, ports: map[ib.PortGUID]isolation.Verdict{}, partitions: map[ib.PKeyBase]isolation.Verdict{}}
	for i, g := range p.Ports.Ports {
		if v := p.Ports.Found[i]; v != 0 && t.owns(g) {
			t.ports[g] = max(t.ports[g], v)
		}
	}
	for k, v := range p.Over {
		if t.has(k) {
			t.partitions[k] = v
		}
	}
	return t
}

func (t *tenant) verdict() isolation.Verdict {
	worst := t.p.Common()
	for _, v := range t.ports {
		worst = max(worst, v)
	}
	for _, v := range t.partitions {
		worst = max(worst, v)
	}
	return worst
}

// owns reports whether an end port is the tenant's, has whether a partition is.
func (t *tenant) owns(g ib.PortGUID) bool { return t.s.SightOf(t.c, g) == resource.SightWhole }

func (t *tenant) has(k ib.PKeyBase) bool {
	p := t.s.Partition(k)
	return p != nil && p.Owner == t.c.Tenant
}

// ProofOf is a proof, made at a time of the partitions that the policy allows, as a caller
// sees it: the provider all of it, a tenant its part.
func ProofOf(s *resource.State, c resource.Caller, p *isolation.Proof, allowed []observed.Partition, at time.Time) Proof {
	verdict := VerdictFor(s, c, p)
	out := Proof{
		Verdict: verdict.String(), Holds: verdict.Holds(), ReadAt: at,
		Reasons: []string{}, Caveats: []string{}, Violations: []Violation{}, SharedPorts: []SharedPort{},
	}
	if c.IsProvider() {
		out.whole(p)
		return out
	}
	t := tenantOf(s, c, p)
	list := t.violations()
	out.Caveats = append(out.Caveats, t.caveats(allowed)...)
	out.Violations = append(out.Violations, list[:min(len(list), violationsMost)]...)
	seen := len(t.judged(allowed))
	out.Counts = ProofCounts{Pairs: seen * (seen + 1) / 2, Violations: len(list)} // each with each, and with others
	if c.Tenant != "" {
		out.Counts.Partitions = len(s.Partitions(c.Tenant))
	}
	for i, g := range p.Ports.Ports {
		if (i == 0 || p.Ports.Ports[i-1] != g) && t.owns(g) {
			out.Counts.EndPorts++
		}
	}
	return out
}

// whole is what the provider sees.
func (out *Proof) whole(p *isolation.Proof) {
	out.Reasons, out.Caveats = append(out.Reasons, p.Reasons...), append(out.Caveats, p.Caveats...)
	n := &p.Counts
	out.Counts = ProofCounts{
		n.EndPorts, n.Partitions, n.Pairs.Isolated + n.Pairs.ByEndPorts + n.Pairs.Unknown + n.Pairs.Violated,
		n.Violations, n.Exposed, n.Unknown, n.SharedPorts,
	}
	for _, v := range p.Violations[:min(len(p.Violations), violationsMost)] {
		out.Violations = append(out.Violations, Violation{v.From.String(), v.To.String(), v.PKey.String(), v.Note})
	}
	for _, x := range p.SharedPorts[:min(len(p.SharedPorts), sharedPortsMost)] {
		shared := SharedPort{GUID: x.EndPort.String(), Name: x.Name, PKeys: []string{}, Partitions: append([]string{}, x.Partitions...), Manager: x.Manager}
		for _, k := range x.PKeys {
			shared.PKeys = append(shared.PKeys, k.String())
		}
		out.SharedPorts = append(out.SharedPorts, shared)
	}
}

// violations are those of the tenant's own ports and partitions. The ports of others are
// neither named nor counted, and what the proof lists of others makes no difference.
func (t *tenant) violations() (out []Violation) {
	at := map[Violation]int{} // index in out
	listed := map[ib.PortGUID]bool{}
	keys := map[ib.PKeyBase]bool{}
	for _, v := range t.p.Violations {
		x := Violation{PKey: v.PKey.String()}
		if t.owns(v.From) {
			x.From, listed[v.From] = v.From.String(), true
		}
		if t.owns(v.To) {
			x.To, listed[v.To] = v.To.String(), true
		}
		if x.From == "" && x.To == "" && !t.has(v.PKey.Base()) {
			continue
		}
		keys[v.PKey.Base()] = true
		i, again := at[x]
		if !again {
			i, at[x] = len(out), len(out)
			if v.Note != "" {
				x.Note = stoppedToday
			}
			out = append(out, x)
		}
		if v.Note == "" {
			out[i].Note = ""
		}
	}
	// A proof lists some violations only.
	for g, v := range t.ports {
		if v == isolation.Violated && !listed[g] {
			out = append(out, Violation{From: g.String()})
		}
	}
	for k, v := range t.partitions {
		if v == isolation.Violated && !keys[k] {
			out = append(out, Violation{PKey: k.Full().String()})
		}
	}
	slices.SortFunc(out, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.PKey, b.PKey))
	})
	return out
}

// caveats are what the verdict leaves to hosts, where it concerns the tenant's own ports. Who
// else is in a partition that is not its own makes no difference: it is not told that.
func (t *tenant) caveats(allowed []observed.Partition) (out []string) {
	if slices.Contains(t.p.Caveats, isolation.CaveatRaw) {
		out = append(out, isolation.CaveatRaw)
	}
	managers := 0
	for _, g := range t.p.Managers {
		if t.owns(g) {
			managers++
		}
	}
	if managers > 0 {
		out = append(out, fmt.Sprintf("%s: %d of your ports", isolation.CaveatManagers, managers))
	}
	hidden := map[ib.PortGUID]bool{} // in partitions that the tenant does not know
	say := func(ports int, of string) {
		if ports > 0 {
			out = append(out, fmt.Sprintf("a host that forges a full key of %s reaches %d of your ports, limited members of it: only their own tables keep limited members of one partition apart, since a switch cannot tell a forged membership", of, ports))
		}
	}
	for _, a := range allowed {
		full := map[ib.PortGUID]bool{}
		for _, g := range a.Full {
			full[g] = true
		}
		limited := map[ib.PortGUID]bool{}
		own := map[ib.PortGUID]bool{}
		for _, g := range a.Limited {
			if !full[g] {
				limited[g] = true
				if t.owns(g) {
					own[g] = true
				}
			}
		}
		switch {
		case a.Base == ib.PKeyBaseDefault:
			say(len(own), fmt.Sprintf("default (%s)", a.Base))
		case t.has(a.Base) && len(limited) < 2: // there is nobody else to forge it
		case t.s.TakesPart(t.c, a.Base):
			say(len(own), fmt.Sprintf("%s (%s)", a.Name, a.Base))
		default:
			for g := range own {
				hidden[g] = true
			}
		}
	}
	say(len(hidden), "a partition that is not told")
	return out
}
