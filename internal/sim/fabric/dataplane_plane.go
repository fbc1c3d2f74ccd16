package fabric

import (
	"math/rand/v2"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/egress"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/relay"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

const (
	// MaxDataPackets is how many data packets may be under way at once, queues
	// of ports included; more are discarded for want of a buffer.
	MaxDataPackets = 1 << 16
	// MaxCrossings is how many links one packet may cross.
	MaxCrossings = 255
	// InputBlocks is the room that a port has for arriving packets of one data
	// virtual lane, in blocks of 64 bytes: two of the longest packets.
	InputBlocks = 256
)

// Carrier is what the data path asks of the fabric around it.
type Carrier interface {
	// Follows carries out what the agent of node at wants.
	Follows(at int32, effects []sma.Effect)
	// LaunchSMP carries on a packet that came from port num of node at on virtual lane 15.
	LaunchSMP(at int32, num ib.PortNum, sl ib.SL, pkey ib.PKey, slid, dlid ib.LID, m *[mad.Size]byte)
}

// DataplaneConfig is what a data path works on and how it behaves. Wiring, Queue, Random
// and Carrier are needed.
type DataplaneConfig struct {
	Wiring   *Wiring
	Queue    *TimelineQueue
	Random   *rand.Rand // drawn from in the order of events
	Carrier  Carrier
	HopDelay time.Duration      // to cross one link and the node before it
	WireTime bool               // a packet keeps a link busy for as long as its bytes take
	Loss     float64            // probability that a packet is lost as it leaves its origin
	Trace    func(DataSighting) // nil for none
}

// Plane is the data path of a fabric.
type Plane struct {
	config   DataplaneConfig
	queue    *TimelineQueue
	random   *rand.Rand
	wiring   *Wiring
	nodes    []WiredNode // of wiring
	ports    []WiredPort // of wiring
	ends     []*nodeData // of nodes, nil until data packets come into it
	sides    []*portData // of ports, nil until data packets come into it
	packets  packets
	outcomes DataCounts
}

const none = NoPort

const dataplaneNoTimer time.Duration = -1

// NewPlane makes the data path of a fabric.
func NewPlane(c DataplaneConfig) *Plane {
	return &Plane{
		config: c, queue: c.Queue, random: c.Random, wiring: c.Wiring, nodes: c.Wiring.Nodes, ports: c.Wiring.Ports,
		ends: make([]*nodeData, len(c.Wiring.Nodes)), sides: make([]*portData, len(c.Wiring.Ports)),
	}
}

// SetLoss changes Config.Loss from now on.
func (pl *Plane) SetLoss(probability float64) { pl.config.Loss = probability }

// datum is one data packet under way, LRH to VCRC.
type datum struct {
	bytes    []byte
	headers  relay.Headers // within bytes, when known
	firstBit time.Duration // when it began to come in at the port where it is
	index    int32         // of itself
	port     int32         // where it is, or is about to arrive
	hold     int32         // shared by the copies of one packet, none without any
	held     bool          // it fills room at port, which the peer counts
	epoch    uint32        // of the link that it crosses or came by
	blocks   uint16
	vl       ib.VL // on that link
	crossed  uint8 // links
	known    bool  // headers are those of bytes
	sound    bool  // the VCRC is known to be right
	raw      bool  // leaves as it is, whatever virtual lane the port would choose
	spoiled  bool  // refused on the way, and leaves with a wrong VCRC
	marked   bool  // so it has left: its end says that it is bad, which no link has made it
}

// packets holds the data packets.
type packets struct {
	PacketPool[datum]
	holds []int32 // copies that fill one room together
	spare []int32 // of holds
	buf   []byte  // a packet that an end node has just made
}

// take returns an empty packet, nil when there are MaxDataPackets already.
func (l *packets) take() *datum {
	d, index := l.PacketPool.Take(MaxDataPackets)
	if d != nil {
		*d = datum{bytes: d.bytes[:0], index: index, hold: none}
	}
	return d
}

// share makes n copies of a packet fill one room together.
func (l *packets) share(n int) int32 {
	if len(l.spare) == 0 {
		l.holds = append(l.holds, 0)
		l.spare = append(l.spare, int32(len(l.holds)-1))
	}
	last := len(l.spare) - 1
	i := l.spare[last]
	l.spare = l.spare[:last]
	l.holds[i] = int32(n)
	return i
}

// nodeData is what a node has for data packets.
type nodeData struct {
	device   *endpoint.Device
	timer    time.Duration // of the device's next timer event, noTimer for none
	counters *pma.Agent
	spoils   bool
}

// portData is what a port has for data packets.
type portData struct {
	out      egress.Port
	counters *pma.Port
	epoch    uint32                     // how often the link went down
	busy     time.Duration              // until when the wire carries what was sent last
	perByte  time.Duration              // of 1000 bytes on the wire
	levels   [16]endpoint.ServiceLevels // of each virtual lane, for what the node itself sends
	sendAt   time.Duration              // of the pending kindSend, noTimer for none
	ageAt    time.Duration              // of the pending kindAge, noTimer for none
	fault    LinkFault
	filling  bool // it is taking packets from the end node, as long as there are any
	passed   bool // one of these has gone out on the wire
	// withholds: the port gives no credits back; owed is what it would have.
	withholds bool
	owed      [egress.DataLanes]uint16
	filled    [egress.DataLanes]uint16 // blocks of what came in and has not gone on
	reckless  bool                     // it sends without asking for credits
	overran   bool                     // what came in did not fit, in this flow-control period
	timing    bool                     // there is a kindPeriod to come
	seen      EndPortSeen              // by the consumer of the end node
}

// end makes sure of what node i has for data packets.
func (pl *Plane) end(i int32) *nodeData {
	if pl.ends[i] == nil {
		n := &pl.nodes[i]
		pl.ends[i] = &nodeData{timer: dataplaneNoTimer, counters: pma.New(n.Last, n.IsSwitch)}
	}
	return pl.ends[i]
}

// side makes sure of what port i has for data packets.
func (pl *Plane) side(i int32) *portData {
	if pl.sides[i] == nil {
		at := &pl.ports[i]
		pl.sides[i] = &portData{sendAt: dataplaneNoTimer, ageAt: dataplaneNoTimer, counters: pl.end(at.Node).counters.Port(at.Num)}
		pl.Configure(i)
	}
	return pl.sides[i]
}

// Configure brings what the agent says into the sending side of port i.
func (pl *Plane) Configure(i int32) {
	at, p := &pl.ports[i], pl.sides[i]
	n := &pl.nodes[at.Node]
	info := n.Agent.Port(at.Num)
	if p == nil || info == nil {
		return
	}
	s := egress.Settings{
		DataVLs: smp.DataVLs(info.OperationalVLs),
		Exit:    at.Num != 0 && n.Source.Type != ib.NodeCA,
		HOQLife: info.HOQLife, VLStallCount: info.VLStallCount, VLHighLimit: info.VLHighLimit,
		LifeTimeValue: egress.LimitCodeMax + 1,
	}
	if w := n.Agent.SwitchInfo(); w != nil {
		o := n.Agent.Options()
		s.LifeTimeValue, s.PromisesTransit, s.DropsAged = w.LifeTimeValue, o.PromisesTransit, o.DropsAged
	}
	s.High, s.Low = n.Agent.VLArbitration(at.Num)
	for vl := range s.Buffer {
		s.Buffer[vl] = p.room()
	}
	if p.out.Configure(&s) != nil {
		// The agent keeps no value wider than its bits; should it, the port accepts
		// nothing more.
		return
	}
	p.perByte = 0
	if pl.config.WireTime {
		p.perByte = PerThousand(info)
	}
	p.levels = [16]endpoint.ServiceLevels{}
	for sl := range ib.SL(smp.SLCount) {
		p.levels[n.Agent.VL(0, at.Num, sl)] |= 1 << sl
	}
	pl.armAge(i)
}

// handle is a packet as the sending side of a port knows it.
func handle(d *datum) egress.Handle { return egress.Handle(d.index) }

// blocksOf is how many blocks a packet fills.
func blocksOf(bytes int) uint16 {
	return uint16((bytes + egress.BlockBytes - 1) / egress.BlockBytes)
}

// InFlight is the number of data packets under way or waiting at a port to
// leave. What end nodes have still to send is not counted.
func (pl *Plane) InFlight() int { return pl.packets.InFlight() }

// Waiting is the number of data packets that wait at a port to leave by it.
func (pl *Plane) Waiting(g ib.NodeGUID, num ib.PortNum) int {
	i, err := pl.wiring.External(g, num)
	if err != nil || pl.sides[i] == nil {
		return 0
	}
	return pl.sides[i].out.Len()
}

// Counters are the performance counters of a node's ports, nil when there is no
// such node.
func (pl *Plane) Counters(g ib.NodeGUID) *pma.Agent {
	i, ok := pl.wiring.Index(g)
	if !ok {
		return nil
	}
	return pl.end(i).counters
}

// CreditsOwed is how many blocks of room the sending sides of links that are up
// believe to be taken. It is 0 when nothing is under way and nothing withheld.
func (pl *Plane) CreditsOwed() int {
	owed := 0
	for i, p := range pl.sides {
		if at := &pl.ports[i]; p == nil || !at.Up || at.Num == 0 {
			continue
		}
		for vl := range ib.VL(egress.DataLanes) {
			owed += int(p.room()) - p.out.Free(vl)
		}
	}
	return owed
}
