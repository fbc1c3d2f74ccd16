package scaletest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// taken is what a bring-up took on hardware.
type taken struct {
	time time.Duration // by the fabric
	sent uint64        // packets of the manager, repeated ones included
	// most and mean are how many packets were under way at once.
	most   int
	mean   float64
	phases []sweep.Phase
}

func (x taken) String() string {
	return fmt.Sprintf("%.3f s, %d packets, %d in flight at most, %.1f in the mean", x.time.Seconds(), x.sent, x.most, x.mean)
}

// meter measures packets under way.
type meter struct {
	fabric *fabric.Fabric
	most   int
	last   time.Duration
	area   float64 // packets times seconds
}

// see is told of every packet at every place.
func (m *meter) see(s fabric.Sighting) {
	if m.fabric == nil {
		return
	}
	n := m.fabric.InFlight()
	m.most = max(m.most, n)
	m.area += float64(n) * (s.At - m.last).Seconds()
	m.last = s.At
}

type unwatched struct{ testing.TB }

func (w unwatched) Event(e event.Event) {
	switch e := e.(type) {
	case event.Refused, event.Failed:
		w.Errorf("%v", e)
	}
}
func (unwatched) Progress(string, uint64) {}

// tenantHosts is how many hosts have a partition of their own.
const tenantHosts = 16

// conf is a partitions.conf with a partition for every tenantHosts hosts.
func conf(list *topology.Netlist) string {
	var text strings.Builder
	text.WriteString("Default=0x7fff : ALL=limited, SELF=full ;\n")
	hosts := 0
	for _, n := range list.Nodes {
		if n.Type != ib.NodeCA {
			continue
		}
		switch hosts % tenantHosts {
		case 0:
			if hosts > 0 {
				text.WriteString(" ;\n")
			}
			fmt.Fprintf(&text, "T%d=0x%x : ", hosts/tenantHosts, 0x1000+hosts/tenantHosts)
		default:
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "%v=full", n.Ports[1].GUID)
		hosts++
	}
	text.WriteString(" ;\n")
	return text.String()
}

func generate(t testing.TB, spec string) *topology.Netlist {
	t.Helper()
	list, err := topology.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// bringUp has a manager bring a fabric up with at most so many requests under way.
func bringUp(t testing.TB, list *topology.Netlist, h *fabric.Hardware, window int) taken {
	t.Helper()
	var m meter
	c := fabric.DefaultConfig()
	c.Hardware, c.Trace = h, m.see
	f, err := fabric.New(list, c)
	if err != nil {
		t.Fatal(err)
	}
	m.fabric = f
	node, num, err := list.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := inproc.New(f, node.GUID, num, false)
	if err != nil {
		t.Fatal(err)
	}
	p := read(t, list)
	r := daemon.NewRunner(l, engine.Config{Limits: transact.Limits{Window: window}, Routing: routing.FatTree, Profile: protect.Tenant, Periods: engine.Periods{Sweep: time.Minute, Drift: time.Hour}}, server.Config{}, p, unwatched{t})
	if err := r.Run(t.Context(), r.Engine().Settled); err != nil {
		t.Fatal(err)
	}
	out := taken{time: f.Now(), sent: r.Engine().Counts().Sent, most: m.most, phases: r.Sweeps()[0].Phases}
	out.mean = m.area / out.time.Seconds()
	return out
}

func read(t testing.TB, list *topology.Netlist) *policy.Policy {
	t.Helper()
	p, err := policyfile.ReadConf([]byte(conf(list)), "partitions.conf", policyfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// small has 72 hosts and 18 switches.
const small = "fattree,radix=12,levels=2"

// TestBringUpOnHardware: the time of a bring-up on hardware is the same in every run, and
// every delay counts in the direction in which it must.
func TestBringUpOnHardware(t *testing.T) {
	list := generate(t, small)
	usual := bringUp(t, list, fabric.DefaultHardware(), 16)
	again := bringUp(t, list, fabric.DefaultHardware(), 16)
	t.Log("window 16:", usual)
	if usual.String() != again.String() || usual.time != again.time {
		t.Fatalf("once %v, then %v", usual, again)
	}
	for i, p := range usual.phases {
		if q := again.phases[i]; p.FabricSeconds != q.FabricSeconds || p.Sent != q.Sent {
			t.Errorf("phase %+v was %+v in the other run", p, q)
		}
	}
	if usual.most > 16 || usual.mean <= 1 {
		t.Errorf("%v: want more than one in flight, and 16 at most", usual)
	}
	last := taken{time: time.Hour}
	for _, window := range []int{1, 4, 16, 64} {
		x := bringUp(t, list, fabric.DefaultHardware(), window)
		if x.time >= last.time || x.sent != usual.sent || x.most > window {
			t.Errorf("window %d: %v; with a smaller one %v", window, x, last)
		}
		last = x
	}
	for name, change := range map[string]func(*fabric.Hardware){
		"longer cables":               func(h *fabric.Hardware) { h.Metres = 1000 },
		"slower signals":              func(h *fabric.Hardware) { h.Metre *= 100 },
		"slower links":                func(h *fabric.Hardware) { h.Rate = 1 },
		"slower relaying":             func(h *fabric.Hardware) { h.Relay *= 3 },
		"slower switch agents":        func(h *fabric.Hardware) { h.SwitchAgent *= 2 },
		"slower host agents":          func(h *fabric.Hardware) { h.HostAgent *= 20 },
		"a slower manager":            func(h *fabric.Hardware) { h.Send *= 3 },
		"a manager that reads slower": func(h *fabric.Hardware) { h.Receive *= 3 },
	} {
		h := fabric.DefaultHardware()
		change(h)
		if x := bringUp(t, list, h, 16); x.time <= usual.time || x.sent != usual.sent {
			t.Errorf("%s: %v, else %v", name, x, usual)
		}
	}
	// The bound below which no manager comes with these delays: its program takes each
	// packet and each answer.
	h := fabric.DefaultHardware()
	if least := time.Duration(usual.sent) * (h.Send + h.Receive); last.time < least {
		t.Errorf("%v is less than the manager's program takes, %v", last, least)
	}
}

// TestFullBuffers: where few packets may wait for a management processor, a window that is
// too wide loses packets, which are sent again, and the fabric comes up.
func TestFullBuffers(t *testing.T) {
	list := generate(t, small)
	h := fabric.DefaultHardware()
	h.Waiting = 4
	x := bringUp(t, list, h, 64)
	whole := bringUp(t, list, fabric.DefaultHardware(), 64)
	t.Log("room for 4:", x)
	if x.sent <= whole.sent || x.time <= whole.time {
		t.Errorf("with room for 4: %v, else %v", x, whole)
	}
}

// TestWritesGoRound: the blocks of a switch's tables do not go out one after the other, so
// that a small window does not wait for one switch while the others have nothing to do.
func TestWritesGoRound(t *testing.T) {
	h := fabric.DefaultHardware()
	x := bringUp(t, generate(t, "fattree,radix=8,levels=3"), h, 8)
	for _, p := range x.phases {
		if p.Name != "forwarding tables" {
			continue
		}
		each := time.Duration(p.FabricSeconds / float64(p.Sent) * float64(time.Second))
		t.Logf("%d packets, %v each", p.Sent, each)
		// Two switches would take h.SwitchAgent / 2, eight less than the manager's program.
		if most := h.SwitchAgent / 4; each > most || p.Sent < 300 {
			t.Errorf("%d packets for forwarding tables take %v each, want %v at most", p.Sent, each, most)
		}
		return
	}
	t.Errorf("no forwarding tables in %+v", x.phases)
}
