package isolation

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// Breach is two end ports, the first with the lower GUID, that can talk over PKey against the
// policy (Violated), or could if one of them forged its table (ByEndPorts).
type Breach struct {
	From, To ib.PortGUID
	PKey     ib.PKeyBase
	Verdict  Verdict
}

// Breaches lists pairs of end ports that can talk against the policy, or could, each once with
// its worst verdict and one of the partitions: those of first, and of the others up to limit in
// all. more reports whether there are others that it does not list.
func (p *Prover) Breaches(limit int, first [][2]ib.PortGUID) (out []Breach, more bool) {
	relations := []*relation{p.byTables, p.byGuards}
	var over [2]map[[2]*class]ib.PKeyBase
	var order [2][][2]*class
	for i, r := range relations {
		over[i] = map[[2]*class]ib.PKeyBase{}
		r.tooMuch(func(from, to *class, key ib.PKey) {
			if _, known := over[i][[2]*class{from, to}]; !known {
				over[i][[2]*class{from, to}], over[i][[2]*class{to, from}] = key.Base(), key.Base()
				order[i] = append(order[i], [2]*class{from, to})
			}
		})
	}
	listed := map[[2]int32]bool{}
	enter := func(a, b int32) {
		a, b = min(a, b), max(a, b)
		for i, r := range relations {
			key, bad := over[i][[2]*class{r.of[a], r.of[b]}]
			if bad && a != b && !listed[[2]int32{a, b}] {
				listed[[2]int32{a, b}] = true
				out = append(out, Breach{p.guids[a], p.guids[b], key, [...]Verdict{Violated, ByEndPorts}[i]})
			}
		}
	}
	for _, pair := range first {
		a, is := slices.BinarySearch(p.guids, pair[0])
		b, too := slices.BinarySearch(p.guids, pair[1])
		if is && too {
			enter(int32(a), int32(b))
		}
	}
	for _, pair := range slices.Concat(order[0], order[1]) {
		eachPair(pair[0], pair[1], func(a, b int32) bool {
			if !listed[[2]int32{min(a, b), max(a, b)}] && len(out) >= limit {
				more = true
				return false
			}
			enter(a, b)
			return true
		})
	}
	return out, more
}
