package simtest

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// ipoib is the tenancy with a broadcast group in every partition.
func (y tenancy) ipoib() *policy.Policy {
	p := y.policy()
	for i := range p.Partitions {
		p.Partitions[i].Multicast = []policy.MulticastGroup{{
			MGID: policy.Broadcast(policy.ScopeLink), MTU: policy.DefaultMTU, Rate: policy.DefaultRate, QKey: policy.QKeyIPoIB,
		}}
	}
	return p
}

// The groups that the kernel joins on every interface, and another.
const (
	allHosts = 0xE000_0001
	mdns     = 0xE000_00FB
)

// TestIPoIB plays what the kernel of every host does with an interface in its
// partition, and what becomes of it: who leaves, who only sends, who is moved to
// another partition, a manager that is followed by another.
func TestIPoIB(t *testing.T) {
	list := generate(t, "fattree,radix=4,levels=3")
	all := hosts(list)[1:]
	y := halves(all)
	red, blue := y.tenants[0].base, y.tenants[1].base
	w := newGroups(t, list, fabric.DefaultConfig(), y.ipoib())
	w.settle()
	if n := w.tables(); n != 0 {
		t.Errorf("%d switches lead multicast packets somewhere before anybody joined", n)
	}
	if n := w.probe(); n != 0 {
		t.Errorf("%d hosts were reached before anybody joined", n)
	}

	for _, x := range y.tenants {
		for _, guid := range x.full {
			w.host(guid).enter(x.base, ipGroup(x.base, allHosts))
		}
	}
	w.settle()
	// Everybody sends to two groups, and reaches everybody else of its half.
	if n, half := w.probe(), len(all)/2; n != 2*(half*(half-1)+(len(all)-half)*(len(all)-half-1)) {
		t.Errorf("%d hosts were reached", n)
	}
	if n := len(w.runner.Administration().Groups().Groups()); n != 4 {
		t.Errorf("%d groups, want 4", n)
	}

	// A single join is a few writes, and a join that changes nothing is none.
	first, last := w.host(y.tenants[0].full[0]), w.host(y.tenants[0].full[len(y.tenants[0].full)-1])
	r := first.join(broadcastOf(red), red)
	before := w.fabric.Received(mad.MethodSet, 0x1B)
	r.MGID, r.PortGID, r.JoinState, r.HopLimit = ipGroup(red, mdns), first.gid(), sa.JoinFull, 0
	if _, status := first.ask(mad.MethodSet, joinsOther, &r); status != mad.StatusOK {
		t.Fatal(status)
	}
	w.settle()
	if n := w.fabric.Received(mad.MethodSet, 0x1B) - before; n != 1 {
		t.Errorf("the first join of a group wrote %d blocks, want 1", n)
	}
	// Who only sends is joined to the tree and gets nothing.
	r.PortGID, r.JoinState = last.gid(), sa.JoinSendOnlyFull
	if _, status := last.ask(mad.MethodSet, joinsOther, &r); status != mad.StatusOK {
		t.Fatal(status)
	}
	w.settle()
	w.probe()

	// The creator leaves: the sender keeps the group alive; then it leaves too.
	first.leave(ipGroup(red, mdns), sa.JoinFull)
	w.settle()
	w.probe()
	last.leave(ipGroup(red, mdns), sa.JoinSendOnlyFull)
	w.settle()
	if w.runner.Administration().Groups().Group(ipGroup(red, mdns)) != nil {
		t.Error("the group is there without members")
	}
	if kept := w.runner.Administration().Groups().Retired(); len(kept) != 0 {
		t.Errorf("multicast LIDs %v are kept though no table leads them anywhere", kept)
	}

	// A host moves to the other partition: it is in no group of its old one.
	moved := w.host(y.tenants[0].full[1])
	y = y.move(moved.guid, red, blue)
	w.change(y.ipoib())
	w.probe()
	if _, status := moved.ask(mad.MethodSet, joinsBroadcast, &sa.MCMemberRecord{
		MGID: broadcastOf(red), PortGID: moved.gid(), PKey: red.Full(), JoinState: sa.JoinFull,
	}); status != sa.StatusRequestInvalid {
		t.Errorf("the moved host joins its old partition's group: %s", status)
	}
	moved.enter(blue)
	w.settle()
	w.probe()

	// A manager that knows what the one before knew writes nothing.
	sets := w.fabric.Received(mad.MethodSet, 0x1B)
	w.restart(y.ipoib(), true)
	w.probe()
	if n := w.fabric.Received(mad.MethodSet, 0x1B) - sets; n != 0 {
		t.Errorf("the next manager wrote %d blocks of multicast tables, want none", n)
	}
	// One that knows nothing leads packets to nobody.
	w.restart(y.ipoib(), false)
	if n := w.tables(); n != 0 {
		t.Errorf("%d switches lead multicast packets to members that nobody knows", n)
	}
	w.probe()
	for _, e := range w.events {
		if f, ok := e.(event.Failed); ok {
			t.Error(f)
		}
	}
}

// tables counts the switches that lead multicast packets anywhere.
func (w *groups) tables() (n int) {
	for _, node := range w.list.Nodes {
		if node.Type != ib.NodeSwitch {
			continue
		}
		a, some := w.fabric.Agent(node.GUID), false
		for lid := ib.LIDMulticastMin; lid < ib.LIDMulticastMin+64; lid++ {
			some = some || a.MulticastExits(0, lid) != (sma.PortSet{})
		}
		if some {
			n++
		}
	}
	return n
}

// TestDefaultMulticastPorts: packets that no table knows go nowhere. Switches
// here hold nobody to a partition, so that whatever a switch lets out arrives;
// a hand opens default ports, of a table without an entry and of multicast LIDs
// outside it.
func TestDefaultMulticastPorts(t *testing.T) {
	list := generate(t, "demo")
	y := halves(hosts(list)[1:])
	red := y.tenants[0]
	const entries = 64
	c := fabric.DefaultConfig()
	c.Profile = func(_ *topology.Node, d *sma.Config) {
		if d.Switch != nil {
			d.Switch.InboundEnforcementCap, d.Switch.OutboundEnforcementCap = false, false
			d.Switch.MulticastFDBCap = entries
		}
	}
	w := newGroups(t, list, c, y.ipoib())
	w.settle()
	by := &world{t: t, list: list, fabric: w.fabric}
	from := w.host(red.full[0])
	node, _, _ := w.fabric.Peer(from.at.node, from.at.num)
	// exit leads to another host at the same switch.
	var exit ib.PortNum
	for at, guid := range w.hosts {
		if peer, num, _ := w.fabric.Peer(at.node, at.num); peer == node && guid != from.guid {
			exit = max(exit, num)
		}
	}
	open := func() {
		info := *w.fabric.Agent(node).SwitchInfo()
		info.DefaultMulticastPrimaryPort = exit
		by.agentSet(place{node, 0}, smp.AttrSwitchInfo, 0, func(data *[mad.DataSize]byte) { by.encode(&info, data) })
	}
	arrive := func(mlid ib.LID) int {
		t.Helper()
		clear(w.came)
		from.send(&group.Group{MGID: broadcastOf(red.base), MLID: mlid, Partition: red.base}, 7)
		w.fabric.AdvanceTo(w.fabric.Now() + time.Millisecond)
		return len(w.came[7])
	}
	for _, mlid := range []ib.LID{0xC005, ib.LIDMulticastMin + entries, 0xFFFE} {
		if n := arrive(mlid); n != 0 {
			t.Errorf("MLID %s: %d hosts get what nobody joined", mlid, n)
		}
		open()
		if n := arrive(mlid); n != 1 {
			t.Errorf("MLID %s: %d hosts get what leaves by the default port, want 1", mlid, n)
		}
		w.run(2 * engine.DefaultSweepInterval)
		if n := arrive(mlid); n != 0 {
			t.Errorf("MLID %s: %d hosts get it after a light sweep", mlid, n)
		}
		open()
		w.restart(y.ipoib(), true)
		if n := arrive(mlid); n != 0 {
			t.Errorf("MLID %s: %d hosts get it after another manager came", mlid, n)
		}
	}
	// A group does not open what is closed: its packets end at switches that do
	// not know it, and other multicast LIDs lead nowhere still.
	from.enter(red.base)
	w.settle()
	open()
	w.host(red.full[1]).enter(red.base)
	w.run(2 * engine.DefaultSweepInterval)
	for mlid, want := range map[ib.LID]int{w.runner.Administration().Groups().Group(broadcastOf(red.base)).MLID: 1, 0xC005: 0} {
		if n := arrive(mlid); n != want {
			t.Errorf("MLID %s: %d hosts get it, want %d", mlid, n, want)
		}
	}
}
