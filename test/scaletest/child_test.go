package scaletest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// A run is measured in a process of its own: what an earlier one took of memory, and left
// to collect, is not in it.

// order is what a process is to measure.
type order struct {
	Topology string         // as for topology.Generate
	Routing  routing.Engine // routing.FatTree when ""
	LMC      ib.LMC
	// Tenants is the number of tenants into which hosts are divided, Keys in how many
	// partitions besides every host is.
	Tenants, Keys int
	// Pause is how long the manager waits for what an earlier one may have sent.
	Pause time.Duration
}

// cost is what something took.
type cost struct{ Wall, CPU float64 } // s

func (c cost) less(d cost) cost { return cost{c.Wall - d.Wall, c.CPU - d.CPU} }

// figures are what a process measured.
type figures struct {
	Hosts, Switches, Ports int
	// Whole is the bring-up, Phases what it consists of; Routing and Judge are inside the
	// phase plan, and are measured by themselves afterwards.
	Whole          cost
	Phases         map[string]cost
	Routing, Judge cost
	Requests       uint64
	// Packets are those of the phases that sent some.
	Packets []sweep.Phase
	// Allocated is how much memory was asked for during the bring-up, by the simulated fabric too,
	// and Allocations how often.
	Allocated, Allocations uint64
	// Bytes: of the topology, of the fabric before and after the bring-up, and of the
	// manager, each after a garbage collection; Peak is what the process had at most.
	Topology, Off, Fabric, Manager, Peak uint64
	// Entries of forwarding tables and of P_Key tables that were written.
	LFT, PKeys int
	Verdict    string
}

// orderVariable tells a process what to measure.
const orderVariable = "SCALETEST_ORDER"

func TestMain(m *testing.M) {
	text := os.Getenv(orderVariable)
	if text == "" {
		os.Exit(need.Main(m))
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	var f figures
	if err == nil {
		f, err = o.measure()
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// clock is the time and the processor time of this process so far.
func clock() cost {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail
	return cost{float64(time.Now().UnixNano()) / 1e9, float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9}
}

func taking(do func()) cost {
	began := clock()
	do()
	return clock().less(began)
}

// live is what is in use of the heap.
func live() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// peak is the most memory that this process had.
func peak() uint64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kB uint64
	_, _ = fmt.Sscan(rest, &kB) // 0 where the system does not say
	return kB << 10
}

// watcher notes what each phase takes.
type watcher struct {
	phases  map[string]cost
	phase   string
	began   cost
	refused error
	verdict string
}

func (w *watcher) Progress(string, uint64) {}

func (w *watcher) Event(e event.Event) {
	switch e := e.(type) {
	case event.PhaseBegun:
		now := clock()
		if w.phase != "" {
			had, took := w.phases[w.phase], now.less(w.began)
			w.phases[w.phase] = cost{had.Wall + took.Wall, had.CPU + took.CPU}
		}
		w.phase, w.began = e.Phase, now
	case event.Refused:
		w.refused = e.Err
	case event.Completed:
		w.verdict = e.Result.Proof.Verdict.String()
	}
}

// measure brings the fabric up.
func (o order) measure() (f figures, err error) {
	base := live()
	l, err := topology.Generate(o.Topology)
	if err != nil {
		return f, err
	}
	p, err := o.policy(l)
	if err != nil {
		return f, err
	}
	f.Topology = live() - base
	fab, err := fabric.New(l, fabric.DefaultConfig())
	if err != nil {
		return f, err
	}
	f.Off = live() - base - f.Topology
	f.Hosts, f.Switches = l.Count(ib.NodeCA), l.Count(ib.NodeSwitch)
	for _, n := range l.Nodes {
		f.Ports += n.NumPorts()
	}
	if err := o.run(&f, fab, l, p); err != nil {
		return f, err
	}
	after := live()
	f.Fabric = after - base - f.Topology
	f.Manager -= after
	f.count(fab, l)
	f.Peak = peak()
	runtime.KeepAlive(fab)
	runtime.KeepAlive(l)
	runtime.KeepAlive(p)
	return f, nil
}

// run lets a manager come and bring the fabric up. Manager is then all that is in use.
func (o order) run(f *figures, fab *fabric.Fabric, l *topology.Netlist, p *policy.Policy) error {
	link, err := inproc.New(fab, l.Nodes[0].GUID, 1, true)
	if err != nil {
		return err
	}
	o.Routing = cmp.Or(o.Routing, routing.FatTree)
	c := engine.Config{LMC: o.LMC, Routing: o.Routing, Pause: o.Pause}
	var a server.Config
	master.Guard{
		Profile: protect.Default, Learn: true, Keys: master.KeysOf(mkey.NewRing([mkey.SecretSize]byte{1}), new(mkey.Book), false),
	}.Configure(&c, &a)
	w := &watcher{phases: map[string]cost{}}
	var r *daemon.Runner
	profiled, err := profile()
	if err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := clock()
	r = daemon.NewRunner(link, c, a, p, w)
	err = r.Run(context.Background(), func() bool { return r.Engine().Settled() || w.refused != nil })
	f.Whole = clock().less(began)
	runtime.ReadMemStats(&after)
	f.Allocated, f.Allocations = after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs
	if err == nil {
		err = w.refused
	}
	if err != nil {
		return err
	}
	if err := profiled(r); err != nil {
		return err
	}
	f.Peak = peak()
	f.Phases, f.Verdict, f.Requests = w.phases, w.verdict, r.Engine().Counts().Answered
	for _, s := range r.Sweeps() {
		f.Packets = append(f.Packets, s.Phases...)
	}
	f.Packets = slices.DeleteFunc(f.Packets, func(p sweep.Phase) bool { return p.Sent+p.Least == 0 })
	f.Manager = live()
	if o.Routing == routing.FatTree {
		f.again(r.Engine().Fabric())
	}
	runtime.KeepAlive(r)
	return link.Close()
}

// profileVariable names the beginning of the names of two files, for the profiles of the
// processor and of the heap.
const profileVariable = "SCALETEST_PROFILE"

// profile begins to profile, if that is wanted; what it returns ends it.
func profile() (end func(alive any) error, err error) {
	name := os.Getenv(profileVariable)
	if name == "" {
		return func(any) error { return nil }, nil
	}
	cpu, err := os.Create(name + ".cpu")
	if err == nil {
		err = pprof.StartCPUProfile(cpu)
	}
	return func(alive any) error {
		pprof.StopCPUProfile()
		runtime.GC()
		heap, err := os.Create(name + ".heap")
		if err == nil {
			err = errors.Join(pprof.Lookup("heap").WriteTo(heap, 0), heap.Close())
		}
		runtime.KeepAlive(alive)
		return errors.Join(err, cpu.Close())
	}, err
}

// again routes and judges once more, by itself.
func (f *figures) again(up *observed.Fabric) {
	var to []graph.Destination
	for _, p := range up.EndPorts() {
		to = append(to, graph.Destination{Port: p, LID: p.Info.LID, LMC: p.Info.LMC})
	}
	f.Routing = taking(func() {
		if _, err := (routing.Request{Engine: routing.FatTree, Room: graph.Room{VLs: 1, Layers: 1}, Workers: daemon.Workers()}).Compute(up, to); err != nil {
			panic(err)
		}
	})
	in := routes.Read(up)
	in.Parts, in.Parallel = daemon.Workers().Count, daemon.Workers().Run
	f.Judge = taking(func() {
		if v := routes.Judge(in); !v.Right() {
			panic(strings.Join(v.Reasons(), "; "))
		}
	})
}

// count counts entries of tables that agents hold.
func (f *figures) count(fab *fabric.Fabric, l *topology.Netlist) {
	for _, n := range l.Nodes {
		a := fab.Agent(n.GUID)
		if s := a.SwitchInfo(); s != nil {
			f.LFT += int(s.LinearFDBTop) + 1
		}
		for num := range n.Ports {
			for _, k := range a.PKeys(ib.PortNum(num)) {
				if k.IsValid() {
					f.PKeys++
				}
			}
		}
	}
}

// policy divides the hosts into tenants.
func (o order) policy(l *topology.Netlist) (*policy.Policy, error) {
	return policyfile.Read(o.text(l), "partitions.conf", policyfile.Options{AllowBoth: true})
}

// conf is the policy as a file.
func (o order) conf() ([]byte, error) {
	l, err := topology.Generate(o.Topology)
	if err != nil {
		return nil, err
	}
	return o.text(l), nil
}

func (o order) text(l *topology.Netlist) []byte {
	var text strings.Builder
	text.WriteString("Default=0x7fff : ALL=limited, SELF=full ;\n")
	each := max(1, (l.Count(ib.NodeCA)+o.Tenants-1)/max(o.Tenants, 1))
	host := 0
	for _, n := range l.Nodes {
		if n.Type != ib.NodeCA || o.Tenants == 0 {
			continue
		}
		if host%each == 0 {
			if host > 0 {
				text.WriteString(" ;\n")
			}
			fmt.Fprintf(&text, "Tenant%d=0x%x, defmember=full :", host/each+1, 0x1000+host/each)
		} else {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, "\n%v", n.Ports[1].GUID) // a store takes a file of a megabyte
		host++
	}
	if host > 0 {
		text.WriteString(" ;\n")
	}
	for k := range o.Keys {
		fmt.Fprintf(&text, "All%d=0x%x : ALL_CAS=full ;\n", k+1, 0x100+k)
	}
	return []byte(text.String())
}
