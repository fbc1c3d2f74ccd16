package server

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// members answers requests for MCMemberRecords.
func (s *Server) members(q *request) {
	var r sa.MCMemberRecord
	if r.UnmarshalBinary(q.data) != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	switch q.method {
	case mad.MethodSet:
		s.join(q, &r)
	case mad.MethodDelete:
		s.leave(q, &r)
	default:
		s.findMembers(q, &r)
	}
}

// memberPort is the port that a request to join or leave is about. Only the port
// itself may ask for it, where the profile does not restrict that another port of
// its node, or who may for others.
func (s *Server) memberPort(q *request, r *sa.MCMemberRecord) (*Port, mad.Status) {
	if !q.mask.Has(sa.MCMemberRecordPortGID) {
		return nil, sa.StatusInsufficientComponents
	}
	p := s.subject.Port(r.PortGID)
	switch {
	case p == q.Asker.Port:
	case p != nil && p.Node == q.Asker.Port.Node && !s.restricts(q), s.mayProxy(q, p):
	default:
		s.counts.Refused++
		return nil, sa.StatusInvalidGID
	}
	return p, mad.StatusOK
}

func (s *Server) join(q *request, r *sa.MCMemberRecord) {
	p, status := s.memberPort(q, r)
	if status != mad.StatusOK {
		s.reply(q, status, nil)
		return
	}
	j := group.Joiner{
		Port: p.GUID, MTU: portMTU(&p.Info), Rate: p.Info.Rate(), Lifetime: s.view.Lifetime, Proxy: p != q.Asker.Port,
		Limit: func(base ib.PKeyBase) ib.Rate {
			if part := s.view.Partition(base); part != nil {
				return part.RateLimit
			}
			return 0
		},
		Holds: func(base ib.PKeyBase) bool {
			return p.Key(base).IsValid() && (p == q.Asker.Port || s.mayProxy(q, p) || q.Holds(base))
		},
	}
	r.SL = s.view.Levels.GroupLevel(r.SL)
	g, m, status := s.groups.Join(j, r, q.mask)
	if status == sa.StatusRequestInvalid && s.hold(q) {
		return
	}
	if status != mad.StatusOK {
		s.reply(q, status, nil)
		return
	}
	q.chosen = !q.mask.Has(sa.MCMemberRecordMGID) || r.MGID == ib.GID{}
	s.replyMember(q, g, m)
	q.asker.tellings = append(q.asker.tellings, s.groupTellings()...)
}

func (s *Server) leave(q *request, r *sa.MCMemberRecord) {
	p, status := s.memberPort(q, r)
	if status != mad.StatusOK {
		s.reply(q, status, nil)
		return
	}
	g, m, status := s.groups.Leave(p.GUID, r, q.mask)
	if status != mad.StatusOK {
		s.reply(q, status, nil)
		return
	}
	s.replyMember(q, &g, &m)
	q.asker.tellings = append(q.asker.tellings, s.groupTellings()...)
}

// record is a group as a record, with one of its members when m is not nil, and with the
// service level that its packets have.
func (s *Server) record(g *group.Group, m *group.Member) sa.MCMemberRecord {
	r := g.Record(m)
	r.SL = s.view.Levels.OfGroup(g.SL)
	return r
}

func (s *Server) replyMember(q *request, g *group.Group, m *group.Member) {
	r := s.record(g, m)
	b, err := r.AppendBinary(nil)
	if err != nil { // not with what was read from a datagram or from a policy
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	s.reply(q, mad.StatusOK, b)
}

// findMembers lists groups and memberships. Everybody sees the groups of its
// partitions, once each, and its own memberships; the others' are for the
// trusted, as far as they see the members.
func (s *Server) findMembers(q *request, r *sa.MCMemberRecord) {
	if q.mask>>memberMasks != 0 {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	f := &memberFinder{asker: q.Asker, mask: q.mask, want: *r, budget: q.budget}
	s.inTurns(q, s.newTable(q), f)
}

// memberFinder answers queries for MCMemberRecords.
type memberFinder struct {
	asker  Asker
	mask   sa.ComponentMask
	want   sa.MCMemberRecord
	budget int
	begun  bool
	last   ib.GID // of the group that the last turn ended with
}

func (f *memberFinder) turn(s *Server, t *table) (mad.Status, int, bool) {
	give := func(g *group.Group, m *group.Member) bool {
		if f.budget--; f.budget < 0 {
			return false
		}
		x := s.record(g, m)
		if !matchesMember(&x, &f.want, f.mask) {
			return true
		}
		b, err := x.AppendBinary(nil)
		return err != nil || t.add(b)
	}
	groups := s.groups.Groups()
	if f.mask.Has(sa.MCMemberRecordMGID) {
		groups = nil
		if g := s.groups.Group(f.want.MGID); g != nil {
			groups = []*group.Group{g}
		}
	}
	i := 0
	if f.begun {
		i, _ = slices.BinarySearchFunc(groups, f.last, func(g *group.Group, last ib.GID) int {
			return cmp.Or(bytes.Compare(g.MGID[:], last[:]), -1) // the one after it
		})
	}
	for end := i + s.config.Limits.Turn; i < len(groups); i++ {
		if i == end {
			f.begun, f.last = true, groups[i-1].MGID
			return mad.StatusOK, f.budget, true
		}
		if !f.visit(s, groups[i], give) {
			break
		}
	}
	if f.budget < 0 {
		return sa.StatusNoResources, f.budget, false
	}
	return mad.StatusOK, f.budget, false
}

// visit gives what the asker may see of a group; false when no more is wanted.
func (f *memberFinder) visit(s *Server, g *group.Group, give func(*group.Group, *group.Member) bool) bool {
	a := f.asker
	if !a.Trusted && !a.Knows(g.Partition) {
		return true
	}
	if a.Trusted {
		for i := range g.Members {
			if a.Sees(s.view.Owner(g.Members[i].Port)) && !give(g, &g.Members[i]) {
				return false
			}
		}
		if len(g.Members) > 0 {
			return true
		}
	}
	m := g.Member(a.Port.GUID)
	if !f.mask.Has(sa.MCMemberRecordPortGID) {
		m = nil
	}
	return give(g, m)
}

// memberMasks is the number of components of MCMemberRecord.
const memberMasks = 18

// matchesMember holds a record against the components of a query.
func matchesMember(x, want *sa.MCMemberRecord, mask sa.ComponentMask) bool {
	for _, c := range []struct {
		component sa.ComponentMask
		same      bool
	}{
		{sa.MCMemberRecordMGID, x.MGID == want.MGID},
		{sa.MCMemberRecordPortGID, x.PortGID == want.PortGID},
		{sa.MCMemberRecordQKey, x.QKey == want.QKey},
		{sa.MCMemberRecordMLID, x.MLID == want.MLID},
		{sa.MCMemberRecordMTUSelector | sa.MCMemberRecordMTU, group.Selects(want.MTUSelector, int(want.MTU), int(x.MTU))},
		{sa.MCMemberRecordTClass, x.TClass == want.TClass},
		{sa.MCMemberRecordPKey, x.PKey.Base() == want.PKey.Base()},
		{sa.MCMemberRecordRateSelector | sa.MCMemberRecordRate, group.Selects(want.RateSelector, want.Rate.Tenths(), x.Rate.Tenths())},
		{sa.MCMemberRecordPacketLifeTimeSelector | sa.MCMemberRecordPacketLifeTime,
			group.Selects(want.PacketLifeTimeSelector, int(want.PacketLifeTime), int(x.PacketLifeTime))},
		{sa.MCMemberRecordSL, x.SL == want.SL},
		{sa.MCMemberRecordFlowLabel, x.FlowLabel == want.FlowLabel},
		{sa.MCMemberRecordHopLimit, x.HopLimit == want.HopLimit},
		{sa.MCMemberRecordScope, x.Scope == want.Scope},
		{sa.MCMemberRecordJoinState, x.JoinState&want.JoinState == want.JoinState},
		{sa.MCMemberRecordProxyJoin, x.ProxyJoin == want.ProxyJoin},
	} {
		if mask.Has(c.component) && !c.same {
			return false
		}
	}
	return true
}
