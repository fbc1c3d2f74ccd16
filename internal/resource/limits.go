package resource

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/policy"
)

// Limits that go for every tenant, whatever its quota. The provider's own are only
// those that say so.
const (
	// BulkMax is the most members or ports in one change, the provider's too.
	BulkMax = 1 << 16
	// TenantMembersMax is the most members in the partitions of one tenant.
	TenantMembersMax = 1 << 17
	// MembersMax is the most members in all partitions, the provider's too.
	MembersMax = policy.MembersMax
	// RequestsMax is the most requests of one tenant that wait for the consent of
	// others.
	RequestsMax = 4096
	// KeysPerPortMax is the most keys that a port is given, where the size of its
	// table is not known: one less than the 128 of today's adapters, for the key of
	// the default partition. It goes for the provider too.
	KeysPerPortMax = 127
	// TokensMax is the most tokens of one tenant, the provider's too.
	TokensMax = 1000
	// ApprovalsMax is the most changes of one tenant that wait for a second person,
	// the provider's too.
	ApprovalsMax = 1000
	// OffersMax is the most offers of ports of one tenant that wait for others, the
	// provider's too.
	OffersMax = 100
	// ApprovalLife is how long a change waits for a second person.
	ApprovalLife = 7 * 24 * time.Hour
	// ApprovalSizeMax bounds the changes of one tenant that wait, together, in bytes
	// of their JSON, the provider's too; ApprovalWordsMax the sentences that are kept
	// of one.
	ApprovalSizeMax  = 4 << 20
	ApprovalWordsMax = 100
	// RemovedLife is how long a removal is remembered at least.
	RemovedLife = 400 * 24 * time.Hour
	// RemovedMax is the most removals that are remembered of the partitions of one
	// tenant, the provider's too: beyond it the oldest quarter is forgotten, of those
	// that have been proved; beyond twice as many, of all.
	RemovedMax = 1 << 16
	// TrimMax is the most objects that one Trim forgets.
	TrimMax = 1 << 14
	// AcknowledgementsMax is the most alarms that one tenant has acknowledged, the provider's too;
	// AcknowledgementLife how long one is at most.
	AcknowledgementsMax = 1000
	AcknowledgementLife = 90 * 24 * time.Hour
	// DrainsMax is the most switches that are drained at a time.
	DrainsMax = 1 << 10
	// IntoMax is the most partitions into which one change moves ports.
	IntoMax = 64
	// PoolsMax is the most pools.
	PoolsMax = 1 << 14
	// CallerMax, WhyMax and NoteMax are the longest name of a caller, reason of a
	// change and note of a token, in bytes.
	CallerMax, WhyMax, NoteMax = 256, 1024, 200
	// HostMax is the longest name of a host that a member was added by, in bytes.
	HostMax = 253
)
