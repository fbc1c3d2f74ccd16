package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// pair is a fabric with several managers, each with its subnet administration.
type pair struct {
	t      testing.TB
	list   *topology.Netlist
	fabric *fabric.Fabric
	seats  []*seat
	// sets counts what arrived at agents, by attribute, reregister those that ask a host
	// to register again, and downs those that take a link down.
	sets              map[mad.AttributeID]int
	reregister, downs int
	watch             func(*mad.SMP, fabric.Sighting)
	world             *world                   // that is told of every packet, when set
	shelf             *shelf                   // that managers share; nil for none
	hasty             bool                     // managers take it that no packet is under way for long
	patient           bool                     // managers wait for answers as on a real fabric
	turn              func()                   // is called at every turn, when set
	told              func(*seat, event.Event) // has events in place of events, when set
	led               func(*seat)              // is told who has taken over, after the first pass, when set
}

// seat is a manager at a port.
type seat struct {
	link   *inproc.Link
	engine *master.Engine
	events []happened
	gone   bool
	asleep bool        // its process is stopped, and what is sent to it waits
	driven link.Engine // in place of engine, when set
	// shares is the manager whose state this one finds when it takes over; nil for none.
	shares *seat
	over   bool
	// took reports whether it has taken over and completed no pass yet, leads that it just has.
	took, leads bool
	// holds is when it last proved the subnet; 0 for never.
	holds time.Duration
}

func newPair(t testing.TB, list *topology.Netlist) *pair {
	t.Helper()
	x := &pair{t: t, list: list, sets: map[mad.AttributeID]int{}}
	c := fabric.DefaultConfig()
	c.Trace = x.trace
	var err error
	if x.fabric, err = fabric.New(list, c); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *pair) trace(s fabric.Sighting) {
	if x.world != nil {
		x.world.trace(s)
	}
	// Method is the fourth byte of a datagram: most are not looked at further.
	if s.What != fabric.SeenByAgent || mad.Method(s.MAD[3]) != mad.MethodSet && x.watch == nil {
		return
	}
	var p mad.SMP
	if p.UnmarshalBinary(s.MAD[:]) != nil {
		return
	}
	if p.Method == mad.MethodSet && p.AttributeID != smp.AttrSMInfo {
		x.sets[p.AttributeID]++
		var info smp.PortInfo
		if p.AttributeID == smp.AttrPortInfo && info.UnmarshalBinary(p.Data[:]) == nil {
			if info.ClientReregister {
				x.reregister++
			}
			if info.PortState == smp.PortDown || info.PortPhysicalState != smp.PhysNoChange {
				x.downs++
			}
		}
	}
	if x.watch != nil {
		x.watch(&p, s)
	}
}

// forget begins to count again.
func (x *pair) forget() {
	clear(x.sets)
	x.reregister, x.downs = 0, 0
}

// writes is how many Sets there were.
func (x *pair) writes() (n int) {
	for _, k := range x.sets {
		n += k
	}
	return n
}

// sit seats a manager at the i-th host.
func (x *pair) sit(i int, c engine.Config, p *policy.Policy) *seat {
	x.t.Helper()
	node := x.hostNodes()[i]
	m := &seat{}
	var err error
	if m.link, err = inproc.New(x.fabric, node.GUID, 1, false); err != nil {
		x.t.Fatal(err)
	}
	if err := m.link.SetIsSM(true); err != nil {
		x.t.Fatal(err)
	}
	c.Limits, c.Routing = m.link.Limits(), routing.UpDown
	if x.hasty {
		c.Limits.Lifetime = 0
	}
	if x.patient {
		c.Limits = transact.DefaultLimits()
		c.Limits.MinTimeout = time.Second // as where answers were seen to take long
	}
	m.engine = master.New(c, server.Config{Keep: x.shelf != nil}, p, func(e event.Event) {
		if x.told != nil {
			x.told(m, e)
		} else {
			m.events = append(m.events, happened{x.fabric.Now(), e})
		}
		switch e := e.(type) {
		case event.TakingOver:
			m.over, m.took = true, true
		case event.Completed:
			m.leads, m.took = m.took, false
			if e.Result.Proof.Verdict.Holds() && e.Result.Reached() {
				m.holds = x.fabric.Now()
			}
		}
	})
	x.shelf.serve(m)
	x.seats = append(x.seats, m)
	return m
}

func (x *pair) hostNodes() (out []*topology.Node) {
	for _, n := range x.list.Nodes {
		if n.Type == ib.NodeCA {
			out = append(out, n)
		}
	}
	return out
}

// managed is a tenancy's policy that names the ports of all managers as full members of
// the default partition, so that another master changes no P_Key table.
func (x *pair) managed(y tenancy, managers ...int) *policy.Policy {
	p := y.policy()
	part := policy.Partition{Name: "Default", PKey: ib.PKeyBaseDefault}
	for _, i := range managers {
		part.Members = append(part.Members, member(x.hostNodes()[i].Ports[1].GUID, policy.Full))
	}
	p.Partitions = append(p.Partitions, part)
	return p
}

// kill ends a manager without a word.
func (x *pair) kill(m *seat) {
	m.gone = true
	if err := m.link.Close(); err != nil {
		x.t.Fatal(err)
	}
}

// until lets time pass until done reports true, and fails after most.
func (x *pair) until(what string, most time.Duration, done func() bool) {
	x.t.Helper()
	for end := x.fabric.Now() + most; !done(); {
		busy := false
		if x.turn != nil {
			x.turn()
		}
		for _, m := range x.seats {
			if m.gone || m.asleep {
				continue
			}
			x.recall(m)
			x.shelf.turn(m)
			some, err := m.link.Pump(m.drives())
			if err != nil {
				x.t.Fatal(err)
			}
			busy = busy || some
		}
		if busy {
			continue
		}
		next := end
		if at, ok := x.fabric.NextEvent(); ok {
			next = min(next, at)
		}
		for _, m := range x.seats {
			if at, ok := m.engine.Deadline(); ok && !m.gone && !m.asleep {
				next = min(next, at)
			}
		}
		if x.fabric.Now() >= end {
			x.t.Fatalf("%s: not within %v", what, most)
		}
		x.fabric.AdvanceTo(max(next, x.fabric.Now()))
		for _, m := range x.seats {
			if m.gone || m.asleep {
				continue
			}
			if _, err := m.link.Pump(m.drives()); err != nil {
				x.t.Fatal(err)
			}
			m.engine.Expire(x.fabric.Now())
		}
	}
}

func (m *seat) drives() link.Engine {
	if m.driven != nil {
		return m.driven
	}
	return m.engine
}

// recall does what a daemon does that shares the state of the former master.
func (x *pair) recall(m *seat) {
	if m.leads {
		m.leads = false
		if x.led != nil {
			x.led(m)
		}
	}
	if !m.over || x.shelf != nil {
		return
	}
	m.over = false
	if o := m.shares; o != nil {
		if err := m.engine.Recall(o.engine.Manager().Assigned(), o.engine.Registered()); err != nil {
			x.t.Fatal(err)
		}
	}
}

// run lets a stretch of time pass.
func (x *pair) run(d time.Duration) {
	x.t.Helper()
	over := false
	x.fabric.At(x.fabric.Now()+d, func() { over = true })
	x.until("time passes", d+time.Second, func() bool { return over })
}

// proved reports whether a manager has proved the subnet since a time.
func (m *seat) proved(since time.Duration) bool { return m.holds > 0 && m.holds >= since }

// carriedOut reports whether a manager has proved the subnet with this policy.
func (m *seat) carriedOut(p *policy.Policy) bool {
	return slices.ContainsFunc(m.events, func(h happened) bool {
		c, ok := h.Event.(event.Completed)
		return ok && c.Result.Policy == p && c.Result.Proof.Verdict.Holds() && c.Result.Reached()
	})
}

// failover is what one takeover took.
type failover struct {
	answered, proved  time.Duration // from the kill, in the fabric's time
	sets              map[mad.AttributeID]int
	reregister, downs int
}

// partners are two managers of one secret on the demonstration fabric, the first of
// which is master, with a client of subnet administration.
func partners(t *testing.T) (x *pair, first, second *seat, c *client) {
	t.Helper()
	list := generate(t, "demo")
	x = newPair(t, list)
	y := tenantsOf(hosts(list))
	config := func(priority uint8) engine.Config {
		return engine.Config{Election: engine.Election{Priority: priority, SMKeys: ring(1)}, Profile: protect.Tenant}
	}
	first = x.sit(0, config(5), x.managed(y, 0, 4))
	x.until("the first proof", time.Minute, func() bool { return first.proved(0) })
	second = x.sit(4, config(0), x.managed(y, 0, 4))
	x.run(30 * time.Second)
	return x, first, second, x.client(2, 2+len(y.tenants))
}

// A partner that takes over is noticed within the time that it is told, answers hosts before
// the tables are read, and writes nothing but MasterSMLID: no link goes down, no P_Key table
// is written, and no host registers again where its registrations are known. Tables are not
// read, and nothing else is written, before what the former master sent must have landed.
func TestPartnerTakesOver(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("state shared %v", shared), func(t *testing.T) {
			x, first, second, c := partners(t)
			if shared {
				second.shares = first
			}
			lifetime := second.link.Limits().Lifetime
			since := x.fabric.Now()
			x.watch = func(p *mad.SMP, s fabric.Sighting) {
				early := s.At < since+lifetime
				switch {
				case p.Method == mad.MethodGet && early:
					switch p.AttributeID {
					case smp.AttrNodeInfo, smp.AttrNodeDescription, smp.AttrPortInfo, smp.AttrSwitchInfo, smp.AttrSMInfo:
					default:
						t.Errorf("%v after the end of the master: %s is read", s.At-since, smp.AttributeName(p.AttributeID))
					}
				case p.Method == mad.MethodSet && p.AttributeID != smp.AttrSMInfo:
					var info smp.PortInfo
					if p.AttributeID != smp.AttrPortInfo || info.UnmarshalBinary(p.Data[:]) != nil {
						t.Errorf("a Set of %s", smp.AttributeName(p.AttributeID))
						return
					}
					num := s.Port
					if of, _, _ := smp.SplitPortInfoModifier(p.AttributeModifier); of == 0 && x.fabric.Agent(s.Node).Port(0) != nil {
						num = 0
					}
					want := *x.fabric.Agent(s.Node).Port(num)
					want.MasterSMLID = info.MasterSMLID
					want.PortState, want.PortPhysicalState, want.LinkDownDefaultState = info.PortState, info.PortPhysicalState, info.LinkDownDefaultState
					if info.PortState != smp.PortStateNoChange || info.PortPhysicalState != smp.PhysNoChange || info.LID != want.LID || info.MKey != want.MKey {
						t.Errorf("a Set of PortInfo changes more than MasterSMLID: %v", info)
					}
				}
			}
			f := x.failover(first, second, c)
			x.watch = nil
			over := time.Duration(0)
			for _, h := range second.events {
				if e, is := h.Event.(event.TakingOver); is {
					if over = h.at - since; e.From != x.hostNodes()[0].Ports[1].GUID {
						t.Errorf("it takes over from %s", e.From)
					}
				}
			}
			if most := mastership.DefaultMasterTimeout; over == 0 || over > most {
				t.Errorf("seen after %v, want at most %v", over, most)
			}
			if f.answered >= lifetime || f.answered < over || f.proved < lifetime {
				t.Errorf("a right answer after %v, a proof after %v, seen after %v: want the answer before %v, and the proof not before", f.answered, f.proved, over, lifetime)
			}
			if f.downs != 0 || len(f.sets) != 1 || f.sets[smp.AttrPortInfo] == 0 {
				t.Errorf("%d links taken down, Sets %v, want PortInfo only", f.downs, f.sets)
			}
			if (f.reregister == 0) != shared {
				t.Errorf("%d hosts are asked to register again", f.reregister)
			}
			t.Logf("seen after %v, answered after %v, proved after %v", over, f.answered, f.proved)
		})
	}
}

// A standby does not take over while its master lives, however many packets are lost, and
// reads the subnet all the while, without a Set.
func TestLossIsNoTakeover(t *testing.T) {
	x, first, second, _ := partners(t)
	since := x.fabric.Now()
	if err := x.fabric.SetLoss(0.05); err != nil {
		t.Fatal(err)
	}
	x.run(3 * engine.DefaultDriftPeriod)
	reads := 0
	for _, h := range second.events {
		switch h.Event.(type) {
		case event.TakingOver:
			t.Errorf("%v: it takes over", h.at)
		case event.Found:
			if h.at >= since {
				reads++
			}
		}
	}
	if reads < 2 {
		t.Errorf("the standby read the subnet %d times", reads)
	}
	if s := first.engine.Manager().Status().State; s != smp.SMMaster {
		t.Errorf("the master is %s", s)
	}
}

// A manager that stood by is killed, the one that it had handed the subnet to or one that
// was never master: the master has nothing to write or to prove, and reports no rogue.
func TestKilledStandby(t *testing.T) {
	for _, handed := range []bool{false, true} {
		t.Run(fmt.Sprintf("after a handover %v", handed), func(t *testing.T) {
			x, master, standby, _ := partners(t)
			if handed {
				if _, err := master.engine.Manager().HandOver(0); err != nil {
					t.Fatal(err)
				}
				master, standby = standby, master
				x.until("the proof after the handover", time.Minute, func() bool { return master.proved(0) })
			}
			x.run(20 * time.Second)
			x.forget()
			before := len(master.events)
			x.kill(standby)
			x.run(2 * engine.DefaultDriftPeriod)
			for _, h := range master.events[before:] {
				switch e := h.Event.(type) {
				case event.RogueManager, event.Completed, event.TakingOver:
					t.Errorf("%v: %v", h.at, e)
				}
			}
			if s := master.engine.Manager().Status(); s.State != smp.SMMaster || s.Rogues != 0 || x.writes() != 0 {
				t.Errorf("%+v, Sets %v", s, x.sets)
			}
		})
	}
}

// takeovers lets two managers follow each other: the master is killed after so many Sets of
// a change, while agents take their time, and its standby goes on, with another policy. It
// returns what was exposed, how often what the standby proved was undone, and how often the
// standby ranked higher and had been handed the subnet before the kill. l is the LID of the
// master, 0 for none.
func takeovers(t *testing.T, seed uint64, rounds int, hasty bool, l ib.LID) (e *exposure, undone, handed int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 17))
	list := generate(t, fmt.Sprintf("random,seed=%d,switches=%d,hosts=%d,routers=1", seed%1000, 2+seed%3, 7+seed%3))
	x := newPair(t, list)
	x.hasty = hasty
	w := &world{t: t, list: list, fabric: x.fabric, self: place{x.hostNodes()[0].GUID, 1}}
	deal := func() tenancy {
		y := randomTenancy(r, ends(list), 4)
		y.full = true // both managers are full members of the default partition
		if y.masterLID = l; l != 0 && r.IntN(6) == 0 {
			y.masterLID = 0 // the setting goes, and comes again
		}
		return y
	}
	config := func(priority uint8) engine.Config {
		return engine.Config{Election: engine.Election{Priority: priority, SMKeys: ring(1), AcceptPolicy: true}, Profile: protect.Tenant}
	}
	now := deal()
	master := x.sit(0, config(5), now.policy())
	x.until("the first proof", time.Minute, func() bool { return master.proved(0) })
	e = newExposure(w)
	x.world = w
	e.rule(now)
	places := [2]int{0, 1}
	z := &zero{world: w, r: r}
	for round := range rounds {
		standby := x.sit(places[1-round%2], config(uint8(r.IntN(10))), now.policy())
		standby.shares = master
		x.run(time.Second)
		change, next := deal(), deal()
		e.rule(now, change, next)
		managers := []ib.NodeGUID{x.hostNodes()[0].GUID, x.hostNodes()[1].GUID}
		for _, n := range list.Nodes {
			if r.IntN(3) == 0 && !slices.Contains(managers, n.GUID) {
				w.must(x.fabric.SetFault(n.GUID, fabric.Fault{Late: time.Duration(r.Int64N(int64(longestLag)))}))
			}
		}
		last := next.policy()
		master.engine.Manager().SetPolicy(change.policy())
		standby.engine.Manager().SetPolicy(last)
		for _, m := range []*seat{master, standby} {
			m.engine.Expire(x.fabric.Now())
		}
		left := 1 + round%24
		end := x.fabric.Now() + 5*time.Second
		x.sets, x.watch = map[mad.AttributeID]int{}, nil
		x.until("some Sets", 6*time.Second, func() bool { return x.writes() >= left || x.fabric.Now() >= end })
		if standby.engine.Manager().Status().State == smp.SMMaster {
			handed++ // it ranks higher, and may have carried out its policy by now
		}
		x.kill(master)
		z.quieten() // for what is sent from now on
		x.until("the standby's proof", time.Minute, func() bool { return standby.carriedOut(last) })
		e.rule(next)
		x.run(2 * standby.link.Limits().Lifetime) // everything lands
		undone += min(wrongFor(w, next), 1)
		if next.masterLID != 0 {
			x.leads(fmt.Sprintf("round %d", round), l, places[1-round%2])
		}
		master, now = standby, next
	}
	e.settle()
	return e, undone, handed
}

// wrongFor counts the end ports that do not hold what a tenancy gives them.
func wrongFor(w *world, y tenancy) (n int) {
	for _, e := range w.ends() {
		if !slices.Equal(valid(w.table(e.place)), y.keys(e.guid, 0)) {
			n++
		}
	}
	return n
}

// A master is killed after any Set of a change, with copies of its writes still under way,
// and its partner takes over: no two ports can talk that neither policy lets, and nothing
// that the partner proved is undone.
func TestTakeoverExposesNothing(t *testing.T) {
	seed, soak := soakSeed(t)
	worlds, rounds := uint64(2), 12
	if soak {
		worlds, rounds = 4, 400
	}
	t.Logf("SOAK_SEED=%d", seed)
	for n := range worlds {
		t.Run(fmt.Sprintf("world %d", n), func(t *testing.T) {
			t.Parallel()
			e, undone, handed := takeovers(t, seed+n, rounds, false, 0)
			e.check(t)
			if undone > 0 {
				t.Errorf("%d of %d takeovers were undone by what a killed master had sent", undone, rounds)
			}
			t.Logf("%d takeovers, %d of them by a handover before the kill; %d SMPs, %d packets tried, %d exposed", rounds, handed, e.smps, e.packets, e.exposed)
		})
	}
}

// The harness sees what happens when a manager takes over at once.
func TestHastyTakeoverIsSeen(t *testing.T) {
	undone, exposed := 0, 0
	for n := range uint64(2) {
		e, k, _ := takeovers(t, 1+n, 24, true, 0)
		undone, exposed = undone+k, exposed+e.exposed
	}
	t.Logf("%d of 48 takeovers undone, %d packets exposed", undone, exposed)
	if undone == 0 && exposed == 0 {
		t.Error("late copies did nothing: the test above shows nothing")
	}
}

func (x *pair) failover(first, second *seat, c *client) (f failover) {
	x.t.Helper()
	x.forget()
	x.kill(first)
	since := x.fabric.Now()
	x.until("a right answer", time.Minute, func() bool {
		c.turn()
		return c.right > 0
	})
	f.answered = x.fabric.Now() - since
	x.until("a proof", time.Minute, func() bool { return second.proved(since) })
	f.proved = x.fabric.Now() - since
	f.sets, f.reregister, f.downs = x.sets, x.reregister, x.downs
	return f
}
