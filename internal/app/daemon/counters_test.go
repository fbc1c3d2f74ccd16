package daemon

import (
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// idle is a watcher that says nothing.
type idle struct{}

func (idle) Event(event.Event)       {}
func (idle) Progress(string, uint64) {}

// minding is a link whose engine is looked at with every datagram that leaves.
type minding struct {
	link.Link
	runner **Runner
	early  *int // requests for counters that left while the manager was at work
}

type minded struct {
	link.Long
	minding
}

func (m *minded) NextGeneral(now time.Duration, bytes *[mad.Size]byte) (mad.Address, bool) {
	to, ok := m.Long.NextGeneral(now, bytes)
	if ok && mad.Class(bytes[1]) == mad.ClassPerfMgt && !(*m.runner).Engine().Settled() {
		*m.early++
	}
	return to, ok
}

// TestCountersOfTheFabric has a manager read the counters of the demonstration, in
// packets through the fabric: they are those of the devices, of every port that is
// up, and nothing is asked while the manager has work.
func TestCountersOfTheFabric(t *testing.T) {
	top := topology.Demo()
	f, err := fabric.New(top, fabric.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := top.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := inproc.New(f, node.GUID, num, false)
	if err != nil {
		t.Fatal(err)
	}
	// Without a partition in common the manager cannot ask the switches.
	text := strings.Replace(string(demoPolicy), "services:", "  - {name: counters, pkey: 0x0050, members: {full: [SELF], limited: [ALL_SWITCHES]}}\nservices:", 1)
	policy, err := policyfile.ReadYAML([]byte(text), "counters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	demo, err := DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	r := NewRunner(l, engine.Config{Routing: routing.UpDown, Seed: Secret()}, server.Config{}, demo, idle{})
	limits := perfmgr.DefaultLimits()
	limits.Period, limits.Hosts = time.Second, true
	r.ReadCounters(limits)
	early := 0
	drive := func(until func() bool) {
		t.Helper()
		e := &minded{Long: r.managed, minding: minding{Link: l, runner: &r, early: &early}}
		if err := l.Drive(t.Context(), e, until); err != nil {
			t.Fatal(err)
		}
	}
	drive(func() bool { return r.Engine().Settled() && r.Counters().Counts().Rounds > 0 })
	faults := make(map[string]int)
	for x := range r.Counters().Readings(r.Now()) {
		faults[x.Fault.String()]++
	}
	if faults["answered"] != 16 || faults["no-key"] != 48 {
		t.Errorf("without a partition in common with switches: %v", faults)
	}
	r.Engine().SetPolicy(policy)
	drive(r.Engine().Settled)
	ports := 0
	for i, n := range top.Nodes {
		for num := range n.Ports {
			if n.Ports[num].Peer != nil {
				ports++
				f.Counters(n.GUID).Port(ib.PortNum(num)).PortRcvConstraintErrors = uint64(i)<<8 + uint64(num)
			}
		}
	}
	rounds := r.Counters().Counts().Rounds + 2
	drive(func() bool { return r.Counters().Counts().Rounds >= rounds })
	some := 0
	for x := range r.Counters().Readings(r.Now()) {
		some++
		want := f.Counters(x.Place.Node).Port(x.Place.Port)
		if got, known := x.Value(perfmgr.PortRcvConstraintErrors); !known || got != want.PortRcvConstraintErrors {
			t.Errorf("PortRcvConstraintErrors of %v: %d, known %v, want %d", x.Place, got, known, want.PortRcvConstraintErrors)
		}
		// It went on while it was read, by what was read.
		if got, known := x.Value(perfmgr.PortXmitPkts); !known || got > want.PortXmitPkts {
			t.Errorf("PortXmitPkts of %v: %d, known %v, now %d", x.Place, got, known, want.PortXmitPkts)
		}
	}
	if some != ports || some != 64 {
		t.Errorf("%d ports were read of %d that are up", some, ports)
	}
	// A policy, and nothing is asked until it is proved.
	for range 2 {
		r.Engine().SetPolicy(policy)
		rounds := r.Counters().Counts().Rounds + 1
		drive(func() bool { return r.Engine().Settled() && r.Counters().Counts().Rounds >= rounds })
	}
	if early != 0 {
		t.Errorf("%d requests for counters left while the manager was at work", early)
	}
	if c := r.Counters().Counts(); c.Unanswered+c.Refused+c.Malformed+c.Stray != 0 {
		t.Errorf("%+v", c)
	}
	saysOfCounters(t, r)
}

// saysOfCounters: what programs are told of the counters of a port is what was read of it, with the sum of
// its errors, and without a name where the port is not in the snapshot any more.
func saysOfCounters(t *testing.T, r *Runner) {
	t.Helper()
	errorsOf := map[string]bool{
		"SymbolErrorCounter": true, "LinkErrorRecoveryCounter": true, "LinkDownedCounter": true, "PortRcvErrors": true, "PortXmitConstraintErrors": true,
		"PortRcvConstraintErrors": true, "LocalLinkIntegrityErrors": true, "ExcessiveBufferOverrunErrors": true,
	}
	for x := range r.Counters().Readings(r.Now()) {
		p := r.Engine().Fabric().At(x.Place)
		got := countersOf(&x, p)
		if got.Node != x.Place.Node.String() || got.Port != int(x.Place.Port) || got.Name != p.Node.Name() || got.Peer != p.Peer.String() || got.Fault != "" || len(got.Stuck) != 0 ||
			got.Age != x.Age.Round(time.Millisecond).Seconds() {
			t.Errorf("%v: %+v", x.Place, got)
		}
		var sum uint64
		known := 0
		for c := range perfmgr.Counters {
			n, is := x.Value(c)
			if told, has := got.Counters[c.String()]; has != is || told != n && is {
				t.Errorf("%v: %v is told as %d, %v; it is %d, %v", x.Place, c, told, has, n, is)
			}
			if is {
				known++
			}
			if is && errorsOf[c.String()] {
				sum += n
			}
		}
		if got.Errors != sum || known < len(errorsOf) {
			t.Errorf("%v: %d errors of %d counters, want %d", x.Place, got.Errors, known, sum)
		}
		for c, rate := range map[perfmgr.Counter]*float64{perfmgr.PortXmitData: got.Sends, perfmgr.PortRcvData: got.Receives} {
			if n, is := x.Rate(c); (rate != nil) != is || is && *rate != n {
				t.Errorf("%v: the rate of %v is told as %v, it is %v, %v", x.Place, c, rate, n, is)
			}
		}
		if gone := countersOf(&x, nil); gone.Name != "" || gone.Peer != "" || gone.Errors != sum {
			t.Errorf("of a port that is gone: %+v", gone)
		}
		if x.Fault = perfmgr.NoKey; countersOf(&x, p).Fault != perfmgr.NoKey.String() {
			t.Errorf("%v: a fault is told as %q", x.Place, countersOf(&x, p).Fault)
		}
	}
}
