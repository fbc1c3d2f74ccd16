package api

import (
	"net/http"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Tenant is a tenant as a caller sees it.
type Tenant struct {
	Name            string            `json:"name"`
	Keys            *KeyRange         `json:"keys,omitempty" doc:"the numbers that its partitions may have; none for the provider, who has every other"`
	Quota           Quota             `json:"quota"`
	ApproveRemovals bool              `json:"approve_removals" doc:"removals wait for the approval of a second person"`
	KnownPortsOnly  bool              `json:"known_ports_only" doc:"GUIDs that the fabric has not seen are refused"`
	Partitions      int               `json:"partitions" doc:"how many it has"`
	Ports           int               `json:"ports" doc:"how many it was given"`
	Labels          map[string]string `json:"labels,omitempty" doc:"for the provider and the tenant; nothing is decided by them"`
	Changed         uint64            `json:"changed" doc:"the revision that last changed it: its ETag"`
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
	Keys            *KeyRange         `json:"keys,omitempty" doc:"the numbers that its partitions may have; none: it may have no partition"`
	Quota           Quota             `json:"quota,omitempty"`
	ApproveRemovals bool              `json:"approve_removals,omitempty" doc:"removals wait for the approval of a second person"`
	KnownPortsOnly  bool              `json:"known_ports_only,omitempty" doc:"refuse GUIDs that the fabric has not seen"`
	Labels          map[string]string `json:"labels,omitzero" required:"false" maxProperties:"32" doc:"all labels that it is to have, as kubectl spells them; those that it has when there is none"`
}

// TenantPatch is a merge patch of a TenantBody.
type TenantPatch struct {
	Keys            *KeysPatch         `json:"keys,omitempty"`
	Quota           *QuotaPatch        `json:"quota,omitempty"`
	ApproveRemovals *bool              `json:"approve_removals,omitempty" nullable:"true"`
	KnownPortsOnly  *bool              `json:"known_ports_only,omitempty" nullable:"true"`
	Labels          map[string]*string `json:"labels,omitempty" nullable:"true" maxProperties:"64" doc:"labels to set; null for one to remove, or for all"`
}

// KeysPatch is a merge patch of a KeyRange.
type KeysPatch struct {
	First PKey `json:"first,omitempty"`
	Last  PKey `json:"last,omitempty"`
}

// QuotaPatch is a merge patch of a Quota; null is no bound.
type QuotaPatch struct {
	Partitions       *int `json:"partitions,omitempty" nullable:"true" minimum:"0" maximum:"32766"`
	Members          *int `json:"members,omitempty" nullable:"true" minimum:"0" maximum:"100000000"`
	KeysPerPort      *int `json:"keys_per_port,omitempty" nullable:"true" minimum:"0" maximum:"32766"`
	ChangesPerMinute *int `json:"changes_per_minute,omitempty" nullable:"true" minimum:"0" maximum:"1000000"`
}

// TenantBodyOf is the body of a write that leaves a tenant as it is.
func TenantBodyOf(t *resource.Tenant) TenantBody {
	b := TenantBody{Quota: Quota(t.Quota), ApproveRemovals: t.ApproveRemovals, KnownPortsOnly: t.KnownPortsOnly, Labels: t.Labels.Map()}
	if t.Keys.First != 0 {
		b.Keys = &KeyRange{PKey(t.Keys.First.String()), PKey(t.Keys.Last.String())}
	}
	return b
}

// Change is the change that a body asks for, of the tenant with a name.
func (b *TenantBody) Change(name string) (change resource.PutTenant, err error) {
	t := &change.Tenant
	*t = resource.Tenant{Name: name, Quota: resource.Quota(b.Quota), ApproveRemovals: b.ApproveRemovals, KnownPortsOnly: b.KnownPortsOnly}
	if b.Keys != nil {
		if t.Keys.First, err = b.Keys.First.Base(); err == nil {
			t.Keys.Last, err = b.Keys.Last.Base()
		}
		if err != nil {
			return change, err
		}
		if t.Keys.Last >= ib.PKeyBaseDefault {
			return change, listen.FieldProblem(http.StatusUnprocessableEntity, "invalid", "body.keys.last", "want 0x7ffe at most")
		}
	}
	t.Labels, change.KeepLabels, err = Labels(b.Labels)
	return change, err
}

// TenantOf is a tenant as its callers and the provider see it.
func TenantOf(s *resource.State, c resource.Caller, t *resource.Tenant) Tenant {
	_, revision := s.Object(t.Key())
	out := Tenant{Name: t.Name, ApproveRemovals: t.ApproveRemovals, KnownPortsOnly: t.KnownPortsOnly, Quota: Quota(t.Quota), Labels: t.Labels.Map(), Partitions: len(s.Partitions(t.Name)), Ports: len(s.PortsOf(t.Name)), Changed: s.NumberFor(c, revision)}
	if t.Keys.First != 0 {
		out.Keys = &KeyRange{PKey(t.Keys.First.String()), PKey(t.Keys.Last.String())}
	}
	return out
}
