package umad_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	transport "github.com/ibwarden/ibwarden/internal/link/umad"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// witness keeps what a manager says.
type witness struct {
	results []*event.Result
	events  []event.Event
}

func (w *witness) Event(e event.Event) {
	if c, ok := e.(event.Completed); ok {
		w.results = append(w.results, c.Result)
	}
	w.events = append(w.events, e)
}

func (w *witness) Progress(string, uint64) {}

// bringUp runs a manager with the demonstration policy until its first verdict.
func bringUp(t *testing.T, m *machine, notice func(string)) *isolation.Proof {
	t.Helper()
	link, err := transport.Open(m, umad.Place{}, transport.Options{Notice: notice})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	policy, err := daemon.DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{}
	r := daemon.NewRunner(link, engine.Config{Routing: routing.UpDown, Periods: engine.Periods{Sweep: 10 * time.Second, Drift: time.Hour}}, server.Config{}, policy, w)
	if err := r.Run(t.Context(), func() bool { return r.Engine().Settled() || m.Now() > time.Hour }); err != nil {
		t.Fatal(err)
	}
	if len(w.results) == 0 {
		t.Fatalf("no verdict: %v", w.events)
	}
	return w.results[len(w.results)-1].Proof
}

func TestBringUp(t *testing.T) {
	for name, c := range map[string]fabric.Config{
		"usual": fabric.DefaultConfig(),
		"loss":  {HopDelay: time.Microsecond, AgentDelay: 20 * time.Microsecond, Seed: 3, Loss: 0.02},
		"late":  {HopDelay: time.Millisecond, AgentDelay: 50 * time.Millisecond, Jitter: 160 * time.Millisecond, Seed: 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, topology.Demo(), c)
			if got := bringUp(t, m, nil); got.Verdict != isolation.Isolated {
				t.Errorf("%v: %q", got.Verdict, got.Reasons)
			}
			if m.layer.IsSM() {
				t.Error("the manager left and the port still announces one")
			}
			t.Logf("%d datagrams, %v", m.written, m.Now())
		})
	}
}

// TestSlowAgent: PI-114, an agent that takes longer than the kernel usually waits,
// and no longer than it says, is heard.
func TestSlowAgent(t *testing.T) {
	list := topology.Demo()
	m := newMachine(t, list, fabric.DefaultConfig())
	slow := list.Nodes[len(list.Nodes)-1]
	if err := m.fabric.SetFault(slow.GUID, fabric.Fault{Late: 250 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if got := bringUp(t, m, nil); got.Verdict != isolation.Isolated || got.Counts.Unknown != 0 {
		t.Errorf("%v: %q", got.Verdict, got.Reasons)
	}
	if state := m.fabric.Agent(slow.GUID).Port(1).PortState; state != smp.PortActive {
		t.Errorf("the slow one is %v", state)
	}
}

// TestRemoval takes the adapter away in the middle of a bring-up and gives it
// back under another name.
func TestRemoval(t *testing.T) {
	for _, at := range []int{1, 5, 20, 60} {
		m := newMachine(t, topology.Demo(), fabric.DefaultConfig())
		var notices []string
		m.before[at] = func() {
			m.unplug()
			m.fabric.At(m.Now()+3*time.Second, func() {
				m.devices[0].Name, m.devices[0].Ports[0].Device = "mlx5_1", "mlx5_1"
				m.devices[0].Ports[0].MAD, m.devices[0].Ports[0].IsSM = "umad7", "issm7"
				m.plug()
			})
		}
		got := bringUp(t, m, func(s string) { notices = append(notices, s) })
		if got.Verdict != isolation.Isolated {
			t.Errorf("removed at wait %d: %v: %q", at, got.Verdict, got.Reasons)
		}
		if len(notices) != 2 || !strings.Contains(notices[0], "mlx5_0 port 1 was removed") || notices[1] != "mlx5_1 port 1 is back" {
			t.Errorf("removed at wait %d: said %q", at, notices)
		}
		if m.slept < 3*time.Second || m.slept > 8*time.Second {
			t.Errorf("removed at wait %d: slept %v for 3 s", at, m.slept)
		}
	}
}

func TestRemovalForGood(t *testing.T) {
	m := newMachine(t, topology.Demo(), fabric.DefaultConfig())
	link, err := transport.Open(m, umad.Place{}, transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	m.before[3] = m.unplug
	_, err = daemon.Read(t.Context(), link, sweep.Options{})
	if !errors.Is(err, transport.ErrGone) || !errors.Is(err, umad.ErrNoDevice) {
		t.Errorf("%v, want that the device was removed and why there is none", err)
	}
	if m.slept < transport.ReturnWait || m.slept > transport.ReturnWait+10*time.Second {
		t.Errorf("waited %v", m.slept)
	}
	// Whoever ends meanwhile is not kept waiting.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := daemon.Read(ctx, link, sweep.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestManagersExclude: a second manager at the port is refused, a reader is not.
func TestManagersExclude(t *testing.T) {
	m := newMachine(t, topology.Demo(), fabric.DefaultConfig())
	open := func() *transport.Link {
		l, err := transport.Open(m, umad.Place{GUID: m.guidOf()}, transport.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second := open(), open()
	if err := first.SetIsSM(true); err != nil || !m.layer.IsSM() {
		t.Fatal(err)
	}
	if err := second.SetIsSM(true); err == nil || !strings.Contains(err.Error(), "another program has registered for subnet management") {
		t.Errorf("%v, want that another program has registered", err)
	}
	if r, err := daemon.Read(t.Context(), second, sweep.Options{}); err != nil || len(r.Fabric.Nodes) < 10 {
		t.Errorf("a reader beside a manager: %v", err)
	}
	if err := first.SetIsSM(false); err != nil || m.layer.IsSM() {
		t.Errorf("%v, or the port still announces a manager", err)
	}
	if err := second.SetIsSM(true); err != nil {
		t.Errorf("after the first left: %v", err)
	}
	second.Close()
	// Somebody holds issm without having registered.
	if errno := m.layer.OpenIsSM(); errno != umad.OK {
		t.Fatal(errno)
	}
	if err := first.SetIsSM(true); err == nil || !strings.Contains(err.Error(), "another subnet manager holds it") {
		t.Errorf("%v, want that issm is held", err)
	}
	m.layer.CloseIsSM()
	if err := first.SetIsSM(true); err != nil {
		t.Errorf("what failed left something behind: %v", err)
	}
}

// asker is an engine that sends a list of packets and keeps what becomes of
// them.
type asker struct {
	out       []mad.SMP
	got, lost []mad.SMP
	from      []ib.LID
}

func (a *asker) Next(_ time.Duration, p *mad.SMP) (ib.LID, bool) {
	if len(a.out) == 0 {
		return 0, false
	}
	*p, a.out = a.out[0], a.out[1:]
	return ib.LIDPermissive, true
}

func (a *asker) Receive(_ time.Duration, p *mad.SMP, slid ib.LID) {
	a.got, a.from = append(a.got, *p), append(a.from, slid)
}
func (a *asker) Lost(_ time.Duration, p *mad.SMP)        { a.lost = append(a.lost, *p) }
func (a *asker) Expire(time.Duration)                    {}
func (a *asker) Deadline() (at time.Duration, some bool) { return 0, false }

func get(tid uint64, hops ...byte) mad.SMP {
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion, Method: mad.MethodGet,
		HopCount: uint8(len(hops)), TransactionID: tid, AttributeID: 0x11, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
	}
	copy(p.InitialPath[1:], hops)
	return p
}

// TestLost: what nobody answers comes back whole, once, after the kernel's
// time; copies of one transaction go out although the kernel refuses two.
func TestLost(t *testing.T) {
	m := newMachine(t, topology.Demo(), fabric.DefaultConfig())
	link, err := transport.Open(m, umad.Place{}, transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	nowhere := get(7, 1, 200)
	nowhere.MKey = 99
	a := &asker{out: []mad.SMP{nowhere, nowhere, get(0xABCD_0000_0001, 1), get(0xABCD_0000_0001, 1), get(3)}}
	if err := link.Drive(t.Context(), a, func() bool { return m.Now() > time.Second }); err != nil {
		t.Fatal(err)
	}
	var tids []uint64
	for _, p := range a.got {
		tids = append(tids, p.TransactionID)
	}
	slices.Sort(tids)
	if !slices.Equal(tids, []uint64{3, 0xABCD_0000_0001, 0xABCD_0000_0001}) {
		t.Errorf("answers to %#x, want 3 and both copies", tids)
	}
	if len(a.lost) != 1 || a.lost[0] != nowhere {
		t.Errorf("lost %+v, want the one with transaction 7", a.lost)
	}
}

// TestUnasked: what others send reaches the engine only while it is a manager.
func TestUnasked(t *testing.T) {
	m := newMachine(t, topology.Demo(), fabric.DefaultConfig())
	link, err := transport.Open(m, umad.Place{}, transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	trap := get(0x1234_5678_9ABC_DEF0)
	trap.Class, trap.Method = mad.ClassSubnLID, mad.MethodTrap
	in := kernel.Packet{Address: kernel.Address{LID: 17}}
	if err := trap.Encode(&in.MAD); err != nil {
		t.Fatal(err)
	}
	a := &asker{}
	for _, is := range []bool{false, true} {
		if err := link.SetIsSM(is); err != nil {
			t.Fatal(err)
		}
		m.layer.Receive(m.Now(), &in)
		end := m.Now() + time.Second
		if err := link.Drive(t.Context(), a, func() bool { return m.Now() > end }); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.got) != 1 || a.got[0] != trap || a.from[0] != 17 {
		t.Errorf("got %+v from %v, want the trap from LID 17, once", a.got, a.from)
	}
}
