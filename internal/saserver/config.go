package saserver

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/group"
	"github.com/ibwarden/ibwarden/internal/rmpp"
	"github.com/ibwarden/ibwarden/internal/saserver/view"
)

// Config is what a server is told once.
type Config struct {
	// SAKey opens what is kept from others; 0 trusts nobody.
	SAKey  ib.SMKey
	Limits Limits
	// Unacknowledged says that no host acknowledges segments: answers end
	// after their first, of which no repetition is sent.
	Unacknowledged bool
	// LongByLink says that the link cuts and joins long messages.
	LongByLink bool
	// Keep holds back what tells of a change until Kept says that State was
	// kept: what a host was told of outlives the server.
	Keep bool
	// AliasGUIDs says that whoever drives the server writes alias GUIDs to
	// the ports; without it none can be registered.
	AliasGUIDs bool
}

// Limits bound what requesters can take.
type Limits struct {
	// QueriesPerSecond and QueriesBurst bound the requests of one port. Every
	// WorkPerQuery records that a query makes the server look at count as one
	// more.
	QueriesPerSecond, QueriesBurst, WorkPerQuery int
	// Work is how many records, or pairs of ports, one query may look at.
	Work int
	// Services and Subscriptions bound those of one port, ServicesTotal and
	// SubscriptionsTotal those of all.
	Services, ServicesTotal, Subscriptions, SubscriptionsTotal int
	// Aliases bounds the alias GUIDs of one port.
	Aliases int
	// Groups bounds the multicast groups and memberships.
	Groups group.Limits
	// Busy is the number of answers waiting to leave from which on requests
	// are answered with BUSY, and Full that from which on they are dropped.
	Busy, Full int
	// Reports bounds the reports that wait for an answer, of all subscribers;
	// ReportsEach those of one.
	Reports, ReportsEach int
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
		QueriesPerSecond: 200_000, QueriesBurst: 50_000, WorkPerQuery: 4, Work: 1 << 20,
		Services: 64, ServicesTotal: 16_384, Subscriptions: 64, SubscriptionsTotal: 32_768,
		Aliases: 64, Groups: group.DefaultLimits(),
		Busy: 8192, Full: 16_384,
		Reports: 16_384, ReportsEach: 64, ReportTime: time.Second, ReportTries: 4,
		RMPP: rmpp.DefaultLimits(),
	}
}

// Subnet is what the server answers for.
type Subnet struct {
	view.Snapshot
	// Groups are the fixed multicast groups of the policy, by MGID; only MGID,
	// Partition and Settings count.
	Groups []group.Group
}

// Counts is what a server has done.
type Counts struct {
	// Queries counts requests, Answers what was sent in return.
	Queries, Answers uint64
	// Refused counts requests that named somebody else's port or came with a
	// wrong SA_Key, Busy those answered with BUSY, Dropped those that nobody
	// answered, Malformed what is no request.
	Refused, Busy, Dropped, Malformed uint64
	// Reports counts those that were sent first, Unreported events that a
	// subscriber was not told of for want of room or of an answer.
	Reports, Unreported uint64
}
