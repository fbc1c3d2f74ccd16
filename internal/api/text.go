package api

import (
	"github.com/ibwarden/ibwarden/internal/api/answers"
	"github.com/ibwarden/ibwarden/internal/api/form"
)

// What answers have in common.
type (
	PageParams    = answers.PageParams
	Reading       = answers.Reading
	Changed       = answers.Changed
	Plan          = answers.Plan
	ChangedOutput = answers.ChangedOutput
	List[T any]   = answers.List[T]
	Single[T any] = answers.Single[T]
	Output[T any] = answers.Output[T]
)

// Values of requests and answers.
type (
	PKey             = form.PKey
	GUID             = form.GUID
	Membership       = form.Membership
	Member           = form.Member
	Joined           = form.Joined
	MembershipBody   = form.MembershipBody
	MembersBody      = form.MembersBody
	Partition        = form.Partition
	Approval         = form.Approval
	Pool             = form.Pool
	PoolBody         = form.PoolBody
	PartitionBody    = form.PartitionBody
	NewPartitionBody = form.NewPartitionBody
	Tenant           = form.Tenant
	KeyRange         = form.KeyRange
	Quota            = form.Quota
	TenantBody       = form.TenantBody
	Token            = form.Token
	TokenBody        = form.TokenBody
	AssignBody       = form.AssignBody
	AssignPort       = form.AssignPort
	ReleaseBody      = form.ReleaseBody
)
