package group

import (
	"encoding/binary"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// Joiner is what the rules need to know of the port that is to be a member.
type Joiner struct {
	Port ib.PortGUID
	// Holds reports whether the port has a key of a partition.
	Holds func(ib.PKeyBase) bool
	// MTU and Rate are the best that the port can do.
	MTU  ib.MTU
	Rate ib.Rate
	// Lifetime is how long packets may be under way in this subnet.
	Lifetime ib.TimeValue
	// Limit is the most that a group in a partition may carry, 0 for no limit; nil for none
	// anywhere.
	Limit func(ib.PKeyBase) ib.Rate
	// Proxy reports whether another port asks for it.
	Proxy bool
}

// The components that a request has to have, without those of the group itself
// when one is created.
const (
	joinNeeds   = sa.MCMemberRecordPortGID | sa.MCMemberRecordJoinState
	createNeeds = joinNeeds | sa.MCMemberRecordQKey | sa.MCMemberRecordPKey |
		sa.MCMemberRecordSL | sa.MCMemberRecordTClass | sa.MCMemberRecordFlowLabel

	joinStates = sa.JoinFull | sa.JoinNon | sa.JoinSendOnlyNon | sa.JoinSendOnlyFull
)

// Join makes a port a member, or adds to what it is; a group that does not
// exist is created when the request says enough. It returns the group and the
// membership as they are then.
func (s *Set) Join(j Joiner, r *sa.MCMemberRecord, mask sa.ComponentMask) (*Group, *Member, mad.Status) {
	if !mask.Has(joinNeeds) {
		return nil, nil, sa.StatusInsufficientComponents
	}
	state := r.JoinState & joinStates
	if state == 0 {
		return nil, nil, sa.StatusRequestInvalid
	}
	mgid := ib.GID{}
	if mask.Has(sa.MCMemberRecordMGID) {
		mgid = r.MGID
	}
	g := s.byMGID[mgid]
	var m *Member
	if g != nil {
		m = g.Member(j.Port)
	}
	if m == nil && s.joined[j.Port] >= s.limits.PerPort {
		return nil, nil, sa.StatusNoResources
	}
	if g == nil {
		fresh, status := s.create(j, r, mask, mgid)
		if status != mad.StatusOK {
			return nil, nil, status
		}
		g = fresh
	} else if status := g.admits(j, r, mask); status != mad.StatusOK {
		return nil, nil, status
	}
	if m == nil {
		i, _ := g.find(j.Port)
		g.Members = slices.Insert(g.Members, i, Member{Port: j.Port, Proxy: j.Proxy})
		m = &g.Members[i]
		s.count(j.Port, 1)
		s.version++
	}
	if m.State|state != m.State || m.GID != r.PortGID {
		s.version++
	}
	m.State |= state
	m.GID = r.PortGID
	return g, m, mad.StatusOK
}

// admits judges a request to join a group that exists: whatever it states has
// to be as the group is.
func (g *Group) admits(j Joiner, r *sa.MCMemberRecord, mask sa.ComponentMask) mad.Status {
	states := func(component sa.ComponentMask, same bool) bool { return mask.Has(component) && !same }
	switch {
	case !j.Holds(g.Partition):
		return sa.StatusRequestInvalid
	case states(sa.MCMemberRecordPKey, r.PKey.Base() == g.Partition),
		states(sa.MCMemberRecordQKey, r.QKey == g.QKey),
		states(sa.MCMemberRecordMLID, r.MLID == g.MLID),
		states(sa.MCMemberRecordTClass, r.TClass == g.TClass),
		states(sa.MCMemberRecordSL, r.SL == g.SL),
		states(sa.MCMemberRecordFlowLabel, r.FlowLabel == g.FlowLabel),
		states(sa.MCMemberRecordHopLimit, r.HopLimit == g.HopLimit),
		states(sa.MCMemberRecordScope, r.Scope == g.Scope()):
		return sa.StatusRequestInvalid
	case mask.Has(sa.MCMemberRecordMTUSelector|sa.MCMemberRecordMTU) && !Selects(r.MTUSelector, int(r.MTU), int(g.MTU)),
		mask.Has(sa.MCMemberRecordRateSelector|sa.MCMemberRecordRate) && !Selects(r.RateSelector, r.Rate.Tenths(), g.Rate.Tenths()),
		mask.Has(sa.MCMemberRecordPacketLifeTimeSelector|sa.MCMemberRecordPacketLifeTime) &&
			!Selects(r.PacketLifeTimeSelector, int(r.PacketLifeTime), int(g.Lifetime)):
		return sa.StatusRequestInvalid
	case j.MTU < g.MTU || j.Rate.Tenths() < g.Rate.Tenths():
		return sa.StatusRequestInvalid // the port cannot carry the group
	}
	return mad.StatusOK
}

// Selects reports whether a value is as a selector and a wanted value ask. With
// SelectBest any value is: there is only one to choose from.
func Selects(selector sa.Selector, want, value int) bool {
	switch selector {
	case sa.SelectGreater:
		return value > want
	case sa.SelectLess:
		return value < want
	case sa.SelectExactly:
		return value == want
	}
	return true
}

// create makes a group without members, after everything was found right.
func (s *Set) create(j Joiner, r *sa.MCMemberRecord, mask sa.ComponentMask, mgid ib.GID) (*Group, mad.Status) {
	base := r.PKey.Base()
	switch {
	case !mask.Has(createNeeds):
		return nil, sa.StatusInsufficientComponents
	case r.JoinState&sa.JoinFull == 0, !base.IsValid(), !j.Holds(base):
		return nil, sa.StatusRequestInvalid
	case len(s.byMGID) >= s.limits.Groups, s.created[j.Port] >= s.limits.Created, !s.mayTake(base):
		return nil, sa.StatusNoResources
	}
	if broadcast := s.byMGID[broadcastOf(mgid)]; isIPoIB(mgid) && broadcast != nil {
		j.MTU, j.Lifetime = min(j.MTU, broadcast.MTU), broadcast.Lifetime
		if broadcast.Rate.Tenths() < j.Rate.Tenths() {
			j.Rate = broadcast.Rate
		}
	}
	if j.Limit != nil {
		if limit := j.Limit(base); limit != 0 && limit.Tenths() < j.Rate.Tenths() {
			j.Rate = limit
		}
	}
	g := &Group{MGID: mgid, Partition: base}
	status := g.settle(j, r, mask)
	if status != mad.StatusOK {
		return nil, status
	}
	if mgid == (ib.GID{}) {
		g.MGID = s.ownMGID(base, r, mask)
	} else if status := s.mayName(g); status != mad.StatusOK {
		return nil, status
	}
	if mask.Has(sa.MCMemberRecordScope) && r.Scope != g.Scope() {
		return nil, sa.StatusRequestInvalid
	}
	lid, err := s.nextMLID(base)
	if err != nil {
		return nil, sa.StatusNoResources
	}
	g.MLID = lid
	s.charge(g, j.Port)
	s.add(g)
	return g, mad.StatusOK
}

// settle chooses the settings of a new group, for its first member's abilities
// where the request leaves a choice.
func (g *Group) settle(j Joiner, r *sa.MCMemberRecord, mask sa.ComponentMask) mad.Status {
	g.Settings = Settings{
		QKey: r.QKey, MTU: j.MTU, Rate: j.Rate, Lifetime: j.Lifetime,
		SL: r.SL, TClass: r.TClass, FlowLabel: r.FlowLabel,
	}
	if mask.Has(sa.MCMemberRecordHopLimit) {
		g.HopLimit = r.HopLimit
	}
	if mask.Has(sa.MCMemberRecordMTUSelector | sa.MCMemberRecordMTU) {
		best, ok := pick(r.MTUSelector, int(r.MTU), int(ib.MTU256), int(j.MTU), func(v int) int { return v })
		if !ok {
			return sa.StatusRequestInvalid
		}
		g.MTU = ib.MTU(best)
	}
	if mask.Has(sa.MCMemberRecordRateSelector | sa.MCMemberRecordRate) {
		best, ok := pick(r.RateSelector, r.Rate.Tenths(), 0, rateCodes, func(code int) int {
			if t := ib.Rate(code).Tenths(); t <= j.Rate.Tenths() {
				return t
			}
			return 0
		})
		if !ok || !r.Rate.IsValid() && r.RateSelector != sa.SelectBest {
			return sa.StatusRequestInvalid
		}
		g.Rate = ib.Rate(best)
	}
	if mask.Has(sa.MCMemberRecordPacketLifeTimeSelector|sa.MCMemberRecordPacketLifeTime) &&
		!Selects(r.PacketLifeTimeSelector, int(r.PacketLifeTime), int(j.Lifetime)) {
		if r.PacketLifeTimeSelector == sa.SelectLess || r.PacketLifeTime < j.Lifetime {
			return sa.StatusRequestInvalid // packets may be under way for longer here
		}
		g.Lifetime = r.PacketLifeTime
		if r.PacketLifeTimeSelector == sa.SelectGreater {
			g.Lifetime++
		}
		if g.Lifetime > lifetimeMax {
			return sa.StatusRequestInvalid
		}
	}
	return mad.StatusOK
}

const (
	rateCodes   = 63 // the highest code that 6 bits hold
	lifetimeMax = 63 // likewise
)

// pick finds the code from lowest to highest with the largest value that the
// selector allows; values of 0 are none.
func pick(selector sa.Selector, want, lowest, highest int, value func(code int) int) (best int, ok bool) {
	for code := lowest; code <= highest; code++ {
		v := value(code)
		if v == 0 || !Selects(selector, want, v) {
			continue
		}
		if !ok || v > value(best) {
			best, ok = code, true
		}
	}
	return best, ok
}

// mayName judges the MGID that a host gives a new group. An IPoIB group belongs
// to the partition that its MGID names, and follows the broadcast group of that.
func (s *Set) mayName(g *Group) mad.Status {
	flags := g.MGID[1] >> 4
	switch {
	case !g.MGID.IsMulticast(), g.Scope() == 0, g.Scope() == 0xF, flags&^1 != 0, signature(g.MGID) == signatureOwn:
		return sa.StatusRequestInvalid
	case !isIPoIB(g.MGID):
		return mad.StatusOK
	}
	if ib.PKey(binary.BigEndian.Uint16(g.MGID[4:])).Base() != g.Partition {
		return sa.StatusRequestInvalid
	}
	broadcast := s.byMGID[broadcastOf(g.MGID)]
	if broadcast == nil || broadcast.Partition != g.Partition ||
		broadcast.QKey != g.QKey || broadcast.SL != g.SL || broadcast.MTU != g.MTU || broadcast.Rate != g.Rate {
		return sa.StatusRequestInvalid
	}
	return mad.StatusOK
}

// ownMGID makes an MGID that no group ever had.
func (s *Set) ownMGID(base ib.PKeyBase, r *sa.MCMemberRecord, mask sa.ComponentMask) ib.GID {
	scope := sa.ScopeLinkLocal
	if mask.Has(sa.MCMemberRecordScope) && r.Scope != 0 && r.Scope != 0xF {
		scope = r.Scope
	}
	s.serial++
	mgid := ib.GID{0: 0xFF, 1: 0x10 | byte(scope), 2: signatureOwn >> 8, 3: signatureOwn & 0xFF}
	binary.BigEndian.PutUint16(mgid[4:], uint16(base.Full()))
	binary.BigEndian.PutUint64(mgid[8:], s.serial)
	return mgid
}

// Leave takes from what a port is in a group; a group that nobody keeps alive
// ends. It returns the group and the membership as they were.
func (s *Set) Leave(port ib.PortGUID, r *sa.MCMemberRecord, mask sa.ComponentMask) (Group, Member, mad.Status) {
	if !mask.Has(joinNeeds | sa.MCMemberRecordMGID) {
		return Group{}, Member{}, sa.StatusInsufficientComponents
	}
	g := s.byMGID[r.MGID]
	if g == nil {
		return Group{}, Member{}, sa.StatusRequestInvalid
	}
	m := g.Member(port)
	if m == nil || m.State&r.JoinState == 0 {
		return Group{}, Member{}, sa.StatusRequestInvalid
	}
	was, before := *m, *g
	before.Members = nil
	s.version++
	if m.State &^= r.JoinState; m.State == 0 {
		i, _ := g.find(port)
		g.Members = slices.Delete(g.Members, i, i+1)
		s.count(port, -1)
	}
	if g.isEmpty() {
		s.remove(g)
	} else {
		s.handOver(g)
	}
	return before, was, mad.StatusOK
}
