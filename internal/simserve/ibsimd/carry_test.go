package ibsimd_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/test/need"
)

// LIDs of small once bringUp has been there.
const (
	lidOne    = 2
	lidSwitch = 3
	lidTwo    = 4
	lidThree  = 8
)

// bringUp gives small its addresses, routes and active links, as a manager at
// "one" would.
func bringUp(t *testing.T, s *ibsimd.Server) {
	t.Helper()
	c := attach(t, s.Name(), "one")
	defer c.ask(ctlDisconnect, nil)
	set := func(attribute smp.Attribute, modifier uint32, path ...byte) {
		t.Helper()
		d := directed(uint64(modifier)+1, mad.MethodSet, attribute.ID(), modifier, path...)
		if err := attribute.Encode((*[64]byte)(d.mad[64:])); err != nil {
			t.Fatal(err)
		}
		if r := c.query(d); r.status != 0 || binary.BigEndian.Uint16(r.mad[4:])&0x7FFF != 0 {
			t.Fatalf("Set of %v: status %d and 0x%x", attribute.ID(), r.status, r.mad[4:6])
		}
	}
	port := func(n uint32, lid ib.LID, state smp.PortState, path ...byte) {
		t.Helper()
		var info smp.PortInfo
		r := c.query(directed(9, mad.MethodGet, smp.AttrPortInfo, n, path...))
		if err := info.UnmarshalBinary(r.mad[64:128]); err != nil {
			t.Fatal(err)
		}
		info.PortState, info.PortPhysicalState = state, 0
		if lid != 0 {
			info.LID, info.MasterSMLID = lid, lidOne
		}
		set(&info, n, path...)
	}
	port(0, lidSwitch, 0, 1)
	set(&smp.SwitchInfo{LinearFDBTop: 8, LifeTimeValue: 18}, 0, 1)
	lft := smp.LinearForwardingTable{}
	for i := range lft.Ports {
		lft.Ports[i] = 0xFF
	}
	lft.Ports[lidOne], lft.Ports[lidSwitch], lft.Ports[lidTwo], lft.Ports[lidThree] = 1, 0, 2, 3
	set(&lft, 0, 1)
	for _, state := range []smp.PortState{smp.PortArmed, smp.PortActive} {
		port(1, lidOne, state)
		port(1, lidTwo, state, 1, 2)
		port(1, lidThree, state, 1, 3)
		for n := uint32(1); n <= 3; n++ {
			port(n, 0, state, 1)
		}
	}
}

func TestAnswers(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	bringUp(t, s)
	c := attach(t, s.Name(), "")
	const tid = 0xABCD_1234_8765_4321 // whatever of it is whose
	r := c.query(nodeInfo(tid, 1))
	if r.status != 0 || r.mad[3] != 0x81 || r.mad[4] != 0x80 || r.mad[6] != 0 || r.dlid != 0xFFFF || r.slid != 0xFFFF ||
		r.mad[192+1] != 1 || r.mad[66] != 2 {
		t.Errorf("by directed route: %+v", r)
	}
	r = c.query(byLID(tid, mad.MethodGet, smp.AttrNodeInfo, lidTwo))
	if r.status != 0 || r.mad[3] != 0x81 || r.mad[4] != 0 || r.dlid != lidOne || r.slid != lidTwo || r.dqp != 0 || r.sqp != 0 || r.mad[66] != 1 {
		t.Errorf("by LID: %+v", r)
	}
	// Another one's source address is of no use.
	d := byLID(tid, mad.MethodGet, smp.AttrNodeInfo, lidTwo)
	d.slid = lidThree
	if r = c.query(d); r.status != 0 || r.dlid != lidOne {
		t.Errorf("with a foreign source: %+v", r)
	}
	// Hundreds at once, on one place and from two clients, keep apart.
	other := attach(t, s.Name(), "")
	for i := range uint64(100) {
		c.send(nodeInfo(i, 1))
		other.send(nodeInfo(i, 1, 2))
	}
	for i := range uint64(100) {
		x, y := c.receive(answerWait), other.receive(answerWait)
		if x == nil || y == nil || x.mad[66] != 2 || y.mad[66] != 1 {
			t.Fatalf("question %d: the switch and the host answer with\n%+v\n%+v", i, x, y)
		}
	}
}

// What nobody answers comes back as it was, with status 110. All wait for their answers at
// the same time.
func TestNobodyAnswers(t *testing.T) {
	need.Long(t, "programs that wait for their time-outs")
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	bringUp(t, s)
	c := attach(t, s.Name(), "")
	loop := nodeInfo(7, 1)
	loop.mad[6] = 1 // hop pointer
	manyHops := nodeInfo(7)
	manyHops.mad[7] = 200
	response := nodeInfo(7, 1)
	response.mad[4] = 0x80 // D without R
	names, sent := map[uint64]string{}, map[uint64]datagram{}
	for name, d := range map[string]datagram{
		"no cable there":              nodeInfo(0xFFFF_0001_0000_0007, 1, 4, 1),
		"past a host":                 nodeInfo(7, 1, 2, 2),
		"200 hops":                    manyHops,
		"hop pointer 1":               loop,
		"D of an answer":              response,
		"LID of nobody":               byLID(7, mad.MethodGet, smp.AttrNodeInfo, 7),
		"LID 0":                       byLID(7, mad.MethodGet, smp.AttrNodeInfo, 0),
		"multicast LID":               byLID(7, mad.MethodGet, smp.AttrNodeInfo, 0xC001),
		"SA where no manager is":      general(7, mad.ClassSubnAdm, mad.MethodGet, 0x11, lidTwo),
		"counters of nobody":          general(7, mad.ClassPerfMgt, mad.MethodGet, pm.AttrPortCounters, 77),
		"a class that nobody answers": general(7, 0x09, mad.MethodGet, 1, lidTwo),
		"class 0x11":                  general(7, 0x11, mad.MethodGet, smp.AttrNodeInfo, lidTwo),
		"SubnSet through class 0x21":  general(7, mad.ClassCongestionMgt, mad.MethodSet, 0x15, lidTwo),
	} {
		d.mad[tidEnd] = byte(10 + len(sent)) // its own transaction
		names[d.tid()], sent[d.tid()] = name, d
		c.send(d)
	}
	for len(sent) > 0 {
		r := c.receiveBut(byte(mad.MethodTrap))
		if r == nil {
			t.Fatalf("neither answered nor come back: %v", names)
		}
		name, d := names[r.tid()], sent[r.tid()]
		delete(names, r.tid())
		delete(sent, r.tid())
		if r.status != 110 {
			t.Errorf("%s: status %d, % x", name, r.status, r.mad[:32])
		}
		d.status = 110
		if got, want := *r, d; got.mad != want.mad || got.dlid != want.dlid {
			t.Errorf("%s: came back as\n% x, want\n% x", name, got.mad[:80], want.mad[:80])
		}
	}
	// What has no answer does not come back.
	for name, d := range map[string]datagram{
		"TrapRepress":       byLID(7, mad.MethodTrapRepress, smp.AttrNotice, lidTwo),
		"Trap":              byLID(7, mad.MethodTrap, smp.AttrNotice, lidTwo),
		"Send":              general(7, mad.ClassCommMgt, mad.MethodSend, 0x10, lidTwo),
		"an answer":         byLID(7, mad.MethodGetResp, smp.AttrNodeInfo, lidTwo),
		"counters' answer":  general(7, mad.ClassPerfMgt, mad.MethodGetResp, pm.AttrPortCounters, lidTwo),
		"a directed answer": directed(7, mad.MethodGetResp, smp.AttrNodeInfo, 0, 1),
	} {
		d.mad[tidEnd] = byte(10 + len(names))
		names[d.tid()] = name
		c.send(d)
	}
	for r := c.receive(silenceWait); r != nil; r = c.receive(silenceWait) {
		t.Errorf("%s: came back: %v", names[r.tid()], r)
	}
	c.alive()
}

// In real time a request comes back after the time that an agent may take.
func TestRealTime(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig(), RealTime: true})
	c := attach(t, s.Name(), "")
	c.alive()
	begin := time.Now()
	if r := c.query(nodeInfo(7, 1, 4, 1)); r.status != 110 {
		t.Fatalf("%+v", r)
	}
	if took := time.Since(begin); took < ibsimd.AnswerTime || took > ibsimd.AnswerTime+2*time.Second {
		t.Errorf("it came back after %v, want %v", took, ibsimd.AnswerTime)
	}
	// An agent that is late, but not too late, is waited for.
	late := func(by time.Duration) {
		t.Helper()
		if err := s.Do(func(f *fabric.Fabric) {
			if err := f.SetFault(s.Topology().Nodes[1].GUID, fabric.Fault{Late: by}); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	late(ibsimd.AnswerTime / 4)
	begin = time.Now()
	if r := c.query(nodeInfo(8, 1)); r.status != 0 || time.Since(begin) < ibsimd.AnswerTime/4 {
		t.Errorf("late: %+v after %v", r, time.Since(begin))
	}
	late(2 * ibsimd.AnswerTime)
	if r := c.query(nodeInfo(9, 1)); r.status != 110 {
		t.Errorf("too late: %+v", r)
	}
	if r := c.receive(2 * ibsimd.AnswerTime); r != nil {
		t.Errorf("answered after all: %+v", r)
	}
}

// Time that jumps does so for packets that are late, too.
func TestJumpingTime(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	c := attach(t, s.Name(), "")
	for _, x := range []struct {
		late   time.Duration
		status uint32
	}{{ibsimd.AnswerTime / 2, 0}, {time.Hour, 110}, {0, 0}} {
		if err := s.Do(func(f *fabric.Fabric) {
			if err := f.SetFault(s.Topology().Nodes[1].GUID, fabric.Fault{Late: x.late}); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if r := c.query(nodeInfo(7, 1)); r.status != x.status {
			t.Errorf("%v late: status %d, want %d", x.late, r.status, x.status)
		}
	}
}

// SMInfo, requests of subnet administration and traps come to the manager at
// the port, and its answers go to whoever asked.
func TestManagers(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	bringUp(t, s)
	asking := attach(t, s.Name(), "three")
	bystander := attach(t, s.Name(), "one")
	manager := attach(t, s.Name(), "one")
	const tid = 0x9999_0003_0000_0042
	questions := map[string]datagram{
		"SMInfo by LID":             byLID(tid, mad.MethodGet, smp.AttrSMInfo, lidOne),
		"SMInfo by directed route":  directed(tid, mad.MethodGet, smp.AttrSMInfo, 0, 1, 1),
		"SMInfo SubnSet":            directed(tid, mad.MethodSet, smp.AttrSMInfo, 1, 1, 1),
		"PathRecord":                general(tid, mad.ClassSubnAdm, mad.MethodGet, 0x35, lidOne),
		"a GetTable of PathRecords": general(tid, mad.ClassSubnAdm, mad.MethodGetTable, 0x35, lidOne),
	}
	for name, d := range questions { // while nobody is a manager
		if r := asking.query(d); r.status != 110 && binary.BigEndian.Uint16(r.mad[4:])&0x1C != 0x0C {
			t.Errorf("%s, and no manager there: %v", name, r)
		}
	}
	if manager.isSM(1) != ctlSetIsSM || bystander.isSM(1) != ctlError {
		t.Fatal("want one manager at a place")
	}
	for name, d := range questions {
		asking.send(d)
		got := manager.receiveBut(byte(mad.MethodTrap))
		if got == nil {
			t.Fatalf("%s: not brought to the manager", name)
		}
		lowTID := binary.BigEndian.Uint32(got.mad[12:])
		if got.mad[3] != d.mad[3] || got.mad[6] != 0 || lowTID != 0x42 || binary.BigEndian.Uint16(got.mad[10:]) != 3 || got.sqp != d.sqp ||
			d.dlid == lidOne && (got.slid != lidThree || got.dlid != lidOne) {
			t.Errorf("%s: brought as %v", name, got)
		}
		answer := *got
		answer.dlid, answer.slid = got.slid, 0
		answer.mad[3] |= 0x80
		answer.mad[100] = 0x77
		if d.mad[1] == 0x81 {
			answer.mad[4] |= 0x80
		}
		bystander.send(answer) // not its business
		manager.send(answer)
		manager.send(answer) // once is enough
		r := asking.receive(answerWait)
		if r == nil || r.status != 0 || r.tid() != tid || r.mad[100] != 0x77 || r.mad[3] != d.mad[3]|0x80 {
			t.Fatalf("%s: answered %v", name, r)
		}
		if r := asking.receive(silenceWait); r != nil {
			t.Errorf("%s: answered twice: %v", name, r)
		}
	}
	// A manager is told of a link that goes; nobody else is.
	if err := s.Do(func(f *fabric.Fabric) {
		if err := f.Unlink(s.Topology().Nodes[1].GUID, 2); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the trap of the switch", func() bool {
		trap := manager.receive(answerWait)
		return trap != nil && trap.mad[3] == byte(mad.MethodTrap) && trap.slid == lidSwitch && trap.dlid == lidOne
	})
	for _, c := range []*rawClient{asking, bystander} {
		if r := c.receive(silenceWait); r != nil {
			t.Errorf("a client that is no manager got %+v", r)
		}
	}
}

// A manager that does not answer, or leaves, does not keep who asked waiting.
func TestSilentManager(t *testing.T) {
	need.Long(t, "programs that wait for their time-outs")
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	bringUp(t, s)
	asking, manager := attach(t, s.Name(), "three"), attach(t, s.Name(), "one")
	manager.isSM(1)
	d := general(1<<40|7, mad.ClassSubnAdm, mad.MethodGet, 0x35, lidOne)
	asking.send(d)
	if r := asking.receive(silenceWait); r != nil {
		t.Fatalf("came back at once: %+v", r)
	}
	if manager.ask(ctlDisconnect, nil); asking.receive(answerWait) == nil {
		t.Error("the manager has left, and its questions did not come back")
	}
	manager = attach(t, s.Name(), "one")
	manager.isSM(1)
	begin := time.Now()
	if r := asking.query(d); r.status != 110 || time.Since(begin) < ibsimd.PeerTime {
		t.Errorf("came back after %v: %+v", time.Since(begin), r)
	}
	// A manager is not sent what its library would die of.
	for _, class := range []mad.Class{0x07, 0x09, 0x0A, 0x21, 0x34, 0x82, 0xFF} {
		if r := asking.query(general(7, class, mad.MethodGet, 1, lidOne)); r.status != 110 {
			t.Errorf("class 0x%02x: %+v", class, r)
		}
	}
	for got := manager.receive(silenceWait); got != nil; got = manager.receive(silenceWait) {
		if got.mad[1] != byte(mad.ClassSubnAdm) && got.mad[1] != byte(mad.ClassSubnLID) {
			t.Errorf("the manager got %+v", got)
		}
	}
}

// What performance management tells is what the fabric counts, its data packets'
// drops included.
func TestCountersAreTheFabrics(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	bringUp(t, s)
	c := attach(t, s.Name(), "one")
	if err := s.Do(func(f *fabric.Fabric) {
		for _, n := range s.Topology().Nodes {
			if p := f.Counters(n.GUID).Port(1); p != nil && f.Agent(n.GUID).HasLID(1, lidTwo) {
				p.PortRcvConstraintErrors, p.PortXmitDiscards = 3, 70_000
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	v := pm.PortCounters{PortSelect: 1}
	d := general(7, mad.ClassPerfMgt, mad.MethodGet, v.ID(), lidTwo)
	b, err := v.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	copy(d.mad[64:], b)
	r := c.query(d)
	if r.status != 0 || v.UnmarshalBinary(r.mad[64:]) != nil || v.PortRcvConstraintErrors != 3 || v.PortXmitDiscards != 0xFFFF {
		t.Errorf("status %d, counters %+v; want 3 refused packets, and as many discards as fit", r.status, v)
	}
}

func TestCounters(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	bringUp(t, s)
	c := attach(t, s.Name(), "one")
	ask := func(method mad.Method, lid uint16, v pm.Attribute) {
		t.Helper()
		d := general(7, mad.ClassPerfMgt, method, v.ID(), lid)
		b, err := v.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		copy(d.mad[64:], b)
		r := c.query(d)
		if r.status != 0 || r.mad[3] != 0x81 || r.slid != lid || r.dlid != lidOne || r.dqp != 1 || r.sqp != 1 {
			t.Fatalf("counters of LID %d: %+v", lid, r)
		}
		if err := v.UnmarshalBinary(r.mad[64:]); err != nil {
			t.Fatal(err)
		}
	}
	clearAll := func(lid uint16, port ib.PortNum) {
		ask(mad.MethodSet, lid, &pm.PortCounters{PortSelect: port, CounterSelect: pm.SelectAll})
	}
	clearAll(lidTwo, 1)
	for range 5 {
		c.query(nodeInfo(7, 1, 2))
	}
	v := pm.PortCounters{PortSelect: 1}
	ask(mad.MethodGet, lidTwo, &v)
	// The answer to the Set that cleared left after that; this Get has come in.
	if v.PortRcvPkts != 6 || v.PortXmitPkts != 6 || v.PortRcvData != 6*72 || v.PortXmitData != 6*72 {
		t.Errorf("%+v, want 6 packets each way", v)
	}
	v = pm.PortCounters{PortSelect: 4}
	ask(mad.MethodGet, lidSwitch, &v)
	if err := s.Do(func(f *fabric.Fabric) {
		if err := f.Unlink(s.Topology().Nodes[1].GUID, 4); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	before := v.PortXmitDiscards
	c.query(nodeInfo(7, 1, 4))
	if ask(mad.MethodGet, lidSwitch, &v); v.PortXmitDiscards != before+1 {
		t.Errorf("%d discards at a port without a cable, want one more than %d", v.PortXmitDiscards, before)
	}
}

// A client that is the only one to want something is waited for alone; others
// get their answers all the same, whatever becomes of it.
func TestOneAlone(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	a, b := attach(t, s.Name(), "one"), attach(t, s.Name(), "two")
	const long = 100 // requests, many more than it takes to be the only one
	alone := func() {
		for i := range long {
			a.query(nodeInfo(uint64(i)))
		}
	}
	alone()
	b.alive() // a is silent now
	for i := range long {
		a.send(nodeInfo(uint64(i)))
		b.query(nodeInfo(uint64(i)))
		if r := a.receiveBut(byte(mad.MethodTrap)); r == nil || r.status != 0 {
			t.Fatalf("request %d: %v", i, r)
		}
	}
	alone()
	c := attach(t, s.Name(), "three") // by the control socket
	c.alive()
	alone()
	if err := s.Do(func(*fabric.Fabric) {}); err != nil {
		t.Error(err)
	}
	alone()
	a.die()
	b.alive()
	c.alive()
	a = attach(t, s.Name(), "one")
	alone()
	a.ask(ctlDisconnect, nil)
	b.alive()
}
