package record

import (
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/saserver/view"
)

// pathComponents are the components that MultiPathRecord and PathRecord share.
var pathComponents = []struct{ multi, path sa.ComponentMask }{
	{sa.MultiPathRecordRawTraffic, sa.PathRecordRawTraffic},
	{sa.MultiPathRecordFlowLabel, sa.PathRecordFlowLabel},
	{sa.MultiPathRecordTClass, sa.PathRecordTClass},
	{sa.MultiPathRecordReversible, sa.PathRecordReversible},
	{sa.MultiPathRecordPKey, sa.PathRecordPKey},
	{sa.MultiPathRecordQoSClass, sa.PathRecordQoSClass},
	{sa.MultiPathRecordSL, sa.PathRecordSL},
	{sa.MultiPathRecordMTUSelector, sa.PathRecordMTUSelector},
	{sa.MultiPathRecordMTU, sa.PathRecordMTU},
	{sa.MultiPathRecordRateSelector, sa.PathRecordRateSelector},
	{sa.MultiPathRecordRate, sa.PathRecordRate},
	{sa.MultiPathRecordPacketLifeTimeSelector, sa.PathRecordPacketLifeTimeSelector},
	{sa.MultiPathRecordPacketLifeTime, sa.PathRecordPacketLifeTime},
	{sa.MultiPathRecordServiceID8MSB, sa.PathRecordServiceID8MSB},
	{sa.MultiPathRecordServiceID56LSB, sa.PathRecordServiceID56LSB},
}

// multiNeeds are the components that say between which ports.
const multiNeeds = sa.MultiPathRecordSGIDCount | sa.MultiPathRecordDGIDCount

// multiMasks is the number of components of MultiPathRecord.
const multiMasks = 22

// MultiPaths calls emit with the paths from every source to every destination
// of a query, at most NumbPath of them in all, which is any number when the
// query does not say. Pairs of ports come before the other LIDs of a pair, so
// that few paths have as little in common as can be. The budget is how many
// pairs may be looked at, and what is left of it after.
func MultiPaths(s *Subject, a view.Asker, mask sa.ComponentMask, want *sa.MultiPathRecord, budget *int, emit func(*sa.PathRecord) bool) mad.Status {
	switch {
	case mask>>multiMasks != 0:
		return sa.StatusRequestInvalid
	case !mask.Has(multiNeeds) || len(want.SGIDs) == 0 || len(want.DGIDs) == 0:
		return sa.StatusInsufficientComponents
	}
	q := PathQuery{Asker: a, Mask: sa.PathRecordSGID | sa.PathRecordDGID, Budget: *budget}
	defer func() { *budget = q.Budget }()
	q.Want.PathProperties, q.Want.ServiceID = want.PathProperties, want.ServiceID
	for _, c := range pathComponents {
		if mask.Has(c.multi) {
			q.Mask |= c.path
		}
	}
	most := pathsPerPair
	if mask.Has(sa.MultiPathRecordNumbPath) {
		most = int(want.NumbPath)
	}
	for round := 0; ; round++ {
		more, wanted := false, true
		for _, sgid := range want.SGIDs {
			for _, dgid := range want.DGIDs {
				q.Want.SGID, q.Want.DGID = sgid, dgid
				at := 0
				Paths(s, &q, func(r *sa.PathRecord) bool {
					if at++; at <= round {
						return true // given in an earlier round
					}
					if most == 0 {
						wanted = false
						return false
					}
					most--
					more = true
					wanted = emit(r)
					return false
				})
				switch {
				case q.Budget < 0:
					return sa.StatusNoResources
				case !wanted:
					return mad.StatusOK
				}
			}
		}
		if !more {
			return mad.StatusOK
		}
	}
}
