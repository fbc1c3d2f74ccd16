package apply

import (
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Progress tells at how many of the ports that the plan concerns everything is done:
// written, and read back where that is due.
func (r *Run) Progress() (done, ports int) {
	all, open := make(map[*observed.Port]bool), make(map[*observed.Port]bool)
	for i, s := range r.plan.Stages {
		for _, op := range s.Ops {
			all[op.Port] = true
			if i >= r.stage {
				open[op.Port] = true
			}
		}
	}
	for _, list := range [][]plan.Op{r.ops, slices.Collect(maps.Keys(r.flying)), slices.Collect(maps.Keys(r.giving))} {
		for _, op := range list {
			open[op.Port] = true
		}
	}
	return len(all) - len(open), len(all)
}
