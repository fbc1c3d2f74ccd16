package policy

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// MulticastGroup is a multicast group that belongs to a partition.
type MulticastGroup struct {
	// MGID with its scope. In the MGID of an IPoIB group the P_Key field is
	// zero here; AddressIn fills it in.
	MGID ib.GID
	MTU  ib.MTU
	Rate ib.Rate
	SL   ib.SL
	QKey ib.QKey
	// TClass is the traffic class, FlowLabel has 20 bits.
	TClass    uint8
	FlowLabel uint32
	Pos       Pos
}

// What a group gets where the file does not say (OpenSM's values).
const (
	DefaultMTU  = ib.MTU2048
	DefaultRate = ib.Rate(3) // 10 Gb/s
	// QKeyIPoIB is the default of IPoIB groups; that of others is 0.
	QKeyIPoIB = ib.QKey(0x0B1B)
)

// The largest values of parameters, and the scope of a group by default.
const (
	SLMax        = 15
	ScopeMax     = 15
	ScopeLink    = 2
	FlowLabelMax = 0xF_FFFF
)

// Broadcast is the IPv4 broadcast group of a partition in a scope, its P_Key
// left out.
func Broadcast(scope uint8) ib.GID { return WithScope(broadcast, scope) }

var broadcast = ib.GID{0: 0xFF, 1: 0x10 | ScopeLink, 2: 0x40, 3: 0x1B, 12: 0xFF, 13: 0xFF, 14: 0xFF, 15: 0xFF}

// IsIPoIB reports whether the MGID carries the signature of IPv4 or IPv6 over
// InfiniBand, and so a P_Key.
func (g MulticastGroup) IsIPoIB() bool {
	return (g.MGID[2] == 0x40 || g.MGID[2] == 0x60) && g.MGID[3] == 0x1B
}

// Scope is the scope of the MGID, 2 for link-local.
func (g MulticastGroup) Scope() uint8 { return g.MGID[1] & 0x0F }

// IsBroadcast reports whether g is the IPv4 broadcast group of its partition,
// in whatever scope; a partition that has one carries IPoIB.
func (g MulticastGroup) IsBroadcast() bool { return WithScope(g.MGID, ScopeLink) == broadcast }

// AddressIn is the MGID in the partition with this number.
func (g MulticastGroup) AddressIn(base ib.PKeyBase) ib.GID {
	mgid := g.MGID
	if g.IsIPoIB() {
		mgid[4], mgid[5] = byte(base.Full()>>8), byte(base.Full())
	}
	return mgid
}

// hopLimitFar is the hop limit of groups that reach beyond the subnet.
const hopLimitFar = 255

// in is the group as hosts of the partition with this number get to know it.
// lifetime is how long its packets may be under way.
func (g MulticastGroup) in(base ib.PKeyBase, lifetime ib.TimeValue) group.Group {
	out := group.Group{
		MGID: g.AddressIn(base), Partition: base,
		Settings: group.Settings{
			QKey: g.QKey, MTU: g.MTU, Rate: g.Rate, Lifetime: lifetime,
			SL: g.SL, TClass: g.TClass, FlowLabel: g.FlowLabel,
		},
	}
	if g.Scope() != ScopeLink {
		out.HopLimit = hopLimitFar
	}
	return out
}

// WithScope is mgid in another scope.
func WithScope(mgid ib.GID, scope uint8) ib.GID {
	mgid[1] = mgid[1]&0xF0 | scope
	return mgid
}

// ClearPKey takes the P_Key out of the MGID of an IPoIB group, after it was
// found to be zero, the key of the partition base, or the wildcard of the
// broadcast group.
func (g *MulticastGroup) ClearPKey(base ib.PKeyBase) error {
	if !g.IsIPoIB() {
		return nil
	}
	stated := ib.PKey(g.MGID[4])<<8 | ib.PKey(g.MGID[5])
	g.MGID[4], g.MGID[5] = 0, 0
	wildcard := stated == ib.PKeyDefaultFull && g.IsBroadcast()
	if stated != 0 && !wildcard && (stated.Base() != base || base == 0) {
		return fmt.Errorf("P_Key %v in the MGID", stated)
	}
	return nil
}
