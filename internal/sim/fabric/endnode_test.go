package fabric_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

const (
	portGUID = ib.PortGUID(0x101)
	prefix   = uint64(0xFEC0_0000_0000_0007)
)

// host is port 1 of a CA, armed, with LID 8, LMC 1 and the keys 0x8005 and 0x0006.
func host(t *testing.T) *fabric.EndPort {
	t.Helper()
	n := topology.NewNode(ib.NodeCA, "h", 0x100, 1)
	n.Ports[1].GUID = portGUID
	a, err := sma.New(fabric.DeviceProfile(n))
	if err != nil {
		t.Fatal(err)
	}
	p := &fabric.EndPort{Node: &fabric.WiredNode{Agent: a, Source: n, Last: 1}, Number: 1}
	a.LinkUp(0, 1, sma.Link{Width: smp.LinkWidth4X, Speed: smp.LinkSpeedQDR})
	change(t, p, func(i *smp.PortInfo) {
		i.LID, i.LMC, i.MasterSMLID, i.GIDPrefix, i.NeighborMTU, i.PortState = 8, 1, 1, prefix, ib.MTU1024, smp.PortArmed
	})
	set(t, p, 0, &smp.PKeyTable{Keys: [smp.PKeysPerBlock]ib.PKey{0x8005, 0x0006}})
	return p
}

func set(t *testing.T, p *fabric.EndPort, modifier uint32, v smp.Attribute) {
	t.Helper()
	m := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion, Method: mad.MethodSet,
		AttributeID: v.ID(), AttributeModifier: modifier,
	}
	if err := v.Encode(&m.Data); err != nil {
		t.Fatal(err)
	}
	if r := p.Node.Agent.Handle(0, sma.Ingress{Port: 1}, &m); r.Verdict != sma.Answered || m.Status != mad.StatusOK {
		t.Fatalf("Set(%s): verdict %v, status %v", smp.AttributeName(v.ID()), r.Verdict, m.Status)
	}
}

func change(t *testing.T, p *fabric.EndPort, edit func(i *smp.PortInfo)) {
	t.Helper()
	info := *p.Info()
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
	edit(&info)
	set(t, p, 1, &info)
}

// A port is what the agent says now, and another agent's when the node was off.
func TestPortFollowsItsAgent(t *testing.T) {
	p := host(t)
	if info := p.Info(); info.LID != 8 || p.PKeyTableLen() != 128 || len(p.PKeys()) != 2 || p.PKeys()[1] != 0x0006 {
		t.Errorf("LID %v, %d entries, keys %v", p.Info().LID, p.PKeyTableLen(), p.PKeys())
	}
	if gid, ok := p.GID(0); !ok || gid != ib.MakeGID(prefix, portGUID) {
		t.Errorf("GID 0 is %v, %v", gid, ok)
	}
	if _, ok := p.GID(1000); ok {
		t.Error("GID 1000 is there")
	}
	for _, c := range []struct {
		gid  ib.GID
		want bool
	}{
		{ib.MakeGID(prefix, portGUID), true}, {ib.MakeGID(ib.DefaultGIDPrefix, portGUID), true},
		{ib.MakeGID(prefix+1, portGUID), false}, {ib.MakeGID(prefix, portGUID+1), false}, {ib.MakeGID(prefix, 0), false}, {ib.GID{}, false},
	} {
		if got := p.OwnsGID(c.gid); got != c.want {
			t.Errorf("owns %v: %v", c.gid, got)
		}
	}
	other, err := p.Node.Agent.Restart(fabric.DeviceProfile(p.Node.Source))
	if err != nil {
		t.Fatal(err)
	}
	p.Node.Agent = other
	if lid := p.Info().LID; lid != 0 || p.PKeys()[0] != 0xFFFF {
		t.Errorf("after the node was off: LID %v, keys %v", lid, p.PKeys())
	}
}

// A consumer is told of what has changed, each thing once.
func TestTell(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, p *fabric.EndPort)
		want   []endpoint.EventKind
	}{
		{"nothing", func(*testing.T, *fabric.EndPort) {}, nil},
		{"LID", func(t *testing.T, p *fabric.EndPort) { change(t, p, func(i *smp.PortInfo) { i.LID = 10 }) }, []endpoint.EventKind{endpoint.EventLIDChange}},
		{"LMC", func(t *testing.T, p *fabric.EndPort) { change(t, p, func(i *smp.PortInfo) { i.LMC = 0 }) }, []endpoint.EventKind{endpoint.EventLIDChange}},
		{"prefix", func(t *testing.T, p *fabric.EndPort) { change(t, p, func(i *smp.PortInfo) { i.GIDPrefix++ }) }, []endpoint.EventKind{endpoint.EventGIDChange}},
		{"GUID", func(t *testing.T, p *fabric.EndPort) {
			set(t, p, 0, &smp.GUIDInfo{GUIDs: [smp.GUIDsPerBlock]uint64{uint64(portGUID), 0x77}})
		}, []endpoint.EventKind{endpoint.EventGIDChange}},
		{"SM's LID", func(t *testing.T, p *fabric.EndPort) { change(t, p, func(i *smp.PortInfo) { i.MasterSMLID = 2 }) }, []endpoint.EventKind{endpoint.EventSMChange}},
		{"SM's SL", func(t *testing.T, p *fabric.EndPort) { change(t, p, func(i *smp.PortInfo) { i.MasterSMSL = 2 }) }, []endpoint.EventKind{endpoint.EventSMChange}},
	} {
		p := host(t)
		d, err := endpoint.New(endpoint.Config{Ports: []endpoint.Port{nil, p}})
		if err != nil {
			t.Fatal(err)
		}
		before := p.Look()
		c.change(t, p)
		now := p.Look()
		now.Tell(d, 1, &before)
		var got []endpoint.EventKind
		for e, ok := d.NextEvent(); ok; e, ok = d.NextEvent() {
			got = append(got, e.Kind)
		}
		if len(got) != len(c.want) || len(got) == 1 && got[0] != c.want[0] {
			t.Errorf("%s: events %v, want %v", c.name, got, c.want)
		}
	}
}

// question asks the performance agent for PortCounters of port 1.
func question(t *testing.T, edit func(p *packet.MADPacket, m *pm.MAD)) []byte {
	t.Helper()
	m := pm.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion,
		Method: mad.MethodGet, TransactionID: 99, AttributeID: pm.AttrPortCounters,
	}}
	m.Data[1] = 1
	p := packet.MADPacket{QP: ib.QP1, SLID: 3, DLID: 9, SL: 2, PKey: 0x0005, PSN: 17}
	edit(&p, &m)
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.MAD = bytes
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The performance agent answers what QP1 would take, with the counters as they are,
// by the way that the question came, under the entry that its key matched.
func TestPerform(t *testing.T) {
	p, counters := host(t), pma.New(1, false)
	counters.Port(1).PortXmitDiscards = 5
	b, ok := p.Perform(counters, question(t, func(*packet.MADPacket, *pm.MAD) {}))
	if !ok {
		t.Fatal("a good question was not answered")
	}
	v, err := packet.Parse(b)
	right, crcErr := packet.CheckICRC(b)
	if err != nil || crcErr != nil || !right || !packet.CheckVCRC(b) {
		t.Fatalf("the answer is no packet: %v, %v, ICRC %v, VCRC %v", err, crcErr, right, packet.CheckVCRC(b))
	}
	if v.LRH.SLID() != 9 || v.LRH.DLID() != 3 || v.LRH.SL() != 2 || v.BTH.DestQP() != ib.QP1 || v.BTH.PKey() != 0x8005 ||
		v.DETH.QKey() != ib.QKeyGSI || v.BTH.PSN() != 17 {
		t.Errorf("the answer goes from %v to %v, SL %v, QP %v, P_Key %v", v.LRH.SLID(), v.LRH.DLID(), v.LRH.SL(), v.BTH.DestQP(), v.BTH.PKey())
	}
	var m pm.MAD
	var c pm.PortCounters
	if m.UnmarshalBinary(v.Payload) != nil || c.UnmarshalBinary(m.Data[:]) != nil || m.Method != mad.MethodGetResp ||
		m.TransactionID != 99 || m.Status != 0 || c.PortXmitDiscards != 5 {
		t.Errorf("answered %+v, %+v", m.Header, c)
	}
}

func TestPerformLeavesTheRest(t *testing.T) {
	p, counters := host(t), pma.New(1, false)
	altered := func(edit func(v *packet.View)) func(b []byte) {
		return func(b []byte) {
			v, err := packet.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			edit(&v)
			if err := packet.Seal(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, edit := range map[string]func(b []byte){
		"foreign key":     altered(func(v *packet.View) { v.BTH.SetPKey(0x8007) }),
		"limited both":    altered(func(v *packet.View) { v.BTH.SetPKey(0x0006) }),
		"wrong Q_Key":     altered(func(v *packet.View) { v.DETH.SetQKey(7) }),
		"another QP":      altered(func(v *packet.View) { v.BTH.SetDestQP(2) }),
		"another LID":     altered(func(v *packet.View) { v.LRH.SetDLID(10) }),
		"another class":   altered(func(v *packet.View) { v.Payload[1] = byte(mad.ClassSubnAdm) }),
		"an answer":       altered(func(v *packet.View) { v.Payload[3] = byte(mad.MethodGetResp) }),
		"VL 15":           altered(func(v *packet.View) { v.LRH.SetVL(ib.VLManagement) }),
		"another opcode":  altered(func(v *packet.View) { v.BTH.SetOpCode(packet.MakeOpCode(packet.UD, packet.SendOnlyImm)) }),
		"an altered byte": func(b []byte) { b[100]++; packet.SealVCRC(b) },
	} {
		b := question(t, func(*packet.MADPacket, *pm.MAD) {})
		edit(b)
		if _, ok := p.Perform(counters, b); ok {
			t.Errorf("%s: answered", name)
		}
	}
	if _, ok := p.Perform(counters, []byte{1, 2, 3}); ok {
		t.Error("three bytes: answered")
	}
	p.Node.Agent.LinkDown(0, 1)
	if _, ok := p.Perform(counters, question(t, func(*packet.MADPacket, *pm.MAD) {})); ok {
		t.Error("a port that is down answered")
	}
}
