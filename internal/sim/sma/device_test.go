package sma

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

const (
	testNodeGUID ib.NodeGUID = 0x0002C9_0300_0000_10
	testMKey     ib.MKey     = 0x1122334455667788
	testSM       ib.LID      = 7
)

// typical is a port with all that has to be announced.
func typical(guid ib.PortGUID) PortConfig {
	p := TypicalPort()
	p.GUID = guid
	return p
}

func caConfig(ports int) Config {
	c := Config{
		NodeType: ib.NodeCA, NodeGUID: testNodeGUID, SystemImageGUID: 0x0002C903000000FF,
		Description: "узел 1", DeviceID: 0x1017, Revision: 0xA0, PartitionCap: 64,
	}
	for i := range ports {
		c.Ports = append(c.Ports, typical(ib.PortGUID(testNodeGUID)+ib.PortGUID(i)+1))
	}
	return c
}

func routerConfig(ports int) Config {
	c := caConfig(ports)
	c.NodeType = ib.NodeRouter
	return c
}

func switchConfig(ports int) Config {
	c := caConfig(ports)
	c.NodeType = ib.NodeSwitch
	for i := range c.Ports {
		c.Ports[i].GUID = 0
	}
	c.Switch = &SwitchConfig{
		Port0:        typical(ib.PortGUID(testNodeGUID)),
		LinearFDBCap: 0xC000, MulticastFDBCap: 1024, LIDsPerPort: 0,
		PartitionEnforcementCap: 40, InboundEnforcementCap: true, OutboundEnforcementCap: true,
		FilterRawInboundCap: true, FilterRawOutboundCap: true,
	}
	return c
}

func enhancedConfig(ports int) Config {
	c := switchConfig(ports)
	c.Switch.EnhancedPort0 = true
	return c
}

func randomConfig(ports int) Config {
	c := switchConfig(ports)
	c.Switch.LinearFDBCap, c.Switch.RandomFDBCap = 0, 100
	return c
}

// book makes a device behave and look as the first book says.
func book(c Config) Config {
	c.BadInput, c.BookValues = BadInputIgnored, true
	for i := range c.Ports {
		c.Ports[i].LinkWidthSupported = smp.LinkWidth1X | smp.LinkWidth4X | smp.LinkWidth12X
		c.Ports[i].LinkSpeedSupported, c.Ports[i].LinkSpeedExtSupported = smp.LinkSpeedSDR, 0
	}
	return c
}

// device is an agent under test, with the clock and the key of its manager.
type device struct {
	testing.TB
	*Agent
	now  time.Duration
	mkey ib.MKey
	last Result
}

func start(t testing.TB, c Config) *device {
	t.Helper()
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &device{TB: t, Agent: a}
}

// send hands the agent one packet, and returns it as the agent left it.
func (d *device) send(through ib.PortNum, p mad.SMP) mad.SMP {
	if p.Class == 0 {
		p.Class = mad.ClassSubnLID
	}
	p.BaseVersion, p.ClassVersion, p.TransactionID, p.MKey = mad.BaseVersion, mad.ClassVersion, 0xABCD, d.mkey
	d.last = d.Handle(d.now, Ingress{Port: through, SLID: testSM}, &p)
	return p
}

func (d *device) request(through ib.PortNum, method mad.Method, id mad.AttributeID, modifier uint32, data [mad.DataSize]byte) mad.SMP {
	return d.send(through, mad.SMP{Method: method, AttributeID: id, AttributeModifier: modifier, Data: data})
}

// get reads an attribute into a.
func (d *device) get(through ib.PortNum, modifier uint32, a smp.Attribute) mad.Status {
	d.Helper()
	p := d.request(through, mad.MethodGet, a.ID(), modifier, [mad.DataSize]byte{})
	return d.answer(p, a)
}

// set writes a, which then holds what the answer says.
func (d *device) set(through ib.PortNum, modifier uint32, a smp.Attribute) mad.Status {
	d.Helper()
	var data [mad.DataSize]byte
	if err := a.Encode(&data); err != nil {
		d.Fatal(err)
	}
	return d.answer(d.request(through, mad.MethodSet, a.ID(), modifier, data), a)
}

func (d *device) answer(p mad.SMP, a smp.Attribute) mad.Status {
	d.Helper()
	if d.last.Verdict != Answered || p.Method != mad.MethodGetResp {
		d.Fatalf("%s %s through modifier %#x: verdict %d", p.Method, smp.AttributeName(p.AttributeID), p.AttributeModifier, d.last.Verdict)
	}
	if p.Status == mad.StatusOK || p.Status == mad.StatusInvalidField {
		if err := a.UnmarshalBinary(p.Data[:]); err != nil {
			d.Fatal(err)
		}
	}
	return p.Status
}

// mustGet and mustSet end the test on a status.
func (d *device) mustGet(through ib.PortNum, modifier uint32, a smp.Attribute) {
	d.Helper()
	if s := d.get(through, modifier, a); s != mad.StatusOK {
		d.Fatalf("Get %s, modifier %#x: status %v", smp.AttributeName(a.ID()), modifier, s)
	}
}

func (d *device) mustSet(through ib.PortNum, modifier uint32, a smp.Attribute) {
	d.Helper()
	if s := d.set(through, modifier, a); s != mad.StatusOK {
		d.Fatalf("Set %s, modifier %#x: status %v", smp.AttributeName(a.ID()), modifier, s)
	}
}

// raw reads the 64 bytes of an attribute.
func (d *device) raw(through ib.PortNum, id mad.AttributeID, modifier uint32) [mad.DataSize]byte {
	d.Helper()
	p := d.request(through, mad.MethodGet, id, modifier, [mad.DataSize]byte{})
	if d.last.Verdict != Answered || p.Status != mad.StatusOK {
		d.Fatalf("Get %s, modifier %#x: verdict %d, status %v", smp.AttributeName(id), modifier, d.last.Verdict, p.Status)
	}
	return p.Data
}

// status is what a request is answered with.
func (d *device) status(through ib.PortNum, method mad.Method, id mad.AttributeID, modifier uint32) mad.Status {
	d.Helper()
	p := d.request(through, method, id, modifier, [mad.DataSize]byte{})
	if d.last.Verdict != Answered {
		d.Fatalf("%s %s, modifier %#x: verdict %d", method, smp.AttributeName(id), modifier, d.last.Verdict)
	}
	return p.Status
}

func (d *device) wantStatus(want mad.Status, through ib.PortNum, method mad.Method, id mad.AttributeID, modifier uint32) {
	d.Helper()
	if got := d.status(through, method, id, modifier); got != want {
		d.Errorf("%s %s through port %d, modifier %#x: status %v, want %v", method, smp.AttributeName(id), through, modifier, got, want)
	}
}

// portInfo reads PortInfo of port n through a port.
func (d *device) portInfo(through, n ib.PortNum) smp.PortInfo {
	d.Helper()
	var p smp.PortInfo
	d.mustGet(through, smp.PortInfoModifier(n, true), &p)
	return p
}

// change reads PortInfo of port n, lets edit change it, and writes it back with
// states that ask for nothing unless edit sets them.
func (d *device) change(through, n ib.PortNum, edit func(*smp.PortInfo)) mad.Status {
	d.Helper()
	p := d.portInfo(through, n)
	p.PortState, p.PortPhysicalState, p.LinkDownDefaultState = 0, 0, 0
	edit(&p)
	return d.set(through, smp.PortInfoModifier(n, true), &p)
}

func (d *device) mustChange(through, n ib.PortNum, edit func(*smp.PortInfo)) {
	d.Helper()
	if s := d.change(through, n, edit); s != mad.StatusOK {
		d.Fatalf("Set PortInfo of port %d: status %v", n, s)
	}
}

// address gives the end port a place in the subnet.
func (d *device) address(through ib.PortNum, lid ib.LID) {
	d.Helper()
	d.mustChange(through, 0, func(p *smp.PortInfo) { p.LID, p.MasterSMLID = lid, testSM })
}

// plug brings the link of port n up.
func (d *device) plug(n ib.PortNum) []Effect {
	return d.LinkUp(d.now, n, Link{Width: smp.LinkWidth4X, SpeedExt: smp.LinkSpeedEDR})
}

// bring takes port n from a trained link to a state.
func (d *device) bring(through, n ib.PortNum, to smp.PortState) {
	d.Helper()
	d.plug(n)
	for state := smp.PortArmed; state <= to; state++ {
		d.mustChange(through, n, func(p *smp.PortInfo) { p.PortState = state })
	}
}

// effects finds the effects of one kind.
func effects(all []Effect, kind EffectKind) (found []Effect) {
	for _, e := range all {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// place is a port as one kind of device has it.
type place struct {
	name    string
	config  Config
	through ib.PortNum // port that the packets come in by
	port    ib.PortNum // port that is asked for
	kind    portKind
}

// places are the kinds of port.
func places() []place {
	return []place{
		{"CA", caConfig(2), 2, 2, caPort},
		{"router", routerConfig(2), 2, 2, routerPort},
		{"port 0", switchConfig(4), 2, 0, basePort0},
		{"enhanced port 0", enhancedConfig(4), 2, 0, enhancedPort0},
		{"external", switchConfig(4), 2, 3, external},
	}
}

// endPlaces are the kinds of end port.
func endPlaces() []place { return places()[:4] }

// open starts the device of a place, addressed so that PortInfo as it is read
// can be written back.
func (p place) open(t testing.TB) *device {
	t.Helper()
	d := start(t, p.config)
	d.address(p.through, 0x10)
	return d
}
