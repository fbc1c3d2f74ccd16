package daemon

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

type unwatched struct{}

func (unwatched) Event(event.Event)       {}
func (unwatched) Progress(string, uint64) {}

// broughtUp is a manager that has brought the demonstration up, where so many packets are
// lost.
func broughtUp(t *testing.T, loss float64) *Runner {
	t.Helper()
	list := topology.Demo()
	c := fabric.DefaultConfig()
	c.Loss = loss
	f, err := fabric.New(list, c)
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := list.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := inproc.New(f, node.GUID, num, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	r := NewRunner(l, engine.Config{Routing: routing.UpDown, Profile: protect.Tenant, Periods: engine.Periods{Sweep: time.Minute, Drift: time.Hour}}, server.Config{}, p, unwatched{})
	if err := r.Run(t.Context(), r.Engine().Settled); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPhasesOfABringUp: the phases of a bring-up come in their order, and have every packet
// and all the time of the fabric between them, the same in every run.
func TestPhasesOfABringUp(t *testing.T) {
	for _, loss := range []float64{0, 0.05} {
		r := broughtUp(t, loss)
		sweeps := r.Sweeps()
		if len(sweeps) != 1 || !sweeps[0].Done || sweeps[0].Number != 1 {
			t.Fatalf("loss %v: %+v, want one sweep that is over", loss, sweeps)
		}
		var names []string
		for _, p := range sweeps[0].Phases {
			names = append(names, p.Name)
		}
		at := -1
		for _, want := range []string{"discover", "plan", "LIDs", "routing", "judge routes", "tables", "end port keys", "switch port keys", "port settings", "forwarding tables", "activate", "prove"} {
			i := slices.Index(names, want)
			if i <= at {
				t.Fatalf("loss %v: %s is not where it belongs in %v", loss, want, names)
			}
			at = i
		}
		sum, c := sweep.SumPhases(sweeps[0].Phases), r.Engine().Counts()
		if sum.Sent != c.Sent || sum.Answered != c.Answered || sum.Repeated != c.Retried+c.Extra || sum.Lost != c.Failed || c.Sent == 0 {
			t.Errorf("loss %v: the phases have %+v, the windows %+v", loss, sum, c)
		}
		if (sum.Repeated > 0) != (loss > 0) {
			t.Errorf("loss %v: %d packets are repeated", loss, sum.Repeated)
		}
		// A look or a trap may come in after the sweep.
		if got, now := sum.FabricSeconds, r.Now().Seconds(); got > now || got < now-20e-6 || got == 0 {
			t.Errorf("loss %v: the phases took %v s of the fabric's time, which is %v s", loss, got, now)
		}
		again := broughtUp(t, loss).Sweeps()[0].Phases
		for i, p := range sweeps[0].Phases {
			p.Seconds, again[i].Seconds = 0, 0
			if p != again[i] {
				t.Errorf("loss %v: in another run %+v, not %+v", loss, again[i], p)
			}
		}
	}
}
