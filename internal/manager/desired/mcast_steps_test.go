package desired

import (
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// reached are the ports that packets from every host get to.
func reached(t *testing.T, w *world, mlid ib.LID) map[[2]*observed.Port]bool {
	out := map[[2]*observed.Port]bool{}
	for _, from := range w.hosts {
		got, ok := send(w.f, from, mlid)
		if !ok {
			t.Fatalf("a packet from %s to 0x%04x goes round", from, uint16(mlid))
		}
		for to, n := range got {
			if n > 1 {
				t.Fatalf("%s gets %d copies of a packet from %s to 0x%04x", to, n, from, uint16(mlid))
			}
			out[[2]*observed.Port{from, to}] = true
		}
	}
	return out
}

// TestNoStepLeadsInACircle carries out changes write by write, in random order
// within each stage: after none does a packet go round, come twice, or reach
// anybody that neither the old nor the new tables lead it to.
func TestNoStepLeadsInACircle(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	steps := 0
	for round := range need.Share(20, 150) {
		w := irregular(rng)
		if _, _, err := w.compute(); err != nil {
			t.Fatal(err)
		}
		if len(w.groups) == 0 || len(w.hosts) == 0 {
			continue
		}
		for range 4 {
			g := w.groups[rng.IntN(len(w.groups))]
			before := reached(t, w, g.MLID)
			old := tablesOf(w)
			for range 1 + rng.IntN(4) {
				p := w.hosts[rng.IntN(len(w.hosts))]
				leavePort(g, p)
				if rng.IntN(2) == 0 {
					join(g, p, randomState(rng))
				}
			}
			if rng.IntN(2) == 0 { // as if nothing stood: another tree altogether
				for _, n := range w.f.Switches() {
					n.Switch.MFT = nil
				}
			}
			tables, err := ComputeMulticast(MulticastInput{Fabric: w.f, Groups: w.groups, Allowed: w.allowed})
			if err != nil {
				t.Fatal(err)
			}
			restore(w, old)
			d := observed.NewDesired(w.f)
			tables.Enter(w.f, d)
			allowed := before
			restoreDesired(w, d)
			for k := range reached(t, w, g.MLID) {
				allowed[k] = true
			}
			restore(w, old)
			p := plan.Diff(w.f, d)
			for _, stage := range p.Stages {
				rng.Shuffle(len(stage.Ops), func(i, j int) { stage.Ops[i], stage.Ops[j] = stage.Ops[j], stage.Ops[i] })
				for _, op := range stage.Ops {
					x, err := p.Fill(op)
					if err != nil {
						t.Fatal(err)
					}
					if err := op.Port.Absorb(op.Attribute, op.Modifier, x.Data[:]); err != nil {
						t.Fatal(err)
					}
					steps++
					for k := range reached(t, w, g.MLID) {
						if !allowed[k] {
							t.Fatalf("seed %d round %d: stage %q, %s: a packet from %s reaches %s", seed, round, stage.Name, op.Port, k[0], k[1])
						}
					}
				}
			}
			if left := plan.Diff(w.f, d); left.Len() != 0 {
				t.Fatalf("seed %d round %d: %d writes left after the plan", seed, round, left.Len())
			}
		}
	}
	if steps < 500 {
		t.Errorf("only %d writes were looked at", steps)
	}
}

type switchTables map[*observed.Node]struct {
	mft  map[uint32]smp.MulticastForwardingTable
	info smp.SwitchInfo
}

func tablesOf(w *world) switchTables {
	out := switchTables{}
	for _, n := range w.f.Switches() {
		x := out[n]
		x.info, x.mft = n.Switch.Info, n.Switch.MFT
		out[n] = x
	}
	return out
}

func restore(w *world, old switchTables) {
	for n, x := range old {
		n.Switch.Info, n.Switch.MFT = x.info, map[uint32]smp.MulticastForwardingTable{}
		for m, b := range x.mft {
			n.Switch.MFT[m] = b
		}
	}
}

func restoreDesired(w *world, d *observed.Desired) {
	for _, n := range w.f.Switches() {
		if want := d.Nodes[n.Index].Multicast; want != nil {
			n.Switch.MFT = want.Blocks
			n.Switch.Info.DefaultMulticastPrimaryPort, n.Switch.Info.DefaultMulticastNotPrimaryPort = want.Primary, want.NotPrimary
		}
	}
}
