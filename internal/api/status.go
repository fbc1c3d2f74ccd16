package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func (a *api) status() {
	type none struct{}
	register(a, operation(http.MethodGet, "/status", "get-status", "How the service and the fabric are, in a few numbers: as far as the caller sees them"),
		func(ctx context.Context, _ *none) (*Output[Single[views.Status]], error) {
			var f *observed.Fabric
			if snap, err := a.snapshot(ctx); err == nil {
				f = snap.Fabric
			}
			proof, at := a.proofIfAny(ctx)
			var checked *time.Time
			if proof != nil {
				checked = a.options.Judge.Checked(ctx)
			}
			caller, store := callerOf(ctx), a.service.Refuses()
			return readOne(ctx, a, "", func(s *resource.State) (views.Status, uint64, error) {
				status := views.StatusOf(s, caller, f, proof, at, a.options.Version, store)
				status.CheckedAt = checked
				return status, s.Last(), nil
			})
		})
}
