package routing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/dfsssp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/dor"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/dragonfly"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/ftree"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// kinds are the engines that auto tries, in this order: each refuses what is none of its
// kind, or needs more virtual lanes than there are; the last two route any graph, and of
// these the first takes shorter ways where there are lanes to tell paths apart.
var kinds = []struct {
	name    Engine
	compute func(*graph.Input) (*graph.Routes, error)
	vls     int // at least
}{
	{FatTree, ftree.FatTree, 1},
	{DOR, dor.DimensionOrder, 1},
	{Dragonfly, dragonfly.Minimal, 1},
	{DFSSSP, dfsssp.DFSSSP, 2},
	{UpDown, graph.UpDown, 1},
}

// auto routes by the first engine that takes the graph, and notes which and why.
func auto(in *graph.Input) (*graph.Routes, error) {
	var refusals []string
	for _, k := range kinds {
		if in.VLs < k.vls {
			continue
		}
		routes, err := k.compute(in)
		if err != nil {
			refusals = append(refusals, fmt.Sprintf("routing engine auto: not %s: %v", k.name, err))
			continue
		}
		taken := *routes
		taken.Notes = append([]string{fmt.Sprintf("routing engine auto takes %s", k.name)}, append(refusals, routes.Notes...)...)
		return &taken, nil
	}
	return nil, errors.New(strings.Join(refusals, "; "))
}
