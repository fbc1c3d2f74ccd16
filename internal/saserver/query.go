package saserver

import (
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/saserver/record"
)

// find answers queries about the subnet.
func (s *Server) find(q *request) {
	t := s.newTable(q)
	x := record.Query{
		Asker: q.Asker, ID: q.id, Modifier: q.modifier(), Mask: q.mask, Data: q.data, Budget: q.budget,
	}
	status := record.Find(&s.subject, &x, t.add)
	q.budget = x.Budget
	s.finish(q, t, status)
}

// pathQuery reads a query for paths; false when it was answered with an error.
func (s *Server) pathQuery(q *request) (*record.PathQuery, bool) {
	x := &s.path
	x.Asker, x.Mask, x.Budget, x.One = q.Asker, q.mask, q.budget, q.method == mad.MethodGet
	if x.Want.UnmarshalBinary(q.data) != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return nil, false
	}
	return x, true
}

// paths answers queries for PathRecords.
func (s *Server) paths(q *request) {
	x, ok := s.pathQuery(q)
	if !ok {
		return
	}
	t := s.newTable(q)
	status := record.Paths(&s.subject, x, func(r *sa.PathRecord) bool {
		b, err := r.AppendBinary(s.octets[:0])
		return err != nil || t.add(b)
	})
	q.budget = x.Budget
	s.finish(q, t, status)
}

// multiPaths answers queries for paths between many ports.
func (s *Server) multiPaths(q *request) {
	var want sa.MultiPathRecord
	if want.UnmarshalBinary(q.data) != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	t := s.newTable(q)
	status := record.MultiPaths(&s.subject, q.Asker, q.mask, &want, &q.budget, func(r *sa.PathRecord) bool {
		b, err := r.AppendBinary(nil)
		return err != nil || t.add(b)
	})
	s.finish(q, t, status)
}

// trace answers queries for the devices on a path.
func (s *Server) trace(q *request) {
	x, ok := s.pathQuery(q)
	if !ok {
		return
	}
	t := s.newTable(q)
	status := record.Trace(&s.subject, x, func(r *sa.TraceRecord) bool {
		b, err := r.AppendBinary(nil)
		return err != nil || t.add(b)
	})
	q.budget = x.Budget
	s.finish(q, t, status)
}
