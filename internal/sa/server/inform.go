package server

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// The values of InformInfo that take everything.
const (
	anyTrap     smp.TrapNumber = 0xFFFF
	anyType     uint16         = 0xFFFF
	anyProducer uint32         = 0xFF_FFFF
)

// subscribe begins or ends a subscription. Those for security traps need trust;
// one for all traps gets the others without it.
func (s *Server) subscribe(q *request) {
	var r sa.InformInfo
	if r.UnmarshalBinary(q.data) != nil || r.Subscribe > 1 || r.IsGeneric > 1 {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	if r.QPN == 0 {
		r.QPN = q.from.QP
	}
	port := q.Asker.Port.GUID
	mine := s.store.subscribed[port]
	at := slices.IndexFunc(mine, func(x *Subscription) bool { return sameInform(&x.Inform, &r) })
	l := &s.config.Limits
	switch {
	case r.Subscribe == 0 && at < 0:
		s.reply(q, sa.StatusNoRecords, nil)
		return
	case r.Subscribe == 0:
		s.store.unsubscribe(mine[at])
	case r.IsGeneric == 1 && isSecurity(r.TrapNumber) && !q.Trusted:
		s.counts.Refused++
		s.reply(q, sa.StatusDenied, nil)
		return
	case at >= 0:
		x := mine[at]
		x.Address, x.Trusted, x.failures = reportAddress(q.from, r.QPN), q.keyed, 0
	case !room(len(s.store.subscriptions), l.SubscriptionsTotal, len(mine), l.Subscriptions):
		s.reply(q, sa.StatusNoResources, nil)
		return
	default:
		s.store.enum++
		s.store.subscribe(&Subscription{
			Port: port, Address: reportAddress(q.from, r.QPN), Inform: r, Trusted: q.keyed, Enum: s.store.enum,
		})
	}
	s.version++
	s.reply(q, mad.StatusOK, q.data)
}

// reportAddress is where the reports of a subscription go.
func reportAddress(from mad.Address, qp ib.QPN) mad.Address {
	from.QP = qp
	return from
}

// sameInform reports whether two InformInfos are of the same events and queue
// pair.
func sameInform(a, b *sa.InformInfo) bool {
	x, y := *a, *b
	x.Subscribe, y.Subscribe, x.RespTimeValue, y.RespTimeValue = 0, 0, 0, 0
	return x == y
}

func isSecurity(n smp.TrapNumber) bool { return n >= smp.TrapBadMKey && n <= smp.TrapSwitchBadPKey }

// subscriptions lists those of the asker, and to the trusted those of all ports
// that they see.
func (s *Server) subscriptions(q *request) {
	match, err := NewMatch(q.id, q.mask, q.data)
	if err != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	t := s.newTable(q)
	list := s.store.subscribed[q.Asker.Port.GUID]
	if q.Trusted {
		list = s.store.subscriptions
	}
	list = slices.SortedFunc(slices.Values(list), compareSubscriptions)
	for _, x := range list {
		q.budget--
		p := s.view.Owner(x.Port)
		if p != q.Asker.Port && !(q.Trusted && q.Sees(p)) {
			continue
		}
		r := sa.InformInfoRecord{SubscriberGID: p.GID, Enum: x.Enum, InformInfo: x.Inform}
		b, err := r.AppendBinary(nil)
		if err == nil && match.Matches(b) && !t.add(b) {
			break
		}
	}
	s.finish(q, t, mad.StatusOK)
}

// wants reports whether a subscription, of a port that is trusted or not, is for
// a notice.
func (x *Subscription) wants(n *smp.Notice, issuer ib.GID, trusted bool) bool {
	f := &x.Inform
	switch {
	case f.GID != (ib.GID{}) && f.GID != issuer:
		return false
	case f.GID == (ib.GID{}) && f.LIDRangeBegin != ib.LIDPermissive && f.LIDRangeBegin != 0 &&
		(n.IssuerLID < f.LIDRangeBegin || n.IssuerLID > max(f.LIDRangeBegin, f.LIDRangeEnd)):
		return false
	case n.IsGeneric != (f.IsGeneric == 1):
		return false
	case f.TrapNumber != anyTrap && f.TrapNumber != n.TrapNumber,
		f.Type != anyType && f.Type != uint16(n.Type),
		f.Producer != anyProducer && f.Producer != n.Producer:
		return false
	}
	return trusted || !n.IsGeneric || !isSecurity(n.TrapNumber)
}
