package api

import (
	"context"
	"net/http"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// patches are the operations that change what a merge patch names, and leave the rest as it is when
// they are carried out: a PATCH without If-Match overwrites nothing else.
func (a *api) patches() {
	type partition struct {
		WriteParams
		PKey    PKey           `path:"pkey"`
		Body    PartitionPatch `contentType:"application/merge-patch+json"`
		RawBody []byte
	}
	register(a, operation(http.MethodPatch, "/partitions/{pkey}", "patch-partition", "Change what a merge patch (RFC 7396) names of a partition"),
		func(ctx context.Context, in *partition) (*ChangedOutput, error) {
			k, err := in.PKey.Base()
			if err != nil {
				return nil, err
			}
			caller, w := callerOf(ctx), &in.WriteParams
			w.amend = func(s *resource.State) (resource.Change, error) {
				p := s.Partition(k)
				if p == nil || !s.Sees(caller, k) {
					return resource.RemoveMembers{PKey: k, Ports: []ib.PortGUID{1}}, nil // refused as what is not there, or is of the policy file
				}
				b := BodyOf(p)
				if p.LabelsFor(caller) != p.Labels {
					b.Labels = nil // who does not see them is refused, and is told nothing by that
				}
				if err := patched(in.RawBody, &b); err != nil {
					return nil, err
				}
				return b.Change(k)
			}
			before := a.narrowing(ctx, w, k)
			if in.Body.Members != nil {
				members, err := Members(in.Body.Members)
				if err == nil {
					before, err = a.joining(ctx, w, k, members, true)
				}
				if err != nil {
					return nil, err
				}
			}
			r, err := a.do(ctx, w, resource.PutPartition{Partition: resource.Partition{PKey: k}}, before)
			if err != nil {
				return nil, err
			}
			return a.partitionChanged(caller, w, k, r, a.changed(ctx, r, w)), nil
		})
	type tenant struct {
		WriteParams
		Name    string      `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$"`
		Body    TenantPatch `contentType:"application/merge-patch+json"`
		RawBody []byte
	}
	register(a, operation(http.MethodPatch, "/tenants/{name}", "patch-tenant", "Change what a merge patch (RFC 7396) names of a tenant; the provider may"),
		func(ctx context.Context, in *tenant) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			c := resource.PutTenant{Tenant: resource.Tenant{Name: in.Name}}
			in.amend = func(s *resource.State) (resource.Change, error) {
				t := s.Tenant(in.Name)
				if t == nil {
					return nil, noTenant(in.Name)
				}
				b := TenantBodyOf(t)
				if err := patched(in.RawBody, &b); err != nil {
					return nil, err
				}
				return b.Change(in.Name)
			}
			return a.write(ctx, &in.WriteParams, c, c.Key(), listen.Condition.Holds)
		})
}

// patched applies a merge patch to the body of a write. Labels that are all taken away are none, and
// not those that were there.
func patched[B PartitionBody | TenantBody](patch []byte, b *B) error {
	if err := listen.Merge(patch, b); err != nil {
		return fault(http.StatusUnprocessableEntity, "invalid", "body", err.Error())
	}
	switch b := any(b).(type) {
	case *PartitionBody:
		b.Labels = AllLabels(b.Labels)
	case *TenantBody:
		b.Labels = AllLabels(b.Labels)
	}
	return nil
}
