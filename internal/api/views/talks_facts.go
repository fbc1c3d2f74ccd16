package views

import (
	"slices"
	"strings"
	"sync"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// MatrixFacts are what a matrix is made of.
type MatrixFacts struct {
	Snapshot *snapshot.Snapshot
	// Proof is the verdict on it, and Allowed the partitions of the policy as they were
	// resolved for that.
	Proof   *isolation.Proof
	Allowed []observed.Partition
}

// Judged is facts that were looked at.
type Judged struct {
	*MatrixFacts
	prover *isolation.Prover
}

// MatrixCache keeps the last facts that were looked at. The zero value is ready; it may be used by
// several goroutines.
type MatrixCache struct {
	mu   sync.Mutex // held while the prover is used
	last Judged
}

// prover is that of facts; mu is held.
func (c *MatrixCache) prover(f *MatrixFacts) *isolation.Prover {
	if c.last.MatrixFacts == nil || c.last.Snapshot != f.Snapshot || c.last.Proof != f.Proof {
		c.last = Judged{f, isolation.NewProver(f.Snapshot.Fabric, f.Allowed)}
	}
	return c.last.prover
}

// MatrixView is what a caller sees: made from the state of the service, and filled by Fill or Ports
// without it.
type MatrixView struct {
	view    *view
	facts   *MatrixFacts
	verdict string
}

// SeeMatrix sorts the ports of a fabric into parties, as a caller sees them.
func SeeMatrix(s *resource.State, c resource.Caller, f *MatrixFacts) *MatrixView {
	return &MatrixView{viewOf(s, c, f), f, VerdictFor(s, c, f.Proof).String()}
}

// Matrix is the matrix of a view.
func (c *MatrixCache) Matrix(v *MatrixView) Matrix {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Matrix{ReadAt: v.facts.Snapshot.ReadAt, Verdict: v.verdict, Parties: v.view.parties}
	out.Cells, out.Sparse = v.view.cells(c.parties(v))
	return out
}

// parties compares the parties of a view; mu is held.
func (c *MatrixCache) parties(v *MatrixView) *isolation.Parties {
	raw := v.facts.Proof.Counts.Raw > 0 // else none passes, or the policy lets all pass
	return c.prover(v.facts).Parties(len(v.view.parties), v.view.group, raw)
}

// Parties are the names of the parties of a view, and which of them each end port is in.
func (v *MatrixView) Parties() (names []string, of map[ib.PortGUID]int) {
	for _, p := range v.view.parties {
		names = append(names, p.Name)
	}
	of = make(map[ib.PortGUID]int, len(v.view.ports))
	for i, p := range v.view.ports {
		if v.view.group[i] >= 0 {
			of[p.GUID] = v.view.group[i]
		}
	}
	return names, of
}

// MatrixWindow is a part of the ports of two parties.
type MatrixWindow struct {
	Limit       int // rows and columns at most
	Row, Column int // the first ones, from 0
}

// Ports is the matrix of the ports of two parties. It returns the name of a party that is
// not there, or whose ports a caller is not told; "" for none.
func (c *MatrixCache) Ports(v *MatrixView, a, b string, w MatrixWindow) (out MatrixPorts, missing string) {
	rows, found := v.view.portsOf(a)
	if !found {
		return out, a
	}
	columns, found := v.view.portsOf(b)
	if !found || !v.view.whole && v.view.parties[0].Name != a && v.view.parties[0].Name != b {
		return out, b // how others stand to each other is theirs
	}
	out = MatrixPorts{ReadAt: v.facts.Snapshot.ReadAt, A: a, B: b, Rows: []EndPort{}, Columns: []EndPort{}, Cells: [][]MatrixPortCell{}}
	rows, out.RowsMore = part(rows, w.Row, w.Limit)
	columns, out.ColumnsMore = part(columns, w.Column, w.Limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	parties := c.parties(v)
	for _, q := range columns {
		out.Columns = append(out.Columns, EndOf(q))
	}
	for _, p := range rows {
		out.Rows = append(out.Rows, EndOf(p))
		line := make([]MatrixPortCell, 0, len(columns))
		for _, q := range columns {
			line = append(line, v.view.portCell(parties, p, q))
		}
		out.Cells = append(out.Cells, line)
	}
	return out, ""
}

// part is a window of a list, and how many are after it.
func part(list []*observed.Port, from, limit int) ([]*observed.Port, int) {
	list = list[min(from, len(list)):]
	n := min(limit, len(list))
	return list[:n], len(list) - n
}

// portsOf are the ports of a party that a caller is told of, by name.
func (v *view) portsOf(name string) (out []*observed.Port, found bool) {
	i := slices.IndexFunc(v.parties, func(p MatrixParty) bool { return p.Name == name && !p.hidden() })
	if i < 0 {
		return nil, false
	}
	for n, p := range v.ports {
		if v.group[n] == i {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *observed.Port) int { return strings.Compare(a.String(), b.String()) })
	return out, true
}

// portCell is how two ports stand to each other.
func (v *view) portCell(p *isolation.Parties, a, b *observed.Port) MatrixPortCell {
	if a == b {
		return MatrixPortCell{Talk: "none", Reason: "the same port"}
	}
	x := p.Two(a, b)
	c := MatrixPortCell{Talk: talk(x.Pairs, x.Talking, x.Unread), Partitions: v.named(x.Over)}
	if x.Verdict != isolation.Isolated {
		c.Verdict = word(x.Verdict)
	}
	switch {
	case x.Violations > 0:
		c.Reason = "the policy does not allow it"
	case c.Verdict != "":
		c.Reason = v.kindOfCause(&x)
	case c.Talk == "none" && len(x.Limited) > 0:
		c.Reason = "both are limited members of " + v.joined(v.named(x.Limited))
	}
	return c
}

// kindOfCause says on what the verdict on two ports rests. The place is not told: it may be
// that of ports that are like them.
func (v *view) kindOfCause(x *isolation.Between) string {
	if v.whole {
		return x.Cause
	}
	return ofOthers(x.Verdict)
}
