package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// masterLID is the LID of the master in these tests, between those of ports.
const masterLID = ib.LID(3)

// withMasterLID has a policy set a LID aside for the master; 0 for none.
func withMasterLID(p *policy.Policy, l ib.LID) *policy.Policy {
	s := policy.DefaultSettings()
	s.MasterSMLID = l
	p.Settings = &s
	return p
}

// movers is a pair of managers whose policy sets a LID aside for the master.
type movers struct {
	*pair
	first, second *seat
	at            [2]int // the hosts of the two
	y             tenancy
}

// newMovers seats two managers; the first has the rank 5, the second the one that is given.
func newMovers(t testing.TB, spec string, at [2]int, rank uint8) *movers {
	t.Helper()
	list := generate(t, spec)
	x := &movers{pair: newPair(t, list), at: at, y: tenantsOf(hosts(list))}
	x.first = x.sit(at[0], moverConfig(5), x.policy(masterLID))
	x.until("the first proof", time.Minute, func() bool { return x.first.proved(0) })
	x.second = x.sit(at[1], moverConfig(rank), x.policy(masterLID))
	x.run(30 * time.Second)
	return x
}

func moverConfig(rank uint8) engine.Config {
	return engine.Config{Election: engine.Election{Priority: rank, SMKeys: ring(1)}, Profile: protect.Tenant}
}

func (x *movers) policy(l ib.LID) *policy.Policy {
	return withMasterLID(x.managed(x.y, x.at[0], x.at[1]), l)
}

// info is PortInfo of the port of the i-th host.
func (x *pair) info(i int) *smp.PortInfo { return x.fabric.Agent(x.hostNodes()[i].GUID).Port(1) }

// end is the host that a packet for a LID comes to which leaves the i-th host; 0 when a
// switch drops it. It fails when the packet goes in a circle.
func (x *pair) end(i int, l ib.LID) ib.NodeGUID {
	from := x.hostNodes()[i].Ports[1]
	for range x.list.Nodes {
		n, in := from.Peer, from.PeerPort
		if n == nil || n.Type != ib.NodeSwitch {
			if n == nil {
				return 0
			}
			return n.GUID
		}
		exit, ok := x.fabric.Agent(n.GUID).UnicastExit(in, l)
		if !ok || exit == 0 {
			return 0
		}
		from = n.Ports[exit]
	}
	x.t.Errorf("%v: a packet for LID %d from host %d goes in a circle", x.fabric.Now(), l, i)
	return 0
}

// lidsOf are the LIDs of all hosts but the i-th.
func (x *pair) lidsBut(but ...int) map[int]ib.LID {
	out := map[int]ib.LID{}
	for i := range x.hostNodes() {
		if !slices.Contains(but, i) {
			out[i] = x.info(i).LID
		}
	}
	return out
}

// leads fails unless the port of host i, and no other, has the LID, every host's packets for
// it come there, every port names it, and no two ports have one LID.
func (x *pair) leads(when string, l ib.LID, i int) {
	x.t.Helper()
	owners := map[ib.LID]int{}
	for k, n := range x.hostNodes() {
		info := x.info(k)
		if other, twice := owners[info.LID]; twice || !info.LID.IsUnicast() {
			x.t.Errorf("%s: hosts %d and %d have LID %d", when, other, k, info.LID)
		}
		owners[info.LID] = k
		if info.MasterSMLID != l {
			x.t.Errorf("%s: host %d names %d as the LID of the master, want %d", when, k, info.MasterSMLID, l)
		}
		if to := x.end(k, l); to != x.hostNodes()[i].GUID && n.Ports[1].Peer != nil {
			x.t.Errorf("%s: what host %d sends to LID %d comes to %v", when, k, l, to)
		}
	}
	if owner, ok := owners[l]; !ok || owner != i {
		x.t.Errorf("%s: LID %d is that of host %d, want %d", when, l, owner, i)
	}
}

// onlyTheMove fails for every Set that is not part of the move of the master's LID between
// two hosts: the address of their ports, in this order, and nothing else of PortInfo; one
// entry of a forwarding table, when the switch that it leads to has its own already.
func (x *movers) onlyTheMove(l ib.LID, from, to int) (watch func(*mad.SMP, fabric.Sighting), counts *[2]int) {
	hosts := x.hostNodes()
	counts = new([2]int)
	return func(p *mad.SMP, s fabric.Sighting) {
		if p.Method != mad.MethodSet || p.AttributeID == smp.AttrSMInfo {
			return
		}
		agent := x.fabric.Agent(s.Node)
		switch p.AttributeID {
		case smp.AttrPortInfo:
			counts[0]++
			var info smp.PortInfo
			if err := info.UnmarshalBinary(p.Data[:]); err != nil {
				x.t.Fatal(err)
			}
			i := slices.IndexFunc(hosts, func(n *topology.Node) bool { return n.GUID == s.Node })
			was := *agent.Port(1)
			switch {
			case i == from && info.LID != l && was.LID == l:
			case i == to && info.LID == l && was.LID != l:
				if x.info(from).LID == l && !x.first.gone {
					x.t.Errorf("%v: the new master takes LID %d before the former one has lost it", s.At, l)
				}
			default:
				x.t.Errorf("%v: PortInfo of host %d: LID %d, had %d", s.At, i, info.LID, was.LID)
			}
			was.LID, was.LMC = info.LID, info.LMC
			was.PortState, was.PortPhysicalState, was.LinkDownDefaultState, was.LocalPortNum = 0, 0, 0, info.LocalPortNum
			info.PortState, info.LinkDownDefaultState = 0, 0
			if info != was {
				x.t.Errorf("%v: PortInfo of host %d is written otherwise: %+v, was %+v", s.At, i, info, was)
			}
		case smp.AttrLinearForwardingTable:
			counts[1]++
			var table smp.LinearForwardingTable
			if err := table.UnmarshalBinary(p.Data[:]); err != nil {
				x.t.Fatal(err)
			}
			for k, exit := range table.Ports {
				at := ib.LID(p.AttributeModifier)*smp.LIDsPerLinearBlock + ib.LID(k)
				if at == 0 || at == l {
					continue
				}
				if now, ok := agent.UnicastExit(0, at); ok && now != exit || !ok && exit != ib.PortNone {
					x.t.Errorf("%v: the entry of LID %d of %v is written, %d to %d", s.At, at, s.Node, now, exit)
				}
			}
		default:
			x.t.Errorf("%v: a Set of %s", s.At, smp.AttributeName(p.AttributeID))
		}
		for i := range hosts { // as it stands just before this Set
			if to := x.end(i, l); to != hosts[x.at[0]].GUID && to != hosts[x.at[1]].GUID {
				x.t.Errorf("%v: what host %d sends to LID %d comes to %v", s.At, i, l, to)
			}
		}
	}, counts
}

// The LID of the master moves when its manager is killed: the ports of the two managers are
// written, and one entry in forwarding tables, in an order in which no packet goes in a
// circle. Hosts that were once told the LID go on asking it, and are answered before the
// tables are read.
func TestMasterLIDMoves(t *testing.T) {
	specs := []string{"demo", "fattree,radix=4,levels=3", "random,seed=7,switches=9,hosts=12"}
	for _, spec := range specs[:need.Share(1, len(specs))] {
		t.Run(spec, func(t *testing.T) {
			x := newMovers(t, spec, [2]int{0, 4}, 0)
			x.leads("at first", masterLID, 0)
			x.second.shares = x.first
			lids := x.lidsBut(0, 4)
			watch, counts := x.onlyTheMove(masterLID, 0, 4)
			x.watch = watch
			f := x.failover(x.first, x.second, x.client(2, 2+len(x.y.tenants)))
			x.run(2 * engine.DefaultDriftPeriod)
			x.watch = nil
			x.leads("in the end", masterLID, 4)
			switches := 0
			for _, n := range x.list.Nodes {
				if n.Type == ib.NodeSwitch {
					switches++
				}
			}
			if counts[0] != 2 || counts[1] == 0 || counts[1] > switches || x.reregister != 0 || x.downs != 0 {
				t.Errorf("%d ports and %d of %d forwarding tables written, %d hosts are to register again, %d links went down", counts[0], counts[1], switches, x.reregister, x.downs)
			}
			if lifetime := x.second.link.Limits().Lifetime; f.answered >= lifetime || f.proved < lifetime {
				t.Errorf("answered after %v, proved after %v: want the answer before %v and the proof not before", f.answered, f.proved, lifetime)
			}
			if !maps.Equal(lids, x.lidsBut(0, 4)) {
				t.Error("the LID of another host has changed")
			}
			t.Logf("answered after %v, proved after %v; %d forwarding tables of %d written", f.answered, f.proved, counts[1], switches)
		})
	}
}

// What hosts registered with the former master is not known: they are asked to register
// again, though no port gets another MasterSMLID.
func TestMasterLIDMovesWithoutState(t *testing.T) {
	x := newMovers(t, "demo", [2]int{0, 4}, 0)
	own := x.info(4).LID
	x.failover(x.first, x.second, x.client(2, 2+len(x.y.tenants)))
	if want := len(x.hostNodes()); x.reregister != want {
		t.Errorf("%d hosts are asked to register again, want %d", x.reregister, want)
	}
	x.run(engine.DefaultDriftPeriod)
	x.leads("in the end", masterLID, 4)

	// The manager that is master now is restarted, and remembers nothing.
	x.kill(x.second)
	x.forget()
	again := x.sit(4, moverConfig(0), x.policy(masterLID))
	since := x.fabric.Now()
	x.until("a proof", time.Minute, func() bool { return again.proved(since) })
	x.leads("after a restart", masterLID, 4)
	if got := again.engine.Manager().Assigned().LIDs[x.hostNodes()[4].Ports[1].GUID]; got != own || x.sets[smp.AttrLinearForwardingTable] != 0 {
		t.Errorf("the own LID of its port is %d, was %d; Sets %v", got, own, x.sets)
	}
}

// The master stops, and goes on when another has taken over: its port was given its own LID
// meanwhile. It sees that, and writes nothing before the other has handed the subnet back
// to it, whose rank is higher.
func TestStoppedMasterHasLostItsLID(t *testing.T) {
	x := newMovers(t, "demo", [2]int{0, 4}, 0)
	x.second.shares = x.first
	x.first.gone = true // its port lives on
	c := x.client(2, 2+len(x.y.tenants))
	x.until("a right answer", time.Minute, func() bool {
		c.turn()
		return c.right > 0
	})
	x.leads("after the takeover", masterLID, 4)
	x.run(5 * time.Second)
	since := x.fabric.Now()
	x.first.gone = false
	state := func(m *seat) smp.SMState { return m.engine.Manager().Status().State }
	x.watch = func(p *mad.SMP, s fabric.Sighting) {
		if p.Method == mad.MethodSet && p.AttributeID != smp.AttrSMInfo && state(x.first) == smp.SMMaster && state(x.second) == smp.SMMaster {
			t.Errorf("%v after it goes on there is a Set of %s, and two are master", s.At-since, smp.AttributeName(p.AttributeID))
		}
	}
	x.until("one master", 2*engine.DefaultSweepInterval, func() bool { return state(x.second) == smp.SMStandby })
	t.Logf("one master after %v", x.fabric.Now()-since)
	x.run(time.Minute)
	if state(x.first) != smp.SMMaster || state(x.second) != smp.SMStandby {
		t.Errorf("they are %s and %s", state(x.first), state(x.second))
	}
	x.leads("in the end", masterLID, 0)
}

// The LID follows a planned handover, there and back.
func TestMasterLIDFollowsAHandover(t *testing.T) {
	x := newMovers(t, "demo", [2]int{0, 4}, 0)
	x.second.shares, x.first.shares = x.first, x.second
	seats := []*seat{x.first, x.second}
	for turn := range 3 {
		from, to := turn%2, 1-turn%2
		watch, counts := x.onlyTheMove(masterLID, x.at[from], x.at[to])
		x.watch, x.reregister = watch, 0
		since := x.fabric.Now()
		if _, err := seats[from].engine.Manager().HandOver(0); err != nil {
			t.Fatal(err)
		}
		x.until("a proof", time.Minute, func() bool { return seats[to].proved(since) })
		x.run(40 * time.Second)
		x.leads(fmt.Sprint("turn ", turn), masterLID, x.at[to])
		if counts[0] != 2 || x.reregister != 0 {
			t.Errorf("turn %d: %d ports written, %d hosts are to register again", turn, counts[0], x.reregister)
		}
	}
}

// A former master that could not be reached comes back with the LID at its port: it loses it
// before its link carries data.
func TestFormerMasterComesBack(t *testing.T) {
	x := newMovers(t, "demo", [2]int{0, 4}, 3)
	x.second.shares = x.first
	host := x.hostNodes()[0]
	leaf, num := host.Ports[1].Peer.GUID, host.Ports[1].PeerPort
	if err := x.fabric.Unlink(host.GUID, 1); err != nil {
		t.Fatal(err)
	}
	x.kill(x.first)
	since := x.fabric.Now()
	x.until("a proof", time.Minute, func() bool { return x.second.proved(since) })
	if x.info(0).LID != masterLID {
		t.Fatalf("the port of the former master has LID %d", x.info(0).LID)
	}
	if err := x.fabric.Link(host.GUID, 1, leaf, num); err != nil {
		t.Fatal(err)
	}
	x.until("the link is up", time.Minute, func() bool {
		info := x.info(0)
		if info.LID == masterLID && info.PortState == smp.PortActive {
			t.Fatal("the port of the former master is Active with the LID of the master")
		}
		return info.PortState == smp.PortActive
	})
	x.run(5 * time.Second)
	x.leads("in the end", masterLID, 4)

	back := x.sit(0, moverConfig(0), x.policy(masterLID))
	x.run(30 * time.Second)
	if s := back.engine.Manager().Status().State; s != smp.SMStandby {
		t.Errorf("the former master is %s", s)
	}
	x.leads("with a standby", masterLID, 4)
}

// Root on a host gives its port the LID of the master: nothing leads there, also while
// another manager takes over, and it is put right.
func TestHostClaimsTheMasterLID(t *testing.T) {
	x := newMovers(t, "demo", [2]int{0, 4}, 0)
	x.second.shares = x.first
	w := &world{t: t, list: x.list, fabric: x.fabric}
	thief := place{x.hostNodes()[7].GUID, 1}
	own := x.info(7).LID
	claim := func() { w.setPortInfo(thief, func(i *smp.PortInfo) { i.LID = masterLID }) }
	claim()
	if x.info(7).LID != masterLID {
		t.Fatal("the thief has not got the LID")
	}
	never := func(_ *mad.SMP, s fabric.Sighting) {
		for i := range x.hostNodes() {
			if x.end(i, masterLID) == thief.node {
				t.Fatalf("%v: what host %d sends to the master comes to the thief", s.At, i)
			}
		}
	}
	x.watch = never
	x.run(engine.DefaultDriftPeriod + engine.DefaultSweepInterval)
	x.leads("put right", masterLID, 0)
	claim()
	f := x.failover(x.first, x.second, x.client(2, 2+len(x.y.tenants)))
	x.run(engine.DefaultDriftPeriod + engine.DefaultSweepInterval)
	x.leads("after a takeover", masterLID, 4)
	if x.info(7).LID != own {
		t.Errorf("the thief has LID %d, its own is %d", x.info(7).LID, own)
	}
	t.Logf("answered after %v", f.answered)
}

// The setting comes, changes and goes on a live subnet; a LID that another port was
// assigned, and one that a switch has no room for, are refused by name.
func TestMasterLIDIsChanged(t *testing.T) {
	x := newMovers(t, "demo", [2]int{0, 4}, 0)
	m := x.first
	set := func(l ib.LID) *policy.Policy {
		p := x.policy(l)
		m.engine.Manager().SetPolicy(p)
		m.engine.Expire(x.fabric.Now())
		x.run(5 * time.Second)
		return p
	}
	refused := func() string {
		for _, h := range slices.Backward(m.events) {
			if r, is := h.Event.(event.Refused); is {
				return r.String()
			}
		}
		return ""
	}
	own := m.engine.Manager().Assigned().LIDs[x.hostNodes()[0].Ports[1].GUID]
	lids := x.lidsBut(0)
	for _, l := range []ib.LID{40, 0, 700, own, masterLID} {
		p := set(l)
		if !m.carriedOut(p) {
			t.Fatalf("LID %d: %s", l, refused())
		}
		if l == 0 {
			l = own
		}
		x.leads(fmt.Sprint("LID ", l), l, 0)
		if !maps.Equal(lids, x.lidsBut(0)) {
			t.Errorf("LID %d: another host has another LID", l)
		}
	}
	want := fmt.Sprintf("master_sm_lid %d is the LID of ", lids[7])
	p := set(lids[7])
	if got := refused(); m.carriedOut(p) || !strings.Contains(got, want) || !strings.Contains(got, "for example 1") {
		t.Errorf("%q, want %q, and a LID that is free", got, want)
	}
	x.leads("after a refusal", masterLID, 0)
}

// The harness of takeovers with a LID of the master, which the next policy may do without:
// nothing is exposed or undone, and after each takeover the LID is that of the new master.
func TestMasterLIDExposesNothing(t *testing.T) {
	seed, soak := soakSeed(t)
	rounds := 12
	if soak {
		rounds = 400
	}
	t.Logf("SOAK_SEED=%d", seed)
	for n := range uint64(2) {
		t.Run(fmt.Sprintf("world %d", n), func(t *testing.T) {
			t.Parallel()
			e, undone, handed := takeovers(t, seed+n, rounds, false, 30)
			e.check(t)
			if undone > 0 {
				t.Errorf("%d of %d takeovers were undone by what a killed master had sent", undone, rounds)
			}
			t.Logf("%d takeovers, %d of them by a handover before the kill; %d SMPs, %d packets tried, %d exposed", rounds, handed, e.smps, e.packets, e.exposed)
		})
	}
}
