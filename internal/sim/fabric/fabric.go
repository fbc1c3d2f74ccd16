package fabric

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Fabric is a simulated subnet; see New.
type Fabric struct {
	config    Config
	queue     TimelineQueue
	random    *rand.Rand
	wiring    *Wiring
	nodes     []WiredNode // of wiring
	ports     []WiredPort // of wiring
	data      *Plane
	behaviour []behaviour   // of nodes
	attached  []*Attachment // of ports, nil for none
	pool      PacketPool[carried]
	calls     []func() // of At
	freeCalls []int32  // places in calls of those that have happened
	// processors are the management processors of nodes; nil without Config.Hardware.
	processors []processor
	smp        mad.SMP // of the packet that an agent is looking at
	settled    []int32 // ports whose agent moved its link; see follows

	received map[Received]uint64
	counts   Counts
}

// behaviour is how a node behaves, apart from its agent.
type behaviour struct {
	fault *Fault        // nil for none
	timer time.Duration // of the agent's next timer event, noTimer for none
}

const noTimer time.Duration = -1

// New makes the fabric of a topology: every device just switched on, and every
// cable whose ends agree trained. It fails on a topology that is none and on a
// Profile that no device can have.
func New(l *topology.Netlist, c Config) (*Fabric, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("simulated fabric: %w", err)
	}
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("simulated fabric: %w", err)
	}
	f := &Fabric{
		config:    c,
		random:    rand.New(rand.NewPCG(c.Seed, 0)),
		behaviour: make([]behaviour, len(l.Nodes)),
		received:  make(map[Received]uint64),
	}
	var err error
	if f.wiring, err = NewWiring(l, f.newAgent); err != nil {
		return nil, fmt.Errorf("simulated fabric: %w", err)
	}
	f.nodes, f.ports = f.wiring.Nodes, f.wiring.Ports
	f.attached = make([]*Attachment, len(f.ports))
	if f.queues() {
		f.processors = make([]processor, len(f.nodes))
	}
	f.data = NewPlane(DataplaneConfig{
		Wiring: f.wiring, Queue: &f.queue, Random: f.random, Carrier: (*carrier)(f),
		HopDelay: c.HopDelay, WireTime: c.WireTime, Loss: c.Loss, Trace: c.DataTrace,
	})
	for i := range f.behaviour {
		f.behaviour[i].timer = noTimer
	}
	for i := range f.ports {
		f.train(int32(i))
	}
	return f, nil
}

// newAgent makes the agent of a node, with the addresses that the topology says
// its ports have.
func (f *Fabric) newAgent(source *topology.Node) (*sma.Agent, error) {
	agent, err := sma.New(f.config.device(source))
	if err != nil {
		return nil, err
	}
	for num := range source.Ports {
		if p := &source.Ports[num]; source.IsEndPort(num) && p.LID != 0 {
			presetLID(agent, ib.PortNum(num), p.LID, p.LMC)
		}
	}
	return agent, nil
}

// Agent is the agent of a node, nil when there is no such node; after PowerOn it
// is another. What is changed through it behind the fabric's back must not
// concern links.
func (f *Fabric) Agent(g ib.NodeGUID) *sma.Agent {
	if i, ok := f.wiring.Index(g); ok {
		return f.nodes[i].Agent
	}
	return nil
}

// Source is a node of the topology, nil when there is no such node.
func (f *Fabric) Source(g ib.NodeGUID) *topology.Node {
	if i, ok := f.wiring.Index(g); ok {
		return f.nodes[i].Source
	}
	return nil
}

// SetDescription gives a node another description, as root can on the node
// itself.
func (f *Fabric) SetDescription(g ib.NodeGUID, text string) error {
	i, ok := f.wiring.Index(g)
	if !ok {
		return fmt.Errorf("describe: node %v: no such node in this fabric", g)
	}
	effects, err := f.nodes[i].Agent.SetDescription(f.queue.Now, text)
	if err == nil {
		f.follows(i, effects)
	}
	return err
}

// EndPort finds the node and number of the end port with a GUID.
func (f *Fabric) EndPort(g ib.PortGUID) (n ib.NodeGUID, num ib.PortNum, ok bool) {
	return f.wiring.EndPort(g)
}

// Now is the time, counted from the making of the fabric.
func (f *Fabric) Now() time.Duration { return f.queue.Now }

// NextEvent is when the next thing happens by itself; false for never.
func (f *Fabric) NextEvent() (time.Duration, bool) {
	if first, _ := f.queue.Head(); first != nil {
		return first.At, true
	}
	return 0, false
}

// Step moves time to the next event and lets it happen. It reports false when
// there is none.
func (f *Fabric) Step() bool { return f.step(math.MaxInt64) }

// AdvanceTo lets everything happen up to and including time t, and moves time
// there. A time that has passed changes nothing.
func (f *Fabric) AdvanceTo(t time.Duration) {
	for f.step(t) {
	}
	f.queue.Now = max(f.queue.Now, t)
}

func (f *Fabric) step(limit time.Duration) bool {
	e, ok := f.queue.Pop(limit)
	if ok {
		f.happen(e)
	}
	return ok
}

func (f *Fabric) happen(e TimelineEvent) {
	switch e.Kind {
	case kindArrive:
		f.arrive(f.pool.Get(e.Subject))
	case kindServe:
		f.serve(f.pool.Get(e.Subject))
	case kindLaunch:
		p := f.pool.Get(e.Subject)
		f.launch(p, p.node, p.port)
	case kindHand:
		f.handed(f.pool.Get(e.Subject))
	case kindTimer:
		f.timer(e)
	case kindTrain:
		f.train(e.Subject)
	case kindCall:
		f.call(e.Subject)
	default:
		f.data.Event(e)
	}
}

// At lets call happen at time t, or now if that has passed. The call may use
// the Fabric as between two steps, but must not move time.
func (f *Fabric) At(t time.Duration, call func()) {
	at := int32(len(f.calls))
	if n := len(f.freeCalls); n > 0 {
		at = f.freeCalls[n-1]
		f.freeCalls = f.freeCalls[:n-1]
		f.calls[at] = call
	} else {
		f.calls = append(f.calls, call)
	}
	f.queue.Push(NoLane, max(t, f.queue.Now), kindCall, at)
}

func (f *Fabric) call(i int32) {
	call := f.calls[i]
	f.calls[i] = nil
	f.freeCalls = append(f.freeCalls, i)
	call()
}

// RoundTrip is the longest time that a request over so many hops and its answer
// take when nothing is at fault.
func (f *Fabric) RoundTrip(hops int) time.Duration {
	if h := f.config.Hardware; h != nil {
		return time.Duration(2*hops)*(h.link()+max(h.Switch, h.Relay)) + max(h.SwitchAgent, h.HostAgent) + h.Send + h.Receive
	}
	return time.Duration(2*hops)*f.config.HopDelay + f.config.AgentDelay + f.config.Jitter
}

// SetFault makes a node misbehave from now on; the zero Fault ends that.
func (f *Fabric) SetFault(g ib.NodeGUID, fault Fault) error {
	i, ok := f.wiring.Index(g)
	if !ok {
		return fmt.Errorf("fault: node %v: no such node in this fabric", g)
	}
	f.behaviour[i].fault = &fault
	return nil
}

// ChangeFault changes how a node misbehaves, and leaves the rest of it as it is.
func (f *Fabric) ChangeFault(g ib.NodeGUID, change func(*Fault)) error {
	var fault Fault
	if i, ok := f.wiring.Index(g); ok && f.behaviour[i].fault != nil {
		fault = *f.behaviour[i].fault
	}
	change(&fault)
	return f.SetFault(g, fault)
}

// SetLoss changes Config.Loss from now on.
func (f *Fabric) SetLoss(probability float64) error {
	c := Config{Loss: probability}
	if err := c.check(); err != nil {
		return err
	}
	f.config.Loss = probability
	f.data.SetLoss(probability)
	return nil
}

// Counts returns the number of packets so far, by outcome.
func (f *Fabric) Counts() Counts { return f.counts }

// InFlight is the number of packets under way or not yet received.
func (f *Fabric) InFlight() int { return f.pool.InFlight() }

// Received is how many packets of a kind have reached agents so far, whatever
// the agents did with them; of the first MaxKinds kinds.
func (f *Fabric) Received(m mad.Method, attribute mad.AttributeID) uint64 {
	return f.received[Received{m, attribute}]
}

// ReceivedKinds lists every kind of packet that has reached an agent, by method
// and attribute.
func (f *Fabric) ReceivedKinds() []Received {
	kinds := make([]Received, 0, len(f.received))
	for kind := range f.received {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b Received) int {
		return cmp.Or(cmp.Compare(a.Method, b.Method), cmp.Compare(a.Attribute, b.Attribute))
	})
	return kinds
}
