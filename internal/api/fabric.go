package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// snapshot is the fabric as it was read last.
func (a *api) snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	return a.read(a.service.Manager().Snapshot(ctx))
}

// read is a snapshot, or why there is none.
func (a *api) read(snap *snapshot.Snapshot, err error) (*snapshot.Snapshot, error) {
	if err != nil || snap == nil || snap.Fabric == nil {
		return nil, problem(http.StatusServiceUnavailable, reasonManager, "the fabric has not been read yet").RetryAfter(storeAfter)
	}
	return snap, nil
}

// fabricList is a page of what is in the snapshot.
func fabricList[T, V any](ctx context.Context, a *api, p PageParams, all []T, key func(T) string, view func(T) V) (*Output[List[V]], error) {
	return readList(ctx, a, p, func(*resource.State) []T { return all }, key,
		func(*resource.State, T) bool { return true }, func(_ *resource.State, x T) V { return view(x) })
}

func (a *api) fabric() {
	a.nodes()
	type input struct{ PageParams }
	register(a, operation(http.MethodGet, "/links", "list-links", "Cables; for the provider"),
		func(ctx context.Context, in *input) (*Output[List[views.Link]], error) {
			snap, err := a.whole(ctx)
			if err != nil {
				return nil, err
			}
			return fabricList(ctx, a, in.PageParams, sortedBy(snap.Fabric.Links(), views.LinkKey), views.LinkKey, views.LinkOf)
		})
	type routesInput struct {
		PageParams
		Switch GUID `query:"switch" doc:"node GUID: those of this switch"`
		LID    int  `query:"lid" minimum:"1" maximum:"49151" doc:"those to this LID"`
	}
	register(a, operation(http.MethodGet, "/routes", "list-routes", "Entries of the forwarding tables of switches; for the provider"),
		func(ctx context.Context, in *routesInput) (*Output[List[views.Route]], error) {
			snap, err := a.whole(ctx)
			if err != nil {
				return nil, err
			}
			var only ib.PortGUID
			if in.Switch != "" {
				if only, err = in.Switch.Port(); err != nil {
					return nil, err
				}
			}
			return fabricList(ctx, a, in.PageParams, sortedBy(views.Routes(snap.Fabric, ib.NodeGUID(only), ib.LID(in.LID)), views.RouteKey), views.RouteKey, func(r views.Route) views.Route { return r })
		})
	type snapshotInput struct {
		Read []string `query:"read" enum:"qos,aliases,audit" maxItems:"3" doc:"what is read now if the manager has not read it: SL-to-VL and VL arbitration tables; alias GUIDs; what only an audit looks at"`
	}
	register(a, streams(operation(http.MethodGet, "/snapshot", "get-snapshot", "The fabric as it was read last, as ibwarden snapshot writes it; for the provider"), "application/jsonl", "a snapshot"),
		func(ctx context.Context, in *snapshotInput) (*huma.StreamResponse, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			snap, err := a.service.Complete(ctx, service.Parts{
				QoS: slices.Contains(in.Read, "qos"), Aliases: slices.Contains(in.Read, "aliases"), Audit: slices.Contains(in.Read, "audit"),
			})
			if snap, err = a.read(snap, err); err != nil {
				return nil, err
			}
			return &huma.StreamResponse{Body: func(c huma.Context) {
				c.SetHeader("Content-Type", "application/jsonl")
				if err := snapshot.Write(c.BodyWriter(), snap); err != nil {
					a.cut(ctx, err)
				}
			}}, nil
		})
}

// whole is the snapshot for the provider.
func (a *api) whole(ctx context.Context) (*snapshot.Snapshot, error) {
	if err := provider(ctx); err != nil {
		return nil, err
	}
	return a.snapshot(ctx)
}

func (a *api) nodes() {
	type input struct {
		PageParams
		Type string `query:"type" enum:"switch,CA,router" doc:"those of this type"`
		Name string `query:"name" maxLength:"64" doc:"those that say this of themselves"`
	}
	register(a, operation(http.MethodGet, "/nodes", "list-nodes", "Devices as found: all for the provider, else those with a port of the caller's"),
		func(ctx context.Context, in *input) (*Output[List[views.Node]], error) {
			snap, err := a.snapshot(ctx)
			if err != nil {
				return nil, err
			}
			caller := callerOf(ctx)
			key := func(n *observed.Node) string { return n.GUID().String() }
			return readList(ctx, a, in.PageParams, func(*resource.State) []*observed.Node { return sortedBy(snap.Fabric.Nodes, key) }, key,
				func(s *resource.State, n *observed.Node) bool {
					return (in.Type == "" || n.Type().String() == in.Type) && (in.Name == "" || n.Name() == in.Name) &&
						(caller.IsProvider() || len(views.EndPortsOf(s, caller, n)) > 0)
				}, func(s *resource.State, n *observed.Node) views.Node {
					return views.NodeOf(s, caller, n, snap.ReadAt)
				})
		})
}
