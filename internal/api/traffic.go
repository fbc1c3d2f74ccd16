package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func (a *api) traffic() {
	type input struct {
		PageParams
		Order string `query:"order" enum:"place,sends,errors" default:"place" doc:"by node and port; or those first that send most, or have most errors"`
		Node  GUID   `query:"node" doc:"node GUID: those of this device"`
	}
	register(a, operation(http.MethodGet, "/counters", "list-counters", "Performance counters of ports, with what they send and receive; for the provider"),
		func(ctx context.Context, in *input) (*Output[List[views.PortCounters]], error) {
			list, err := a.counters(ctx)
			if err != nil {
				return nil, err
			}
			if in.Node != "" {
				g, err := in.Node.Port()
				if err != nil {
					return nil, err
				}
				list = slices.DeleteFunc(slices.Clone(list), func(p views.PortCounters) bool { return p.Node != ib.NodeGUID(g).String() })
			}
			views.SortCounters(list, in.Order)
			type ranked struct {
				views.PortCounters
				rank int
			}
			all := make([]ranked, len(list))
			for i, p := range list {
				all[i] = ranked{p, i}
			}
			return fabricList(ctx, a, in.PageParams, all, func(p ranked) string { return fmt.Sprintf("%09d", p.rank) }, func(p ranked) views.PortCounters { return p.PortCounters })
		})
	type none struct{}
	register(a, operation(http.MethodGet, "/map/load", "get-load", "What the cables of GET /map carry, and their errors, in the order of its links; for the provider"),
		func(ctx context.Context, _ *none) (*Output[Single[views.CableLoad]], error) {
			list, err := a.counters(ctx)
			if err != nil {
				return nil, err
			}
			_, facts, err := a.mapFor(ctx)
			if err != nil {
				return nil, err
			}
			load, err := a.maps.Load(facts, list)
			if err != nil {
				return nil, err
			}
			return readOne(ctx, a, "", func(s *resource.State) (views.CableLoad, uint64, error) { return *load, s.Last(), nil })
		})
}

// counters are the counters of all ports, for the provider.
func (a *api) counters(ctx context.Context) ([]views.PortCounters, error) {
	if err := provider(ctx); err != nil {
		return nil, err
	}
	if a.options.Traffic == nil {
		return nil, noManager()
	}
	list, err := a.options.Traffic.Counters(ctx)
	switch {
	case errors.Is(err, views.ErrNotRead):
		return nil, problem(http.StatusConflict, "conflict", err.Error())
	case err != nil:
		return nil, noManager()
	}
	return list, nil
}
