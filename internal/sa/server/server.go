package server

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// Server is subnet administration.
type Server struct {
	config  Config
	view    *View // nil while this manager is not master
	partial bool  // observed.Subnet.Partial
	subject Subject
	groups  *group.Set
	store   store
	rmpp    *rmpp.Endpoint[mad.Address]
	long    long
	askers  map[ib.PortGUID]*requester
	byPort  []*requester // those of askers, by Port.Index, as they come
	nobody  requester    // all of those who have no port
	lines   lines
	held    heldJoins
	kind    int                         // of what leaves next
	claims  map[ib.LID][]*observed.Port // SetClaims
	out     queue
	unkept  []unkept // Config.Keep
	kept    uint64   // the version that is
	reports reports
	counts  Counts
	answers map[Kind]uint64
	version uint64
	path    pathFinder              // reused by every query for one path
	answer  [mad.Size]byte          // reused by every answer
	small   table                   // reused by every answer of one datagram
	bytes   [sa.PathRecordSize]byte // reused by every path
}

// New returns a server without a subnet.
func New(c Config) *Server {
	if c.Limits == (Limits{}) {
		c.Limits = LimitsOf(c.Profile)
	}
	c.Limits.RMPP.Once = c.Unacknowledged
	s := &Server{
		config: c, groups: group.New(c.Limits.Groups), store: newStore(),
		answers: make(map[Kind]uint64),
		long:    newLong(), askers: make(map[ib.PortGUID]*requester),
		reports: newReports(),
	}
	s.rmpp = rmpp.NewBy(c.Limits.RMPP, s.senderOf)
	s.subject = Subject{Groups: s.groups, Aliases: s.aliasesOf, Owner: s.ownerOf, NoKeys: c.Profile != protect.None}
	return s
}

// senderOf is the LID that stands for all of a port's; 0 for all that are
// nobody's.
func (s *Server) senderOf(from mad.Address) ib.LID {
	if s.view == nil {
		return 0
	}
	if p := s.view.At(from.LID); p != nil {
		return p.LID
	}
	return 0
}

// Counts is what the server has done.
func (s *Server) Counts() Counts { return s.counts }

// Groups are the multicast groups, to compute their trees from.
func (s *Server) Groups() *group.Set { return s.groups }

// SetSubnet replaces the subnet. Members, services and subscriptions of ports
// that are gone, or that lost the partition, go; subscribers are told of ports
// that came and went. What was wrong with fixed groups comes back. Of one that is Partial
// nobody goes, and a query that finds nothing in it is answered with BUSY.
func (s *Server) SetSubnet(now time.Duration, x observed.Subnet) (errs []error) {
	old := s.view
	s.view = After(old, x)
	s.subject.View, s.partial = s.view, x.Partial
	s.byPort = make([]*requester, len(s.view.Ports))
	if x.Partial {
		s.retry(now)
		return nil // nobody has left
	}
	s.groups.SetLastMLID(s.lastMLID())
	s.groups.SetPartitions(len(s.view.Partitions))
	s.groups.Prune(func(port ib.PortGUID, base ib.PKeyBase) bool {
		p := s.view.Owner(port)
		return p != nil && p.Key(base).IsValid()
	})
	errs = s.groups.Fix(observed.MulticastOf(x.Partitions))
	if s.store.prune(s.view) {
		s.version++
	}
	for guid := range s.askers {
		if s.view.Owner(guid) == nil {
			delete(s.askers, guid)
		}
	}
	if old != nil {
		s.reportPorts(now, old)
	}
	s.reportGroups(now)
	s.retry(now)
	return errs
}

// lastMLID is the highest multicast LID that every switch can route.
func (s *Server) lastMLID() ib.LID {
	last := s.config.Limits.Groups.LastMLID
	for _, n := range s.view.Fabric.Switches() {
		if sw := n.Switch; sw.InfoRead && sw.Info.MulticastFDBCap > 0 {
			last = min(last, ib.LIDMulticastMin+ib.LID(min(sw.Info.MulticastFDBCap, 0x3FFF)-1))
		}
	}
	return last
}

// Suspend says that another manager is master: until the next SetSubnet every
// request is answered with BUSY.
func (s *Server) Suspend() { s.view, s.subject.View = nil, nil }

// Receive takes a packet of class subnet administration.
func (s *Server) Receive(now time.Duration, m *[mad.Size]byte, from mad.Address) {
	if mad.Class(m[1]) != mad.ClassSubnAdm {
		s.counts.Malformed++
		return
	}
	if rmpp.IsActive(m) {
		if long := s.rmpp.Receive(now, from, m); long != nil {
			s.request(now, from, &long.Head, long.Body)
		}
		return
	}
	head := (*[rmpp.HeadSize]byte)(m[:])
	switch method := mad.Method(m[mad.OffsetMethod]); {
	case method == mad.MethodReportResp:
		s.reportAnswered(from, m)
	case method.IsResponse() || method == mad.MethodTrapRepress:
		s.counts.Malformed++
	default:
		s.request(now, from, head, m[rmpp.HeadSize:])
	}
}

// Lost takes back a packet that the link knows nobody answered: a report to a
// port that is not there.
func (s *Server) Lost(now time.Duration, m *[mad.Size]byte) { s.reportLost(now, m) }

// Next fills m with the next packet to send: answers, segments of long ones and
// reports in turn. It does not begin all that waits at once: while there is more,
// Deadline is due.
func (s *Server) Next(now time.Duration, m *[mad.Size]byte) (to mad.Address, ok bool) {
	for n := 0; n < turnsMax && s.out.len() == 0 && s.serve(now); n++ {
	}
	for range 3 {
		switch s.kind = (s.kind + 1) % 3; s.kind {
		case 0:
			to, ok = s.out.pop(m)
		case 1:
			to, ok = s.rmpp.Next(now, m)
		default:
			to, ok = s.nextReport(now, m)
		}
		if ok {
			return to, true
		}
	}
	s.lines.cut = s.lines.first < len(s.lines.ring)
	return to, false
}

// unkept is an answer that waits for a version to be kept.
type unkept struct {
	waiting
	version uint64
	asker   *requester
}

// push has an answer leave, or wait until what it tells of is kept.
func (s *Server) push(q *request, m *[mad.Size]byte) {
	if version := s.Version(); s.config.Keep && isChange(q.method) && version != s.kept {
		s.unkept = append(s.unkept, unkept{waiting{q.from, *m}, version, q.asker})
		q.asker.unkept++
		return
	}
	s.out.push(q.from, m)
}

// Kept reports whether the state of a version is kept: answers that waited leave.
func (s *Server) Kept(version uint64) {
	s.kept = version
	n := 0
	for ; n < len(s.unkept) && s.unkept[n].version <= version; n++ {
		u := &s.unkept[n]
		s.out.push(u.to, &u.m)
		u.asker.unkept--
		s.enter(u.asker)
	}
	s.unkept = slices.Delete(s.unkept, 0, n)
}

// Expire reports whether time has passed.
func (s *Server) Expire(now time.Duration) {
	s.rmpp.Expire(now)
	s.rmpp.Ended() // an answer that did not get through is asked for again
	s.expireReports(now)
	s.expireHeld(now)
	if s.store.expire(now) {
		s.version++
	}
}

// Deadline is when Expire wants to be called, or sooner; false for never. It is
// due at once while Next has more to do.
func (s *Server) Deadline() (due time.Duration, ok bool) {
	if s.lines.cut {
		return 0, true
	}
	for _, next := range []func() (time.Duration, bool){s.rmpp.Deadline, s.reports.deadline, s.store.deadline, s.held.deadline} {
		if at, some := next(); some && (!ok || at < due) {
			due, ok = at, true
		}
	}
	return due, ok
}

// queue holds answers that wait to leave.
type queue struct {
	packets []waiting
	first   int
}

type waiting struct {
	to mad.Address
	m  [mad.Size]byte
}

func (q *queue) len() int { return len(q.packets) - q.first }

func (q *queue) push(to mad.Address, m *[mad.Size]byte) {
	q.packets = append(q.packets, waiting{to, *m})
}

func (q *queue) pop(m *[mad.Size]byte) (to mad.Address, ok bool) {
	if q.first == len(q.packets) {
		return to, false
	}
	p := &q.packets[q.first]
	*m, to = p.m, p.to
	if q.first++; q.first == len(q.packets) {
		q.first, q.packets = 0, q.packets[:0]
	}
	return to, true
}

// classPortInfo is what the server can do.
func (s *Server) classPortInfo() mad.ClassPortInfo {
	return mad.ClassPortInfo{
		BaseVersion: mad.BaseVersion, ClassVersion: sa.ClassVersion,
		CapabilityMask:  sa.CapOptionalRecords | sa.CapUDMulticast | sa.CapMultiPath | sa.CapPortInfoCapMaskMatch | mad.ClassCapCapabilityMask2,
		CapabilityMask2: sa.Cap2SendOnlyFull,
		RespTimeValue:   respTimeValue,
	}
}

// respTimeValue is the time in which answers leave: 4.096 us * 2^16, 268 ms.
const respTimeValue ib.TimeValue = 16

// portMTU is the largest MTU that a port can do on its link.
func portMTU(p *smp.PortInfo) ib.MTU {
	if p.NeighborMTU.IsValid() {
		return min(p.NeighborMTU, p.MTUCap)
	}
	return p.MTUCap
}
