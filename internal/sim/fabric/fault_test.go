package fabric_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

func TestFaults(t *testing.T) {
	f := newFabric(t, chain(t, 2), fabric.Config{HopDelay: 1000, AgentDelay: 10_000})
	c := attach(t, f, hostGUID(1), 1)
	ask := func(n int) (time.Duration, bool) {
		t.Helper()
		before := f.Now()
		_, _, ok := c.ask(directed(along(n), mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive)
		return f.Now() - before, ok
	}
	fault := func(fault fabric.Fault) {
		t.Helper()
		if err := f.SetFault(switchGUID(2), fault); err != nil {
			t.Fatal(err)
		}
	}
	if took, ok := ask(2); !ok || took != 14_000 {
		t.Errorf("an answer over 2 hops took %v (%v), want 14µs", took, ok)
	}
	fault(fabric.Fault{Mute: true})
	before := f.Counts()
	if _, ok := ask(2); ok {
		t.Error("a mute switch answered")
	}
	wantDiscard(t, f, before, fabric.DiscardMute)
	if _, ok := ask(3); !ok {
		t.Error("a mute switch did not pass a packet on")
	}
	fault(fabric.Fault{Late: 100_000})
	if took, ok := ask(2); !ok || took != 114_000 {
		t.Errorf("a late answer took %v (%v), want 114µs", took, ok)
	}
	fault(fabric.Fault{Drop: func(_ time.Duration, in ib.PortNum, m *[mad.Size]byte) bool {
		return in == 2 && binary.BigEndian.Uint16(m[16:]) == uint16(smp.AttrNodeInfo)
	}})
	before = f.Counts()
	if _, ok := ask(3); ok {
		t.Error("an answer came through a port that drops it")
	}
	wantDiscard(t, f, before, fabric.DiscardDrop)
	if _, ok := ask(2); !ok {
		t.Error("a packet by another port was dropped")
	}
	fault(fabric.Fault{})
	if _, ok := ask(3); !ok {
		t.Error("no answer although the fault has ended")
	}
}

// A node that lies: its answers are altered before they leave, and nothing else is;
// what it passes on for others, and what it does, is not.
func TestFaultAlter(t *testing.T) {
	f := newFabric(t, chain(t, 2), fabric.Config{HopDelay: 1000, AgentDelay: 10_000})
	c := attach(t, f, hostGUID(1), 1)
	const lie = ib.NodeGUID(0xBAD)
	var at []time.Duration
	if err := f.SetFault(switchGUID(2), fabric.Fault{Alter: func(now time.Duration, m *[mad.Size]byte) {
		at = append(at, now)
		switch mad.AttributeID(binary.BigEndian.Uint16(m[16:])) {
		case smp.AttrNodeInfo:
			binary.BigEndian.PutUint64(m[64+12:], uint64(lie)) // NodeGUID
		case smp.AttrNodeDescription:
			copy(m[64:], "somebody else")
		}
	}}); err != nil {
		t.Fatal(err)
	}
	guid := func(n int) ib.NodeGUID {
		t.Helper()
		var node smp.NodeInfo
		c.get(along(n), 0, &node)
		return node.NodeGUID
	}
	if got := guid(2); got != lie {
		t.Errorf("the node that lies says %v, want %v", got, lie)
	}
	if got := guid(1); got != switchGUID(1) {
		t.Errorf("an honest node says %v", got)
	}
	if got := guid(3); got != hostGUID(2) {
		t.Errorf("an answer that it passes on says %v", got)
	}
	var info smp.SwitchInfo
	c.get(along(2), 0, &info)
	info.LifeTimeValue = 9
	c.set(along(2), 0, &info)
	if got := f.Agent(switchGUID(2)).SwitchInfo().LifeTimeValue; got != 9 {
		t.Errorf("it does not do what it says: LifeTimeValue %d, want 9", got)
	}
	if len(at) != 3 {
		t.Errorf("%d answers were altered, want those of the node itself: 3", len(at))
	}
	if err := f.SetFault(switchGUID(2), fabric.Fault{}); err != nil {
		t.Fatal(err)
	}
	if got := guid(2); got != switchGUID(2) {
		t.Errorf("after the fault it says %v", got)
	}
}

// Config.Drop sees requests and answers once each, whatever their way.
func TestDrop(t *testing.T) {
	var seen []mad.Method
	dropAll := false
	f := newFabric(t, chain(t, 3), fabric.Config{Drop: func(_ time.Duration, m *[mad.Size]byte) bool {
		seen = append(seen, mad.Method(m[3]))
		return dropAll
	}})
	c := attach(t, f, hostGUID(1), 1)
	var node smp.NodeInfo
	c.get(along(4), 0, &node)
	if want := []mad.Method{mad.MethodGet, mad.MethodGetResp}; !slices.Equal(seen, want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
	dropAll = true
	c.get(along(0), 0, &node) // crosses no link
	if _, _, ok := c.ask(directed(along(1), mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive); ok {
		t.Error("answered although dropped")
	}
}

// A share of requests and answers is lost, independent of the distance.
func TestLoss(t *testing.T) {
	const loss, packets = 0.2, 4000
	f := newFabric(t, chain(t, 10), fabric.Config{Seed: 3, Loss: loss})
	c := attach(t, f, hostGUID(1), 1)
	answered := 0
	for range packets {
		if _, _, ok := c.ask(directed(along(11), mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive); ok {
			answered++
		}
	}
	// The expected share is 0.64; five standard deviations are 0.038.
	if share := float64(answered) / packets; share < 0.6 || share > 0.68 {
		t.Errorf("%v of the requests were answered, want about 0.64", share)
	}
	if f.Counts().Discarded[fabric.DiscardLoss] != uint64(packets-answered) {
		t.Errorf("%d without answer; discarded: %s", packets-answered, discards(f))
	}
	if f.InFlight() != 0 {
		t.Errorf("%d packets are left over", f.InFlight())
	}
}

// storm runs the same questions, faults and cable changes on a fabric and
// returns a record of every packet wherever it got to.
func storm(t *testing.T, seed uint64) []byte {
	var record bytes.Buffer
	l, err := topology.Generate("random,seed=5,switches=6,hosts=10")
	if err != nil {
		t.Fatal(err)
	}
	config := fabric.DefaultConfig()
	config.Seed, config.Loss = seed, 0.1
	config.Trace = func(s fabric.Sighting) {
		fmt.Fprintf(&record, "%d %d %v %d %v %v %v ", s.At, s.What, s.Node, s.Port, s.SLID, s.DLID, s.Reason)
		record.Write(s.MAD[:])
	}
	f := newFabric(t, l, config)
	own, num, err := l.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	c := attach(t, f, own.GUID, num)
	c.address(nil, 1, 1, 0)
	c.a.SetIsSM(true)
	cable := l.Links()[0]
	f.At(30*time.Microsecond, func() { mustNot(t, f.Unlink(cable.A, cable.APort)) })
	f.At(60*time.Microsecond, func() { mustNot(t, f.Link(cable.A, cable.APort, cable.B, cable.BPort)) })
	f.At(90*time.Microsecond, func() { mustNot(t, f.Reboot(cable.B)) })
	for i := range 3000 {
		path := mad.Path{1, ib.PortNum(i%36 + 1), ib.PortNum(i/36%36 + 1)}
		c.send(directed(path[:i%4], mad.MethodGet, smp.AttrPortInfo, uint32(i%5)), ib.LIDPermissive)
		f.AdvanceTo(f.Now() + 100)
	}
	f.AdvanceTo(f.Now() + time.Second)
	return record.Bytes()
}

func mustNot(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

func TestSameSeedSameTrace(t *testing.T) {
	first := storm(t, 11)
	if len(first) < 1_000_000 {
		t.Fatalf("the trace has %d bytes: too little happened", len(first))
	}
	if !bytes.Equal(first, storm(t, 11)) {
		t.Error("seed 11 gave two different traces")
	}
	if bytes.Equal(first, storm(t, 12)) {
		t.Error("seeds 11 and 12 gave the same trace")
	}
}

// A trace shows every crossing of a link and where the packet ended.
func TestTrace(t *testing.T) {
	var seen []string
	names := map[ib.NodeGUID]string{hostGUID(1): "A", hostGUID(2): "B", switchGUID(1): "s1", switchGUID(2): "s2"}
	f := newFabric(t, chain(t, 2), fabric.Config{HopDelay: 1, AgentDelay: 10, Trace: func(s fabric.Sighting) {
		seen = append(seen, fmt.Sprintf("%d %d %s:%d", s.At, s.What, names[s.Node], s.Port))
	}})
	c := attach(t, f, hostGUID(1), 1)
	var node smp.NodeInfo
	c.get(along(3), 0, &node)
	want := []string{
		"0 1 A:1", "1 1 s1:2", "2 1 s2:2", "13 2 B:1",
		"13 1 B:1", "14 1 s2:1", "15 1 s1:1", "16 3 A:1",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("saw %v\nwant %v", seen, want)
	}
}

// What agents took in is counted by kind, from outside.
func TestReceived(t *testing.T) {
	f := newFabric(t, chain(t, 1), fabric.Config{})
	c := attach(t, f, hostGUID(1), 1)
	c.address(along(1), 3, 3, 0) // a Get and a Set of PortInfo
	c.ask(directed(mad.Path{1, 3}, mad.MethodSet, smp.AttrPKeyTable, 0), ib.LIDPermissive)
	if got := f.Received(mad.MethodSet, smp.AttrPortInfo); got != 1 {
		t.Errorf("%d Set(PortInfo), want 1", got)
	}
	want := []fabric.Received{{Method: mad.MethodGet, Attribute: smp.AttrPortInfo}, {Method: mad.MethodSet, Attribute: smp.AttrPortInfo}}
	if got := f.ReceivedKinds(); !slices.Equal(got, want) {
		t.Errorf("kinds %v, want %v: the Set that did not arrive must not be there", got, want)
	}
}

// Functions run at their time, and see the fabric as it is then.
func TestAt(t *testing.T) {
	f := newFabric(t, chain(t, 1), fabric.Config{})
	var order []time.Duration
	for _, at := range []time.Duration{30, 10, 20} {
		f.At(at, func() {
			order = append(order, f.Now())
			if at == 10 {
				f.At(0, func() { order = append(order, f.Now()) }) // in the past: now
			}
		})
	}
	f.AdvanceTo(25)
	f.AdvanceTo(5) // no way back
	if f.Now() != 25 {
		t.Errorf("time is %v, want 25ns", f.Now())
	}
	f.AdvanceTo(100)
	if want := []time.Duration{10, 10, 20, 30}; !slices.Equal(order, want) {
		t.Errorf("ran at %v, want %v", order, want)
	}
}

// A manager that never receives stops getting packets, and nothing else stops.
func TestFullInbox(t *testing.T) {
	f := newFabric(t, chain(t, 1), fabric.Config{})
	c := attach(t, f, hostGUID(1), 1)
	for range fabric.MaxInbox + 10 {
		c.send(directed(along(0), mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive)
		f.AdvanceTo(f.Now() + 1)
	}
	if c.a.Waiting() != fabric.MaxInbox || f.Counts().Discarded[fabric.DiscardBuffer] != 10 {
		t.Errorf("%d waiting; discarded: %s", c.a.Waiting(), discards(f))
	}
	var d fabric.Delivery
	for c.a.Receive(&d) {
	}
	if f.InFlight() != 0 {
		t.Errorf("%d packets are left over", f.InFlight())
	}
}

// So does one that sends without letting time pass.
func TestTooManyPackets(t *testing.T) {
	f := newFabric(t, chain(t, 1), fabric.Config{})
	c := attach(t, f, hostGUID(1), 1)
	for range fabric.MaxPackets + 10 {
		c.send(directed(along(2), mad.MethodSet, smp.AttrNodeInfo, 0), ib.LIDPermissive)
	}
	if got := f.Counts().Discarded[fabric.DiscardBuffer]; got != 10 {
		t.Errorf("%d packets found no buffer, want 10", got)
	}
}

// Packets of other classes are not carried.
func TestOtherClasses(t *testing.T) {
	f := newFabric(t, chain(t, 1), fabric.Config{})
	c := attach(t, f, hostGUID(1), 1)
	for _, class := range []mad.Class{0, mad.ClassSubnAdm, mad.ClassPerfMgt, 0x80, 0xFF} {
		before := f.Counts()
		m := [mad.Size]byte{1, byte(class), 1, byte(mad.MethodGet)}
		c.a.Send(&m, 1)
		wantDiscard(t, f, before, fabric.DiscardClass)
	}
}

// The default profile, and what the topology says of a device.
func TestDefaultProfile(t *testing.T) {
	l := chain(t, 1)
	l.Nodes[0].Description, l.Nodes[0].DeviceID, l.Nodes[0].VendorID = "", 7, 9
	l.Nodes[0].SystemImageGUID = 0x55
	l.Nodes[1].EnhancedPort0 = true
	f := newFabric(t, l, fabric.Config{})
	c := attach(t, f, hostGUID(1), 1)
	var text smp.NodeDescription
	c.get(nil, 0, &text)
	if text.String() != "first" {
		t.Errorf("description %q, want the node's id", text.String())
	}
	node := f.Agent(hostGUID(1)).NodeInfo(2)
	if node.DeviceID != 7 || node.VendorID != 9 || node.SystemImageGUID != 0x55 || node.PartitionCap != 128 ||
		node.PortGUID != l.Nodes[0].Ports[2].GUID {
		t.Errorf("NodeInfo %+v", node)
	}
	s := f.Agent(switchGUID(1)).SwitchInfo()
	if !s.EnhancedPort0 || s.LinearFDBCap != 49152 || s.PartitionEnforcementCap != 64 || !s.InboundEnforcementCap ||
		!s.OutboundEnforcementCap || s.OptimizedSLToVLMappingProgramming != 1 {
		t.Errorf("SwitchInfo %+v", *s)
	}
	p := f.Agent(switchGUID(1)).Port(1)
	if p.MTUCap != ib.MTU4096 || smp.DataVLs(p.VLCap) != 8 || p.LinkWidthActive != smp.LinkWidth4X || p.LinkSpeedActive != smp.LinkSpeedSDR {
		t.Errorf("PortInfo %+v", *p)
	}
}
