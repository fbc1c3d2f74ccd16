package isolation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// pairTable holds the verdicts on pairs of partitions. Most of them follow
// from the two partitions (rows); what concerns a pair alone is kept as bits.
type pairTable struct {
	parts  []part
	rows   []row
	counts [Violated + 1]int // by verdict, once settled
	alone  [Violated + 1]pairBits
	// witnesses are of the first pairs that were raised alone.
	witnesses map[[2]int]witness
}

// row is the worst that a partition rests on.
type row struct {
	verdict Verdict
	at      *observed.Port
	what    string
}

// witness is why a pair has its verdict.
type witness struct {
	verdict  Verdict
	from, to *observed.Port
	key      ib.PKey
}

func newPairTable(parts []part) *pairTable {
	t := &pairTable{parts: parts, rows: make([]row, len(parts)), witnesses: make(map[[2]int]witness)}
	for i := range t.rows {
		t.rows[i].verdict = Isolated
	}
	return t
}

// rest lets every pair of these partitions be at best v, because of what is
// the matter at a port.
func (t *pairTable) rest(parts []int, v Verdict, at *observed.Port, what string) {
	for _, i := range parts {
		if v > t.rows[i].verdict {
			t.rows[i] = row{v, at, what}
		}
	}
}

// settle counts the pairs by their rows; rest is not called after it.
func (t *pairTable) settle() {
	var rows [Violated + 1]int
	for _, r := range t.rows {
		rows[r.verdict]++
	}
	better := 0
	for v := Isolated; v <= Violated; v++ {
		n := rows[v]
		t.counts[v] = n*(n-1)/2 + n*better
		better += n
	}
}

// raise lets the pair of p and q be at best as bad as w.
func (t *pairTable) raise(p, q int, w witness) {
	if p == q {
		return
	}
	p, q = min(p, q), max(p, q)
	old := t.verdict(p, q)
	if w.verdict <= old {
		return
	}
	t.counts[old]--
	t.counts[w.verdict]++
	t.alone[w.verdict].set(p, q, len(t.rows))
	if len(t.witnesses) < MaxPairs {
		t.witnesses[[2]int{p, q}] = w
	}
}

// verdict is that of the pair of p and q, p < q.
func (t *pairTable) verdict(p, q int) Verdict {
	v := max(t.rows[p].verdict, t.rows[q].verdict)
	for alone := Violated; alone > v; alone-- {
		if t.alone[alone].has(p, q) {
			return alone
		}
	}
	return v
}

// list gives the pairs as Proof.Pairs promises.
func (t *pairTable) list(joined []uint64) []PairVerdict {
	n := len(t.parts)
	out := []PairVerdict{}
	if n <= MaxPartitionsListed {
		for p := range n {
			for q := p + 1; q < n; q++ {
				pair := t.pair(p, q)
				pair.Joined = joined[p]>>q&1 != 0
				out = append(out, pair)
			}
		}
		return out
	}
	for v := Violated; v > Isolated; v-- {
		out = t.listRaised(out, v)
		for p := 0; p < n && t.counts[v] > 0; p++ {
			for q := p + 1; q < n && len(out) < MaxPairs; q++ {
				if max(t.rows[p].verdict, t.rows[q].verdict) == v && t.verdict(p, q) == v {
					out = append(out, t.pair(p, q))
				}
			}
		}
	}
	return out
}

// listRaised adds the pairs of verdict v that have a witness.
func (t *pairTable) listRaised(out []PairVerdict, v Verdict) []PairVerdict {
	var keys [][2]int
	for k, w := range t.witnesses {
		if w.verdict == v {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, k := range keys[:min(len(keys), MaxPairs-len(out))] {
		out = append(out, t.pair(k[0], k[1]))
	}
	return out
}

func (t *pairTable) pair(p, q int) PairVerdict {
	a, b := t.parts[p], t.parts[q]
	out := PairVerdict{A: a.name, B: b.name, PKeyA: a.base, PKeyB: b.base, Verdict: t.verdict(p, q)}
	if w, ok := t.witnesses[[2]int{p, q}]; ok && w.verdict == out.Verdict {
		out.Reason = fmt.Sprintf("%s and %s can talk over %s", w.from, w.to, w.key)
		if w.verdict == ByEndPorts {
			out.Reason = fmt.Sprintf("%s can reach %s over %s if it forges its table", w.from, w.to, w.key)
		}
		return out
	}
	for _, r := range []row{t.rows[p], t.rows[q]} {
		if r.at != nil && r.verdict == out.Verdict {
			out.Reason = r.at.String() + ": " + r.what
			break
		}
	}
	return out
}

// pairBits is a set of pairs p < q.
type pairBits struct{ rows [][]uint64 }

func (b *pairBits) set(p, q, n int) {
	if b.rows == nil {
		b.rows = make([][]uint64, n)
	}
	if b.rows[p] == nil {
		b.rows[p] = make([]uint64, (n+63)/64)
	}
	b.rows[p][q/64] |= 1 << (q % 64)
}

func (b *pairBits) has(p, q int) bool {
	return b.rows != nil && b.rows[p] != nil && b.rows[p][q/64]>>(q%64)&1 != 0
}
