package fabricsim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/fabricsim/timeline"
	"github.com/ibwarden/ibwarden/internal/netlist"
	"github.com/ibwarden/ibwarden/internal/sma"
)

// Fabric is a simulated subnet; see New.
type Fabric struct {
	config  Config
	now     time.Duration
	queue   timeline.Queue
	random  *rand.Rand
	nodes   []node
	ports   []port // of all nodes
	byGUID  map[ib.NodeGUID]int32
	pool    pool[carried]
	calls   []func() // of At; emptied when all have happened
	pending int      // of them, not yet happened
	smp     mad.SMP  // of the packet that an agent is looking at
	settled []int32  // ports whose agent moved its link; see settle
	data    dataPool
	fates   DataCounts
	byPort  map[ib.PortGUID]int32 // end ports, made when somebody first asks

	received map[Received]uint64
	counts   Counts
}

// node is a device.
type node struct {
	agent    *sma.Agent
	source   *netlist.Node
	fault    *Fault        // nil for none
	data     *nodeData     // nil until data packets come into it
	timer    time.Duration // of the agent's next timer event, noTimer for none
	first    int32         // index of port 0 in Fabric.ports
	last     ib.PortNum    // highest port number
	isSwitch bool
	off      bool
}

const noTimer time.Duration = -1

// port is one end of a cable, or of none.
type port struct {
	attached *Attachment
	data     *portData // nil until data packets come into it
	node     int32     // that the port belongs to
	peer     int32     // index of the port at the other end, none without a cable
	num      ib.PortNum
	up       bool // both ends are physically up
}

const none int32 = -1

// New makes the fabric of a topology: every device just switched on, and every
// cable whose ends agree trained. It fails on a topology that is none and on a
// Profile that no device can have.
func New(l *netlist.Netlist, c Config) (*Fabric, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("simulated fabric: %w", err)
	}
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("simulated fabric: %w", err)
	}
	f := &Fabric{
		config:   c,
		random:   rand.New(rand.NewPCG(c.Seed, 0)),
		nodes:    make([]node, len(l.Nodes)),
		byGUID:   make(map[ib.NodeGUID]int32, len(l.Nodes)),
		received: make(map[Received]uint64),
	}
	for i, source := range l.Nodes {
		if err := f.addNode(int32(i), source); err != nil {
			return nil, fmt.Errorf("simulated fabric: node %q: %w", source.ID, err)
		}
	}
	for i := range f.ports {
		source := &f.nodes[f.ports[i].node].source.Ports[f.ports[i].num]
		if source.Peer != nil {
			peer := &f.nodes[f.byGUID[source.Peer.GUID]]
			f.ports[i].peer = peer.first + int32(source.PeerPort)
		}
	}
	for i := range f.ports {
		f.train(int32(i))
	}
	return f, nil
}

func (f *Fabric) addNode(i int32, source *netlist.Node) error {
	agent, err := sma.New(f.config.device(source))
	if err != nil {
		return err
	}
	n := &f.nodes[i]
	*n = node{
		agent: agent, source: source, timer: noTimer, first: int32(len(f.ports)),
		last: ib.PortNum(source.NumPorts()), isSwitch: source.Type == ib.NodeSwitch,
	}
	f.byGUID[source.GUID] = i
	for num := range len(source.Ports) {
		f.ports = append(f.ports, port{node: i, num: ib.PortNum(num), peer: none})
		if p := &source.Ports[num]; source.IsEndPort(num) && p.LID != 0 {
			presetLID(agent, ib.PortNum(num), p.LID, p.LMC)
		}
	}
	return nil
}

// Agent is the agent of a node, nil when there is no such node; after PowerOn it
// is another. What is changed through it behind the fabric's back must not
// concern links.
func (f *Fabric) Agent(g ib.NodeGUID) *sma.Agent {
	if i, ok := f.byGUID[g]; ok {
		return f.nodes[i].agent
	}
	return nil
}

// EndPort finds the node and number of the end port with a GUID.
func (f *Fabric) EndPort(g ib.PortGUID) (n ib.NodeGUID, num ib.PortNum, ok bool) {
	if f.byPort == nil {
		f.byPort = make(map[ib.PortGUID]int32)
		for i := range f.ports {
			source := f.nodes[f.ports[i].node].source
			if num := int(f.ports[i].num); source.IsEndPort(num) {
				f.byPort[source.Ports[num].GUID] = int32(i)
			}
		}
	}
	i, ok := f.byPort[g]
	if !ok {
		return 0, 0, false
	}
	return f.nodes[f.ports[i].node].source.GUID, f.ports[i].num, true
}

// node finds a node by its GUID.
func (f *Fabric) node(g ib.NodeGUID) (*node, error) {
	i, ok := f.byGUID[g]
	if !ok {
		return nil, fmt.Errorf("node %v: no such node in this fabric", g)
	}
	return &f.nodes[i], nil
}

// external finds the index of a port that can have a cable.
func (f *Fabric) external(g ib.NodeGUID, num ib.PortNum) (int32, error) {
	n, err := f.node(g)
	if err != nil {
		return none, err
	}
	if num == 0 || num > n.last {
		return none, fmt.Errorf("port %d of node %v: want 1 to %d", num, g, n.last)
	}
	return n.first + int32(num), nil
}

// Now is the time, counted from the making of the fabric.
func (f *Fabric) Now() time.Duration { return f.now }

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
	f.now = max(f.now, t)
}

func (f *Fabric) step(limit time.Duration) bool {
	e, ok := f.queue.Pop(limit)
	if !ok {
		return false
	}
	f.now = e.At
	switch e.Kind {
	case kindArrive:
		f.arrive(f.pool.get(e.Subject))
	case kindServe:
		f.serve(f.pool.get(e.Subject))
	case kindTimer:
		f.timer(e)
	case kindTrain:
		f.train(e.Subject)
	case kindCall:
		f.call(e.Subject)
	default:
		f.dataEvent(e)
	}
	return true
}

// At lets call happen at time t, or now if that has passed. The call may use
// the Fabric as between two steps, but must not move time.
func (f *Fabric) At(t time.Duration, call func()) {
	f.calls = append(f.calls, call)
	f.pending++
	f.queue.Push(timeline.NoLane, max(t, f.now), kindCall, int32(len(f.calls)-1))
}

func (f *Fabric) call(i int32) {
	call := f.calls[i]
	f.calls[i] = nil
	if f.pending--; f.pending == 0 {
		f.calls = f.calls[:0]
	}
	call()
}

// RoundTrip is the longest time that a request over so many hops and its answer
// take when nothing is at fault.
func (f *Fabric) RoundTrip(hops int) time.Duration {
	return time.Duration(2*hops)*f.config.HopDelay + f.config.AgentDelay + f.config.Jitter
}

// SetFault makes a node misbehave from now on; the zero Fault ends that.
func (f *Fabric) SetFault(g ib.NodeGUID, fault Fault) error {
	n, err := f.node(g)
	if err != nil {
		return err
	}
	n.fault = &fault
	return nil
}

// SetLoss changes Config.Loss from now on.
func (f *Fabric) SetLoss(probability float64) error {
	c := Config{Loss: probability}
	if err := c.check(); err != nil {
		return err
	}
	f.config.Loss = probability
	return nil
}

// Counts is what became of packets so far.
func (f *Fabric) Counts() Counts { return f.counts }

// InFlight is the number of packets under way or not yet received.
func (f *Fabric) InFlight() int { return f.pool.inFlight() }

// Received is how many packets of a kind have reached agents so far, whatever
// the agents did with them.
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
