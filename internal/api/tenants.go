package api

import (
	"context"
	"net/http"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/resource"
)

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
	ChangesPerMinute int `json:"changes_per_minute,omitempty" minimum:"0" maximum:"1000000" doc:"accepted changes of its callers in 60 s"`
}

// TenantBody is what a write says of a tenant.
type TenantBody struct {
	Keys            *KeyRange `json:"keys,omitempty" doc:"the numbers that its partitions may have; none: it may have no partition"`
	Quota           Quota     `json:"quota,omitempty"`
	ApproveRemovals bool      `json:"approve_removals,omitempty" doc:"removals wait for the approval of a second person"`
	KnownPortsOnly  bool      `json:"known_ports_only,omitempty" doc:"refuse GUIDs that the fabric has not seen"`
}

func noTenant(name string) error {
	return fault(http.StatusNotFound, string(resource.NotFound), "name", "no tenant "+name)
}

func tenantOf(s *resource.State, t *resource.Tenant) Tenant {
	_, changed := s.Object(t.Key())
	out := Tenant{Name: t.Name, ApproveRemovals: t.ApproveRemovals, KnownPortsOnly: t.KnownPortsOnly, Quota: Quota(t.Quota), Partitions: len(s.Partitions(t.Name)), Changed: changed}
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

func (a *api) tenants() {
	type listInput struct{ PageParams }
	register(a, operation(http.MethodGet, "/tenants", "list-tenants", "Tenants: all for the provider, else the caller's"),
		func(ctx context.Context, in *listInput) (*Output[List[Tenant]], error) {
			caller := callerOf(ctx)
			return readList(a, in.PageParams, (*resource.State).Tenants, func(t *resource.Tenant) string { return t.Name },
				func(_ *resource.State, t *resource.Tenant) bool {
					return caller.IsProvider() || t.Name == caller.Tenant
				}, tenantOf)
		})
	type one struct {
		Name   string `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$"`
		IfNone string `header:"If-None-Match" maxLength:"1000" doc:"ETag that the caller has"`
	}
	op := operation(http.MethodGet, "/tenants/{name}", "get-tenant", "One tenant")
	register(a, notModified(op), func(ctx context.Context, in *one) (*Output[Single[Tenant]], error) {
		caller := callerOf(ctx)
		return readOne(a, in.IfNone, func(s *resource.State) (Tenant, uint64, error) {
			t := s.Tenant(in.Name)
			if t == nil || !caller.IsProvider() && caller.Tenant != in.Name {
				return Tenant{}, 0, noTenant(in.Name)
			}
			v := tenantOf(s, t)
			return v, v.Changed, nil
		})
	})
	type put struct {
		WriteParams
		Name string `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$"`
		Body TenantBody
	}
	register(a, operation(http.MethodPut, "/tenants/{name}", "put-tenant", "Make a tenant, or replace what is said of it; the provider may"),
		func(ctx context.Context, in *put) (*ChangedOutput, error) {
			return a.putTenant(ctx, &in.WriteParams, in.Name, in.Body)
		})
	type remove struct {
		WriteParams
		Name string `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$"`
	}
	register(a, operation(http.MethodDelete, "/tenants/{name}", "delete-tenant", "Delete a tenant that has nothing any more, with its tokens; the provider may"),
		func(ctx context.Context, in *remove) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			return a.write(ctx, &in.WriteParams, resource.DeleteTenant{Name: in.Name}, (&resource.Tenant{Name: in.Name}).Key(), condition.holds)
		})
}

func (a *api) putTenant(ctx context.Context, w *WriteParams, name string, b TenantBody) (*ChangedOutput, error) {
	if err := provider(ctx); err != nil {
		return nil, err
	}
	t := resource.Tenant{Name: name, Quota: resource.Quota(b.Quota), ApproveRemovals: b.ApproveRemovals, KnownPortsOnly: b.KnownPortsOnly}
	if b.Keys != nil {
		var err error
		if t.Keys.First, err = b.Keys.First.base(); err == nil {
			t.Keys.Last, err = b.Keys.Last.base()
		}
		if err != nil {
			return nil, err
		}
		if t.Keys.Last >= ib.PKeyBaseDefault {
			return nil, fault(http.StatusUnprocessableEntity, "invalid", "body.keys.last", "want 0x7ffe at most")
		}
	}
	out, err := a.write(ctx, w, resource.PutTenant{Tenant: t}, t.Key(), condition.replaces)
	return out, err
}

// write makes a change of one object that has a key, under a condition.
func (a *api) write(ctx context.Context, w *WriteParams, c resource.Change, key string, check func(condition, bool, uint64) error) (*ChangedOutput, error) {
	condition, err := w.condition()
	if err != nil {
		return nil, err
	}
	existed := false
	r, err := a.do(ctx, w, c, func(s *resource.State) (uint64, error) {
		o, revision := s.Object(key)
		existed = o != nil
		return s.Last(), check(condition, existed, revision)
	})
	if err != nil {
		return nil, err
	}
	out := changed(ctx, r, w)
	a.service.Read(func(s *resource.State) {
		if o, revision := s.Object(key); o != nil && !w.DryRun {
			out.ETag = etag(revision)
		}
	})
	if kind, id, _ := cut(key); !existed && out.ETag != "" {
		out.made(Prefix + "/" + kind + "s/" + id)
	}
	return out, nil
}
