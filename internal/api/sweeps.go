package api

import (
	"context"
	"net/http"

	"github.com/ibwarden/ibwarden/internal/api/views"
)

func (a *api) sweeps() {
	type input struct{ PageParams }
	register(a, operation(http.MethodGet, "/sweeps", "list-sweeps", "The last sweeps of this subnet manager, the newest first, with the time and the packets of each phase; for the provider"),
		func(ctx context.Context, in *input) (*Output[List[views.Sweep]], error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			if a.options.Sweeps == nil {
				return nil, noManager()
			}
			list, err := a.options.Sweeps.Sweeps(ctx)
			if err != nil {
				return nil, noManager()
			}
			return fabricList(ctx, a, in.PageParams, sortedBy(list, views.SweepKey), views.SweepKey, func(s views.Sweep) views.Sweep { return s })
		})
}
