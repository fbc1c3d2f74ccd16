package saserver

import (
	"bytes"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/saserver/record"
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
	match, err := record.NewMatch(q.id, q.mask, q.data)
	if err != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	t := s.newTable(q)
	for _, x := range s.store.services {
		q.budget--
		if x.ends() && q.now >= x.until || !s.seesService(q, x) {
			continue
		}
		r := x.Record
		if x.ends() {
			r.ServiceLease = uint32((x.until - q.now + time.Second - 1) / time.Second)
		}
		if !q.Trusted && x.Port != q.Asker.Port.GUID {
			r.ServiceKey = [16]byte{}
		}
		b, err := r.AppendBinary(nil)
		if err == nil && match.Matches(b) && !t.add(b) {
			break
		}
	}
	s.finish(q, t, mad.StatusOK)
}

// seesService reports whether an asker may learn of a service.
func (s *Server) seesService(q *request, x *Service) bool {
	p := s.view.Owner(x.Port)
	if p == nil || !q.Sees(p) {
		return false
	}
	base := x.Record.ServicePKey.Base()
	if base == 0 || p == q.Asker.Port {
		return true
	}
	return q.Asker.Port.Key(base).Matches(p.Key(base))
}

// sameService reports whether two records are of one service.
func sameService(a, b *sa.ServiceRecord) bool {
	return a.ServiceID == b.ServiceID && a.ServiceGID == b.ServiceGID && a.ServicePKey.Base() == b.ServicePKey.Base()
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
	at := slices.IndexFunc(s.store.services, func(x *Service) bool { return sameService(&x.Record, r) })
	switch {
	case at >= 0 && s.store.services[at].Record.ServiceKey != r.ServiceKey && !q.Trusted:
		s.reply(q, sa.StatusDenied, nil)
		return
	case at >= 0:
		s.store.services[at] = x
	case len(s.store.services) >= l.ServicesTotal,
		count(s.store.services, func(x *Service) bool { return x.Port == port }) >= l.Services:
		s.reply(q, sa.StatusNoResources, nil)
		return
	default:
		s.store.services = append(s.store.services, x)
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
	at := slices.IndexFunc(s.store.services, func(x *Service) bool { return sameService(&x.Record, r) })
	if at < 0 {
		s.reply(q, sa.StatusNoRecords, nil)
		return
	}
	if x := s.store.services[at]; !q.Trusted && !bytes.Equal(x.Record.ServiceKey[:], r.ServiceKey[:]) {
		s.reply(q, sa.StatusDenied, nil)
		return
	}
	s.store.services = slices.Delete(s.store.services, at, at+1)
	s.version++
	s.reply(q, mad.StatusOK, q.data)
}
