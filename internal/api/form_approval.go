package api

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// Approval is a change that takes something away and waits for a second person, or an offer of ports.
type Approval struct {
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant" doc:"whose callers approve it"`
	From    string    `json:"from,omitempty" doc:"of an offer of ports: the tenant that offers them"`
	By      string    `json:"by,omitempty" doc:"who asked for it: somebody else has to approve it; not of an offer of another tenant"`
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
	Why     string    `json:"why,omitempty"`
	Action  string    `json:"action"`
	Words   []string  `json:"words" doc:"what it would do, in sentences"`
}

// ApprovalOf is a change that waits, as a caller sees it.
func ApprovalOf(a *resource.Approval, c resource.Caller) Approval {
	out := Approval{a.ID, a.Tenant, a.From, a.By, a.At, a.Expires, a.Why, a.Action, append([]string{}, a.Words...)}
	if !c.IsProvider() && a.From != "" && a.From != c.Tenant {
		out.By, out.Why = "", ""
	}
	return out
}

// ApproveBody says into which partitions ports go that were offered.
type ApproveBody struct {
	Into []MoveInto `json:"into,omitempty" maxItems:"64" doc:"of an offer of ports: partitions of the tenant that accepts them"`
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
