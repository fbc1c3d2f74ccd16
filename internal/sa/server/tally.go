package server

import (
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Kind is a kind of request and how it was answered. Method and Attribute are 0 for
// requests that subnet administration does not have, so that there is a bounded number
// of kinds, whatever hosts send.
type Kind struct {
	Method    mad.Method
	Attribute mad.AttributeID
	Status    mad.Status
}

// tally counts an answer.
func (s *Server) tally(q *request, status mad.Status) {
	k := Kind{q.method, q.id, status}
	if s.supports(q) != mad.StatusOK {
		k.Method, k.Attribute = 0, 0
	}
	s.answers[k]++
}

// Answers calls yield with the number of answers of each kind, in no order.
func (s *Server) Answers(yield func(Kind, uint64)) {
	for k, n := range s.answers {
		yield(k, n)
	}
}
