package fabricsim

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/egress"
	"github.com/ibwarden/ibwarden/internal/endpoint"
	"github.com/ibwarden/ibwarden/internal/fabricsim/endnode"
	"github.com/ibwarden/ibwarden/internal/fabricsim/profile"
	"github.com/ibwarden/ibwarden/internal/pma"
)

const (
	// MaxDataPackets is how many data packets may be under way at once, queues
	// of ports included; more are discarded for want of a buffer.
	MaxDataPackets = 1 << 16
	// InputBlocks is the room that a port has for arriving packets of one data
	// lane, in blocks of 64 octets: two of the longest packets.
	InputBlocks = 256
)

// datum is one data packet under way, LRH to VCRC.
type datum struct {
	octets   []byte
	firstBit time.Duration // when it began to come in at the port where it is
	index    int32         // of itself
	port     int32         // where it is, or is about to arrive, in Fabric.ports
	hold     int32         // shared by the copies of one packet, none without any
	held     bool          // it fills room at port, which the peer counts
	epoch    uint32        // of the link that it crosses or came by
	blocks   uint16
	vl       ib.VL // on that link
	crossed  uint8 // links
	sound    bool  // the VCRC is known to be right
	raw      bool  // leaves as it is, whatever lane the port would choose
	spoiled  bool  // refused on the way, and leaves with a wrong VCRC
}

// dataPool holds the data packets.
type dataPool struct {
	pool[datum]
	holds []int32 // copies that fill one room together
	spare []int32 // of holds
	buf   []byte  // a packet that an end node has just made
}

// take returns an empty packet, nil when there are MaxDataPackets already.
func (l *dataPool) take() *datum {
	d, index := l.pool.take(MaxDataPackets)
	if d != nil {
		*d = datum{octets: d.octets[:0], index: index, hold: none}
	}
	return d
}

// share makes n copies of a packet fill one room together.
func (l *dataPool) share(n int) int32 {
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
	epoch    uint32        // how often the link went down
	busy     time.Duration // until when the wire carries what was sent last
	perOctet time.Duration // of 1000 octets on the wire
	sendAt   time.Duration // of the pending kindSend, noTimer for none
	ageAt    time.Duration // of the pending kindAge, noTimer for none
	fault    LinkFault
	// withholds: the port gives no credits back; owed is what it would have.
	withholds bool
	owed      [egress.DataLanes]uint16
	seen      endnode.Seen // by the consumer of the end node
}

// dataOf makes sure of what node i has for data packets.
func (f *Fabric) dataOf(i int32) *nodeData {
	n := &f.nodes[i]
	if n.data == nil {
		n.data = &nodeData{timer: noTimer, counters: pma.New(n.last, n.isSwitch)}
	}
	return n.data
}

// dataAt makes sure of what port i has for data packets.
func (f *Fabric) dataAt(i int32) *portData {
	at := &f.ports[i]
	if at.data == nil {
		at.data = &portData{sendAt: noTimer, ageAt: noTimer, counters: f.dataOf(at.node).counters.Port(at.num)}
		f.configure(i)
	}
	return at.data
}

// configure brings what the agent says into the sending side of port i.
func (f *Fabric) configure(i int32) {
	at := &f.ports[i]
	n := &f.nodes[at.node]
	info := n.agent.Port(at.num)
	if at.data == nil || info == nil {
		return
	}
	s := egress.Settings{
		DataVLs: smp.DataVLs(info.OperationalVLs),
		Exit:    at.num != 0 && n.source.Type != ib.NodeCA,
		HOQLife: info.HOQLife, VLStallCount: info.VLStallCount, VLHighLimit: info.VLHighLimit,
		LifeTimeValue: egress.LimitCodeMax + 1,
	}
	if w := n.agent.SwitchInfo(); w != nil {
		s.LifeTimeValue = w.LifeTimeValue
	}
	s.High, s.Low = n.agent.VLArbitration(at.num)
	for vl := range s.Buffer {
		s.Buffer[vl] = InputBlocks
	}
	if at.data.out.Configure(&s) != nil {
		// The agent keeps no value outside its bits; should it, the port
		// takes nothing more.
		return
	}
	at.data.perOctet = 0
	if f.config.WireTime {
		at.data.perOctet = profile.PerThousand(info)
	}
	f.armAge(i)
}

// handle is a packet as the sending side of a port knows it.
func handle(d *datum) egress.Handle { return egress.Handle(d.index) }

// blocksOf is how many blocks a packet fills.
func blocksOf(octets int) uint16 {
	return uint16((octets + egress.BlockOctets - 1) / egress.BlockOctets)
}

// DataInFlight is the number of data packets under way or waiting at a port to
// leave. What end nodes have still to send is not counted.
func (f *Fabric) DataInFlight() int { return f.data.inFlight() }

// DataWaiting is the number of data packets that wait at a port to leave by it.
func (f *Fabric) DataWaiting(g ib.NodeGUID, num ib.PortNum) int {
	i, err := f.external(g, num)
	if err != nil || f.ports[i].data == nil {
		return 0
	}
	return f.ports[i].data.out.Len()
}

// Counters are the performance counters of a node's ports, nil when there is no
// such node. Data packets move them; subnet-management packets do not.
func (f *Fabric) Counters(g ib.NodeGUID) *pma.Agent {
	i, ok := f.byGUID[g]
	if !ok {
		return nil
	}
	return f.dataOf(i).counters
}
