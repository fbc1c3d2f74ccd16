package simtest

import (
	"maps"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// estate is a fabric on which a policy stands: two halves, and a partition
// with one member of each of them. Every pass is to look at few ports and is held
// against a look at the whole.
type estate struct {
	*world
	y      site
	groups []group.Group
}

const (
	half  = ib.PKeyBase(0x20) // the second of the two
	both  = ib.PKeyBase(0x30)
	other = ib.PKeyBase(0x40)
)

func newEstate(t *testing.T, groups func(*topology.Netlist) []group.Group, preset func(*estate)) *estate {
	t.Helper()
	list := topology.Demo()
	y := halves(hosts(list))
	y.tenants = append(y.tenants, tenant{base: both, full: []ib.PortGUID{guidOf(list, "red-1"), guidOf(list, "blue-6")}},
		tenant{base: other, full: []ib.PortGUID{guidOf(list, "red-2"), guidOf(list, "red-3")}})
	s := &estate{y: site{y, map[ib.PKeyBase]ib.PortGUID{}, 0}}
	s.world = newWorld(t, setup{list: list, policy: s.y.policy()})
	if groups != nil {
		s.groups = groups(list)
		s.engine.SetGroups(s.groups)
	}
	if preset != nil {
		preset(s)
	}
	s.settle()
	s.calm()
	s.calm() // what a sweep leaves in the switches is known of them
	return s
}

// whole adds the groups to what a look at everything comes to.
func (s *estate) whole() whole {
	s.t.Helper()
	x, err := s.world.whole(s.y)
	s.must(err)
	if s.groups == nil {
		return x
	}
	in := desired.MulticastInput{Fabric: s.engine.Fabric(), Order: x.Routes.GroupOrder(), Allowed: func(base ib.PKeyBase, g ib.PortGUID) bool {
		return slices.ContainsFunc(x.Resolution.Partitions, func(p observed.Partition) bool {
			return p.Base == base && (slices.Contains(p.Full, g) || slices.Contains(p.Limited, g))
		})
	}}
	for i := range s.groups {
		in.Groups = append(in.Groups, &s.groups[i])
	}
	trees, err := desired.ComputeMulticast(in)
	s.must(err)
	trees.Enter(s.engine.Fabric(), x.Tables)
	for _, f := range trees.Faults {
		x.Warnings = append(x.Warnings, f.String())
	}
	x.plan = plan.Diff(s.engine.Fabric(), x.Tables)
	return x
}

// pass gives the manager the policy, and holds what it does against the whole.
func (s *estate) pass() whole {
	s.t.Helper()
	s.forget()
	x := s.whole()
	s.change(s.y.policy())
	if n := s.result().Compiled; n > 3 {
		s.t.Fatalf("the pass looked at %d end ports: %v", n, s.events)
	}
	s.checkAgainst(x, false)
	if !s.result().Proof.Verdict.Holds() {
		s.t.Errorf("proof: %v", s.result().Proof.Verdict)
	}
	return x
}

// elsewhere moves a host that has to do with nothing else here.
func (s *estate) elsewhere() { s.y.tenancy = s.y.move(guidOf(s.list, "red-2"), other, half) }

// writes reports whether a plan has an attribute of a port in it.
func (x whole) writes(at place, a mad.AttributeID) bool {
	return slices.ContainsFunc(x.plan.Stages, func(s plan.Stage) bool {
		return slices.ContainsFunc(s.Ops, func(op plan.Op) bool {
			return op.Port.Node.GUID() == at.node && op.Port.Num == at.num && op.Attribute == a
		})
	})
}

// A key that was kept from a host, since another did not give it up, is given
// to it by the next pass, whatever that is about.
func TestIncrementalPassAfterWithheldWrite(t *testing.T) {
	s := newEstate(t, nil, nil)
	from, to := "red-1", "blue-5"
	guard := s.nodeOf(s.switchPort(from).node).ID // else it takes the key from a host that keeps it
	s.deaf(from, smp.AttrPKeyTable, true)
	s.deaf(guard, smp.AttrPKeyTable, true)
	s.y.tenancy = s.y.move(guidOf(s.list, from), both, 0)
	s.y.tenancy = s.y.move(guidOf(s.list, to), 0, both)
	s.change(s.y.policy())
	if slices.Contains(s.table(s.host(to)), both.Full()) {
		t.Fatalf("%s holds the key that %s did not give up", to, from)
	}
	s.mute(from, false)
	s.mute(guard, false)
	s.elsewhere()
	x := s.pass()
	if !x.writes(s.host(to), smp.AttrPKeyTable) || !x.writes(s.host(from), smp.AttrPKeyTable) {
		t.Error("the whole has nothing to write there")
	}
	if !slices.Contains(s.table(s.host(to)), both.Full()) || slices.Contains(s.table(s.host(from)), both.Full()) {
		t.Errorf("%s holds %v, %s %v", to, s.table(s.host(to)), from, s.table(s.host(from)))
	}
}

// Keys that stay keep their index: one that a table is found to have elsewhere
// stays there, when it could not be put back before a pass works out tables.
func TestIncrementalPassAfterForeignWrite(t *testing.T) {
	s := newEstate(t, nil, nil)
	at := s.host("red-1")
	s.deaf("red-1", smp.AttrPKeyTable, true)
	s.setKeys(at, func(k *smp.PKeyTable) { k.Keys[1], k.Keys[9] = 0, k.Keys[1] })
	moved := s.table(at)[9]
	s.forget()
	s.until("the light sweep finds it", func() bool { return len(all[event.Drifted](s.world)) > 0 })
	s.settle()
	s.run(engine.DefaultDriftPeriod + engine.DefaultSweepInterval)
	s.mute("red-1", false)
	s.elsewhere()
	s.pass()
	if got := s.table(at); got[9] != moved {
		t.Errorf("%v is not at index 9 any more: %v", moved, got)
	}
}

// broadcasts has a group in one partition, with these members.
func broadcasts(base ib.PKeyBase, mlid ib.LID, ids ...string) func(*topology.Netlist) []group.Group {
	return func(l *topology.Netlist) []group.Group {
		g := group.Group{MGID: broadcastOf(base), MLID: mlid, Partition: base}
		for _, id := range ids {
			g.Members = append(g.Members, group.Member{Port: guidOf(l, id), State: sa.JoinFull})
		}
		slices.SortFunc(g.Members, func(a, b group.Member) int { return int(int64(a.Port) - int64(b.Port)) })
		return []group.Group{g}
	}
}

// leads reports whether the switch before a host sends it packets of a group.
func (s *estate) leads(id string, mlid ib.LID) bool {
	q := s.switchPort(id)
	exits := s.agent(q.node).MulticastExits(0, mlid)
	return exits.Has(q.num)
}

// Who loses a partition is led no packets of its groups from that pass on, and
// who is given one is; nobody need say so again.
func TestIncrementalTrees(t *testing.T) {
	const mlid = ib.LIDMulticastMin + 5
	s := newEstate(t, broadcasts(both, mlid, "red-1", "blue-6", "blue-5"), nil)
	want := func(when string, ids ...string) {
		t.Helper()
		for _, id := range []string{"red-1", "blue-6", "blue-5"} {
			if got := s.leads(id, mlid); got != slices.Contains(ids, id) {
				t.Errorf("%s: packets of the group are led to %s: %v", when, id, got)
			}
		}
	}
	want("at first", "red-1", "blue-6")
	s.y.tenancy = s.y.move(guidOf(s.list, "red-1"), both, 0)
	s.pass()
	want("a member is taken out", "blue-6")
	s.y.tenancy = s.y.move(guidOf(s.list, "blue-5"), 0, both)
	s.pass()
	want("another comes", "blue-6", "blue-5")
	// Groups change at the same time as a policy that is about none of them.
	s.groups = broadcasts(both, mlid, "blue-5")(s.list)
	s.engine.SetGroups(s.groups)
	s.elsewhere()
	s.pass()
	want("one leaves while the policy changes elsewhere", "blue-5")
}

// Trees grow out of what switches hold. When that reads otherwise than before
// and could not be put right, the next pass lets them grow again, whatever it is
// about.
func TestIncrementalTreesAfterForeignWrite(t *testing.T) {
	for mlid := ib.LIDMulticastMin; mlid < ib.LIDMulticastMin+2; mlid++ {
		// Whichever spine a tree would be laid over, here it is over the other.
		regrown := false
		for _, spine := range []string{"spine-1", "spine-2"} {
			regrown = regrown || testTreeOver(t, spine, mlid)
		}
		if !regrown {
			t.Errorf("MLID %s: no tree grew another way", mlid)
		}
	}
}

func testTreeOver(t *testing.T, spine string, mlid ib.LID) (regrown bool) {
	t.Helper()
	ids := []string{"red-1", "blue-6"}
	s := newEstate(t, broadcasts(both, mlid, ids...), func(s *estate) { s.lay(spine, mlid, ids) })
	over := s.node(spine).GUID
	spans := func() bool { return s.agent(over).MulticastExits(0, mlid) != sma.PortSet{} }
	if !spans() {
		t.Fatalf("MLID %s: the tree over %s did not stay", mlid, spine)
	}
	undone := map[ib.NodeGUID]bool{over: true, s.switchPort(ids[0]).node: true, s.switchPort(ids[1]).node: true}
	if len(undone) != 3 {
		t.Fatalf("%v are at one switch", ids)
	}
	for n := range undone {
		s.deaf(s.nodeOf(n).ID, smp.AttrMulticastForwardingTable, true)
		s.agentSet(place{n, 0}, smp.AttrMulticastForwardingTable, 0, func(*[mad.DataSize]byte) {})
	}
	s.forget()
	s.until("nothing could be put right", func() bool {
		failed := map[ib.NodeGUID]bool{}
		for _, f := range all[event.Failed](s.world) {
			failed[f.Failure.Port.Node.GUID()] = true
		}
		return maps.Equal(failed, undone) && s.engine.Settled()
	})
	for n := range undone {
		s.mute(s.nodeOf(n).ID, false)
	}
	s.elsewhere()
	s.pass()
	for _, id := range ids {
		if !s.leads(id, mlid) {
			t.Errorf("MLID %s: packets are not led to %s", mlid, id)
		}
	}
	return !spans()
}

// lay enters a tree over a spine in the switches, for two hosts.
func (s *estate) lay(spine string, mlid ib.LID, ids []string) {
	s.t.Helper()
	over := s.node(spine).GUID
	at := func(n ib.NodeGUID, ports ...ib.PortNum) {
		s.setSwitchInfo(s.nodeOf(n).ID, func(i *smp.SwitchInfo) { i.MulticastFDBTop = mlid })
		s.agentSet(place{n, 0}, smp.AttrMulticastForwardingTable, 0, func(data *[mad.DataSize]byte) {
			var t smp.MulticastForwardingTable
			for _, p := range ports {
				t.Masks[mlid-ib.LIDMulticastMin] |= 1 << p
			}
			s.encode(&t, data)
		})
	}
	var down []ib.PortNum
	for _, id := range ids {
		leaf := s.switchPort(id)
		for num := range s.nodeOf(over).Ports {
			if p, ok := s.peer(place{over, ib.PortNum(num)}); ok && p.node == leaf.node {
				down = append(down, ib.PortNum(num))
				at(leaf.node, leaf.num, p.num)
				break
			}
		}
	}
	at(over, down...)
}
