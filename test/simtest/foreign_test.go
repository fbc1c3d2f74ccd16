package simtest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// What a host writes into its table while the subnet is read again, behind a changed link or as a
// whole, is reported once, and corrected, as at any other time. What the manager changes is not reported.
func TestTablesChangedDuringASweep(t *testing.T) {
	seed, soak := soakSeed(t)
	rounds := 40
	if soak {
		rounds = 2000
	}
	t.Logf("SOAK_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 11))
	w, _ := driftWorld(t)
	red := w.host("red-1")
	leaf := w.switchPort("red-1")
	var links []place // of its leaf, but its own
	for num := range w.node("leaf-1").Ports {
		at := place{leaf.node, ib.PortNum(num)}
		if far, ok := w.peer(at); ok && at != leaf && far.node != w.self.node {
			links = append(links, at)
		}
	}
	bounce := func() {
		at := links[r.IntN(len(links))]
		far, _ := w.peer(at)
		w.must(w.fabric.Unlink(at.node, at.num))
		if r.IntN(2) == 0 {
			w.run(time.Duration(r.Int64N(int64(20 * time.Millisecond))))
		}
		w.must(w.fabric.Link(at.node, at.num, far.node, far.num))
	}
	within := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	for round := range rounds {
		w.run(within(engine.DefaultDriftPeriod))
		w.settle()
		w.forget()
		tampers := func() { w.setKeys(red, func(t *smp.PKeyTable) { t.Keys[9] = 0x8020 }) }
		what := r.IntN(3)
		switch what {
		case 0: // the table is read before the link is seen to have moved, or not
			tampers()
			for range r.IntN(int(engine.DefaultDriftPeriod / time.Millisecond)) {
				if w.engine.Fabric().At(observed.Place{Node: red.node, Port: red.num}).PKeys[9] != 0 {
					break
				}
				w.run(time.Millisecond)
			}
			bounce()
		case 1:
			bounce()
			w.run(within(2 * time.Millisecond))
			tampers()
		case 2:
			w.engine.SetCables(nil)
			w.run(within(2 * time.Millisecond))
			tampers()
		}
		w.run(2 * engine.DefaultDriftPeriod)
		w.settle()
		drifts := all[event.Drifted](w)
		if len(drifts) != 1 || drifts[0].Op.Attribute != smp.AttrPKeyTable || drifts[0].Op.Port.Place().Node != red.node {
			t.Errorf("round %d, case %d: reported %v", round, what, drifts)
		}
		if w.table(red)[9] != 0 {
			t.Errorf("round %d, case %d: the key is still there", round, what)
		}
		w.run(engine.DefaultDriftPeriod)
	}
}
