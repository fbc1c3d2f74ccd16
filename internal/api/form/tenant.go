package form

import "github.com/ibwarden/ibwarden/internal/resource"

// Tenant is a tenant as a caller sees it.
type Tenant struct {
	Name            string    `json:"name"`
	Keys            *KeyRange `json:"keys,omitempty" doc:"the numbers that its partitions may have; none for the provider, who has every other"`
	Quota           Quota     `json:"quota"`
	ApproveRemovals bool      `json:"approve_removals" doc:"removals wait for the approval of a second person"`
	KnownPortsOnly  bool      `json:"known_ports_only" doc:"GUIDs that the fabric has not seen are refused"`
	Partitions      int       `json:"partitions" doc:"how many it has"`
	Ports           int       `json:"ports" doc:"how many it was given"`
	Changed         uint64    `json:"changed" doc:"the revision that last changed it: its ETag"`
}

// KeyRange is a range of partition numbers.
type KeyRange struct {
	First PKey `json:"first"`
	Last  PKey `json:"last"`
}

// Quota bounds what a tenant may have; 0 and none is no bound.
type Quota struct {
	Partitions       int `json:"partitions,omitempty" minimum:"0" maximum:"32766"`
	Members          int `json:"members,omitempty" minimum:"0" maximum:"100000000" doc:"of all its partitions together"`
	KeysPerPort      int `json:"keys_per_port,omitempty" minimum:"0" maximum:"32766" doc:"partitions that one of its ports is a member of"`
	ChangesPerMinute int `json:"changes_per_minute,omitempty" minimum:"0" maximum:"1000000" doc:"accepted changes of its callers in 60 s, and of each caller what was refused"`
}

// TenantBody is what a write says of a tenant.
type TenantBody struct {
	Keys            *KeyRange `json:"keys,omitempty" doc:"the numbers that its partitions may have; none: it may have no partition"`
	Quota           Quota     `json:"quota,omitempty"`
	ApproveRemovals bool      `json:"approve_removals,omitempty" doc:"removals wait for the approval of a second person"`
	KnownPortsOnly  bool      `json:"known_ports_only,omitempty" doc:"refuse GUIDs that the fabric has not seen"`
}

// TenantOf is a tenant as its callers and the provider see it.
func TenantOf(s *resource.State, c resource.Caller, t *resource.Tenant) Tenant {
	_, revision := s.Object(t.Key())
	out := Tenant{Name: t.Name, ApproveRemovals: t.ApproveRemovals, KnownPortsOnly: t.KnownPortsOnly, Quota: Quota(t.Quota), Partitions: len(s.Partitions(t.Name)), Changed: s.NumberFor(c, revision)}
	if t.Keys.First != 0 {
		out.Keys = &KeyRange{PKey(t.Keys.First.String()), PKey(t.Keys.Last.String())}
	}
	for _, p := range s.Ports() {
		if p.Owner == t.Name {
			out.Ports++
		}
	}
	return out
}
