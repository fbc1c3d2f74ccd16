package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// MCMemberRecordSize is the length of MCMemberRecord in bytes.
const MCMemberRecordSize = 52

// MCMemberRecord is a port as member of a multicast group, with the settings of
// the group.
type MCMemberRecord struct {
	MGID                   ib.GID       `ib:"0,128"`
	PortGID                ib.GID       `ib:"128,128"`
	QKey                   ib.QKey      `ib:"256,32"`
	MLID                   ib.LID       `ib:"288,16"`
	MTUSelector            Selector     `ib:"304,2"`
	MTU                    ib.MTU       `ib:"306,6"`
	TClass                 uint8        `ib:"312,8"`
	PKey                   ib.PKey      `ib:"320,16"`
	RateSelector           Selector     `ib:"336,2"`
	Rate                   ib.Rate      `ib:"338,6"`
	PacketLifeTimeSelector Selector     `ib:"344,2"`
	PacketLifeTime         ib.TimeValue `ib:"346,6"`
	SL                     ib.SL        `ib:"352,4"`
	FlowLabel              uint32       `ib:"356,20"`
	HopLimit               uint8        `ib:"376,8"`
	Scope                  Scope        `ib:"384,4"`
	JoinState              JoinState    `ib:"388,4"`
	ProxyJoin              bool         `ib:"392,1"` // the port joined for another; set by the SA

	reserved49 uint32 `ib:"393,23"`
}

// AttrMCMemberRecord is the number of MCMemberRecord.
const AttrMCMemberRecord mad.AttributeID = 0x0038

var mcMemberRecordFormat = add[MCMemberRecord](Descriptor{ID: AttrMCMemberRecord, Size: MCMemberRecordSize})

// ID is AttrMCMemberRecord.
func (*MCMemberRecord) ID() mad.AttributeID { return AttrMCMemberRecord }

// String prints the fields; reserved bits are left out.
func (r MCMemberRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads MCMemberRecordSize bytes.
func (r *MCMemberRecord) UnmarshalBinary(data []byte) error {
	return mcMemberRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *MCMemberRecord) AppendBinary(b []byte) ([]byte, error) {
	return mcMemberRecordFormat.Append(b, r)
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
