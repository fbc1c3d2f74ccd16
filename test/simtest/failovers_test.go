package simtest

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// sizesOfFailovers are fabrics of 648 and 3,456 hosts, lossOfFailovers how many packets
// of managers are lost.
var (
	sizesOfFailovers = []string{"fattree,radix=36,levels=2", "fattree,radix=24,levels=3"}
	lossOfFailovers  = []float64{0, 0.001, 0.01}
)

const (
	askersOfFailovers = 16
	// betweenFailovers is how long a former master has to stand by before the next kill,
	// with a host that moves in every betweenMoves.
	betweenFailovers = 3 * time.Second
	betweenMoves     = time.Second
	// ranksOfManagers is how often a manager can come back below the one that took over.
	ranksOfManagers = 15
)

// failovers lets the managers of one fabric take over from each other, with hosts that
// ask, join, leave and are moved all the while.
type failovers struct {
	*pair
	r              *rand.Rand
	tenancy        tenancy
	requesters     []*requester
	first          *requester // that asks for a path as soon as it has an answer
	master         *seat
	port           int // of the master: 0 or 1, in ports
	rank           uint8
	moving         ib.PortGUID
	moves          int
	wanted         *policy.Policy // that the master was given by the last move
	only, moreThan int            // Sets of PortInfo that change MasterSMLID only, and others
	out            *failoverTally
}

// portsOfManagers are the hosts where managers are.
var portsOfManagers = [2]int{0, 40}

// failoverTally is what all failovers of a benchmark came to.
type failoverTally struct {
	answered, proved         []time.Duration // in the fabric's time
	answeredCPU, provedCPU   []time.Duration
	answeredWall, provedWall []time.Duration
	sets, whileMoving        map[mad.AttributeID]int
	only, moreThan           int
	reregister, downs        int
	moved                    int // failovers with a move at the kill
	requests                 requests
	lost                     int // of what hosts had registered
}

func newFailovers(t testing.TB, list *topology.Netlist, seed uint64, loss float64, out *failoverTally) *failovers {
	t.Helper()
	x := &failovers{pair: newPair(t, list), r: rand.New(rand.NewPCG(seed, 17)), rank: ranksOfManagers, out: out}
	x.tenancy = tenantsOf(hosts(list))
	x.moving = x.tenancy.tenants[1].full[3]
	x.watch, x.led = x.see, x.leads
	x.master = x.seat()
	x.until("the first proof", time.Minute, func() bool { return x.master.proved(0) })
	if err := x.fabric.SetLoss(loss); err != nil {
		t.Fatal(err)
	}
	for i := range askersOfFailovers {
		x.requesters = append(x.requesters, x.requester(2+3*i, &x.tenancy, x.moving, &out.requests, x.r))
	}
	x.first = x.requester(60, &x.tenancy, x.moving, nil, x.r)
	x.run(time.Second)
	return x
}

// seat seats a manager where none is, below the one that is there.
func (x *failovers) seat() *seat {
	m := x.sit(portsOfManagers[x.port], engine.Config{Election: engine.Election{Priority: x.rank, SMKeys: ring(1)}, Profile: protect.Tenant}, x.policy())
	x.rank--
	return m
}

// policy is that of the tenancy, with a group in every partition.
func (x *failovers) policy() *policy.Policy {
	p, groups := x.managed(x.tenancy, portsOfManagers[:]...), x.tenancy.ipoib()
	for i := range groups.Partitions {
		p.Partitions[i].Multicast = groups.Partitions[i].Multicast
	}
	return p
}

// move takes a host to another tenant and back: both managers learn of it, as from a store.
func (x *failovers) move() {
	from, to := ib.PKeyBase(2), ib.PKeyBase(1)
	if x.moves++; x.moves%2 == 0 {
		from, to = to, from
	}
	x.tenancy = x.tenancy.move(x.moving, from, to)
	for _, m := range x.seats {
		if !m.gone {
			p := x.policy()
			if m == x.master {
				x.wanted = p
			}
			m.engine.Manager().SetPolicy(p)
			m.engine.Expire(x.fabric.Now())
		}
	}
}

// leads does what a service does that shares its store: the policy of the last revision is
// that of the new master.
func (x *failovers) leads(m *seat) { m.engine.Manager().SetPolicy(x.policy()) }

// see tells Sets of PortInfo that change MasterSMLID only from others.
func (x *failovers) see(p *mad.SMP, s fabric.Sighting) {
	var info smp.PortInfo
	if p.Method != mad.MethodSet || p.AttributeID != smp.AttrPortInfo || info.UnmarshalBinary(p.Data[:]) != nil {
		return
	}
	num := s.Port
	if a := x.fabric.Agent(s.Node); a.SwitchInfo() != nil {
		num = ib.PortNum(p.AttributeModifier)
	}
	has := x.fabric.Agent(s.Node).Port(num)
	same := has != nil && info.PortState == smp.PortStateNoChange && info.PortPhysicalState == smp.PhysNoChange &&
		info.LID == has.LID && info.GIDPrefix == has.GIDPrefix && info.MKey == has.MKey && info.MKeyProtectBits == has.MKeyProtectBits &&
		info.LMC == has.LMC && info.MasterSMSL == has.MasterSMSL && info.NeighborMTU == has.NeighborMTU &&
		info.OperationalVLs == has.OperationalVLs && info.SubnetTimeOut == has.SubnetTimeOut && !info.ClientReregister &&
		info.PartitionEnforcementInbound == has.PartitionEnforcementInbound && info.PartitionEnforcementOutbound == has.PartitionEnforcementOutbound
	if same {
		x.only++
	} else {
		x.moreThan++
	}
}

// round is one failover.
func (x *failovers) round() {
	x.t.Helper()
	former := x.master
	x.port = 1 - x.port
	standby := x.seat()
	standby.shares = former
	for end := x.fabric.Now() + betweenFailovers; x.fabric.Now() < end; x.run(betweenMoves) {
		x.move()
	}
	moves := len(x.out.proved)%2 == 1
	x.out.requests.still = !moves
	if !moves {
		x.until("the last move is carried out", time.Minute, func() bool { return former.carriedOut(x.wanted) })
		x.until("nobody joins or leaves", time.Minute, func() bool { return !slices.ContainsFunc(x.requesters, (*requester).changes) })
	}
	x.run(askWait + time.Duration(x.r.Int64N(int64(mastership.DefaultMasterTimeout)))) // at any time between two polls
	x.out.requests.begin(x.fabric.Now())
	if moves {
		x.move()
		x.run(time.Duration(x.r.IntN(100)) * time.Microsecond)
		x.out.moved++
	}
	x.forget()
	x.only, x.moreThan, x.first.right = 0, 0, 0
	began, cpu, since := time.Now(), cpuTime(), x.fabric.Now()
	x.kill(former)
	x.until("a right answer", time.Minute, func() bool { return x.first.right > 0 })
	x.out.answered = append(x.out.answered, x.first.answered-since)
	x.out.answeredWall, x.out.answeredCPU = append(x.out.answeredWall, time.Since(began)), append(x.out.answeredCPU, cpuTime()-cpu)
	x.until("a proof", time.Minute, func() bool { return standby.proved(since) })
	x.out.proved = append(x.out.proved, x.fabric.Now()-since)
	x.out.provedWall, x.out.provedCPU = append(x.out.provedWall, time.Since(began)), append(x.out.provedCPU, cpuTime()-cpu)
	x.count(moves)
	x.run(askAgain) // what was asked again by then is answered
	x.out.requests.end(x.requesters)
	x.out.requests.still = false
	for _, a := range x.requesters {
		x.out.lost += a.lost(standby.engine.Registered())
	}
	x.seats, x.master = []*seat{standby}, standby
	standby.shares = nil
	if x.out.provedCPU[len(x.out.provedCPU)-1] == 0 {
		x.t.Fatal("no time of the processor was taken")
	}
	x.checkMoved()
}

// count adds what was written since the kill.
func (x *failovers) count(moves bool) {
	o := x.out
	to := o.sets
	if moves {
		to = o.whileMoving
	} else {
		o.only += x.only
		o.moreThan += x.moreThan
	}
	for id, n := range x.sets {
		to[id] += n
	}
	o.reregister += x.reregister
	o.downs += x.downs
}

// checkMoved: the host that is moved is where it belongs.
func (x *failovers) checkMoved() {
	x.t.Helper()
	for _, n := range x.list.Nodes {
		if n.Type == ib.NodeCA && n.Ports[1].GUID == x.moving {
			x.until("the host is moved", time.Minute, func() bool {
				return slices.Equal(valid(x.fabric.Agent(n.GUID).PKeys(1)), x.tenancy.keys(x.moving, 0))
			})
		}
	}
}

// BenchmarkFailover kills the masters of a fabric one after the other, FAILOVERS times (1
// unless set), and takes the time to the first right answer of subnet administration and
// to the first proof: in the fabric's time, and on the clock, the simulated devices
// included. The former master comes back as standby each time. No failover begins after
// FAILOVERS_TIME, if that is set, as 30m.
func BenchmarkFailover(b *testing.B) {
	times, most := 1, time.Duration(math.MaxInt64)
	var err error
	if s := os.Getenv("FAILOVERS"); s != "" {
		if times, err = strconv.Atoi(s); err != nil || times < 1 {
			b.Fatalf("FAILOVERS: %q, want a number from 1", s)
		}
	}
	if s := os.Getenv("FAILOVERS_TIME"); s != "" {
		if most, err = time.ParseDuration(s); err != nil {
			b.Fatalf("FAILOVERS_TIME: %v", err)
		}
	}
	for _, spec := range sizesOfFailovers {
		list := generate(b, spec)
		for _, loss := range lossOfFailovers {
			b.Run(fmt.Sprintf("%d hosts, %g %% lost", len(hosts(list)), 100*loss), func(b *testing.B) {
				out := &failoverTally{sets: map[mad.AttributeID]int{}, whileMoving: map[mad.AttributeID]int{}}
				began := time.Now()
				for range b.N {
					var x *failovers
					for i := range times {
						if i > 0 && time.Since(began) > most {
							break
						}
						if i%ranksOfManagers == 0 {
							x = newFailovers(b, list, uint64(i), loss, out)
						}
						x.round()
					}
				}
				out.report(b, loss)
			})
		}
	}
}

// report prints medians and 99th percentiles, and what there ought to be none of.
func (o *failoverTally) report(b *testing.B, loss float64) {
	n := len(o.proved)
	for _, x := range []struct {
		name string
		list []time.Duration
	}{
		{"the first right answer, fabric's time", o.answered},
		{"the first proof, fabric's time", o.proved},
		{"the first right answer, processor's time", o.answeredCPU},
		{"the first proof, processor's time", o.provedCPU},
		{"the first right answer, clock", o.answeredWall},
		{"the first proof, clock", o.provedWall},
	} {
		slices.Sort(x.list)
		b.Logf("%d failovers: %s after %v in the median, %v in the 99th percentile, %v at most", n, x.name,
			x.list[n/2].Round(time.Millisecond), x.list[n*99/100].Round(time.Millisecond), x.list[n-1].Round(time.Millisecond))
	}
	b.Logf("nothing changed at the kill (%d failovers): Sets%s; of PortInfo %d of MasterSMLID only, %d of more", n-o.moved, setsText(o.sets), o.only, o.moreThan)
	b.Logf("a host was moved at the kill, and others joined and left (%d failovers): Sets%s", o.moved, setsText(o.whileMoving))
	b.Logf("%d ClientReregister, %d links taken down, %d registrations lost", o.reregister, o.downs, o.lost)
	b.Logf("%s", &o.requests)
	b.ReportMetric(o.answered[n/2].Seconds(), "fabric-s-to-answer")
	b.ReportMetric(o.proved[n/2].Seconds(), "fabric-s-to-proof")
	b.ReportMetric(o.answeredCPU[n/2].Seconds(), "cpu-s-to-answer")
	b.ReportMetric(o.provedCPU[n/2].Seconds(), "cpu-s-to-proof")
	if text := o.wrong(loss); text != "" {
		b.Error(text)
	}
}

// wrong says what a takeover ought not to have done. Where packets are lost, the former
// master may have been waiting for the answer to a write of multicast tables.
func (o *failoverTally) wrong(loss float64) string {
	other := maps.Clone(o.sets)
	delete(other, smp.AttrPortInfo)
	if loss > 0 {
		delete(other, smp.AttrMulticastForwardingTable)
		delete(other, smp.AttrSwitchInfo) // MulticastFDBTop
	}
	if o.reregister+o.downs+o.lost+o.moreThan+len(other) == 0 {
		return ""
	}
	return fmt.Sprintf("%d ClientReregister, %d links taken down, %d registrations lost, Sets%s where nothing changed, of PortInfo %d of more than MasterSMLID",
		o.reregister, o.downs, o.lost, setsText(o.sets), o.moreThan)
}

func setsText(sets map[mad.AttributeID]int) (text string) {
	for _, id := range slices.Sorted(maps.Keys(sets)) {
		text += fmt.Sprintf(" %d %s", sets[id], smp.AttributeName(id))
	}
	return text
}

// A few failovers with everything that goes on beside them: nothing that was registered is
// lost, and nothing but MasterSMLID is written where nothing moved.
func TestFailovers(t *testing.T) {
	for _, loss := range []float64{0, 0.01} {
		t.Run(fmt.Sprintf("%g %% lost", 100*loss), func(t *testing.T) {
			if loss > 0 {
				need.Long(t, "failovers with losses")
			}
			t.Parallel()
			out := &failoverTally{sets: map[mad.AttributeID]int{}, whileMoving: map[mad.AttributeID]int{}}
			x := newFailovers(t, generate(t, "fattree,radix=12,levels=2"), 1, loss, out)
			for range 4 {
				x.round()
			}
			if text := out.wrong(loss); text != "" {
				t.Error(text)
			}
			if soon := slices.Max(out.answered); loss == 0 && soon > 2*mastership.DefaultMasterTimeout {
				t.Errorf("the first right answer came after %v: hosts were told of the new master only after the wait", soon)
			}
			if out.only == 0 || out.moved == 0 || out.moved == 4 || out.requests.answered == 0 || out.requests.held == 0 {
				t.Errorf("not a trial: %+v", out)
			}
			if out.requests.failed > 0 {
				t.Errorf("%s", &out.requests)
			}
			t.Logf("%s", &out.requests)
		})
	}
}
