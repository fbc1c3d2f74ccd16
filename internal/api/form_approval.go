package api

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// Approval is a change that takes something away and waits for a second person.
type Approval struct {
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant"`
	By      string    `json:"by" doc:"who asked for it: somebody else has to approve it"`
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
	Why     string    `json:"why,omitempty"`
	Action  string    `json:"action"`
	Words   []string  `json:"words" doc:"what it would do, in sentences"`
}

// ApprovalOf is a change that waits, for the API.
func ApprovalOf(a *resource.Approval) Approval {
	return Approval{a.ID, a.Tenant, a.By, a.At, a.Expires, a.Why, a.Action, append([]string{}, a.Words...)}
}

// Pool is a range of GUIDs that the provider gave to a tenant.
type Pool struct {
	First    string `json:"first"`
	Last     string `json:"last"`
	Owner    string `json:"owner" doc:"empty for one between two owners"`
	Released uint64 `json:"released,omitempty" doc:"the revision that took it from its last owner"`
}

// PoolBody gives a range of GUIDs to a tenant.
type PoolBody struct {
	Tenant string `json:"tenant" minLength:"1" maxLength:"40"`
	First  GUID   `json:"first"`
	Last   GUID   `json:"last"`
}
