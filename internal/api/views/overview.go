// This file shows callers of the API in a few numbers how the service and the fabric are.

package views

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Status is how things are, as a caller sees them.
type Status struct {
	Version    string     `json:"version"`
	Verdict    string     `json:"verdict" doc:"of the last proof, as in /proof; unknown while there is none"`
	Holds      bool       `json:"holds" doc:"tenants are kept apart"`
	ReadAt     time.Time  `json:"read_at" doc:"when the fabric was read whole, or changed, and proved"`
	CheckedAt  *time.Time `json:"checked_at,omitempty" doc:"since then every table that isolates was read back, and was as it was proved; absent before the first time"`
	Tenants    int        `json:"tenants" doc:"that the caller sees, without the provider"`
	Partitions int        `json:"partitions" doc:"that the caller sees"`
	Members    int        `json:"members" doc:"that the caller sees"`
	Ports      int        `json:"ports" doc:"end ports that belong to tenants; of a tenant, to it"`
	Approvals  int        `json:"approvals" doc:"changes that wait for a second person"`
	Fabric     *Fabric    `json:"fabric,omitempty" doc:"for the provider"`
	Store      string     `json:"store,omitempty" doc:"for the provider: why the store takes no changes now, such as the revisions that are missing in one that was rolled back"`
}

// When is how old the verdict is at a time, in words.
func (x *Status) When(now time.Time) string {
	ago := func(what string, at time.Time) string {
		return fmt.Sprintf("%s %v ago", what, max(0, now.Sub(at)).Round(time.Second))
	}
	switch {
	case x.ReadAt.IsZero():
		return "the fabric has not been proved yet"
	case x.CheckedAt == nil:
		return ago("proved", x.ReadAt)
	}
	return ago("checked", *x.CheckedAt) + ", " + ago("proved", x.ReadAt)
}

// Fabric counts what was found.
type Fabric struct {
	Switches int `json:"switches"`
	CAs      int `json:"cas"`
	Routers  int `json:"routers"`
	Links    int `json:"links"`
	Inactive int `json:"inactive" doc:"links that are not Active at both ends"`
	Drained  int `json:"drained" doc:"switches that are drained"`
	Declared int `json:"declared" doc:"partitions of the policy file"`
}

// StatusOf is how things are; proof is nil where there is none yet, store says why that takes no changes.
func StatusOf(s *resource.State, c resource.Caller, f *observed.Fabric, proof *isolation.Proof, at time.Time, version, store string) Status {
	out := Status{Version: version, Verdict: isolation.Unknown.String()}
	if proof != nil {
		v := VerdictFor(s, c, proof)
		out.Verdict, out.Holds, out.ReadAt = v.String(), v.Holds(), at
	}
	for _, t := range s.Tenants() {
		if t.Name != resource.Provider && (c.IsProvider() || t.Name == c.Tenant) {
			out.Tenants++
		}
	}
	for _, p := range s.Visible(c) {
		out.Partitions++
		members, _ := s.CountVisible(c, p.PKey)
		out.Members += members
	}
	for _, p := range s.Ports() {
		if s.SightOf(c, p.GUID) == resource.SightWhole && p.Owner != "" {
			out.Ports++
		}
	}
	for _, a := range s.Approvals() {
		if a.Tenant == c.Tenant || c.IsProvider() && a.From == "" {
			out.Approvals++
		}
	}
	if c.IsProvider() && c.Keys.First == 0 {
		out.Store = store
	}
	if f != nil && c.IsProvider() && c.Keys.First == 0 {
		n := f.Count()
		out.Fabric = &Fabric{Switches: n.Switches, CAs: n.CAs, Routers: n.Routers, Links: n.Links, Drained: len(s.Drains()), Declared: len(s.Declared())}
		for _, l := range f.Links() {
			if l.A.Info.PortState != smp.PortActive || l.B.Info.PortState != smp.PortActive {
				out.Fabric.Inactive++
			}
		}
	}
	return out
}
