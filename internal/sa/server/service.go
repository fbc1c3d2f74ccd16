package server

import (
	"bytes"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// services answers requests for ServiceRecords.
func (s *Server) services(q *request) {
	var r sa.ServiceRecord
	if r.UnmarshalBinary(q.data) != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	switch q.method {
	case mad.MethodSet:
		s.register(q, &r)
	case mad.MethodDelete:
		s.unregister(q, &r)
	default:
		s.findServices(q)
	}
}

// findServices lists the services that the asker may use: in a partition of
// both, and on a port that it sees by that.
func (s *Server) findServices(q *request) {
	match, err := NewMatch(q.id, q.mask, q.data)
	if err != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	s.inTurns(q, s.newTable(q), &serviceFinder{asker: q.Asker, now: q.now, match: match, budget: q.budget})
}

// serviceFinder answers queries for ServiceRecords.
type serviceFinder struct {
	asker  Asker
	now    time.Duration
	match  *Match
	budget int
	last   uint64 // of the service that the last turn ended with
}

func (f *serviceFinder) turn(s *Server, t *table) (mad.Status, int, bool) {
	for n, x := range s.store.servicesFrom(f.last) {
		if n == s.config.Limits.Turn {
			return mad.StatusOK, f.budget, true
		}
		f.last = x.serial
		f.budget--
		if x.ends() && f.now >= x.until || !s.seesService(f.asker, x) {
			continue
		}
		r := x.Record
		if x.ends() {
			r.ServiceLease = uint32((x.until - f.now + time.Second - 1) / time.Second)
		}
		if !f.asker.Trusted && x.Port != f.asker.Port.GUID {
			r.ServiceKey = [16]byte{}
		}
		b, err := r.AppendBinary(nil)
		if err == nil && f.match.Matches(b) && !t.add(b) {
			break
		}
	}
	return mad.StatusOK, f.budget, false
}

// seesService reports whether an asker may learn of a service.
func (s *Server) seesService(a Asker, x *Service) bool {
	p := s.view.Owner(x.Port)
	if p == nil || !a.Sees(p) {
		return false
	}
	base := x.Record.ServicePKey.Base()
	if base == 0 || p == a.Port || a.All {
		return true
	}
	return a.Port.Key(base).Matches(p.Key(base))
}

// serviceNeeds are the components that tell services apart.
const serviceNeeds = sa.ServiceRecordServiceID | sa.ServiceRecordServiceGID

// owned judges whether the asker may register or end a service: at its own port
// and in a partition that it is in.
func (s *Server) owned(q *request, r *sa.ServiceRecord) mad.Status {
	if !q.mask.Has(serviceNeeds) {
		return sa.StatusInsufficientComponents
	}
	p := s.subject.Port(r.ServiceGID)
	switch {
	case p == nil || p != q.Asker.Port:
		s.counts.Refused++
		return sa.StatusInvalidGID
	case !q.mask.Has(sa.ServiceRecordServicePKey):
		r.ServicePKey = ib.PKeyInvalid
	case r.ServicePKey.Base() != 0 && !q.Holds(r.ServicePKey.Base()):
		return sa.StatusRequestInvalid
	}
	return mad.StatusOK
}

func (s *Server) register(q *request, r *sa.ServiceRecord) {
	if status := s.owned(q, r); status != mad.StatusOK {
		s.reply(q, status, nil)
		return
	}
	if !q.mask.Has(sa.ServiceRecordServiceLease) {
		r.ServiceLease = sa.ServiceLeaseForever
	}
	if !q.mask.Has(sa.ServiceRecordServiceKey) {
		r.ServiceKey = [16]byte{}
	}
	port, l := q.Asker.Port.GUID, &s.config.Limits
	x := &Service{Record: *r, Port: port, until: q.now + time.Duration(r.ServiceLease)*time.Second}
	old := s.store.service(r)
	switch {
	case old != nil && old.Record.ServiceKey != r.ServiceKey && !q.Trusted:
		s.reply(q, sa.StatusDenied, nil)
		return
	case old != nil:
		x.serial = old.serial
		*old = *x
		x = old
	case !room(len(s.store.services), l.ServicesTotal, s.store.offered[port], l.Services):
		s.reply(q, sa.StatusNoResources, nil)
		return
	default:
		s.store.offer(x)
	}
	s.store.keep(x)
	s.version++
	b, err := r.AppendBinary(nil)
	if err != nil {
		b = q.data // not with what was read from a datagram
	}
	s.reply(q, mad.StatusOK, b)
}

func (s *Server) unregister(q *request, r *sa.ServiceRecord) {
	if status := s.owned(q, r); status != mad.StatusOK {
		s.reply(q, status, nil)
		return
	}
	x := s.store.service(r)
	if x == nil {
		s.reply(q, sa.StatusNoRecords, nil)
		return
	}
	if !q.Trusted && !bytes.Equal(x.Record.ServiceKey[:], r.ServiceKey[:]) {
		s.reply(q, sa.StatusDenied, nil)
		return
	}
	s.store.withdraw(x)
	s.version++
	s.reply(q, mad.StatusOK, q.data)
}
