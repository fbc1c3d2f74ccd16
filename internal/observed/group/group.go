package group

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// Group is a multicast group and its members.
type Group struct {
	MGID ib.GID `json:"mgid"`
	MLID ib.LID `json:"mlid,omitempty"`
	// Partition is the one whose members may join.
	Partition ib.PKeyBase `json:"partition"`
	Settings
	// Fixed groups are the policy's: they exist without members and keep
	// their settings.
	Fixed bool `json:"fixed,omitempty"`
	// Members are sorted by Port.
	Members []Member `json:"members,omitempty"`
}

// Settings are what every packet of a group has in common.
type Settings struct {
	QKey      ib.QKey      `json:"q_key"`
	MTU       ib.MTU       `json:"mtu"`
	Rate      ib.Rate      `json:"rate"`
	Lifetime  ib.TimeValue `json:"packet_lifetime"`
	SL        ib.SL        `json:"sl"`
	TClass    uint8        `json:"tclass"`
	FlowLabel uint32       `json:"flow_label"` // 20 bits
	HopLimit  uint8        `json:"hop_limit"`
}

// Member is a port in a group.
type Member struct {
	Port ib.PortGUID `json:"port"`
	// GID is the one that the port joined with, of its several.
	GID   ib.GID       `json:"gid"`
	State sa.JoinState `json:"join_state"`
	// Proxy reports whether another port joined for it.
	Proxy bool `json:"proxy"`
}

// Sends and Receives report what a member does with packets of the group.
func (m Member) Sends() bool { return m.State != 0 }

// Receives reports whether packets of the group have to reach the member.
func (m Member) Receives() bool { return m.State&(sa.JoinFull|sa.JoinNon) != 0 }

// keeps reports whether the membership keeps a group alive.
func (m Member) keeps() bool { return m.State&(sa.JoinFull|sa.JoinSendOnlyFull) != 0 }

// Member is the port's membership, or nil.
func (g *Group) Member(port ib.PortGUID) *Member {
	i, found := g.find(port)
	if !found {
		return nil
	}
	return &g.Members[i]
}

func (g *Group) find(port ib.PortGUID) (int, bool) {
	return slices.BinarySearchFunc(g.Members, port, func(m Member, p ib.PortGUID) int { return cmp.Compare(m.Port, p) })
}

// Scope is the scope of the group's MGID.
func (g *Group) Scope() sa.Scope { return ScopeOf(g.MGID) }

// ScopeOf is the scope of an MGID.
func ScopeOf(mgid ib.GID) sa.Scope { return sa.Scope(mgid[1] & 0x0F) }

// isEmpty reports whether nobody keeps the group alive.
func (g *Group) isEmpty() bool {
	return !g.Fixed && !slices.ContainsFunc(g.Members, Member.keeps)
}

// Record is the group as a record, with one of its members when m is not nil.
func (g *Group) Record(m *Member) sa.MCMemberRecord {
	r := sa.MCMemberRecord{
		MGID: g.MGID, QKey: g.QKey, MLID: g.MLID,
		MTUSelector: sa.SelectExactly, MTU: g.MTU, TClass: g.TClass, PKey: g.Partition.Full(),
		RateSelector: sa.SelectExactly, Rate: g.Rate,
		PacketLifeTimeSelector: sa.SelectExactly, PacketLifeTime: g.Lifetime,
		SL: g.SL, FlowLabel: g.FlowLabel, HopLimit: g.HopLimit, Scope: g.Scope(),
	}
	if m != nil {
		r.PortGID, r.JoinState, r.ProxyJoin = m.GID, m.State, m.Proxy
	}
	return r
}

// IPoIB signatures in bytes 2 and 3 of an MGID.
const (
	signatureIPv4 = 0x401B
	signatureIPv6 = 0x601B
	// signatureOwn marks the MGIDs that subnet administration makes.
	signatureOwn = 0xA01B
)

func signature(mgid ib.GID) int { return int(mgid[2])<<8 | int(mgid[3]) }

// isIPoIB reports whether an MGID carries a P_Key in bytes 4 and 5.
func isIPoIB(mgid ib.GID) bool {
	s := signature(mgid)
	return s == signatureIPv4 || s == signatureIPv6
}

// broadcastOf is the IPv4 broadcast group whose partition and scope an IPoIB
// MGID has.
func broadcastOf(mgid ib.GID) ib.GID {
	return ib.GID{
		0: 0xFF, 1: mgid[1], 2: signatureIPv4 >> 8, 3: signatureIPv4 & 0xFF,
		4: mgid[4], 5: mgid[5], 12: 0xFF, 13: 0xFF, 14: 0xFF, 15: 0xFF,
	}
}
