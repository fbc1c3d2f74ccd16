package daemon

import (
	"context"

	"github.com/ibwarden/ibwarden/internal/app/withkeys"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
)

// KeyTable is which key each end port has now, and where cables lead.
func (s *Served) KeyTable(ctx context.Context) (t *withkeys.Table, err error) {
	r, err := s.running()
	if err != nil {
		return nil, err
	}
	err = r.Ask(ctx, func(e *engine.Engine) { t = withkeys.Of(e.Fabric()) })
	return t, err
}
