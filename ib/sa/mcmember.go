package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// MCMemberRecordSize is the length of MCMemberRecord in bytes.
const MCMemberRecordSize = 52

// MCMemberRecord is a port as member of a multicast group, with the settings of
// the group.
type MCMemberRecord struct {
	MGID                   ib.GID
	PortGID                ib.GID
	QKey                   ib.QKey
	MLID                   ib.LID
	MTUSelector            Selector // 2 bits
	MTU                    ib.MTU   // 6 bits
	TClass                 uint8
	PKey                   ib.PKey
	RateSelector           Selector     // 2 bits
	Rate                   ib.Rate      // 6 bits
	PacketLifeTimeSelector Selector     // 2 bits
	PacketLifeTime         ib.TimeValue // 6 bits
	SL                     ib.SL        // 4 bits
	FlowLabel              uint32       // 20 bits
	HopLimit               uint8
	Scope                  Scope     // 4 bits
	JoinState              JoinState // 4 bits
	ProxyJoin              bool      // the port joined for another; set by the SA

	reserved49 uint32 // 23 bits
}

// AttrMCMemberRecord is the number of MCMemberRecord.
const AttrMCMemberRecord mad.AttributeID = 0x0038

var _ = add(Descriptor{ID: AttrMCMemberRecord, Name: "MCMemberRecord", Size: MCMemberRecordSize, New: func() Record { return new(MCMemberRecord) }})

// ID is AttrMCMemberRecord.
func (*MCMemberRecord) ID() mad.AttributeID { return AttrMCMemberRecord }

// String prints the fields; reserved bits are left out.
func (r MCMemberRecord) String() string { return show.Fields(r) }

// UnmarshalBinary reads MCMemberRecordSize bytes.
func (r *MCMemberRecord) UnmarshalBinary(data []byte) error {
	return decode(r, MCMemberRecordSize, data)
}

// AppendBinary appends the record.
func (r *MCMemberRecord) AppendBinary(b []byte) ([]byte, error) {
	return encode(r, MCMemberRecordSize, b)
}

func (r *MCMemberRecord) layout(c *coder) {
	c.bytes(r.MGID[:])
	c.bytes(r.PortGID[:])
	number(c, "QKey", &r.QKey, 32)
	number(c, "MLID", &r.MLID, 16)
	number(c, "MTUSelector", &r.MTUSelector, 2)
	number(c, "MTU", &r.MTU, 6)
	number(c, "TClass", &r.TClass, 8)
	number(c, "PKey", &r.PKey, 16)
	number(c, "RateSelector", &r.RateSelector, 2)
	number(c, "Rate", &r.Rate, 6)
	number(c, "PacketLifeTimeSelector", &r.PacketLifeTimeSelector, 2)
	number(c, "PacketLifeTime", &r.PacketLifeTime, 6)
	number(c, "SL", &r.SL, 4)
	number(c, "FlowLabel", &r.FlowLabel, 20)
	number(c, "HopLimit", &r.HopLimit, 8)
	number(c, "Scope", &r.Scope, 4)
	number(c, "JoinState", &r.JoinState, 4)
	c.flag(&r.ProxyJoin)
	number(c, "reserved49", &r.reserved49, 23)
}

// The components of MCMemberRecord.
const (
	MCMemberRecordMGID ComponentMask = 1 << iota
	MCMemberRecordPortGID
	MCMemberRecordQKey
	MCMemberRecordMLID
	MCMemberRecordMTUSelector
	MCMemberRecordMTU
	MCMemberRecordTClass
	MCMemberRecordPKey
	MCMemberRecordRateSelector
	MCMemberRecordRate
	MCMemberRecordPacketLifeTimeSelector
	MCMemberRecordPacketLifeTime
	MCMemberRecordSL
	MCMemberRecordFlowLabel
	MCMemberRecordHopLimit
	MCMemberRecordScope
	MCMemberRecordJoinState
	MCMemberRecordProxyJoin
)

// Scope is how far a multicast group reaches.
type Scope uint8

// The scopes.
const (
	ScopeLinkLocal    Scope = 0x2
	ScopeSiteLocal    Scope = 0x5
	ScopeOrganization Scope = 0x8
	ScopeGlobal       Scope = 0xE
)

// JoinState is the set of ways in which a port is member of a group.
type JoinState uint8

// The ways to be a member.
const (
	JoinFull         JoinState = 1 << 0 // sends and receives, keeps the group alive
	JoinNon          JoinState = 1 << 1 // sends and receives
	JoinSendOnlyNon  JoinState = 1 << 2 // sends
	JoinSendOnlyFull JoinState = 1 << 3 // sends, keeps the group alive
)

// Has reports whether all ways of want are in s.
func (s JoinState) Has(want JoinState) bool { return s&want == want }
