package api

import (
	"context"
	"net/http"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func noTenant(name string) error {
	return fault(http.StatusNotFound, string(resource.NotFound), "name", "no tenant "+name)
}

func (a *api) tenants() {
	type listInput struct {
		PageParams
		Selector string `query:"selector" maxLength:"1024" doc:"those whose labels are so, as kubectl takes selectors: env=prod,team in (a, b),!old"`
	}
	register(a, operation(http.MethodGet, "/tenants", "list-tenants", "Tenants: all for the provider, else the caller's"),
		func(ctx context.Context, in *listInput) (*Output[List[Tenant]], error) {
			caller := callerOf(ctx)
			chosen, err := Selector(in.Selector)
			if err != nil {
				return nil, err
			}
			return readList(ctx, a, in.PageParams, (*resource.State).Tenants, func(t *resource.Tenant) string { return t.Name },
				func(_ *resource.State, t *resource.Tenant) bool {
					return (caller.IsProvider() || t.Name == caller.Tenant) && chosen.Chooses(t.Labels)
				}, func(s *resource.State, t *resource.Tenant) Tenant { return TenantOf(s, caller, t) })
		})
	type one struct {
		Name   string `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$"`
		IfNone string `header:"If-None-Match" maxLength:"1000" doc:"ETag that the caller has"`
	}
	op := operation(http.MethodGet, "/tenants/{name}", "get-tenant", "One tenant")
	register(a, notModified(op), func(ctx context.Context, in *one) (*Output[Single[Tenant]], error) {
		caller := callerOf(ctx)
		return readOne(ctx, a, in.IfNone, func(s *resource.State) (Tenant, uint64, error) {
			t := s.Tenant(in.Name)
			if t == nil || !caller.IsProvider() && caller.Tenant != in.Name {
				return Tenant{}, 0, noTenant(in.Name)
			}
			v := TenantOf(s, callerOf(ctx), t)
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
			return a.write(ctx, &in.WriteParams, resource.DeleteTenant{Name: in.Name}, (&resource.Tenant{Name: in.Name}).Key(), listen.Condition.Holds)
		})
}

func (a *api) putTenant(ctx context.Context, w *WriteParams, name string, b TenantBody) (*ChangedOutput, error) {
	if err := provider(ctx); err != nil {
		return nil, err
	}
	change, err := b.Change(name)
	if err != nil {
		return nil, err
	}
	return a.write(ctx, w, change, change.Key(), listen.Condition.Replaces)
}

// write makes a change of one object that has a key, under a condition.
func (a *api) write(ctx context.Context, w *WriteParams, c resource.Change, key string, check func(listen.Condition, bool, uint64) error) (*ChangedOutput, error) {
	seen, err := w.condition()
	if err != nil {
		return nil, err
	}
	r, err := a.do(ctx, w, c, func(s *resource.State) (uint64, error) {
		o, revision := s.Object(key)
		return s.Last(), check(seen, o != nil, s.NumberFor(callerOf(ctx), revision))
	})
	if err != nil {
		return nil, err
	}
	out := a.changed(ctx, r, w)
	a.service.Read(func(s *resource.State) {
		if o, revision := s.Object(key); o != nil && !w.DryRun && !r.Repeated && out.ETag == "" {
			out.ETag = listen.ETag(s.NumberFor(callerOf(ctx), revision))
		}
	})
	for _, e := range r.Edits {
		if r.Repeated && e.Key == key && e.After != nil {
			out.ETag = listen.ETag(out.Body.Revision)
		}
	}
	if kind, id, _ := cut(key); MadeBy(r, key) != nil && out.ETag != "" {
		out.Made(Prefix + "/" + kind + "s/" + id)
	}
	return out, nil
}
