package api

import (
	"context"
	"net/http"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Drain is a switch that is to carry no packets from one switch to another.
type Drain struct {
	Switch string `json:"switch" doc:"node GUID"`
	Name   string `json:"name" doc:"what the switch called itself when it was drained"`
	Routes int    `json:"routes" doc:"how many entries of the forwarding tables of other switches lead over it to somewhere else, as they were read last; 0: it may be taken out of service"`
}

// DrainBody drains a switch.
type DrainBody struct {
	Switch string `json:"switch" minLength:"1" maxLength:"64" doc:"name or node GUID"`
}

func (a *api) drains() {
	type listInput struct{ PageParams }
	key := func(x *resource.Drain) string { return x.Switch.String() }
	register(a, operation(http.MethodGet, "/drains", "list-drains", "Switches that carry no packets from one switch to another; for the provider"),
		func(ctx context.Context, in *listInput) (*Output[List[Drain]], error) {
			snap, err := a.whole(ctx)
			if err != nil {
				return nil, err
			}
			return readList(ctx, a, in.PageParams, func(s *resource.State) []*resource.Drain { return s.Drains() }, key,
				func(*resource.State, *resource.Drain) bool { return true },
				func(_ *resource.State, x *resource.Drain) Drain {
					return Drain{x.Switch.String(), x.Name, views.RoutesOver(snap.Fabric, x.Switch)}
				})
		})
	type drain struct {
		WriteParams
		Body DrainBody
	}
	register(a, operation(http.MethodPost, "/drains", "drain-switch", "Drain a switch: packets between other switches take other ways; the provider may"),
		func(ctx context.Context, in *drain) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			n, err := a.switchOf(ctx, in.Body.Switch)
			if err != nil {
				return nil, err
			}
			c := resource.DrainSwitch{Drain: resource.Drain{Switch: n.GUID(), Name: n.Description}}
			r, err := a.do(ctx, &in.WriteParams, c, a.matches(ctx, &in.WriteParams, c.Key()))
			if err != nil {
				return nil, err
			}
			return a.changed(ctx, r, &in.WriteParams), nil
		})
	type undrain struct {
		WriteParams
		Switch GUID `path:"switch" doc:"node GUID"`
	}
	register(a, operation(http.MethodDelete, "/drains/{switch}", "undrain-switch", "Let a switch carry packets again; the provider may"),
		func(ctx context.Context, in *undrain) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			g, err := in.Switch.Port()
			if err != nil {
				return nil, err
			}
			n := ib.NodeGUID(g)
			r, err := a.do(ctx, &in.WriteParams, resource.UndrainSwitch{Switch: n}, a.matches(ctx, &in.WriteParams, resource.DrainKey(n)))
			if err != nil {
				return nil, err
			}
			return a.changed(ctx, r, &in.WriteParams), nil
		})
}

// switchOf is the switch of the fabric with a node GUID or a name.
func (a *api) switchOf(ctx context.Context, name string) (*observed.Node, error) {
	snap, err := a.whole(ctx)
	if err != nil {
		return nil, err
	}
	n, others, err := views.FindSwitch(snap.Fabric, name)
	switch {
	case err == nil:
		return n, nil
	case others:
		return nil, problem(http.StatusConflict, "conflict", err.Error())
	}
	return nil, problem(http.StatusNotFound, "not-found", err.Error())
}
