package server

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// report is one notice on its way to one subscriber.
type report struct {
	to    *Subscription
	m     [mad.Size]byte
	tries int // left
	due   time.Duration
}

// reports are those that wait for an answer, or to leave.
type reports struct {
	byID  map[uint64]*report
	send  []*report             // to leave, in order
	each  map[*Subscription]int // of a subscription
	ports map[ib.PortGUID]int   // of a port
	id    uint64
	bound time.Duration // nothing is due before
}

// failuresMax is after how many unanswered reports in a row a subscription ends.
const failuresMax = 8

func newReports() reports {
	return reports{byID: make(map[uint64]*report), each: make(map[*Subscription]int), ports: make(map[ib.PortGUID]int)}
}

func (r *reports) deadline() (time.Duration, bool) { return r.bound, len(r.byID) > 0 }

// Notice tells subscribers of an event that a device reported, as far as they
// may learn of the device. One that came from another port than it names as its
// issuer is nobody's report, and of GIDs and groups only the server itself tells;
// sender is the permissive LID where that is not known.
func (s *Server) Notice(now time.Duration, n smp.Notice, sender ib.LID) {
	if s.view == nil {
		return
	}
	if sender != ib.LIDPermissive && s.view.At(sender) != s.view.At(n.IssuerLID) || n.IsGeneric && n.TrapNumber < smp.TrapLinkStateChanged {
		s.counts.Refused++
		return
	}
	subject := s.view.At(subjectLID(&n))
	if subject == nil {
		return
	}
	issuer := subject.GID
	if p := s.view.At(n.IssuerLID); p != nil {
		issuer = p.GID
	}
	s.tell(now, n, issuer, func(a Asker) bool {
		if port := subjectPort(&n, subject); port != nil {
			return s.view.SeesPort(a, port)
		}
		return a.Sees(subject)
	})
}

// subjectPort is the port of a switch that a notice is about, or nil.
func subjectPort(n *smp.Notice, subject *Port) *observed.Port {
	details, ok := n.TypedDetails()
	if d, about := details.(*smp.PortDetails); ok && about && subject.Node.Switch != nil {
		return subject.Node.Port(d.Port)
	}
	return nil
}

// subjectLID is the LID of the device that a notice is about.
func subjectLID(n *smp.Notice) ib.LID {
	details, ok := n.TypedDetails()
	if !ok {
		return n.IssuerLID
	}
	switch d := details.(type) {
	case *smp.LinkStateDetails:
		return d.LID
	case *smp.PortDetails:
		return d.LID
	case *smp.LocalChangeDetails:
		return d.LID
	case *smp.SystemImageGUIDDetails:
		return d.LID
	}
	return n.IssuerLID
}

// telling is an event of which subscribers are being told.
type telling struct {
	n      smp.Notice
	issuer ib.GID
	data   []byte
	may    func(Asker) bool
	last   uint64 // the subscription that was told last
}

// tell sends a notice to every subscriber that wants it and may have it.
func (s *Server) tell(now time.Duration, n smp.Notice, issuer ib.GID, may func(Asker) bool) {
	if t, ok := newTelling(n, issuer, may); ok {
		s.tellSome(now, &t, len(s.store.subscriptions))
	}
}

// newTelling is not ok when a device sent what does not fit its fields.
func newTelling(n smp.Notice, issuer ib.GID, may func(Asker) bool) (telling, bool) {
	notice := sa.Notice{Notice: n, IssuerGID: issuer}
	data, err := notice.AppendBinary(nil)
	return telling{n: n, issuer: issuer, data: data, may: may}, err == nil
}

// tellSome goes over so many more subscriptions, and reports whether that was
// all of them.
func (s *Server) tellSome(now time.Duration, t *telling, most int) (done bool) {
	if s.view == nil {
		return true // another manager tells
	}
	for n, x := range s.store.subscriptionsFrom(t.last) {
		if n == most {
			return false
		}
		t.last = x.serial
		p := s.view.Owner(x.Port)
		if p == nil {
			continue
		}
		trusted, all := s.trust(p, x.Trusted)
		if !x.wants(&t.n, t.issuer, trusted) || !t.may(Asker{Port: p, Trusted: trusted, All: all}) {
			continue
		}
		l := &s.config.Limits
		if s.reports.each[x] >= l.ReportsEach || !room(len(s.reports.byID), l.Reports, s.reports.ports[x.Port], l.ReportsPort) {
			s.counts.Unreported++
			continue
		}
		s.report(now, x, t.data)
	}
	return true
}

// report has a notice leave for a subscriber.
func (s *Server) report(now time.Duration, x *Subscription, data []byte) {
	l := &s.config.Limits
	s.reports.id = (s.reports.id + 1) & 0xFFFF_FFFF
	r := &report{to: x, tries: l.ReportTries, due: now + l.ReportTime}
	head := mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: mad.MethodReport, TransactionID: s.reports.id, AttributeID: sa.AttrNotice,
	}
	_, _ = head.AppendBinary(r.m[:0]) // its fields fill their types
	copy(r.m[sa.DataOffset:], data)
	s.reports.byID[s.reports.id] = r
	s.reports.each[x]++
	s.reports.ports[x.Port]++
	s.reports.send = append(s.reports.send, r)
	if len(s.reports.byID) == 1 || r.due < s.reports.bound {
		s.reports.bound = r.due
	}
	s.counts.Reports++
}

// nextReport fills m with the next report to send.
func (s *Server) nextReport(now time.Duration, m *[mad.Size]byte) (to mad.Address, ok bool) {
	for len(s.reports.send) > 0 {
		r := s.reports.send[0]
		s.reports.send = s.reports.send[1:]
		if r.tries == 0 {
			continue // it ended while it waited
		}
		r.due = now + s.config.Limits.ReportTime
		if to, ok = s.reportTo(r.to); !ok {
			continue // no way there: it is due again, or given up
		}
		*m = r.m
		return to, true
	}
	return to, false
}

// reportAnswered takes a ReportResp of a subscriber.
func (s *Server) reportAnswered(from mad.Address, m *[mad.Size]byte) {
	id := reportID(m)
	r := s.reports.byID[id]
	if r == nil || r.to.Address.LID != from.LID {
		s.counts.Malformed++
		return
	}
	r.to.failures = 0
	s.endReport(id, r)
}

func (s *Server) endReport(id uint64, r *report) {
	r.tries = 0
	delete(s.reports.byID, id)
	if s.reports.each[r.to]--; s.reports.each[r.to] == 0 {
		delete(s.reports.each, r.to)
	}
	if s.reports.ports[r.to.Port]--; s.reports.ports[r.to.Port] == 0 {
		delete(s.reports.ports, r.to.Port)
	}
}

// reportID is the number of a report: the lower half of its transaction ID, of
// which links use the upper one.
func reportID(m *[mad.Size]byte) uint64 {
	return uint64(binary.BigEndian.Uint32(m[mad.OffsetTransactionID+4:]))
}

// reportLost takes back a report that cannot be answered.
func (s *Server) reportLost(now time.Duration, m *[mad.Size]byte) {
	id := reportID(m)
	if r := s.reports.byID[id]; r != nil && mad.Method(m[mad.OffsetMethod]) == mad.MethodReport {
		r.due = now
		s.reports.bound = min(s.reports.bound, now)
	}
}

// expireReports sends again what was not answered, and ends subscriptions that
// nobody answers for.
func (s *Server) expireReports(now time.Duration) {
	if len(s.reports.byID) == 0 || now < s.reports.bound {
		return
	}
	var late []uint64
	for id, r := range s.reports.byID {
		if now >= r.due {
			late = append(late, id)
		}
	}
	slices.Sort(late)
	for _, id := range late {
		r := s.reports.byID[id]
		if r.tries--; r.tries > 0 {
			r.due = now + s.config.Limits.ReportTime
			s.reports.send = append(s.reports.send, r)
			continue
		}
		s.endReport(id, r)
		s.counts.Unreported++
		if r.to.failures++; r.to.failures == failuresMax {
			s.store.unsubscribe(r.to)
			s.version++
		}
	}
	first := true
	for _, r := range s.reports.byID {
		if first || r.due < s.reports.bound {
			s.reports.bound, first = r.due, false
		}
	}
}

// selfLID is the LID of the manager, which issues traps 64 to 67.
func (s *Server) selfLID() (ib.LID, ib.GID) {
	if self := s.view.Fabric.Self; self != nil {
		if p := s.view.EndOf(self); p != nil {
			return p.LID, p.GID
		}
	}
	return 0, ib.GID{}
}

// own is an event of the server's own.
func (s *Server) own(number smp.TrapNumber, gid ib.GID, may func(Asker) bool) (telling, bool) {
	lid, issuer := s.selfLID()
	n, err := smp.NewTrap(number, smp.ProducerClassManager, lid, &smp.GIDDetails{GID: gid})
	if err != nil {
		return telling{}, false
	}
	return newTelling(n, issuer, may)
}

// tellOwn tells of an event of the server's own at once.
func (s *Server) tellOwn(now time.Duration, number smp.TrapNumber, gid ib.GID, may func(Asker) bool) {
	if t, ok := s.own(number, gid, may); ok {
		s.tellSome(now, &t, len(s.store.subscriptions))
	}
}

// reportPorts tells of ports that came and went between two subnets. Of one that
// went those learn who saw it.
func (s *Server) reportPorts(now time.Duration, old *View) {
	if len(s.store.subscriptions) == 0 {
		return
	}
	for _, p := range old.Ports {
		if s.view.Owner(p.GUID) == nil && old.Owner(p.GUID) == p {
			s.tellOwn(now, smp.TrapGIDOutOfService, p.GID, func(a Asker) bool {
				was := old.Owner(a.Port.GUID)
				return was != nil && Asker{Port: was, All: a.All}.Sees(p)
			})
		}
	}
	for _, p := range s.view.Ports {
		if old.Owner(p.GUID) == nil && s.view.Owner(p.GUID) == p {
			s.tellOwn(now, smp.TrapGIDInService, p.GID, func(a Asker) bool { return a.Sees(p) })
		}
	}
}

// groupTellings are the events of groups that were created or ended. The requester that
// caused them spends turns on reporting it.
func (s *Server) groupTellings() (out []telling) {
	for _, e := range s.groups.TakeEvents() {
		if len(s.store.subscriptions) == 0 {
			continue
		}
		number := smp.TrapMulticastGroupCreated
		if e.Deleted {
			number = smp.TrapMulticastGroupDeleted
		}
		if t, ok := s.own(number, e.MGID, func(a Asker) bool { return a.Knows(e.Partition) }); ok {
			out = append(out, t)
		}
	}
	return out
}

// reportGroups reports groups that were created or ended with a new subnet.
func (s *Server) reportGroups(now time.Duration) {
	for _, t := range s.groupTellings() {
		s.tellSome(now, &t, len(s.store.subscriptions))
	}
}
