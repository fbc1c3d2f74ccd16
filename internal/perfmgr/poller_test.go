package perfmgr_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
)

const (
	leaf = ib.NodeGUID(0x200000)
	host = ib.NodeGUID(0x100000) // the first of them; the others follow
	// ports of the leaf, all up but the last.
	leafPorts = 8
)

// subnet is a switch with a host at every port but the last.
func subnet() observed.Subnet {
	f := observed.NewFabric()
	sw := f.AddNode(smp.NodeInfo{NodeType: ib.NodeSwitch, NodeGUID: leaf, PortGUID: ib.PortGUID(leaf), NumPorts: leafPorts})
	up := smp.PortInfo{PortState: smp.PortActive, PortPhysicalState: smp.PhysLinkUp}
	end := func(p *observed.Port, lid ib.LID) {
		p.Reached, p.InfoRead, p.Info = true, true, up
		p.Info.LID = lid
	}
	end(&sw.Ports[0], 100)
	for n := 1; n < leafPorts; n++ {
		sw.Ports[n].Reached, sw.Ports[n].InfoRead, sw.Ports[n].Info = true, true, up
		h := f.AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NodeGUID: host + ib.NodeGUID(n), NumPorts: 1})
		h.Ports[1].GUID = ib.PortGUID(host) + ib.PortGUID(n)
		end(&h.Ports[1], ib.LID(n))
		h.Ports[1].Peer, sw.Ports[n].Peer = &sw.Ports[n], &h.Ports[1]
	}
	sw.Ports[leafPorts].InfoRead, sw.Ports[leafPorts].Info.PortState = true, smp.PortDown
	return observed.Subnet{Fabric: f, Epoch: 1, Partitions: []observed.Partition{{Base: 0x7FFF, SL: 3}}}
}

// world is that subnet's agents, and the time.
type world struct {
	t      *testing.T
	poller *perfmgr.Poller
	agents map[ib.LID]*pma.Agent
	now    time.Duration
	asked  map[ib.LID]int
	// answer, when set, changes an answer; false is none.
	answer  func(to ib.LID, m *pm.MAD) bool
	most    int // requests that were under way at once
	dropped []perfmgr.Dropped
}

func newWorld(t *testing.T, l perfmgr.Limits) *world {
	w := &world{t: t, agents: map[ib.LID]*pma.Agent{100: pma.New(leafPorts, true)}, asked: make(map[ib.LID]int)}
	for n := ib.LID(1); n < leafPorts; n++ {
		w.agents[n] = pma.New(1, false)
	}
	w.poller = perfmgr.New(perfmgr.Config{Limits: l, Dropped: func(d perfmgr.Dropped) { w.dropped = append(w.dropped, d) }})
	w.poller.SetSubnet(subnet())
	return w
}

// run lets time pass; every answer takes 10 us.
func (w *world) run(until time.Duration) {
	w.t.Helper()
	for steps := 0; w.now <= until; steps++ {
		if steps > 1_000_000 {
			w.t.Fatal("the poller is busy for ever")
		}
		w.poller.Expire(w.now)
		var bytes [mad.Size]byte
		flight := 0
		for {
			to, ok := w.poller.Next(w.now, &bytes)
			if !ok {
				break
			}
			if flight++; flight > w.most {
				w.most = flight
			}
			w.serve(to, bytes)
		}
		due, ok := w.poller.Deadline(true)
		if !ok {
			return
		}
		w.now = max(due, w.now+10*time.Microsecond)
	}
}

func (w *world) serve(to mad.Address, bytes [mad.Size]byte) {
	w.asked[to.LID]++
	if to.QP != ib.QP1 || to.SL != 3 || to.PKey != ib.PKeyDefaultFull {
		w.t.Fatalf("a request to %+v", to)
	}
	var m pm.MAD
	if err := m.UnmarshalBinary(bytes[:]); err != nil {
		w.t.Fatal(err)
	}
	if m.Method != mad.MethodGet {
		w.t.Fatalf("a %v: counters are only read", m.Method)
	}
	if agent := w.agents[to.LID]; agent == nil || !agent.Handle(&m) || w.answer != nil && !w.answer(to.LID, &m) {
		return
	}
	w.deliver(&m, to.LID)
}

func (w *world) deliver(m *pm.MAD, from ib.LID) {
	b, err := m.AppendBinary(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.poller.Receive(w.now, (*[mad.Size]byte)(b), mad.Address{LID: from, QP: ib.QP1})
}

func (w *world) reading(node ib.NodeGUID, num ib.PortNum) (out perfmgr.Reading) {
	w.t.Helper()
	n := 0
	for r := range w.poller.Readings(w.now) {
		if r.Place == (observed.Place{Node: node, Port: num}) {
			out, n = r, n+1
		}
	}
	if n != 1 {
		w.t.Fatalf("%d readings of port %d of %s", n, num, node)
	}
	return out
}

// want compares one counter; -1 is unknown.
func (w *world) want(node ib.NodeGUID, num ib.PortNum, c perfmgr.Counter, want int64) {
	w.t.Helper()
	r := w.reading(node, num)
	if got, known := r.Value(c); known != (want >= 0) || known && got != uint64(want) {
		w.t.Errorf("%s of port %d of %s: %d, known %v, fault %s; want %d", c, num, node, got, known, r.Fault, want)
	}
}

func quick() perfmgr.Limits {
	l := perfmgr.DefaultLimits()
	l.Period, l.Rate, l.Share = time.Second, 0, 0
	l.Hosts, l.Details = true, true
	return l
}

// TestReadsSwitchesAlone: unless it is told to, nobody asks hosts, nor for
// PortRcvErrorDetails.
func TestReadsSwitchesAlone(t *testing.T) {
	l := quick()
	l.Hosts, l.Details = false, false
	w := newWorld(t, l)
	w.run(5 * time.Second)
	if len(w.asked) != 1 || w.asked[100] == 0 {
		t.Errorf("asked: %v; want the switch, LID 100, alone", w.asked)
	}
	w.want(leaf, 1, perfmgr.SymbolErrorCounter, 0)
	w.want(leaf, 1, perfmgr.PortLoopingErrors, -1)
	for r := range w.poller.Readings(w.now) {
		if r.Place.Node != leaf {
			t.Errorf("a reading of %v", r.Place)
		}
	}
}

// TestDropped: what a switch port discards from one reading to the next is told, once; what it had
// counted before, and what hosts say of themselves, is not.
func TestDropped(t *testing.T) {
	w := newWorld(t, quick())
	exit, entry, end := w.agents[100].Port(3), w.agents[100].Port(4), w.agents[4].Port(1)
	exit.PortXmitConstraintErrors, entry.PortRcvConstraintErrors = 7, 1
	w.run(3 * time.Second)
	want := func(list ...string) {
		t.Helper()
		w.run(w.now + 3*time.Second)
		var got []string
		for _, d := range w.dropped {
			got = append(got, d.String())
		}
		if slices.Sort(got); !slices.Equal(got, list) {
			t.Errorf("told %q, want %q", got, list)
		}
		w.dropped = nil
	}
	want()
	exit.PortXmitConstraintErrors += 2
	entry.PortRcvConstraintErrors++
	end.PortXmitConstraintErrors = 9
	want("0x0000000000200000:3: dropped 2 packets at the exit, by partition enforcement or a raw filter (PortXmitConstraintErrors)",
		"0x0000000000200000:4: dropped 1 packet on arrival, by partition enforcement or a raw filter (PortRcvConstraintErrors)")
	exit.PortXmitConstraintErrors = 3 // set back meanwhile
	want("0x0000000000200000:3: dropped 3 packets at the exit, by partition enforcement or a raw filter (PortXmitConstraintErrors)")
	w.answer = func(_ ib.LID, m *pm.MAD) bool { return false }
	exit.PortXmitConstraintErrors = 4
	want()
	w.answer = nil
	want("0x0000000000200000:3: dropped 1 packet at the exit, by partition enforcement or a raw filter (PortXmitConstraintErrors)")
	w.poller.Suspend()
	exit.PortXmitConstraintErrors = 5
	w.poller.SetSubnet(subnet())
	want()
}

func TestReadsEveryCounter(t *testing.T) {
	w := newWorld(t, quick())
	p := w.agents[100].Port(3)
	names := map[string]string{}
	for c := perfmgr.Counter(0); c < perfmgr.Counters; c++ {
		attribute := "PortCountersExtended"
		if c >= perfmgr.PortLocalPhysicalErrors {
			attribute = "PortRcvErrorDetails"
		}
		if err := p.Set(attribute, c.String(), 1000+uint64(c)); err != nil {
			t.Fatal(err)
		}
		names[c.String()] = attribute
	}
	if len(names) != int(perfmgr.Counters) {
		t.Fatalf("%d names of %d counters", len(names), perfmgr.Counters)
	}
	w.agents[4].Port(1).PortXmitPkts = 44
	w.run(time.Second / 2)
	for c := perfmgr.Counter(0); c < perfmgr.Counters; c++ {
		want := 1000 + int64(c)
		if c <= perfmgr.PortRcvData {
			want *= 4
		}
		w.want(leaf, 3, c, want)
		w.want(leaf, 2, c, 0)
	}
	w.want(host+4, 1, perfmgr.PortXmitPkts, 44)
	{
		n := 0
		for range w.poller.Readings(w.now) {
			n++
		}
		if n != 2*(leafPorts-1) { // nothing was ever plugged into the last
			t.Errorf("%d readings, want %d", n, 2*(leafPorts-1))
		}
	}
	c := w.poller.Counts()
	if want := uint64(leafPorts + 2*2*(leafPorts-1)); c.Sent != want || c.Answered != want || c.Rounds != 1 {
		t.Errorf("one round: %+v, want %d requests", c, want)
	}
	w.run(3 * time.Second)
	if c := w.poller.Counts(); c.Rounds != 4 || c.Sent != leafPorts+4*2*2*(leafPorts-1) {
		t.Errorf("after four rounds %+v: what an agent can do is asked once", c)
	}
}

// TestOlderForms reads devices that have fewer attributes: the rest is unknown, and
// narrow counters that stopped say so.
func TestOlderForms(t *testing.T) {
	w := newWorld(t, quick())
	p := w.agents[100].Port(3)
	p.PortXmitData, p.PortXmitDiscards, p.PortXmitConstraintErrors, p.LinkDownedCounter = 1<<40, 1<<20, 7, 255
	p.PortUnicastXmitPkts, p.PortXmitWait = 5, 6
	var capabilities mad.ClassCapability
	var capabilities2 mad.ClassCapability2
	w.answer = func(to ib.LID, m *pm.MAD) bool {
		var info mad.ClassPortInfo
		switch m.AttributeID {
		case mad.AttrClassPortInfo:
			if err := info.UnmarshalBinary(m.Data[:]); err != nil {
				t.Fatal(err)
			}
			info.CapabilityMask, info.CapabilityMask2 = capabilities, capabilities2
			b, _ := info.AppendBinary(nil)
			copy(m.Data[:], b)
		case pm.AttrPortCountersExtended:
			if capabilities == 0 {
				t.Error("PortCountersExtended of a device that does not have it")
			}
		case pm.AttrPortRcvErrorDetails:
			m.Status = mad.StatusUnsupportedAttrib
		}
		return true
	}
	for name, c := range map[string]struct {
		mask    mad.ClassCapability
		mask2   mad.ClassCapability2
		data    int64
		unicast int64
		wait    int64
	}{
		"narrow only": {0, 0, math.MaxUint32 * 4, -1, -1},
		"wide":        {pm.CapExtendedWidth | pm.CapPortXmitWait, 0, 4 << 40, 5, 6},
		"wide totals": {pm.CapExtendedWidthTotals, 0, 4 << 40, -1, -1},
		// CapabilityMask2 counts only where CapabilityMask says so.
		"no second mask": {pm.CapExtendedWidth, pm.Cap2ExtendedErrors, 4 << 40, 5, -1},
	} {
		capabilities, capabilities2 = c.mask, c.mask2
		w.poller, w.now = perfmgr.New(perfmgr.Config{Limits: quick()}), 0
		w.poller.SetSubnet(subnet())
		w.run(3 * time.Second)
		t.Log(name)
		w.want(leaf, 3, perfmgr.PortXmitData, c.data)
		w.want(leaf, 3, perfmgr.PortUnicastXmitPkts, c.unicast)
		w.want(leaf, 3, perfmgr.PortXmitWait, c.wait)
		w.want(leaf, 3, perfmgr.PortXmitDiscards, 0xFFFF)
		w.want(leaf, 3, perfmgr.LinkDownedCounter, 255)
		w.want(leaf, 3, perfmgr.PortXmitConstraintErrors, 7)
		w.want(leaf, 3, perfmgr.QP1Dropped, -1)
		w.want(leaf, 3, perfmgr.PortLoopingErrors, -1)
		r := w.reading(leaf, 3)
		if !r.Stuck(perfmgr.PortXmitDiscards) || !r.Stuck(perfmgr.LinkDownedCounter) || r.Stuck(perfmgr.PortXmitConstraintErrors) || r.Stuck(perfmgr.PortLoopingErrors) {
			t.Error("which counters stopped at their highest value is not said")
		}
		if r.Stuck(perfmgr.PortXmitData) != (c.mask == 0) {
			t.Error("PortXmitData: 32 bits stop, 64 do not")
		}
		if r.Fault != perfmgr.Answered {
			t.Errorf("fault %s: a device need not have PortRcvErrorDetails", r.Fault)
		}
		// Of who has none it is asked once.
		if n := w.poller.Counts().Refused; n > 2*leafPorts {
			t.Errorf("%d refusals", n)
		}
	}
}

// TestSilence: who does not answer has no counters, costs little, and is known again
// when he answers.
func TestSilence(t *testing.T) {
	w := newWorld(t, quick())
	w.agents[2].Port(1).PortXmitPkts = 9
	silent := false
	w.answer = func(to ib.LID, _ *pm.MAD) bool { return to != 2 || !silent }
	w.run(time.Second / 2)
	w.want(host+2, 1, perfmgr.PortXmitPkts, 9)
	silent = true
	before := w.asked[2]
	w.run(20 * time.Second)
	w.want(host+2, 1, perfmgr.PortXmitPkts, -1)
	if r := w.reading(host+2, 1); r.Fault != perfmgr.NoAnswer {
		t.Errorf("fault %s", r.Fault)
	}
	w.want(host+3, 1, perfmgr.PortXmitPkts, 0)
	if n := w.asked[2] - before; n > 2*3+20 {
		t.Errorf("%d requests in 20 rounds to who says nothing", n)
	}
	silent = false
	w.run(w.now + 2*time.Second)
	w.want(host+2, 1, perfmgr.PortXmitPkts, 9)
}

// TestOneLost: a lost packet is no gap.
func TestOneLost(t *testing.T) {
	w := newWorld(t, quick())
	n := 0
	w.answer = func(ib.LID, *pm.MAD) bool { n++; return n%5 != 0 }
	w.run(20 * time.Second)
	for r := range w.poller.Readings(w.now) {
		if r.Fault != perfmgr.Answered {
			t.Errorf("%v: %s", r.Place, r.Fault)
		}
	}
	if c := w.poller.Counts(); c.Retried == 0 || c.Unanswered != 0 {
		t.Errorf("%+v", c)
	}
}

// TestLies: an answer counts only from who was asked, to what was asked.
func TestLies(t *testing.T) {
	for name, lie := range map[string]func(w *world, to ib.LID, m *pm.MAD) bool{
		"another port":      func(_ *world, _ ib.LID, m *pm.MAD) bool { m.Data[1]++; return true },
		"another attribute": func(_ *world, _ ib.LID, m *pm.MAD) bool { m.AttributeID = 0x36; return true },
		"another method":    func(_ *world, _ ib.LID, m *pm.MAD) bool { m.Method = mad.MethodSet; return true },
		"another class version": func(_ *world, _ ib.LID, m *pm.MAD) bool {
			m.ClassVersion = 9
			return true
		},
		"another transaction": func(_ *world, _ ib.LID, m *pm.MAD) bool { m.TransactionID++; return true },
		"a status":            func(_ *world, _ ib.LID, m *pm.MAD) bool { m.Status = mad.StatusInvalidField; return true },
		"busy for ever":       func(_ *world, _ ib.LID, m *pm.MAD) bool { m.Status = mad.StatusBusy; return true },
		"in another's name": func(w *world, to ib.LID, m *pm.MAD) bool {
			w.deliver(m, to+1)
			return false
		},
	} {
		w := newWorld(t, quick())
		w.agents[5].Port(1).PortXmitPkts = 5
		w.answer = func(to ib.LID, m *pm.MAD) bool {
			return to != 5 || m.AttributeID == mad.AttrClassPortInfo || lie(w, to, m)
		}
		w.run(10 * time.Second)
		r := w.reading(host+5, 1)
		if _, known := r.Value(perfmgr.PortXmitPkts); known || r.Fault == perfmgr.Answered {
			t.Errorf("%s: known %v, fault %s", name, known, r.Fault)
		}
		w.want(host+6, 1, perfmgr.PortXmitPkts, 0)
	}
	// One who says that he has everything and answers nothing costs no more than a
	// window of requests a round, however many ports he says he has.
	w := newWorld(t, quick())
	w.answer = func(to ib.LID, m *pm.MAD) bool { return to != 100 || m.AttributeID == mad.AttrClassPortInfo }
	w.run(10 * time.Second)
	if n := w.asked[100]; n > 3*16+11*(1+16) {
		t.Errorf("%d requests in 11 rounds", n)
	}
}

// TestLimits: window, rate, share and period hold.
func TestLimits(t *testing.T) {
	l := quick()
	l.Window, l.Rate = 4, 50
	w := newWorld(t, l)
	w.run(10 * time.Second)
	if c := w.poller.Counts(); c.Sent > 10*50+4 || c.Sent < 9*30 {
		t.Errorf("%d packets in 10 s at 50 a second", c.Sent)
	}
	l = quick()
	l.Window = 4
	w = newWorld(t, l)
	w.answer = func(ib.LID, *pm.MAD) bool { return false }
	w.run(200 * time.Millisecond)
	if w.most > 4 {
		t.Errorf("%d requests under way, want 4", w.most)
	}
	l = quick()
	l.Share = 0.01
	w = newWorld(t, l)
	w.answer = func(ib.LID, *pm.MAD) bool {
		w.poller.Spent(w.now, 20*time.Microsecond)
		return true
	}
	w.run(200 * time.Millisecond)
	if n := w.poller.Counts().Sent; n > 110 || n < 20 { // 200 ms * 1 % / 20 us, and 1 ms ahead
		t.Errorf("%d packets of 20 us in 200 ms, at 1 %%", n)
	}
	l = quick()
	l.Period = 0
	w = newWorld(t, l)
	w.run(time.Second)
	if c := w.poller.Counts(); c.Sent != 0 {
		t.Errorf("%d packets without a period", c.Sent)
	}
}

// TestStale: what was read long ago is not known any more, whatever keeps the
// manager from reading.
func TestStale(t *testing.T) {
	w := newWorld(t, quick())
	w.run(time.Second / 2)
	w.want(leaf, 1, perfmgr.PortXmitPkts, 0)
	w.now += 4 * time.Second
	w.want(leaf, 1, perfmgr.PortXmitPkts, -1)
	w.poller.Suspend()
	for r := range w.poller.Readings(w.now) {
		t.Errorf("%v is known after another manager took over", r.Place)
	}
	if _, some := w.poller.Deadline(true); some {
		t.Error("a poller without a subnet waits for something")
	}
}

// TestSubnetChanges: ports that stay keep what was read, others come and go.
func TestSubnetChanges(t *testing.T) {
	w := newWorld(t, quick())
	w.agents[100].Port(1).LinkDownedCounter = 1
	w.run(time.Second / 2)
	s := subnet()
	s.Epoch = 2
	sw := s.Fabric.Node(leaf)
	sw.Ports[1].Info.PortState, sw.Ports[1].Info.PortPhysicalState = smp.PortDown, smp.PhysPolling
	s.Expelled = map[*observed.Port]bool{&s.Fabric.Node(host + 2).Ports[1]: true}
	s.Fabric.Node(host + 3).Contested = true
	s.LIDs = map[*observed.Port]observed.Assigned{&s.Fabric.Node(host + 4).Ports[1]: {LID: 44}}
	w.agents[44], w.agents[4] = w.agents[4], nil
	w.poller.SetSubnet(s)
	w.run(2 * time.Second)
	w.want(leaf, 1, perfmgr.LinkDownedCounter, 1) // it went down: that is what the counter is for
	w.want(host+4, 1, perfmgr.PortXmitPkts, 0)
	for r := range w.poller.Readings(w.now) {
		if r.Place.Node == host+2 || r.Place.Node == host+3 {
			t.Errorf("%v is read", r.Place)
		}
	}
}

// TestKeys: an agent is asked by a partition that both are in, one of them full, by
// its service level; else not at all.
func TestKeys(t *testing.T) {
	s := subnet()
	table := func(p *observed.Port, keys ...ib.PKey) {
		p.Node.Info.PartitionCap = uint16(len(keys))
		p.PKeys, p.PKeysRead = keys, []bool{true}
	}
	self := &s.Fabric.Node(host + 1).Ports[1]
	s.Fabric.Self = self
	table(self, 0x0003, 0x8004, 0x7FFF, 0)
	table(&s.Fabric.Node(host + 2).Ports[1], 0, 0x0003)      // both limited
	table(&s.Fabric.Node(host + 3).Ports[1], 0x8003, 0x0004) // by the first of the manager's
	table(&s.Fabric.Node(host + 4).Ports[1], 0x0004, 0xFFFF) // the default partition goes first
	table(&s.Fabric.Node(host + 5).Ports[1], 0x8004)         //
	table(&s.Fabric.Node(host + 6).Ports[1], 0xFFFF)         // the table was not read
	s.Fabric.Node(host + 6).Ports[1].PKeysRead[0] = false    //
	table(&s.Fabric.Node(host + 7).Ports[1], 0, 0, 0, 0)     //
	table(&s.Fabric.Node(leaf).Ports[0], 0x8009, 0x0009)     // others only
	s.Partitions = []observed.Partition{{Base: 4, SL: 4}, {Base: 3, SL: 3}, {Base: 0x7FFF, SL: 7}}
	p := perfmgr.New(perfmgr.Config{Limits: quick()})
	p.SetSubnet(s)
	got := make(map[ib.LID]mad.Address)
	var m [mad.Size]byte
	for to, ok := p.Next(0, &m); ok; to, ok = p.Next(0, &m) {
		got[to.LID] = to
	}
	for lid, want := range map[ib.LID]mad.Address{
		1: {PKey: 0x7FFF, SL: 7}, 3: {PKey: 0x0003, SL: 3}, 4: {PKey: 0x7FFF, SL: 7}, 5: {PKey: 0x8004, SL: 4}, 6: {PKey: 0xFFFF, SL: 7},
	} {
		if g := got[lid]; g.PKey != want.PKey || g.SL != want.SL {
			t.Errorf("LID %d is asked by %+v, want key %s and SL %d", lid, g, want.PKey, want.SL)
		}
		delete(got, lid)
	}
	if len(got) != 0 {
		t.Errorf("asked too: %v", got)
	}
	for r := range p.Readings(0) {
		if _, lacks := map[ib.NodeGUID]bool{leaf: true, host + 2: true, host + 7: true}[r.Place.Node]; lacks != (r.Fault == perfmgr.NoKey) {
			t.Errorf("%v: %s", r.Place, r.Fault)
		}
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte{1, 4, 1, 0x81})
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWorld(t, quick())
		var m [mad.Size]byte
		if _, ok := w.poller.Next(0, &m); !ok {
			t.Fatal("nothing to ask")
		}
		tid := m[8:16]
		var answer [mad.Size]byte
		copy(answer[:], m[:])
		copy(answer[:], b)
		copy(answer[8:], tid)
		for lid := range w.agents {
			w.poller.Receive(0, &answer, mad.Address{LID: lid})
		}
		w.run(time.Second)
	})
}

// TestRates: what counters grew by between two readings; not known before the second, nor
// after they went down, nor of a port that is not known.
func TestRates(t *testing.T) {
	w := newWorld(t, quick())
	rate := func(c perfmgr.Counter) float64 {
		r := w.reading(leaf, 3)
		n, ok := r.Rate(c)
		if !ok {
			return -1
		}
		return n
	}
	p := w.agents[100].Port(3)
	set := func(n uint64) {
		if err := p.Set("PortCountersExtended", perfmgr.PortXmitData.String(), n); err != nil {
			t.Fatal(err)
		}
	}
	set(1000)
	w.run(time.Second / 2)
	if got := rate(perfmgr.PortXmitData); got != -1 {
		t.Errorf("%v after one reading", got)
	}
	set(1500)
	w.run(3 * time.Second / 2)
	if got := rate(perfmgr.PortXmitData); got < 1990 || got > 2010 { // 500 words in about a second
		t.Errorf("%v bytes a second, want about 2000", got)
	}
	if got := rate(perfmgr.PortRcvData); got != 0 {
		t.Errorf("received %v bytes a second, want none", got)
	}
	if got := rate(perfmgr.PortXmitPkts); got != -1 {
		t.Errorf("packets have a rate: %v", got)
	}
	set(10)
	w.run(5 * time.Second / 2)
	if got := rate(perfmgr.PortXmitData); got != -1 {
		t.Errorf("%v bytes a second of a counter that was cleared", got)
	}
	w.run(7 * time.Second / 2)
	if got := rate(perfmgr.PortXmitData); got != 0 {
		t.Errorf("%v bytes a second, want none", got)
	}
	w.now += 4 * time.Second
	if got := rate(perfmgr.PortXmitData); got != -1 {
		t.Errorf("%v bytes a second of a port that was not read for long", got)
	}
}
