package server

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
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

// MultiQuery asks for paths between many ports.
type MultiQuery struct {
	Asker
	Mask sa.ComponentMask // of MultiPathRecord
	Want sa.MultiPathRecord
	// Budget is how many pairs may be looked at; what is left of it after.
	Budget int
	// Own is as in PathQuery: one side names nobody but the asker.
	Own bool
	// Walk cuts the answer into turns: while there is more, MultiPaths wants to
	// be called again.
	Walk Walk

	paths PathQuery
	begun bool
	round int
	most  int
	found bool // a path in this round
}

// MultiPaths calls emit with the paths from every source to every destination
// of a query, at most NumbPath of them in all, which is any number when the
// query does not say. Pairs of ports come before the other LIDs of a pair, so
// that few paths have as little in common as can be. A GID that is named twice
// counts once.
func MultiPaths(s *Subject, q *MultiQuery, emit func(*sa.PathRecord) bool) mad.Status {
	if !q.begun {
		if status := q.begin(s); status != mad.StatusOK {
			return status
		}
	}
	q.Walk.begin()
	q.paths.Budget = q.Budget
	defer func() { q.Budget = q.paths.Budget }()
	pairs := len(q.Want.SGIDs) * len(q.Want.DGIDs)
	for {
		for i := q.Walk.at; i < pairs; i++ {
			if q.Walk.ended(i) {
				return mad.StatusOK
			}
			q.Walk.left -= q.round // those of earlier rounds are made again
			q.paths.Want.SGID, q.paths.Want.DGID = q.Want.SGIDs[i/len(q.Want.DGIDs)], q.Want.DGIDs[i%len(q.Want.DGIDs)]
			wanted := q.pair(s, emit)
			switch {
			case q.paths.Budget < 0:
				return sa.StatusNoResources
			case !wanted:
				return mad.StatusOK
			}
		}
		if !q.found {
			return mad.StatusOK
		}
		q.round, q.found, q.Walk.at = q.round+1, false, 0
	}
}

// begin takes the query apart.
func (q *MultiQuery) begin(s *Subject) mad.Status {
	switch {
	case q.Mask>>multiMasks != 0:
		return sa.StatusRequestInvalid
	case !q.Mask.Has(multiNeeds) || len(q.Want.SGIDs) == 0 || len(q.Want.DGIDs) == 0:
		return sa.StatusInsufficientComponents
	}
	q.Want.SGIDs, q.Want.DGIDs = once(q.Want.SGIDs), once(q.Want.DGIDs)
	foreign := func(g ib.GID) bool { return s.Port(g) != q.Port }
	if q.Own && slices.ContainsFunc(q.Want.SGIDs, foreign) && slices.ContainsFunc(q.Want.DGIDs, foreign) {
		return sa.StatusDenied
	}
	q.begun = true
	q.paths = PathQuery{Asker: q.Asker, Mask: sa.PathRecordSGID | sa.PathRecordDGID, Own: q.Own}
	q.paths.Want.PathProperties, q.paths.Want.ServiceID = q.Want.PathProperties, q.Want.ServiceID
	for _, c := range pathComponents {
		if q.Mask.Has(c.multi) {
			q.paths.Mask |= c.path
		}
	}
	q.most = pathsPerPair
	if q.Mask.Has(sa.MultiPathRecordNumbPath) {
		q.most = int(q.Want.NumbPath)
	}
	return mad.StatusOK
}

// Restart has the query begin again; what was found is no more.
func (q *MultiQuery) Restart() {
	q.Walk.Restart()
	q.begun, q.round, q.found = false, 0, false
}

// pair hands out the path of this round from one port to another; false when no
// more is wanted.
func (q *MultiQuery) pair(s *Subject, emit func(*sa.PathRecord) bool) (wanted bool) {
	at := 0
	wanted = true
	Paths(s, &q.paths, func(r *sa.PathRecord) bool {
		if at++; at <= q.round {
			return true // given in an earlier round
		}
		if q.most == 0 {
			wanted = false
			return false
		}
		q.most--
		q.found = true
		wanted = emit(r)
		return false
	})
	return wanted
}

// once are the GIDs of a list without repetitions, in its order.
func once(list []ib.GID) []ib.GID {
	known := make(map[ib.GID]bool, len(list))
	var out []ib.GID
	for _, g := range list {
		if !known[g] {
			known[g] = true
			out = append(out, g)
		}
	}
	return out
}
