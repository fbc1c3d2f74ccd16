package isolation

import (
	"fmt"
	"strings"
)

// maxNamed is the number of places that one reason names.
const maxNamed = 3

// tally collects what is the matter, and where, for reasons in words.
type tally struct {
	order []string
	where map[string]*places
	// last is what was added last: mostly the next is the same.
	last     *places
	lastWhat string
}

type places struct {
	count int
	named []string
}

func (t *tally) add(what, where string) {
	p := t.last
	if p == nil || t.lastWhat != what {
		p = t.of(what)
		t.last, t.lastWhat = p, what
	}
	if p.count++; p.count <= maxNamed {
		p.named = append(p.named, where)
	}
}

// of are the places where something is the matter, to add to.
func (t *tally) of(what string) *places {
	if t.where == nil {
		t.where = make(map[string]*places)
	}
	p := t.where[what]
	if p == nil {
		p = new(places)
		t.where[what] = p
		t.order = append(t.order, what)
	}
	return p
}

// lines gives one line for each thing that is the matter.
func (t *tally) lines(prefix string) []string {
	var out []string
	for _, what := range t.order {
		p := t.where[what]
		line := prefix + what + ": " + strings.Join(p.named, ", ")
		if more := p.count - len(p.named); more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, line)
	}
	return out
}

// counted adds to a count and reports whether a list of limit elements has
// room for one more.
func counted(count *int, limit int) bool {
	*count++
	return *count <= limit
}

// conclude sums up what was found.
func (p *prover) conclude() {
	c := &p.proof.Counts
	c.EndPorts, c.Partitions = len(p.ports), len(p.policy.parts)
	c.Pairs = PairCounts{
		Isolated: p.pairs.counts[Isolated], ByEndPorts: p.pairs.counts[ByEndPorts],
		Unknown: p.pairs.counts[Unknown], Violated: p.pairs.counts[Violated],
	}
	p.proof.Pairs = p.pairs.list(p.policy.joined())
	switch {
	case c.Violations > 0:
		p.proof.Verdict = Violated
	case c.Unknown > 0 || c.EndPorts == 0:
		p.proof.Verdict = Unknown
	case c.Exposed > 0 || c.Unenforced > 0 || c.Raw > 0:
		p.proof.Verdict = ByEndPorts
	default:
		p.proof.Verdict = Isolated
	}
	p.explain(c)
	p.listSharedPorts()
	p.proof.Caveats = append(p.proof.Caveats, p.limitedMembers()...)
}

func (p *prover) explain(c *Counts) {
	var out []string
	if c.Violations > 0 {
		w, at := p.first[Violated], p.proof.Violations[0].At
		out = append(out, fmt.Sprintf("end ports can talk against the policy in %d cases, first %s and %s over %s (P_Key index %d of %s)",
			c.Violations, w.from, w.to, w.key, at.Index, at.Name))
	}
	if c.EndPorts == 0 {
		out = append(out, "no end port was read")
	}
	out = append(out, p.unread.lines("")...)
	if c.Exposed > 0 {
		w, at := p.first[ByEndPorts], p.proof.Exposed[0].At
		out = append(out, fmt.Sprintf("a host that forges its table could talk against the policy in %d cases, first %s to %s over %s (P_Key index %d of %s)",
			c.Exposed, w.from, w.to, w.key, at.Index, at.Name))
	}
	out = append(out, p.gaps.lines("no switch enforces partitions, ")...)
	if c.Raw > 0 {
		out = append(out, p.rawGaps.lines(fmt.Sprintf("raw packets, which carry no P_Key, can go against the policy in %d cases, ", c.Raw))...)
	}
	p.proof.Reasons = append(p.proof.Reasons, out...)
}
