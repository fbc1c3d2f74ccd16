package saserver

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/group"
	"github.com/ibwarden/ibwarden/internal/saserver/view"
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

// memberPort is the port that a request to join or leave is about. Only a
// port's own node may ask for it, or who is trusted and sees it.
func (s *Server) memberPort(q *request, r *sa.MCMemberRecord) (*view.Port, mad.Status) {
	if !q.mask.Has(sa.MCMemberRecordPortGID) {
		return nil, sa.StatusInsufficientComponents
	}
	p := s.subject.Port(r.PortGID)
	switch {
	case p == q.Asker.Port:
	case p != nil && (p.Node == q.Asker.Port.Node || q.Trusted && q.Sees(p)):
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
		Port: p.GUID, MTU: portMTU(&p.Info), Rate: view.RateOf(&p.Info), Lifetime: s.view.Lifetime, Proxy: p != q.Asker.Port,
		Holds: func(base ib.PKeyBase) bool {
			return p.Key(base).IsValid() && (p == q.Asker.Port || q.Trusted || q.Holds(base))
		},
	}
	g, m, status := s.groups.Join(j, r, q.mask)
	if status != mad.StatusOK {
		s.reply(q, status, nil)
		return
	}
	q.chosen = !q.mask.Has(sa.MCMemberRecordMGID) || r.MGID == ib.GID{}
	s.replyMember(q, g, m)
	s.reportGroups(q.now)
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
	s.reportGroups(q.now)
}

func (s *Server) replyMember(q *request, g *group.Group, m *group.Member) {
	r := g.Record(m)
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
	t := s.newTable(q)
	give := func(g *group.Group, m *group.Member) bool {
		if q.budget--; q.budget < 0 {
			return false
		}
		x := g.Record(m)
		if !matchesMember(&x, r, q.mask) {
			return true
		}
		b, err := x.AppendBinary(nil)
		return err != nil || t.add(b)
	}
	s.visit(q, r, give)
	status := mad.StatusOK
	if q.budget < 0 {
		status = sa.StatusNoResources
	}
	s.finish(q, t, status)
}

// visit goes over what the asker may see of groups, until give returns false.
func (s *Server) visit(q *request, r *sa.MCMemberRecord, give func(*group.Group, *group.Member) bool) {
	groups := s.groups.Groups()
	if q.mask.Has(sa.MCMemberRecordMGID) {
		groups = nil
		if g := s.groups.Group(r.MGID); g != nil {
			groups = []*group.Group{g}
		}
	}
	for _, g := range groups {
		if !q.Trusted && !q.Holds(g.Partition) {
			continue
		}
		if q.Trusted {
			for i := range g.Members {
				if q.Sees(s.view.Owner(g.Members[i].Port)) && !give(g, &g.Members[i]) {
					return
				}
			}
			if len(g.Members) > 0 {
				continue
			}
		}
		m := g.Member(q.Asker.Port.GUID)
		if !q.mask.Has(sa.MCMemberRecordPortGID) {
			m = nil
		}
		if !give(g, m) {
			return
		}
	}
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
