package simtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// sizesOfMoves are fabrics from the demonstration to the largest tree of radix 36.
var sizesOfMoves = []string{"demo", "fattree,radix=36,levels=2", "fattree,radix=24,levels=3", "fattree,radix=36,levels=3"}

// tenantsOf deals hosts out to tenants of 16, in turn: 11,664 make 729.
func tenantsOf(all []ib.PortGUID) (y tenancy) {
	const size = 16
	n := max(2, len(all)/size)
	y.tenants = make([]tenant, n)
	for i, g := range all {
		x := &y.tenants[i%n]
		x.base = ib.PKeyBase(i%n + 1)
		x.full = append(x.full, g)
	}
	return y
}

// BenchmarkMoveOneHost moves one host from a tenant to another and back, with a
// manager that is up: from the policy as a value to the proof of the whole fabric, what
// it takes on the wire, and in time of the processor, the simulated devices
// included.
func BenchmarkMoveOneHost(b *testing.B) {
	for _, spec := range sizesOfMoves {
		list := generate(b, spec)
		all := hosts(list)
		b.Run(fmt.Sprintf("%d hosts", len(all)), func(b *testing.B) {
			w := newMoves(b, list, tenantsOf(all))
			there := w.tenancy.move(all[1], 2, 1)
			policies := [2]*policy.Policy{there.policy(), w.tenancy.policy()}
			sent, began := w.engine.Counts().Sent, cpuTime()
			b.ResetTimer()
			for i := range b.N {
				w.move(policies[i%2])
			}
			b.ReportMetric(float64(w.engine.Counts().Sent-sent)/float64(b.N), "SMPs/op")
			b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkMoveOneHostWithAdministration is the same with subnet administration
// beside the manager, as it runs.
func BenchmarkMoveOneHostWithAdministration(b *testing.B) {
	for _, spec := range sizesOfMoves {
		list := generate(b, spec)
		all := hosts(list)
		b.Run(fmt.Sprintf("%d hosts", len(all)), func(b *testing.B) {
			f, err := fabric.New(list, fabric.DefaultConfig())
			if err != nil {
				b.Fatal(err)
			}
			link, err := inproc.New(f, list.Nodes[0].GUID, firstPort(list.Nodes[0].Type), false)
			if err != nil {
				b.Fatal(err)
			}
			y := tenantsOf(all)
			there := y.move(all[1], 2, 1)
			policies := [2]*policy.Policy{there.policy(), y.policy()}
			r := daemon.NewRunner(link, engine.Config{Routing: routing.UpDown}, server.Config{}, policies[1], silent{})
			var began time.Duration
			done := -1 // the first pass is not one of the moves
			if err := r.Run(b.Context(), func() bool {
				if !r.Engine().Settled() {
					return false
				}
				if done++; done == 0 {
					began = cpuTime()
					b.ResetTimer()
				}
				if done < b.N {
					r.Engine().SetPolicy(policies[done%2])
					r.Engine().Expire(f.Now())
				}
				return done == b.N
			}); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

// maxMoveSMPs is what one host that moves may cost, read-back included: two
// tables, in one block or in two, each narrowed, written and read back.
const maxMoveSMPs = 8

// One host that moves costs the same few packets on a fabric of any size, move
// after move, and only its own tables are worked out. Its new key goes behind
// all others and so through every block of its table.
func TestMovesCostTheSameOnAnyFabric(t *testing.T) {
	need.Long(t, "seconds of processor time")
	specs := sizesOfMoves[:len(sizesOfMoves)-1]
	if os.Getenv("IBWARDEN_SOAK") != "" {
		specs = sizesOfMoves
	}
	rounds := need.Share(20, 150)
	var first []uint64
	for _, spec := range specs {
		list := generate(t, spec)
		all := hosts(list)
		w := newMoves(t, list, tenantsOf(all))
		there := w.tenancy.move(all[1], 2, 1)
		policies := [2]*policy.Policy{there.policy(), w.tenancy.policy()}
		var costs []uint64
		for i := range rounds {
			sent := w.engine.Counts().Sent
			w.move(policies[i%2])
			costs = append(costs, w.engine.Counts().Sent-sent)
			if w.last.Compiled != 1 {
				t.Fatalf("%d hosts, move %d: tables of %d end ports worked out, want 1", len(all), i, w.last.Compiled)
			}
		}
		if slices.Max(costs) > maxMoveSMPs || slices.Min(costs) == 0 {
			t.Errorf("%d hosts: %d SMPs, want 1 to %d", len(all), slices.Max(costs), maxMoveSMPs)
		}
		if first == nil {
			first = costs
			t.Logf("%d to %d SMPs", slices.Min(costs), slices.Max(costs))
		}
		if !slices.Equal(costs, first) {
			t.Errorf("%d hosts: SMPs %v, on another fabric %v", len(all), costs, first)
		}
	}
}

// cpuTime is what the process has used of its processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// moves is a fabric with a manager that is up, and nothing that records it.
type moves struct {
	t       testing.TB
	fabric  *fabric.Fabric
	link    *inproc.Link
	engine  *engine.Engine
	last    *event.Result
	tenancy tenancy
}

func newMoves(t testing.TB, list *topology.Netlist, y tenancy) *moves {
	t.Helper()
	w := &moves{t: t, tenancy: y}
	var err error
	if w.fabric, err = fabric.New(list, fabric.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	if w.link, err = inproc.New(w.fabric, list.Nodes[0].GUID, firstPort(list.Nodes[0].Type), false); err != nil {
		t.Fatal(err)
	}
	w.engine = engine.New(engine.Config{Limits: w.link.Limits(), Routing: routing.UpDown}, y.policy(), func(e event.Event) {
		if c, ok := e.(event.Completed); ok {
			w.last = c.Result
		}
	})
	w.settle()
	return w
}

// move gives the manager another policy and waits until it is proved.
func (w *moves) move(p *policy.Policy) {
	w.engine.SetPolicy(p)
	w.last = nil
	w.engine.Expire(w.fabric.Now())
	w.settle()
}

func (w *moves) settle() {
	w.t.Helper()
	if err := w.link.Drive(context.Background(), w.engine, w.engine.Settled); err != nil {
		w.t.Fatal(err)
	}
	if w.last == nil || !w.last.Proof.Verdict.Holds() || !w.last.Reached() {
		w.t.Fatalf("result %+v", w.last)
	}
}

func firstPort(t ib.NodeType) ib.PortNum {
	if t == ib.NodeSwitch {
		return 0
	}
	return 1
}
