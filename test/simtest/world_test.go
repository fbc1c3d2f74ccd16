package simtest

import (
	"context"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// setup says what a world is made of.
type setup struct {
	list    *topology.Netlist
	at      string     // node where the manager is, the first one when empty
	port    ib.PortNum // of the node where the manager is, the one where clients enter when 0
	policy  *policy.Policy
	manager engine.Config
	// fabric is fabric.DefaultConfig when its delays are zero.
	fabric fabric.Config
}

// world is a fabric with a manager on it.
type world struct {
	t       *testing.T
	list    *topology.Netlist
	fabric  *fabric.Fabric
	self    place // where the manager is
	manager engine.Config
	link    *inproc.Link
	engine  *engine.Engine
	events  []happened
	arrived []arrival
	// mum keeps packets from being recorded.
	mum bool
	// watch, when set, sees every packet just before an agent acts on it.
	watch func(arrival)
	// completed, when set, sees the result of a pass before anything else is read.
	completed func(*event.Result)
}

// happened is an event and when it was.
type happened struct {
	at time.Duration
	event.Event
}

// arrival is a packet that an agent took in.
type arrival struct {
	at   time.Duration
	node ib.NodeGUID
	in   ib.PortNum
	mad.SMP
}

// place is a port.
type place struct {
	node ib.NodeGUID
	num  ib.PortNum
}

// limit is how much simulated time anything in these tests may take.
const limit = 10 * time.Minute

// newWorld makes the fabric and lets a manager come, which has done nothing yet.
func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, list: s.list, manager: s.manager}
	if s.fabric.HopDelay == 0 {
		usual := fabric.DefaultConfig()
		s.fabric.HopDelay, s.fabric.AgentDelay, s.fabric.Jitter = usual.HopDelay, usual.AgentDelay, usual.Jitter
	}
	s.fabric.Trace = w.trace
	var err error
	if w.fabric, err = fabric.New(s.list, s.fabric); err != nil {
		t.Fatal(err)
	}
	node, num, err := s.list.Attach(s.at)
	if err != nil {
		t.Fatal(err)
	}
	if s.port != 0 {
		num = s.port
	}
	w.self = place{node.GUID, num}
	w.start(s.policy)
	return w
}

// start lets a manager come that knows nothing of an earlier one.
func (w *world) start(p *policy.Policy) {
	w.t.Helper()
	var err error
	if w.link, err = inproc.New(w.fabric, w.self.node, w.self.num, false); err != nil {
		w.t.Fatal(err)
	}
	if err := w.link.SetIsSM(true); err != nil {
		w.t.Fatal(err)
	}
	c := w.manager
	if c.Limits.Window == 0 {
		c.Limits = w.link.Limits()
	}
	if c.Routing == "" {
		c.Routing = routing.UpDown
	}
	w.engine = engine.New(c, p, func(e event.Event) {
		w.events = append(w.events, happened{w.fabric.Now(), e})
		if c, ok := e.(event.Completed); ok && w.completed != nil {
			w.completed(c.Result)
		}
	})
}

// stop lets the manager go without a word.
func (w *world) stop() {
	if err := w.link.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// restart lets another manager come in place of the one that is there.
func (w *world) restart(p *policy.Policy) {
	w.stop()
	w.forget()
	w.start(p)
}

func (w *world) trace(s fabric.Sighting) {
	if w.mum || s.What != fabric.SeenByAgent {
		return
	}
	a := arrival{at: s.At, node: s.Node, in: s.Port}
	if a.SMP.UnmarshalBinary(s.MAD[:]) != nil {
		return
	}
	w.arrived = append(w.arrived, a)
	if w.watch != nil {
		w.watch(a)
	}
}

// settle lets time pass until the manager has nothing more to do.
func (w *world) settle() {
	w.t.Helper()
	w.until("the manager settles", w.engine.Settled)
}

// until lets time pass until done reports true.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	end := w.fabric.Now() + limit
	if err := w.link.Drive(context.Background(), w.engine, func() bool { return done() || w.fabric.Now() > end }); err != nil {
		w.t.Fatalf("until %s: %v", what, err)
	}
	if !done() {
		w.t.Fatalf("%s: not within %v", what, limit)
	}
}

// run lets a stretch of time pass.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	over := false
	w.fabric.At(w.fabric.Now()+d, func() { over = true })
	w.until("time passes", func() bool { return over })
}

// bringUp makes a world and lets its manager bring the fabric up.
func bringUp(t *testing.T, s setup) *world {
	t.Helper()
	w := newWorld(t, s)
	w.settle()
	return w
}

// calm waits until the manager has swept once more, to see what has changed while
// it brought the fabric up.
func (w *world) calm() {
	w.t.Helper()
	w.run(2 * engine.DefaultSweepInterval)
	w.settle()
}

// change gives the manager another policy and waits until it stands.
func (w *world) change(p *policy.Policy) {
	w.t.Helper()
	w.engine.SetPolicy(p)
	w.engine.Expire(w.fabric.Now())
	w.settle()
}

// forget forgets what was recorded so far.
func (w *world) forget() { w.events, w.arrived = nil, nil }

// all are the events of one type, in order.
func all[E event.Event](w *world) []E {
	var out []E
	for _, h := range w.events {
		if e, ok := h.Event.(E); ok {
			out = append(out, e)
		}
	}
	return out
}

// result is what the last pass came to.
func (w *world) result() *event.Result {
	w.t.Helper()
	done := all[event.Completed](w)
	if len(done) == 0 {
		w.t.Fatalf("no pass was completed: %v", w.events)
	}
	return done[len(done)-1].Result
}

// sets are the Sets that agents took in, of one attribute or of all.
func (w *world) sets(attributes ...mad.AttributeID) []arrival {
	return w.packets(mad.MethodSet, attributes...)
}

func (w *world) packets(m mad.Method, attributes ...mad.AttributeID) []arrival {
	var out []arrival
	for _, a := range w.arrived {
		match := len(attributes) == 0
		for _, id := range attributes {
			match = match || a.AttributeID == id
		}
		if a.Method == m && match {
			out = append(out, a)
		}
	}
	return out
}

// requests counts the Gets and Sets of agents since the last forget.
func (w *world) requests() int { return len(w.packets(mad.MethodGet)) + len(w.packets(mad.MethodSet)) }

func (w *world) agent(g ib.NodeGUID) *sma.Agent { return w.fabric.Agent(g) }

// info is the PortInfo of a port as its agent holds it.
func (w *world) info(p place) *smp.PortInfo {
	w.t.Helper()
	info := w.agent(p.node).Port(p.num)
	if info == nil {
		w.t.Fatalf("node %v has no port %d", p.node, p.num)
	}
	return info
}

// node finds a node of the topology by its id.
func (w *world) node(id string) *topology.Node {
	w.t.Helper()
	for _, n := range w.list.Nodes {
		if n.ID == id {
			return n
		}
	}
	w.t.Fatalf("no node %q", id)
	return nil
}

// host is the first port of the CA or router of this id, and switchPort the
// switch port that it is cabled to.
func (w *world) host(id string) place { return place{w.node(id).GUID, 1} }

func (w *world) peer(p place) (place, bool) {
	node, num, ok := w.fabric.Peer(p.node, p.num)
	return place{node, num}, ok
}

func (w *world) switchPort(id string) place {
	w.t.Helper()
	p, ok := w.peer(w.host(id))
	if !ok {
		w.t.Fatalf("%s has no cable", id)
	}
	return p
}

func generate(t testing.TB, spec string) *topology.Netlist {
	t.Helper()
	if spec == "demo" {
		return topology.Demo()
	}
	l, err := topology.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func isSet(a arrival) bool { return a.Method == mad.MethodSet }
