package api

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// found are the end ports of the last sweep by GUID; none when nothing was read yet.
func (a *api) found(ctx context.Context) map[ib.PortGUID]*observed.Port {
	out := map[ib.PortGUID]*observed.Port{}
	snap, err := a.service.Manager().Snapshot(ctx)
	if err != nil || snap == nil || snap.Fabric == nil {
		return out
	}
	for _, p := range snap.Fabric.EndPorts() {
		out[p.GUID] = p
	}
	return out
}

func (a *api) ports() {
	type listInput struct {
		PageParams
		Owner string `query:"owner" maxLength:"40" doc:"those of this tenant"`
		Found string `query:"found" enum:"true,false" doc:"those that the last sweep found, or did not"`
		Node  string `query:"node" maxLength:"64" doc:"those of the node that says this of itself"`
	}
	register(a, operation(http.MethodGet, "/ports", "list-ports", "End ports that the caller sees, by GUID: those found and those given to a tenant"),
		func(ctx context.Context, in *listInput) (*Output[List[views.Port]], error) {
			found, caller := a.found(ctx), callerOf(ctx)
			file := views.InFile(a.resolved(ctx))
			return readList(ctx, a, in.PageParams, func(s *resource.State) []ib.PortGUID {
				all := map[ib.PortGUID]bool{}
				for g := range found {
					all[g] = true
				}
				for _, p := range s.Ports() {
					all[p.GUID] = true
				}
				return slices.Sorted(maps.Keys(all))
			}, ib.PortGUID.String, func(s *resource.State, g ib.PortGUID) bool {
				f := found[g]
				return views.Sees(s, caller, g) && (in.Owner == "" || s.Owner(g) == in.Owner) &&
					(in.Found == "" || (f != nil) == (in.Found == "true")) && (in.Node == "" || f != nil && f.Node.Name() == in.Node)
			}, func(s *resource.State, g ib.PortGUID) views.Port {
				return views.PortOf(s, caller, g, found[g], file)
			})
		})
	type one struct {
		GUID GUID `path:"guid"`
	}
	register(a, operation(http.MethodGet, "/ports/{guid}", "get-port", "One end port"),
		func(ctx context.Context, in *one) (*Output[Single[views.Port]], error) {
			g, err := in.GUID.Port()
			if err != nil {
				return nil, err
			}
			f, caller := a.found(ctx)[g], callerOf(ctx)
			file := views.InFile(a.resolved(ctx))
			return readOne(ctx, a, "", func(s *resource.State) (views.Port, uint64, error) {
				if !views.Sees(s, caller, g) || f == nil && s.Port(g) == nil {
					return views.Port{}, 0, fault(http.StatusNotFound, string(resource.NotFound), "guid", "no port "+g.String())
				}
				_, revision := s.Object(resource.PortKey(g))
				return views.PortOf(s, caller, g, f, file), revision, nil
			})
		})
	a.portWrites()
	a.offer()
}

func (a *api) portWrites() {
	type assign struct {
		WriteParams
		Body AssignBody
	}
	register(a, operation(http.MethodPost, "/ports/assign", "assign-ports", "Give ports to a tenant; the provider may"),
		func(ctx context.Context, in *assign) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			c, err := in.Body.Change()
			if err != nil {
				return nil, err
			}
			return a.changePorts(ctx, &in.WriteParams, c, portKeys(c.Ports, func(p resource.Port) ib.PortGUID { return p.GUID }))
		})
	type release struct {
		WriteParams
		Body ReleaseBody
	}
	register(a, operation(http.MethodPost, "/ports/release", "release-ports", "Take ports from their tenants, and out of all partitions; the provider may"),
		func(ctx context.Context, in *release) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			list, err := Ports(in.Body.Ports)
			if err != nil {
				return nil, err
			}
			return a.changePorts(ctx, &in.WriteParams, resource.ReleasePorts{Ports: list}, portKeys(list, func(g ib.PortGUID) ib.PortGUID { return g }))
		})
	type move struct {
		WriteParams
		Body MoveBody
	}
	register(a, operation(http.MethodPost, "/ports/move", "move-ports", "Move ports to a tenant, out of all partitions and into some of his, in one revision; the provider may"),
		func(ctx context.Context, in *move) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			c, err := in.Body.Change()
			if err != nil {
				return nil, err
			}
			return a.changePorts(ctx, &in.WriteParams, c, portKeys(c.Ports, func(g ib.PortGUID) ib.PortGUID { return g }))
		})
}

func (a *api) offer() {
	type input struct {
		WriteParams
		Body OfferBody
	}
	register(a, operation(http.MethodPost, "/ports/offer", "offer-ports", "Offer ports of the caller's tenant to another tenant, who approves it, into partitions of his, or rejects it: then they move in one revision"),
		func(ctx context.Context, in *input) (*ChangedOutput, error) {
			list, err := Ports(in.Body.Ports)
			if err != nil {
				return nil, err
			}
			return a.changePorts(ctx, &in.WriteParams, resource.OfferPorts{Tenant: in.Body.Tenant, Ports: list}, portKeys(list, func(g ib.PortGUID) ib.PortGUID { return g }))
		})
}

// changePorts makes a change of the ports with these keys.
func (a *api) changePorts(ctx context.Context, p *WriteParams, c resource.Change, keys []string) (*ChangedOutput, error) {
	r, err := a.do(ctx, p, c, a.matches(ctx, p, keys...))
	if err != nil {
		return nil, err
	}
	return a.changed(ctx, r, p), nil
}

// portKeys are the keys of ports.
func portKeys[T any](list []T, guid func(T) ib.PortGUID) []string {
	keys := make([]string, len(list))
	for i, x := range list {
		keys[i] = resource.PortKey(guid(x))
	}
	return keys
}
