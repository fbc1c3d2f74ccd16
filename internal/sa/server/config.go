package server

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// Config is what a server is told once.
type Config struct {
	// SAKey opens what is kept from others; 0 trusts nobody.
	SAKey ib.SMKey
	// Profile says what ports may ask for that nobody trusts.
	Profile protect.Profile
	// Limits are LimitsOf(Profile) when they are zero.
	Limits Limits
	// Unacknowledged says that some hosts acknowledge no segments and take the first one
	// alone, of which no repetition is sent; the others get the rest.
	Unacknowledged bool
	// LongByLink says that the link cuts and joins long messages.
	LongByLink bool
	// Keep holds back what tells of a change until Kept says that State was
	// kept: what a host was told of outlives the server.
	Keep bool
	// AliasGUIDs says that the caller writes alias GUIDs to the ports; without it none
	// can be registered.
	AliasGUIDs bool
}

// Limits bound what requesters can take.
type Limits struct {
	// QueriesPerSecond and QueriesBurst bound the requests of one port. Every
	// WorkPerQuery records that a query makes the server look at count as one
	// more. QueriesPerWindow bounds those in a Window, ChangesPerWindow those
	// among them that register or end something.
	QueriesPerSecond, QueriesBurst, WorkPerQuery, QueriesPerWindow, ChangesPerWindow int
	// Work is how many records, or pairs of ports, one query may look at, Turn
	// how many before others get their turn.
	Work, Turn int
	// AnswerBytes bounds one answer to a port that is not trusted, where the
	// profile restricts those.
	AnswerBytes int
	// Services and Subscriptions bound those of one port, ServicesTotal and
	// SubscriptionsTotal those of all.
	Services, ServicesTotal, Subscriptions, SubscriptionsTotal int
	// Aliases bounds the alias GUIDs of one port.
	Aliases int
	// Groups bounds the multicast groups and memberships.
	Groups group.Limits
	// Waiting bounds the requests of all ports that wait for a turn, WaitingEach
	// those of one; beyond it is answered with BUSY, and what comes while
	// WaitingBusy of its requests wait for that is dropped.
	Waiting, WaitingEach, WaitingBusy int
	// UnkeptEach is how many answers of a port may wait to be kept before its
	// further requests do.
	UnkeptEach int
	// Reports bounds the reports that wait for an answer, of all subscribers;
	// ReportsEach those of one subscription, ReportsPort those of one port.
	Reports, ReportsEach, ReportsPort int
	// ReportTime is the wait for the answer to a report, ReportTries the number
	// of waits.
	ReportTime  time.Duration
	ReportTries int
	// RMPP bounds long messages.
	RMPP rmpp.Limits
}

// DefaultLimits suit fabrics of some thousand hosts.
func DefaultLimits() Limits {
	return Limits{
		QueriesPerSecond: 200_000, QueriesBurst: 50_000, WorkPerQuery: 4, QueriesPerWindow: 20_000, ChangesPerWindow: 20_000,
		Work: 1 << 20, Turn: 128, AnswerBytes: 4 << 20,
		Services: 64, ServicesTotal: 16_384, Subscriptions: 64, SubscriptionsTotal: 32_768,
		Aliases: 64, Groups: group.DefaultLimits(),
		Waiting: 32_768, WaitingEach: 4096, WaitingBusy: 16, UnkeptEach: 64,
		Reports: 16_384, ReportsEach: 64, ReportsPort: 256, ReportTime: time.Second, ReportTries: 4,
		RMPP: rmpp.DefaultLimits(),
	}
}

// LimitsOf are the limits of a profile.
func LimitsOf(p protect.Profile) Limits {
	l := DefaultLimits()
	if p >= protect.Tenant {
		l.QueriesPerWindow, l.ChangesPerWindow, l.Work = 5000, 200, 1<<17
		l.Services, l.Subscriptions = 32, 32
		l.Groups.PerPort, l.Groups.Created = 128, 32
		l.RMPP.SenderSends = 4
	}
	return l
}

// Counts is what a server has done.
type Counts struct {
	// Queries counts requests, Answers what was sent in return.
	Queries, Answers uint64
	// Refused counts requests that named another port, came from a LID of no port, with a
	// foreign key or a wrong SA_Key, or for what is not open to any port; Busy those
	// answered with BUSY, Dropped those without an answer, Malformed what is no request.
	Refused, Busy, Dropped, Malformed uint64
	// Reports counts those that were sent first, Unreported events that a
	// subscriber was not told of for want of room or of an answer.
	Reports, Unreported uint64
	// Turns counts what ports were given one after the other, Looked the
	// records and pairs of ports that queries made the server look at.
	Turns, Looked uint64
}
