package simtest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// broken is a fabric whose manager is up, and of which cables break.
type broken struct {
	moves
	list *topology.Netlist
	// cables join switches; the manager's own is not among them.
	cables []observed.Link
	// What agents took in since count.
	counting  bool
	requests  map[mad.AttributeID][2]int // Gets, Sets
	lastWrite time.Time
	lastCPU   time.Duration
	rerouted  int
	lastAt    time.Duration
}

func newBroken(t testing.TB, spec string, c engine.Config) *broken {
	t.Helper()
	list := generate(t, spec)
	w := &broken{moves: moves{t: t, tenancy: tenantsOf(hosts(list))}, list: list}
	config := fabric.DefaultConfig()
	config.Trace = w.trace
	var err error
	if w.fabric, err = fabric.New(list, config); err != nil {
		t.Fatal(err)
	}
	if w.link, err = inproc.New(w.fabric, list.Nodes[0].GUID, firstPort(list.Nodes[0].Type), false); err != nil {
		t.Fatal(err)
	}
	w.must(w.link.SetIsSM(true))
	c.Limits = w.link.Limits()
	w.engine = engine.New(c, w.tenancy.policy(), func(e event.Event) {
		switch e := e.(type) {
		case event.Completed:
			w.last = e.Result
		case event.Rerouted:
			w.rerouted++
		}
	})
	w.settle()
	w.pass(2 * engine.DefaultSweepInterval)
	for _, l := range w.engine.Fabric().Links() {
		if l.A.Node.Switch != nil && l.B.Node.Switch != nil {
			w.cables = append(w.cables, l)
		}
	}
	return w
}

// trace counts requests that agents take in.
func (w *broken) trace(s fabric.Sighting) {
	if !w.counting || s.What != fabric.SeenByAgent {
		return
	}
	method, a := mad.Method(s.MAD[3]), mad.AttributeID(s.MAD[16])<<8|mad.AttributeID(s.MAD[17])
	n := w.requests[a]
	switch method {
	case mad.MethodGet:
		n[0]++
	case mad.MethodSet:
		n[1]++
		if a == smp.AttrLinearForwardingTable {
			w.lastWrite, w.lastCPU, w.lastAt = time.Now(), cpuTime(), s.At
		}
	}
	w.requests[a] = n
}

// count forgets what was counted.
func (w *broken) count() { w.counting, w.requests = true, map[mad.AttributeID][2]int{} }

// all is the number of requests, and of Sets of forwarding tables among them.
func (w *broken) all() (requests, blocks int) {
	for a, n := range w.requests {
		requests += n[0] + n[1]
		if a == smp.AttrLinearForwardingTable {
			blocks += n[1]
		}
	}
	return requests, blocks
}

// pass lets time pass.
func (w *broken) pass(d time.Duration) {
	w.t.Helper()
	over := false
	w.fabric.At(w.fabric.Now()+d, func() { over = true })
	if err := w.link.Drive(context.Background(), w.engine, func() bool { return over && w.engine.Settled() }); err != nil {
		w.t.Fatal(err)
	}
}

// answer lets time pass until the manager has done with what has just happened.
func (w *broken) answer() {
	w.t.Helper()
	w.last = nil
	end := w.fabric.Now() + time.Minute
	if err := w.link.Drive(context.Background(), w.engine, func() bool {
		return w.last != nil && w.engine.Settled() || w.fabric.Now() > end
	}); err != nil {
		w.t.Fatal(err)
	}
	if w.last == nil || !w.last.Proof.Verdict.Holds() || !w.last.Reached() {
		w.t.Fatalf("result %+v", w.last)
	}
}

func (w *broken) pull(l observed.Link) {
	w.must(w.fabric.Unlink(l.A.Node.GUID(), l.A.Num))
}

func (w *broken) plug(l observed.Link) {
	w.must(w.fabric.Link(l.A.Node.GUID(), l.A.Num, l.B.Node.GUID(), l.B.Num))
}

func (w *broken) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// tables are the exits of all switches by LID, as devices hold them.
func (w *broken) tables() map[ib.NodeGUID][]ib.PortNum {
	top := ib.LID(0)
	out := map[ib.NodeGUID][]ib.PortNum{}
	for _, n := range w.list.Nodes {
		if n.Type == ib.NodeSwitch {
			top = max(top, w.fabric.Agent(n.GUID).SwitchInfo().LinearFDBTop)
		}
	}
	for _, n := range w.list.Nodes {
		if n.Type != ib.NodeSwitch {
			continue
		}
		a, row := w.fabric.Agent(n.GUID), make([]ib.PortNum, int(top)+1)
		for lid := range row {
			row[lid] = ib.PortNone
			if exit, ok := a.UnicastExit(0, ib.LID(lid)); ok {
				row[lid] = exit
			}
		}
		out[n.GUID] = row
	}
	return out
}

// differing counts the blocks in which two tables are not the same.
func differing(before, after map[ib.NodeGUID][]ib.PortNum) (blocks int) {
	for g, was := range before {
		is := after[g]
		for first := 0; first < max(len(was), len(is)); first += smp.LIDsPerLinearBlock {
			end := first + smp.LIDsPerLinearBlock
			if !slices.Equal(was[min(first, len(was)):min(end, len(was))], is[min(first, len(is)):min(end, len(is))]) {
				blocks++
			}
		}
	}
	return blocks
}

// concerned counts the blocks that have a LID whose way from there leads over a cable.
func (w *broken) concerned(tables map[ib.NodeGUID][]ib.PortNum, cable observed.Link) (blocks int) {
	switches := w.engine.Fabric().Switches()
	over := map[[2]int]bool{} // switch, block
	lids := 0
	for _, row := range tables {
		lids = len(row)
	}
	place := map[ib.NodeGUID]int{}
	for i, n := range switches {
		place[n.GUID()] = i
	}
	a, b := cable.A.Node.GUID(), cable.B.Node.GUID()
	rows := make([][]ib.PortNum, len(switches))
	for i, n := range switches {
		rows[i] = tables[n.GUID()]
	}
	state := make([]int, len(switches)) // 2 lid + whether it leads over the cable
	for lid := 1; lid < lids; lid++ {
		uses := rows[place[a]][lid] == cable.A.Num || rows[place[b]][lid] == cable.B.Num
		if !uses {
			continue
		}
		var leads func(i int) bool
		leads = func(i int) bool {
			if state[i]>>1 == lid {
				return state[i]&1 != 0
			}
			state[i] = 2 * lid
			n, exit := switches[i], rows[i][lid]
			yes := n.GUID() == a && exit == cable.A.Num || n.GUID() == b && exit == cable.B.Num
			if !yes && exit != 0 && int(exit) < len(n.Ports) {
				if q := n.Ports[exit].Peer; q != nil && q.Node.Switch != nil {
					yes = leads(place[q.Node.GUID()])
				}
			}
			if yes {
				state[i] |= 1
			}
			return yes
		}
		for i := range switches {
			if leads(i) {
				over[[2]int{i, lid / smp.LIDsPerLinearBlock}] = true
			}
		}
	}
	return len(over)
}

// BenchmarkCable breaks one cable between switches after another, and lays it again: from
// the moment that it is gone to the last write of a forwarding table, on the clock, and the
// requests that the manager sends. "changed" are the blocks of forwarding tables that are
// different afterwards, "concerned" those with a LID whose way led over the cable: about as
// many have to change whatever the routes. "least" is changed, and what it takes to see the
// change: PortInfo of every port of both switches and clearing their PortStateChange.
func BenchmarkCable(b *testing.B) {
	for _, spec := range []string{"fattree,radix=12,levels=3", "fattree,radix=24,levels=3", "fattree,radix=36,levels=3"} {
		for _, name := range []routing.Engine{routing.FatTree, routing.UpDown, routing.DFSSSP} {
			if name == routing.DFSSSP && spec == "fattree,radix=36,levels=3" {
				continue
			}
			b.Run(fmt.Sprintf("%s,%s", name, spec), func(b *testing.B) {
				w := newBroken(b, spec, engine.Config{Routing: name, Periods: engine.Periods{Sweep: time.Hour, Drift: time.Hour}})
				rng := rand.New(rand.NewPCG(1, 1))
				var down, up, used []float64
				least := math.Inf(1)
				var sum, back struct{ requests, blocks, changed, concerned, least float64 }
				b.ResetTimer()
				for range b.N {
					cable := w.cables[rng.IntN(len(w.cables))]
					see := float64(len(cable.A.Node.Ports) - 1 + len(cable.B.Node.Ports) - 1 + 2)
					before := w.tables()
					w.count()
					began, cpu := time.Now(), cpuTime()
					w.pull(cable)
					w.answer()
					w.pass(time.Second) // a trap that was lost comes again
					down = append(down, w.lastWrite.Sub(began).Seconds()*1000)
					used = append(used, (w.lastCPU-cpu).Seconds()*1000)
					least = min(least, down[len(down)-1])
					after := w.tables()
					requests, blocks := w.all()
					b.Log("pulled ", cable.A, " ", w.requests)
					changed := differing(before, after)
					sum.requests, sum.blocks, sum.changed = sum.requests+float64(requests), sum.blocks+float64(blocks), sum.changed+float64(changed)
					sum.concerned, sum.least = sum.concerned+float64(w.concerned(before, cable)), sum.least+float64(changed)+see
					w.count()
					began = time.Now()
					w.plug(cable)
					w.answer()
					w.pass(time.Second)
					up = append(up, w.lastWrite.Sub(began).Seconds()*1000)
					b.Log("plugged ", w.requests)
					requests, blocks = w.all()
					changed = differing(after, w.tables())
					back.requests, back.blocks, back.changed = back.requests+float64(requests), back.blocks+float64(blocks), back.changed+float64(changed)
					back.least += float64(changed) + see
				}
				n := float64(b.N)
				b.ReportMetric(median(down), "ms")
				b.ReportMetric(least, "min-ms")
				b.ReportMetric(median(used), "cpu-ms")
				b.ReportMetric(float64(w.rerouted)/n, "at-once")
				b.ReportMetric(sum.requests/n, "SMPs")
				b.ReportMetric(sum.requests/sum.least, "SMPs/least")
				b.ReportMetric(sum.changed/n, "changed")
				b.ReportMetric(sum.concerned/n, "concerned")
				b.ReportMetric(sum.blocks/n, "blocks")
				b.ReportMetric(median(up), "back-ms")
				b.ReportMetric(back.requests/n, "back-SMPs")
				b.ReportMetric(back.requests/back.least, "back-SMPs/least")
			})
		}
	}
}

func median[T cmp.Ordered](all []T) T {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
