package graph

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Destination is an end port and its LIDs: LMC.Count() of them from LID up.
type Destination struct {
	Port *observed.Port
	LID  ib.LID
	LMC  ib.LMC
}

// Last is the highest LID.
func (d Destination) Last() ib.LID { return d.LID + ib.LID(d.LMC.Count()-1) }

// Checked returns the destinations ordered by LID, or what is wrong with them: one is no
// end port of f, a LID is not unicast, or belongs to two ports.
func Checked(f *observed.Fabric, destinations []Destination) ([]Destination, error) {
	out := slices.Clone(destinations)
	slices.SortStableFunc(out, func(a, b Destination) int { return cmp.Compare(a.LID, b.LID) })
	for i, d := range out {
		if d.Port == nil {
			return nil, fmt.Errorf("LID %d belongs to no port", d.LID)
		}
		n := d.Port.Node
		if n.Index >= len(f.Nodes) || f.Nodes[n.Index] != n || !d.Port.IsEnd() {
			return nil, fmt.Errorf("LID %d: %s is no end port of the fabric", d.LID, d.Port)
		}
		if d.LMC > ib.LMCMax {
			return nil, fmt.Errorf("%s: LMC %d, want 0 to %d", d.Port, d.LMC, ib.LMCMax)
		}
		if !d.LID.IsUnicast() || !d.Last().IsUnicast() || int(d.LID)%d.LMC.Count() != 0 {
			return nil, fmt.Errorf("%s: LID %d with LMC %d is no unicast range", d.Port, d.LID, d.LMC)
		}
		if i > 0 && out[i-1].Last() >= d.LID {
			return nil, fmt.Errorf("LID %d belongs to %s and to %s", d.LID, out[i-1].Port, d.Port)
		}
	}
	return out, nil
}
