package desired

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// groups puts together the service levels that share virtual lanes: those that the settings
// put on one virtual lane, or, where levels have shares, each of these by itself and all
// others with level 0.
type groups struct {
	// of is the group of a service level, ib.VLManagement where the settings drop it.
	of [smp.SLCount]ib.VL
	n  int
	// share is that of each group in percent; nil where levels have none.
	share []int
	// asked are the virtual lanes of the groups in the settings, in rising order; nil with
	// shares.
	asked []ib.VL
}

// groupsOf puts the levels of a policy together on links of so many virtual lanes. With
// fewer lanes than levels with a share, some of these share a group.
func groupsOf(s *policy.Settings, levels []ib.SL, lanes int) *groups {
	if s.Levels != nil {
		return sharesOf(s, lanes)
	}
	g, m := &groups{}, s.Mapping(lanes)
	for _, level := range levels {
		if vl := m.VLs[level]; vl != ib.VLManagement {
			g.asked = append(g.asked, vl)
		}
	}
	slices.Sort(g.asked)
	g.asked = slices.Compact(g.asked)
	g.n = len(g.asked)
	for sl, vl := range m.VLs {
		i := slices.Index(g.asked, vl)
		switch {
		case vl == ib.VLManagement:
			g.of[sl] = vl
		case i >= 0:
			g.of[sl] = ib.VL(i)
		default: // no partition's packets take it: another lane will do
			g.of[sl] = vl % ib.VL(g.n)
		}
	}
	return g
}

func sharesOf(s *policy.Settings, lanes int) *groups {
	shares := s.Shares()
	g := &groups{n: min(len(shares), lanes)}
	g.share = make([]int, g.n)
	for i, l := range shares {
		g.of[l.SL] = ib.VL(i % g.n)
		g.share[i%g.n] += int(l.Share)
	}
	return g
}
