package routing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// inWords is all that tables say, but for where a switch is in memory.
func inWords(t *Tables) string {
	var text strings.Builder
	fmt.Fprint(&text, t.By, " top ", t.Top, " warnings ", t.Warnings, " detached ", t.Detached, " may deadlock ", t.By.MayDeadlock(t), "\n")
	for _, n := range t.Graph.Nodes {
		fmt.Fprintln(&text, n.Name(), t.Linear[n.Index])
	}
	var idle []string
	for p := range t.Idle {
		idle = append(idle, p.String())
	}
	slices.Sort(idle)
	return text.String() + fmt.Sprint(idle, len(t.Islands))
}

// What each engine makes of random graphs, also with drained switches and with what stood before,
// and of links that go and come back, is what it made when the file below testdata was written.
func TestTablesOfEachEngine(t *testing.T) {
	var s golden.Story
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 29))
		b := routingtest.New(rng)
		switch seed % 4 {
		case 0:
			b.Irregular(rng, 2+rng.IntN(14), rng.IntN(20))
		case 1:
			b.FatTree2(2+rng.IntN(6), 2+rng.IntN(4), 1+rng.IntN(4), 1+rng.IntN(2))
		case 2:
			b.FatTree3(4)
		case 3:
			b.Torus(2+rng.IntN(3), 2+rng.IntN(3), 1)
		}
		var cables []*observed.Port
		for _, n := range b.Fabric.Switches() {
			for i := range n.Ports {
				if p := &n.Ports[i]; p.Peer != nil && p.Peer.Node.Switch != nil {
					cables = append(cables, p)
				}
			}
		}
		var last *Tables
		for step := range 6 {
			engine := []Engine{UpDown, MinHop, Auto, Default, DFSSSP, FatTree}[rng.IntN(6)]
			r := Request{Engine: engine, Room: graph.Room{VLs: 1 + rng.IntN(4), Layers: 1 + rng.IntN(8)}, Last: last}
			if all := b.Fabric.Switches(); rng.IntN(3) == 0 {
				r.Drained = []*observed.Node{all[rng.IntN(len(all))]}
			}
			now, err := r.Compute(b.Fabric, b.Destinations)
			text := fmt.Sprint(err)
			if err == nil {
				last = now
				text = inWords(now)
			}
			if last != nil && len(cables) > 0 {
				p := cables[rng.IntN(len(cables))]
				if p.IsTrained() {
					routingtest.Cut(p)
				} else {
					routingtest.Repair(p)
				}
				again, ok := last.Again(b.Fabric, b.Destinations)
				if text += fmt.Sprint("\nagain ", ok, " "); ok {
					text += inWords(again)
				}
				around, ok := last.Around()
				if text += fmt.Sprint("\naround ", ok, " "); ok {
					text += inWords(around)
					last = around
				}
			}
			s.Add(fmt.Sprint(seed, " ", step, " ", engine, " drained ", len(r.Drained)), text)
		}
	}
	s.Check(t, "tables.txt")
}
