package fabric_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// ring is three switches in a ring with hosts each: nodes 0 to 2 are the switches
// (hosts at ports 1 and 2, the ring at 3 and 4), those behind them the hosts.
func ring(t testing.TB, hosts int) *topology.Netlist {
	t.Helper()
	l := &topology.Netlist{}
	for i := range 3 {
		l.Nodes = append(l.Nodes, topology.NewNode(ib.NodeSwitch, fmt.Sprintf("s%d", i), switchGUID(i), 4))
	}
	for i := range 3 * hosts {
		l.Nodes = append(l.Nodes, topology.NewNode(ib.NodeCA, fmt.Sprintf("h%d", i), hostGUID(i), 1))
	}
	for i := range 3 {
		for k := range hosts {
			if err := topology.Connect(l.Nodes[i], ib.PortNum(k+1), l.Nodes[3+hosts*i+k], 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := topology.Connect(l.Nodes[i], 3, l.Nodes[(i+1)%3], 4); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// force is how much of a storm a program makes.
type force struct {
	hosts int // at each of three switches, 1 or 2
	burst int // datagrams that one step sends at most
	room  int // receive requests of each host
	// events is how many may happen: a group whose copies go in many circles at once
	// makes packets until all rooms are full.
	events int
}

// Forces: of the tests, which are few, and of the fuzz target, which CI runs
// 20,000 times.
var (
	tempestForce = force{hosts: 2, burst: 64, room: 64, events: 20_000_000}
	breezeForce  = force{hosts: 1, burst: 10, room: 12, events: 20_000}
)

// breezeProgram is the length in bytes of the longest program of the fuzz target.
const breezeProgram = 96

// tempest is a fabric to which a program of bytes happens.
type tempest struct {
	*bench
	force
	program []byte
	qps     []*endpoint.QP
	bytes   []byte // a good packet, to be spoiled
	buffer  []byte // of all receive requests: nobody reads it
}

func newTempest(t testing.TB, seed uint64, how force, program []byte) *tempest {
	c := fabric.DefaultConfig()
	c.Seed = seed
	c.TrainDelay = time.Microsecond
	c.Profile = func(_ *topology.Node, d *sma.Config) { d.TrapSends = 2 } // else they go on for ever
	s := &tempest{
		bench: newQuietBench(t, ring(t, how.hosts), c), force: how, program: program,
		buffer: make([]byte, 4096+endpoint.GRHSize),
	}
	for i := range 3 * how.hosts {
		s.qps = append(s.qps, s.open(i))
	}
	for i := range 3 {
		s.multicast(i)
	}
	b, v, err := packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), false, make([]byte, 200))
	if err != nil {
		t.Fatal(err)
	}
	v.LRH.SetDLID(ib.LID(3 + len(s.qps))) // the last host
	v.LRH.SetSLID(4)
	v.BTH.SetPKey(0xFFFF)
	v.BTH.SetDestQP(2)
	v.DETH.SetQKey(7)
	if err := packet.Seal(b); err != nil {
		t.Fatal(err)
	}
	s.bytes = b
	return s
}

// open makes the queue pair of host i.
func (s *tempest) open(i int) *endpoint.QP {
	q := s.qp(hostGUID(i), 0, 7, 0)
	for range s.room {
		s.must(q.PostReceive(endpoint.ReceiveRequest{Buffer: s.buffer}))
	}
	return q
}

// multicast lets LID 0xC000 reach every port of a switch, in a loop.
func (s *tempest) multicast(i int) {
	s.manage(switchGUID(i), 0, func(c *client) {
		info := *s.Agent(switchGUID(i)).SwitchInfo()
		info.MulticastFDBTop = 0xC01F
		c.set(nil, 0, &info)
		var table smp.MulticastForwardingTable
		table.Masks[0], table.Masks[1] = 0x1E, 0x06
		c.set(nil, 0, &table)
	})
}

// next is the next byte of the program below n; 0 when it has ended.
func (s *tempest) next(n int) int {
	if len(s.program) == 0 {
		return 0
	}
	x := int(s.program[0])
	s.program = s.program[1:]
	return x % n
}

// anyPort is an external port of any node.
func (s *tempest) anyPort() (ib.NodeGUID, ib.PortNum) {
	if x := s.next(12 + len(s.qps)); x < 12 {
		return switchGUID(x / 4), ib.PortNum(x%4 + 1)
	} else {
		return hostGUID(x - 12), 1
	}
}

// setPort writes PortInfo of a port by its own node, if that answers.
func (s *tempest) setPort(g ib.NodeGUID, num ib.PortNum, edit func(p *smp.PortInfo)) {
	s.set(g, num, uint32(num), func(info *smp.PortInfo) {
		info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
		edit(info)
	})
}

func (s *tempest) set(g ib.NodeGUID, num ib.PortNum, modifier uint32, edit func(p *smp.PortInfo)) {
	if s.Agent(g).SwitchInfo() != nil {
		num = 0
	}
	a, err := s.Attach(g, num)
	if err != nil {
		return
	}
	defer a.Detach()
	info := *s.Agent(g).Port(ib.PortNum(modifier))
	edit(&info)
	p := directed(nil, mad.MethodSet, info.ID(), modifier)
	var m [mad.Size]byte
	if info.Encode(&p.Data) == nil && p.Encode(&m) == nil {
		a.Send(&m, ib.LIDPermissive)
		s.advance(100 * time.Microsecond)
	}
}

func (s *tempest) step() {
	switch s.next(18) {
	case 0, 1, 2, 3: // datagrams, many at a time
		from, lid := s.next(len(s.qps)), ib.LID(s.next(6+len(s.qps)))
		size, sl := s.next(256), s.next(16)
		for i := range s.next(s.burst) + 1 {
			_ = s.qps[from].PostSend(endpoint.SendRequest{
				Data: make([]byte, 4*(size+i)), To: endpoint.Address{DLID: lid, SL: ib.SL(sl+i) % 16}, RemoteQP: 2, RemoteQKey: 7,
			})
		}
		s.arrived(s.qps[from])
	case 4: // bytes without sense
		n, r := s.next(255)+1, rand.New(rand.NewPCG(uint64(s.next(256)), 0))
		bytes := make([]byte, n)
		for i := range bytes {
			bytes[i] = byte(r.Uint32())
		}
		_ = s.Inject(hostGUID(s.next(len(s.qps))), 1, bytes)
	case 5: // a packet with another byte somewhere, sealed or not
		bytes := append([]byte(nil), s.bytes...)
		bytes[s.next(len(bytes))] = byte(s.next(256))
		if s.next(2) == 0 {
			_ = packet.Seal(bytes)
		}
		_ = s.Inject(hostGUID(s.next(len(s.qps))), 1, bytes)
	case 6: // to a group, which may loop
		bytes := append([]byte(nil), s.bytes...)
		(*packet.LRH)(bytes).SetDLID(ib.LID(0xC000 + s.next(3)))
		_ = packet.Seal(bytes)
		_ = s.Inject(hostGUID(s.next(len(s.qps))), 1, bytes)
	case 7:
		g, num := s.anyPort()
		_ = s.Flap(g, num, time.Duration(s.next(256))*time.Microsecond)
	case 8:
		g, num := s.anyPort()
		_ = s.Withhold(g, num, s.next(2) == 0)
	case 9:
		i := s.next(len(s.qps))
		_ = s.Reboot(hostGUID(i))
		s.qps[i] = s.open(i)
	case 10:
		_ = s.Reboot(switchGUID(s.next(3)))
	case 11:
		g, num := s.anyPort()
		s.setPort(g, num, func(p *smp.PortInfo) {
			p.OperationalVLs, p.VLStallCount, p.HOQLife = uint8(s.next(4)+1), uint8(s.next(8)), ib.TimeValue(s.next(20))
			p.VLHighLimit = uint8(s.next(256))
		})
	case 12:
		g, num := s.anyPort()
		s.setPort(g, num, func(p *smp.PortInfo) { p.PortState = smp.PortState(s.next(5)) })
	case 13:
		g, num := s.anyPort()
		_ = s.SetLinkFault(g, num, fabric.LinkFault{
			Loss: float64(s.next(4)) / 8, Flips: float64(s.next(4)) / 8, Delay: time.Duration(s.next(256)) * 100,
		})
	case 14:
		a, aNum := s.anyPort()
		b, bNum := s.anyPort()
		_ = s.Swap(a, aNum, b, bNum)
	case 15:
		s.advance(time.Duration(s.next(256)) * 10 * time.Microsecond)
	default:
		s.advance(2 * time.Microsecond) // what trains has trained
		s.bringUp()
		for i := range 3 {
			s.multicast(i)
		}
	}
}

// calm ends the storm: credits are given back, all nodes come up again. What is
// then left would stay for ever.
func (s *tempest) calm() {
	s.t.Helper()
	for range len(s.program) {
		if len(s.program) == 0 {
			break
		}
		s.step()
	}
	s.run()
	for _, n := range s.l.Nodes {
		for num := 1; num <= n.NumPorts(); num++ {
			s.must(s.Withhold(n.GUID, ib.PortNum(num), false))
		}
	}
	s.idle()
	if n := s.CreditsMissing(); n != 0 {
		s.t.Fatalf("%d blocks of room are missing; %s", n, s.outcomes())
	}
	for i := range s.qps {
		d, err := s.Device(hostGUID(i))
		s.must(err)
		if s.Agent(hostGUID(i)).Port(1).PortState == smp.PortActive && d.Ready(1) {
			s.t.Fatalf("host %d has something to send and an idle wire; %s", i, s.outcomes())
		}
	}
}

// run happens under a limit: a loop of multicast ends by MaxCrossings.
func (s *tempest) run() {
	s.t.Helper()
	for s.Step() {
		s.spend()
	}
	s.bench.run()
}

// advance lets time pass.
func (s *tempest) advance(d time.Duration) {
	s.t.Helper()
	until := s.Now() + d
	for at, ok := s.NextEvent(); ok && at <= until; at, ok = s.NextEvent() {
		s.Step()
		s.spend()
	}
	s.AdvanceTo(until)
}

// spend counts an event. A storm beyond the limit is no finding of a fuzz target,
// which has others to try.
func (s *tempest) spend() {
	if s.events--; s.events > 0 {
		return
	}
	s.t.Helper()
	if s.force.hosts == breezeForce.hosts {
		s.t.Skip("too strong a storm")
	}
	s.t.Fatal("events without end")
}

// FuzzTempest: whatever befalls a fabric, in whatever order, every packet ends and
// every credit comes back.
func FuzzTempest(f *testing.F) {
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 7))
		program := make([]byte, breezeProgram)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		newTempest(unmarked{t}, 1, breezeForce, program[:min(len(program), breezeProgram)]).calm()
	})
}

// unmarked is a test whose helpers do not mark themselves: they are called so often
// that this would be a third of a fuzz target's time.
type unmarked struct{ testing.TB }

// Helper does nothing.
func (unmarked) Helper() {}

// TestTempest is stronger storms.
func TestTempest(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 99))
		program := make([]byte, 1500)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { newTempest(t, seed, tempestForce, program).calm() })
	}
}
