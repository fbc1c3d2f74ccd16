package routing

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Again are the same routes for a later snapshot of the subnet, which lacks links, switches
// or end ports, or has them back: only exits whose way leads over what is missing are others,
// until it is back. ok is false where the engine has to be asked, since something is there
// that was not when it was asked last, or a way cannot be replaced. The rows of tables that
// are the same are shared.
func (t *Tables) Again(f *observed.Fabric, destinations []graph.Destination, drained ...*observed.Node) (again *Tables, ok bool) {
	if t.kept == nil {
		return nil, false
	}
	destinations, err := graph.Checked(f, destinations)
	if err != nil {
		return nil, false
	}
	return t.on(graph.New(f, destinations), drained)
}

// Around is Again for the very snapshot of the tables, in which links between switches have
// gone down since.
func (t *Tables) Around(drained ...*observed.Node) (again *Tables, ok bool) {
	if t.kept == nil {
		return nil, false
	}
	return t.on(t.Graph.Relinked(), drained)
}

func (t *Tables) on(g *graph.Graph, drained []*observed.Node) (again *Tables, ok bool) {
	again = &Tables{Graph: g, Idle: make(map[*observed.Port]bool), Islands: g.Islands(), Detached: g.Detached}
	places, through := again.drain(drained)
	if again.kept, ok = t.kept.On(through); !ok {
		return nil, false
	}
	again.asked, again.By, again.order = t.asked, t.By, t.order
	again.drainedLast(places)
	again.Notes = slices.Clone(t.asked)
	if k := again.kept; k.Missing > 0 {
		again.Notes = append(again.Notes, fmt.Sprintf("links between switches that have gone since then: %d; exits that lead elsewhere for that: %d", k.Missing, k.Moved))
	}
	again.Linear = again.kept.Linear(g)
	for _, row := range again.Linear {
		if row != nil {
			again.Top = max(again.Top, ib.LID(len(row)-1))
		}
	}
	if len(places) > 0 {
		again.own()
	}
	again.attach(places)
	return again, true
}

// own makes all rows those of these tables alone, which others may hold.
func (t *Tables) own() {
	for i, row := range t.Linear {
		t.Linear[i] = slices.Clone(row)
	}
}
