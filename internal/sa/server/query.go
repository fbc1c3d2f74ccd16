package server

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// find answers queries about the subnet.
func (s *Server) find(q *request) {
	s.inTurns(q, s.newTable(q), &finder{Query{
		Asker: q.Asker, ID: q.id, Modifier: q.modifier(), Mask: q.mask, Data: slices.Clone(q.data), Budget: q.budget,
		Walk: Walk{Most: s.config.Limits.Turn},
	}})
}

type finder struct{ Query }

func (f *finder) turn(s *Server, t *table) (mad.Status, int, bool) {
	status := Find(&s.subject, &f.Query, t.add)
	return status, f.Budget, f.Walk.More()
}

// onePath names both ends of a path: such a query is answered in one turn, and
// there are many of them.
func onePath(mask sa.ComponentMask) bool {
	return (mask.Has(sa.PathRecordSGID) || mask.Has(sa.PathRecordSLID)) && (mask.Has(sa.PathRecordDGID) || mask.Has(sa.PathRecordDLID))
}

// pathQuery reads a query for paths; false when it was answered with an error.
func (s *Server) pathQuery(q *request) (*pathFinder, bool) {
	x := &s.path
	if !onePath(q.mask) {
		x = new(pathFinder)
	}
	x.Asker, x.Mask, x.Budget, x.One, x.Own = q.Asker, q.mask, q.budget, q.method == mad.MethodGet, s.restricts(q)
	x.Walk = Walk{Most: s.config.Limits.Turn}
	if x.Want.UnmarshalBinary(q.data) != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return nil, false
	}
	return x, true
}

// pathFinder answers queries for PathRecords.
type pathFinder struct{ PathQuery }

func (f *pathFinder) turn(s *Server, t *table) (mad.Status, int, bool) {
	status := Paths(&s.subject, &f.PathQuery, func(r *sa.PathRecord) bool { return s.addPath(r, t) })
	return status, f.Budget, f.Walk.More()
}

func (s *Server) addPath(r *sa.PathRecord, t *table) bool {
	b, err := r.AppendBinary(s.bytes[:0])
	return err != nil || t.add(b)
}

func (s *Server) paths(q *request) {
	if x, ok := s.pathQuery(q); ok {
		s.inTurns(q, s.newTable(q), x)
	}
}

// multiPaths answers queries for paths between many ports.
func (s *Server) multiPaths(q *request) {
	x := &multiFinder{MultiQuery{
		Asker: q.Asker, Mask: q.mask, Budget: q.budget, Own: s.restricts(q), Walk: Walk{Most: s.config.Limits.Turn},
	}}
	if x.Want.UnmarshalBinary(q.data) != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	s.inTurns(q, s.newTable(q), x)
}

type multiFinder struct{ MultiQuery }

func (f *multiFinder) turn(s *Server, t *table) (mad.Status, int, bool) {
	status := MultiPaths(&s.subject, &f.MultiQuery, func(r *sa.PathRecord) bool { return s.addPath(r, t) })
	return status, f.Budget, f.Walk.More()
}

// trace answers queries for the devices on a path.
func (s *Server) trace(q *request) {
	if x, ok := s.pathQuery(q); ok {
		s.inTurns(q, s.newTable(q), &tracer{x})
	}
}

type tracer struct{ *pathFinder }

func (f *tracer) turn(s *Server, t *table) (mad.Status, int, bool) {
	status := Trace(&s.subject, &f.PathQuery, func(r *sa.TraceRecord) bool {
		b, err := r.AppendBinary(nil)
		return err != nil || t.add(b)
	})
	return status, f.Budget, f.Walk.More()
}
