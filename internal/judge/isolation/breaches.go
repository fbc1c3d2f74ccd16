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
// its worst verdict and one of the partitions: those of first, and up to limit in all of the
// others. more reports whether there are others that it does not list.
func (p *Prover) Breaches(limit int, first [][2]ib.PortGUID) (out []Breach, more bool) {
	listed := map[[2]int32]bool{}
	var worse map[[2]*class]ib.PKeyBase // of the tables, while the guards are looked at
	for _, r := range []struct {
		*relation
		verdict Verdict
	}{{p.byTables, Violated}, {p.byGuards, ByEndPorts}} {
		over := map[[2]*class]ib.PKeyBase{}
		var order [][2]*class
		r.tooMuch(func(from, to *class, key ib.PKey) {
			if _, known := over[[2]*class{from, to}]; !known {
				over[[2]*class{from, to}], over[[2]*class{to, from}] = key.Base(), key.Base()
				order = append(order, [2]*class{from, to})
			}
		})
		enter := func(a, b int32) {
			a, b = min(a, b), max(a, b)
			key, bad := over[[2]*class{r.of[a], r.of[b]}]
			_, is := worse[[2]*class{p.byTables.of[a], p.byTables.of[b]}]
			if bad && !is && a != b && !listed[[2]int32{a, b}] {
				listed[[2]int32{a, b}] = true
				out = append(out, Breach{p.guids[a], p.guids[b], key, r.verdict})
			}
		}
		for _, pair := range first {
			a, is := slices.BinarySearchFunc(p.guids, pair[0], compareGUIDs)
			b, too := slices.BinarySearchFunc(p.guids, pair[1], compareGUIDs)
			if is && too {
				enter(int32(a), int32(b))
			}
		}
		for _, pair := range order {
			eachPair(pair[0], pair[1], func(a, b int32) bool {
				if len(out) >= limit && !listed[[2]int32{min(a, b), max(a, b)}] {
					more = true
					return false
				}
				enter(a, b)
				return true
			})
		}
		worse = over
	}
	return out, more
}
