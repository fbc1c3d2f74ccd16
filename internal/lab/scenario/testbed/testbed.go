package testbed

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// station is an end port from which packets are sent.
type station struct {
	observed.Place
	place   *fabric.Attachment // nil where an engine has the port
	manages bool               // it says that a manager runs there
	engine  Engine
	link    *inproc.Link // of the engine
	rival   *smp.SMInfo  // what a program says that poses as a manager
	silent  bool
}

// Trap is a notice that reached a manager.
type Trap struct {
	smp.Notice
	SL   ib.SL
	DLID ib.LID
}

// Drop is a packet that was discarded.
type Drop struct {
	observed.Place
	Reason string // a fabric.Reason or Outcome, or an endpoint.Reason
}

// Limits of what a stage keeps.
const (
	MaxDrops = 1 << 16 // packets since the last Ask
	MaxTraps = 1 << 12 // not taken from Traps
	MaxSteps = 1 << 22 // events in one call
)

// Config says how a stage behaves.
type Config struct {
	Fabric fabric.Config // Trace is the stage's own
	// Timeout is how long a request waits for its answer.
	Timeout time.Duration
	// Repress lets managers answer traps, so that they are not sent again.
	Repress bool
}

// Testbed is a fabric with stations.
type Testbed struct {
	Topology *topology.Netlist
	Fabric   *fabric.Fabric
	// Traps and Drops are in the order in which they came; callers may remove entries.
	Traps []Trap
	Drops []Drop
	Sent  []Sent

	config   Config
	nodes    map[ib.NodeGUID]*topology.Node
	stations []*station // in order of their coming
	sender   *station
	lids     map[observed.Place]ib.LID   // that BringUp gave
	ways     map[observed.Place]mad.Path // last known, from the sender
	off      map[ib.NodeGUID]bool
	hosts    []*host
	forgers  []*forger
	heard    map[hearing]struct{}
	wrote    map[hearing]struct{}   // what nodes put into Sets
	holders  map[uint64]ib.NodeGUID // who held an M_Key first
	deaf     bool                   // what passes now is kept by nobody
	suspects map[ib.NodeGUID]bool
	seats    map[ib.NodeGUID]bool // where managers ran
	guesses  *rand.Rand
	nextID   uint64
	last     *Request
	before   map[fabric.Received]uint64 // requests up to the last Forget
}

// New makes the fabric of a topology.
func New(l *topology.Netlist, c Config) (*Testbed, error) {
	s := &Testbed{
		Topology: l, config: c, nodes: map[ib.NodeGUID]*topology.Node{}, lids: map[observed.Place]ib.LID{}, ways: map[observed.Place]mad.Path{},
		off: map[ib.NodeGUID]bool{}, nextID: 1,
		before: map[fabric.Received]uint64{}, heard: map[hearing]struct{}{}, suspects: map[ib.NodeGUID]bool{},
		wrote: map[hearing]struct{}{}, holders: map[uint64]ib.NodeGUID{}, seats: map[ib.NodeGUID]bool{},
	}
	s.guesses = rand.New(rand.NewPCG(c.Fabric.Seed, guessStream))
	for _, n := range l.Nodes {
		s.nodes[n.GUID] = n
	}
	if len(l.Nodes) == 0 {
		return nil, fmt.Errorf("a topology without nodes: want at least one")
	}
	c.Fabric.Trace, c.Fabric.DataTrace = both(s.sight, c.Fabric.Trace), both(s.sightData, c.Fabric.DataTrace)
	var err error
	s.Fabric, err = fabric.New(l, c.Fabric)
	return s, err
}

// Around is a testbed of a fabric that somebody else runs: for what needs no clock.
func Around(l *topology.Netlist, f *fabric.Fabric) *Testbed {
	return &Testbed{Topology: l, Fabric: f, guesses: rand.New(rand.NewPCG(uint64(f.Now()), guessStream))}
}

// guessStream separates the random numbers of guesses from the others of the seed.
const guessStream = 0x6775657373

// Guess returns a guessed number, a different one each time.
func (s *Testbed) Guess() uint64 { return s.guesses.Uint64() }

// both is a hook that tells first and then second, which may be nil.
func both[T any](first, second func(T)) func(T) {
	if second == nil {
		return first
	}
	return func(seen T) { first(seen); second(seen) }
}

// sight sees every packet.
func (s *Testbed) sight(seen fabric.Sighting) {
	s.hear(seen)
	switch seen.What {
	case fabric.SeenLeaving:
		s.forge(seen)
	case fabric.SeenDiscarded:
		if len(s.Drops) < MaxDrops {
			s.Drops = append(s.Drops, Drop{observed.Place{Node: seen.Node, Port: seen.Port}, seen.Reason.String()})
		}
	case fabric.SeenByManager:
		var p mad.SMP
		if p.UnmarshalBinary(seen.MAD[:]) != nil || p.Method != mad.MethodTrap || len(s.Traps) == MaxTraps {
			return
		}
		t := Trap{SL: seen.SL, DLID: seen.DLID}
		if t.Notice.UnmarshalBinary(p.Data[:]) == nil {
			s.Traps = append(s.Traps, t)
		}
	}
}

// Node is the node with a GUID.
func (s *Testbed) Node(g ib.NodeGUID) *topology.Node { return s.nodes[g] }

// Name is how a script calls a port.
func (s *Testbed) Name(p observed.Place) string {
	if n := s.nodes[p.Node]; n != nil {
		return fmt.Sprintf("%s:%d", n.ID, p.Port)
	}
	return fmt.Sprintf("%v:%d", p.Node, p.Port)
}

// errRestless ends a run whose fabric does not come to rest.
var errRestless = fmt.Errorf("%d events and no end: want a fabric that comes to rest", MaxSteps)

// Until lets time pass up to end, or until done.
func (s *Testbed) Until(end time.Duration, done func() bool) error {
	for range MaxSteps {
		s.drain()
		if err := s.pump(); err != nil {
			return err
		}
		if done() {
			return nil
		}
		next, ok := s.due()
		if !ok || next > end {
			s.Fabric.AdvanceTo(end)
			s.drain()
			return s.pump()
		}
		if at, some := s.Fabric.NextEvent(); some && at <= next {
			s.Fabric.Step()
			continue
		}
		s.Fabric.AdvanceTo(max(next, s.Fabric.Now()))
		s.expire()
	}
	return errRestless
}

// Advance lets time pass.
func (s *Testbed) Advance(d time.Duration) error {
	return s.Until(s.Fabric.Now()+d, func() bool { return false })
}

// Rest lets time pass until nothing is left to happen.
func (s *Testbed) Rest() error {
	if s.restless() {
		return errNeverRests
	}
	for range MaxSteps {
		s.drain()
		if !s.Fabric.Step() {
			return nil
		}
	}
	return errRestless
}

// drain takes what came in at the stations and hosts.
func (s *Testbed) drain() {
	s.listen()
	var d fabric.Delivery
	for _, at := range s.stations {
		for at.place != nil && at.place.Receive(&d) {
			var p mad.SMP
			if p.UnmarshalBinary(d.MAD[:]) != nil {
				continue
			}
			switch {
			case at.rival != nil && !p.Method.IsResponse():
				at.answerRival(&p, d.SLID)
			case p.Method == mad.MethodGetResp && s.last != nil && !s.last.Answered && p.TransactionID == s.last.id:
				s.last.answer(&p)
			case p.Method == mad.MethodTrap && at.manages && s.config.Repress:
				s.repress(at, &p, d.SLID)
			}
		}
	}
}

// repress answers a trap, so that it is not sent again, with the key of the port
// that sent it: a manager knows the keys of its ports.
func (s *Testbed) repress(at *station, p *mad.SMP, to ib.LID) {
	if !to.IsUnicast() {
		return
	}
	p.Method, p.MKey = mad.MethodTrapRepress, s.keyOf(to)
	at.post(p, to)
}

// keyOf is the M_Key of the end port with a LID.
func (s *Testbed) keyOf(lid ib.LID) ib.MKey {
	for _, n := range s.Topology.Nodes {
		agent := s.Fabric.Agent(n.GUID)
		for _, i := range EndPorts(n) {
			if agent.HasLID(i, lid) {
				return agent.Port(i).MKey
			}
		}
	}
	return 0
}

// EndPorts are the numbers of a node's end ports.
func EndPorts(n *topology.Node) []ib.PortNum {
	if n.Type == ib.NodeSwitch {
		return []ib.PortNum{0}
	}
	all := make([]ib.PortNum, n.NumPorts())
	for i := range all {
		all[i] = ib.PortNum(i + 1)
	}
	return all
}

func (at *station) post(p *mad.SMP, dlid ib.LID) {
	var bytes [mad.Size]byte
	if p.Encode(&bytes) == nil { // a request of ours always encodes
		at.place.Send(&bytes, dlid)
	}
}

// SendFrom makes an end port the one that packets are sent from. With manages
// it says that a subnet manager runs there, and takes traps.
func (s *Testbed) SendFrom(p observed.Place, manages bool) error {
	at, err := s.station(p)
	if err != nil {
		return err
	}
	if at.engine != nil {
		return fmt.Errorf("%s: a manager runs there; want another port", s.Name(p))
	}
	if s.sender != at {
		clear(s.ways)
	}
	s.sender = at
	if manages && !at.manages {
		at.manages = true
		at.setIsSM(true)
	}
	return nil
}

func (at *station) setIsSM(on bool) {
	if at.link != nil {
		_ = at.link.SetIsSM(on) // inside a process it cannot fail
		return
	}
	at.place.SetIsSM(on)
}

// Resign ends what SendFrom said about a manager.
func (s *Testbed) Resign(p observed.Place) error {
	for _, at := range s.stations {
		if at.Place == p && at.manages {
			at.manages = false
			at.setIsSM(false)
			return nil
		}
	}
	return fmt.Errorf("%s: no manager runs there", s.Name(p))
}

func (s *Testbed) station(p observed.Place) (*station, error) {
	for _, at := range s.stations {
		if at.Place == p {
			return at, nil
		}
	}
	a, err := s.Fabric.Attach(p.Node, p.Port)
	if err != nil {
		return nil, err
	}
	at := &station{Place: p, place: a}
	s.stations = append(s.stations, at)
	return at, nil
}

// from is the station that sends: that of SendFrom, or the first node.
func (s *Testbed) from() (*station, error) {
	if s.sender == nil {
		n := s.Topology.Nodes[0]
		if err := s.SendFrom(observed.Place{Node: n.GUID, Port: EndPorts(n)[0]}, false); err != nil {
			return nil, err
		}
	}
	return s.sender, nil
}

// Forget forgets the traps, drops and requests seen so far.
func (s *Testbed) Forget() {
	s.drain()
	s.Traps, s.Drops = s.Traps[:0], s.Drops[:0]
	for _, r := range s.Fabric.ReceivedKinds() {
		s.before[r] = s.Fabric.Received(r.Method, r.Attribute)
	}
}

// Requests is how many packets of a kind agents took since the last Forget.
func (s *Testbed) Requests(m mad.Method, id mad.AttributeID) uint64 {
	return s.Fabric.Received(m, id) - s.before[fabric.Received{Method: m, Attribute: id}]
}

// PowerOff takes the power from a node.
func (s *Testbed) PowerOff(g ib.NodeGUID) error {
	if err := s.Fabric.PowerOff(g); err != nil {
		return err
	}
	s.off[g] = true
	return nil
}

// PowerOn gives it back; managers on the node come up with it.
func (s *Testbed) PowerOn(g ib.NodeGUID) error {
	if err := s.Fabric.PowerOn(g); err != nil {
		return err
	}
	s.off[g] = false
	for _, at := range s.stations {
		if at.Node == g && at.manages {
			at.setIsSM(true)
		}
	}
	return nil
}

// Reboot takes the power from a node and gives it back at once.
func (s *Testbed) Reboot(g ib.NodeGUID) error {
	if err := s.PowerOff(g); err != nil {
		return err
	}
	return s.PowerOn(g)
}

// Misbehave changes the fault of a node; a nil change ends it.
func (s *Testbed) Misbehave(g ib.NodeGUID, change func(*fabric.Fault)) error {
	if change == nil {
		return s.Fabric.SetFault(g, fabric.Fault{})
	}
	return s.Fabric.ChangeFault(g, change)
}
