package desired

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// setGroups gives multicast packets their service levels. Where they have a layer, each level
// of the policy gets the highest number that is free, which stays the same while layers of
// unicast paths, which take the lowest, come and go. Where they have none, they take the
// first layer. A host that makes a group may ask for any level: none leads its packets into
// the layers of others.
func (l *QoSLevels) setGroups(levels []ib.SL) {
	m := &l.multicast
	for sl := range ib.SL(smp.SLCount) {
		m.Wire[sl], m.Level[sl] = sl, sl
	}
	free := ib.SL(smp.SLCount - 1)
	for _, level := range levels {
		own := level
		if l.lanes.Groups {
			for slices.Contains(levels, free) {
				free--
			}
			own = free
			free--
			l.of[own], l.apart[own] = l.of[level], true
		}
		for _, sl := range append([]ib.SL{own}, l.sl[level]...) {
			m.Wire[sl], m.Level[sl] = own, level
		}
	}
	for sl := range ib.SL(smp.SLCount) {
		if m.Level[sl] != sl || slices.Contains(levels, sl) {
			continue
		}
		// No partition has it: it goes where a level goes whose virtual lanes it takes.
		i := slices.IndexFunc(levels, func(level ib.SL) bool { return l.of[level] == l.of[sl] })
		if i >= 0 && l.lanes.Groups {
			m.Wire[sl] = m.Wire[levels[i]]
		}
	}
}
