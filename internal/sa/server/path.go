package server

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// PathQuery asks for paths.
type PathQuery struct {
	Asker
	Mask sa.ComponentMask // of PathRecord
	Want sa.PathRecord
	// One asks for no more than one path for each pair of ports.
	One bool
	// Budget is how many pairs of ports may be looked at; what is left of it
	// after.
	Budget int
	// Own asks for paths that begin or end at the asker's port only: it stands
	// for the end that a query leaves open.
	Own bool
	// Walk cuts the answer into turns: while there is more, Paths wants to be
	// called again.
	Walk Walk

	path sa.PathRecord // handed out, so that none is made for each path
	seen []*Port       // of queries for all pairs
}

const (
	pathMasks = 22 // components of PathRecord
	// pathsPerPair is the most paths for one pair: as many as NumbPath holds.
	pathsPerPair = 127
)

// Paths calls emit with every path that the query asks for and the asker may be
// told of, until emit returns false or the turn ends. The record is emit's only
// while it runs.
//
// There is one path for each pair of ports and each LID of the destination, with
// the lowest partition that both share (in which the asker is too, when it is
// neither of them).
func Paths(s *Subject, q *PathQuery, emit func(*sa.PathRecord) bool) mad.Status {
	if q.Mask>>pathMasks != 0 {
		return sa.StatusRequestInvalid
	}
	if q.Mask.Has(sa.PathRecordDGID) && q.Want.DGID.IsMulticast() {
		return multicastPaths(s, q, emit)
	}
	from, anyFrom, ok := s.end(q, sa.PathRecordSGID, q.Want.SGID, sa.PathRecordSLID, q.Want.SLID)
	if !ok {
		return mad.StatusOK
	}
	to, anyTo, ok := s.end(q, sa.PathRecordDGID, q.Want.DGID, sa.PathRecordDLID, q.Want.DLID)
	if !ok {
		return mad.StatusOK
	}
	if q.Own {
		switch own := q.Port; {
		case !anyFrom && from == own, !anyTo && to == own:
		case !anyFrom && !anyTo:
			return sa.StatusDenied
		case anyFrom:
			from, anyFrom = own, false
		default:
			to, anyTo = own, false
		}
	}
	q.Walk.begin()
	s.each(q, from, anyFrom, to, anyTo, emit)
	if q.Budget < 0 {
		return sa.StatusNoResources
	}
	return mad.StatusOK
}

// each goes over the pairs of ports that a query is about.
func (s *Subject) each(q *PathQuery, from *Port, anyFrom bool, to *Port, anyTo bool, emit func(*sa.PathRecord) bool) {
	ports := s.View.Ports
	switch {
	case !anyFrom && !anyTo:
		s.between(q, from, to, emit)
	case !anyFrom:
		for i := q.Walk.at; i < len(ports) && !q.Walk.ended(i); i++ {
			if q.Sees(ports[i]) && !s.between(q, from, ports[i], emit) {
				return
			}
		}
	case !anyTo:
		for i := q.Walk.at; i < len(ports) && !q.Walk.ended(i); i++ {
			if q.Sees(ports[i]) && !s.between(q, ports[i], to, emit) {
				return
			}
		}
	default:
		s.allPairs(q, emit)
	}
}

func (s *Subject) allPairs(q *PathQuery, emit func(*sa.PathRecord) bool) {
	if q.Walk.at == 0 {
		q.seen = nil
		for _, p := range s.View.Ports {
			if q.Sees(p) {
				q.seen = append(q.seen, p)
			}
		}
	}
	n := len(q.seen)
	for i := q.Walk.at; i < n*n && !q.Walk.ended(i); i++ {
		if !s.between(q, q.seen[i/n], q.seen[i%n], emit) {
			return
		}
	}
}

// Port is the end port that a GID names, be it an alias; nil for none.
func (s *Subject) Port(g ib.GID) *Port {
	if p := s.View.Named(g); p != nil || s.Owner == nil {
		return p
	}
	if owner, ok := s.Owner(g.PortGUID()); ok && g == ib.MakeGID(s.View.GIDPrefix, g.PortGUID()) {
		return s.View.Owner(owner)
	}
	return nil
}

// end is one end of the paths that a query asks for, when it names one. It is
// not ok when there is none that the asker sees, or two different ones.
func (s *Subject) end(q *PathQuery, hasGID sa.ComponentMask, g ib.GID, hasLID sa.ComponentMask, lid ib.LID) (p *Port, all, ok bool) {
	byGID, byLID := q.Mask.Has(hasGID), q.Mask.Has(hasLID)
	if byGID {
		p = s.Port(g)
	}
	if byLID {
		at := s.View.At(lid)
		if byGID && at != p {
			return nil, false, false
		}
		p = at
	}
	all = !byGID && !byLID
	return p, all, all || q.Sees(p)
}

// between hands out the paths from one port to another; false when emit wants
// no more.
func (s *Subject) between(q *PathQuery, from, to *Port, emit func(*sa.PathRecord) bool) bool {
	if q.Budget--; q.Budget < 0 {
		return false
	}
	key := s.key(q, from, to)
	if !key.IsValid() {
		return true
	}
	most := pathsPerPair
	if q.Mask.Has(sa.PathRecordNumbPath) {
		most = int(q.Want.NumbPath)
	}
	if q.One {
		most = min(most, 1)
	}
	fixedTo, fixedFrom := q.Mask.Has(sa.PathRecordDLID), q.Mask.Has(sa.PathRecordSLID)
	for i := range to.LMC.Count() {
		dlid, slid := to.LID+ib.LID(i), from.LID+ib.LID(i%from.LMC.Count())
		if fixedTo {
			if dlid != q.Want.DLID {
				continue
			}
		}
		if fixedFrom {
			slid = q.Want.SLID
		}
		if most == 0 {
			return true
		}
		if !s.build(q, from, to, slid, dlid, key) {
			continue
		}
		most--
		if !emit(&q.path) {
			return false
		}
	}
	return true
}

// key is the key of from that paths to to have; 0 for none that the asker may
// know of.
func (s *Subject) key(q *PathQuery, from, to *Port) (found ib.PKey) {
	stated := q.Mask.Has(sa.PathRecordPKey)
	Common(from, to, func(k ib.PKey) bool {
		if stated && k.Base() != q.Want.PKey.Base() || !s.View.MayUse(q.Asker, from, to, k) {
			return true
		}
		found = k
		return false
	})
	return found
}

// build fills q.path; false when there is no such path.
func (s *Subject) build(q *PathQuery, from, to *Port, slid, dlid ib.LID, key ib.PKey) bool {
	p, ok := s.View.Path(from, to, slid, dlid)
	if !ok || q.Mask.Has(sa.PathRecordReversible) && q.Want.Reversible && !p.Reversible {
		return false
	}
	life := s.View.Lifetime
	if from == to {
		life = 0
	}
	r := &q.path
	*r = sa.PathRecord{DGID: to.GID, SGID: from.GID, DLID: dlid, SLID: slid}
	if q.Mask.Has(sa.PathRecordDGID) {
		r.DGID = q.Want.DGID
	}
	if q.Mask.Has(sa.PathRecordSGID) {
		r.SGID = q.Want.SGID
	}
	level, limit := q.service(s.View.Partition(key.Base()))
	r.Reversible, r.PKey, r.SL = p.Reversible, key, s.View.Levels.Between(level, from.Port, to.Port)
	r.MTU, r.Rate, r.PacketLifeTime = p.MTU, Within(p.Rate, limit), life
	return q.suits(r)
}

// service is the level of paths in a partition, and the most that they are said to carry, 0
// for no limit: to the service that the query names, if it names one. Whatever it names, the
// policy gives the partition that level.
func (q *PathQuery) service(p *observed.Partition) (level ib.SL, limit ib.Rate) {
	switch {
	case p == nil:
		return 0, 0
	case q.Mask.Has(sa.PathRecordServiceID8MSB | sa.PathRecordServiceID56LSB):
		return p.LevelTo(q.Want.ServiceID), p.RateLimit
	}
	return p.SL, p.RateLimit
}

// suits holds a path against the rest of a query, and takes from the path what
// the query wants less of.
func (q *PathQuery) suits(r *sa.PathRecord) bool {
	want, mask := &q.Want, q.Mask
	switch {
	case mask.Has(sa.PathRecordSL) && want.SL != r.SL,
		mask.Has(sa.PathRecordQoSClass) && want.QoSClass != 0,
		mask.Has(sa.PathRecordRawTraffic) && want.RawTraffic:
		return false
	}
	r.MTUSelector, r.RateSelector, r.PacketLifeTimeSelector = sa.SelectExactly, sa.SelectExactly, sa.SelectExactly
	if mask.Has(sa.PathRecordMTUSelector|sa.PathRecordMTU) && !takeMTU(r, want.MTUSelector, want.MTU) {
		return false
	}
	if mask.Has(sa.PathRecordRateSelector|sa.PathRecordRate) && !takeRate(r, want.RateSelector, want.Rate) {
		return false
	}
	if mask.Has(sa.PathRecordPacketLifeTimeSelector|sa.PathRecordPacketLifeTime) && !takeLifetime(r, want.PacketLifeTimeSelector, want.PacketLifeTime) {
		return false
	}
	if mask.Has(sa.PathRecordTClass) {
		r.TClass = want.TClass
	}
	if mask.Has(sa.PathRecordFlowLabel) {
		r.FlowLabel = want.FlowLabel
	}
	if mask.Has(sa.PathRecordServiceID8MSB) || mask.Has(sa.PathRecordServiceID56LSB) {
		r.ServiceID = want.ServiceID
	}
	return true
}

// takeMTU: a path carries every MTU up to its own.
func takeMTU(r *sa.PathRecord, selector sa.Selector, want ib.MTU) bool {
	switch selector {
	case sa.SelectGreater:
		return r.MTU > want
	case sa.SelectLess:
		if r.MTU >= want {
			r.MTU = want - 1
		}
		return want.IsValid() && r.MTU.IsValid()
	case sa.SelectExactly:
		if !want.IsValid() || want > r.MTU {
			return false
		}
		r.MTU = want
	}
	return true
}

// takeRate: packets can be sent slower than a path is.
func takeRate(r *sa.PathRecord, selector sa.Selector, want ib.Rate) bool {
	switch selector {
	case sa.SelectGreater:
		return r.Rate.Tenths() > want.Tenths()
	case sa.SelectLess:
		if r.Rate.Tenths() < want.Tenths() {
			return true
		}
		best := ib.Rate(0)
		for c := ib.Rate(0); c < 64; c++ { // 6 bits
			if t := c.Tenths(); t > best.Tenths() && t < want.Tenths() {
				best = c
			}
		}
		r.Rate = best
		return best.IsValid()
	case sa.SelectExactly:
		if !want.IsValid() || want.Tenths() > r.Rate.Tenths() {
			return false
		}
		r.Rate = want
	}
	return true
}

// takeLifetime: packets may be under way for as long as they may, or for longer
// in the asker's book.
func takeLifetime(r *sa.PathRecord, selector sa.Selector, want ib.TimeValue) bool {
	switch selector {
	case sa.SelectGreater:
		return r.PacketLifeTime > want
	case sa.SelectLess:
		return r.PacketLifeTime < want
	case sa.SelectExactly:
		if want < r.PacketLifeTime {
			return false
		}
		r.PacketLifeTime = want
	}
	return true
}

// multicastPaths gives the path from a port to a multicast group.
func multicastPaths(s *Subject, q *PathQuery, emit func(*sa.PathRecord) bool) mad.Status {
	g := s.Groups.Group(q.Want.DGID)
	from, all, ok := s.end(q, sa.PathRecordSGID, q.Want.SGID, sa.PathRecordSLID, q.Want.SLID)
	if all {
		from, ok = q.Port, true
	}
	if q.Own && ok && from != q.Port {
		return sa.StatusDenied
	}
	if g == nil || !ok || !q.Knows(g.Partition) || !from.Key(g.Partition).IsValid() ||
		q.Mask.Has(sa.PathRecordDLID) && q.Want.DLID != g.MLID ||
		q.Mask.Has(sa.PathRecordPKey) && q.Want.PKey.Base() != g.Partition {
		return mad.StatusOK
	}
	r := &q.path
	*r = sa.PathRecord{DGID: g.MGID, SGID: from.GID, DLID: g.MLID, SLID: from.LID}
	if q.Mask.Has(sa.PathRecordSGID) {
		r.SGID = q.Want.SGID
	}
	if q.Mask.Has(sa.PathRecordSLID) {
		r.SLID = q.Want.SLID
	}
	r.PKey, r.SL, r.TClass, r.FlowLabel, r.HopLimit = from.Key(g.Partition), s.View.Levels.OfGroup(g.SL), g.TClass, g.FlowLabel, g.HopLimit
	r.MTU, r.Rate, r.PacketLifeTime = g.MTU, g.Rate, g.Lifetime
	// A group goes one way, and its packets carry its own traffic class and
	// flow label.
	if q.Mask.Has(sa.PathRecordReversible) && q.Want.Reversible ||
		q.Mask.Has(sa.PathRecordTClass) && q.Want.TClass != g.TClass ||
		q.Mask.Has(sa.PathRecordFlowLabel) && q.Want.FlowLabel != g.FlowLabel {
		return mad.StatusOK
	}
	if q.suits(r) {
		emit(r)
	}
	return mad.StatusOK
}
