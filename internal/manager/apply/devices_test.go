package apply

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

const (
	red  = ib.PKey(0x8010)
	blue = ib.PKey(0x8020)
)

// fabric is a switch with the manager at its port 1 and hosts at ports 2 to 4, all
// in red. The switch ports of hosts enforce only where guarded.
func fabric(guarded bool) *observed.Fabric {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo.PartitionEnforcementCap = 40, 40 // two blocks
	b.SwitchInfo.LinearFDBCap, b.SwitchInfo.MulticastFDBCap = 256, 64
	b.PortInfo.GUIDCap, b.PortInfo.VLCap = 8, 1
	sw := b.Switch(4, "switch")
	for _, name := range []string{"manager", "a", "b", "c"} {
		p := b.Host(sw, name)
		subnettest.SetPKeysThrough(p, red)
		subnettest.Enforce(p.Peer, guarded, guarded)
	}
	b.Route()
	b.ManagedFrom(b.Fabric.EndPorts()[1])
	return b.Fabric
}

// host is the port of the node with this name.
func host(f *observed.Fabric, name string) *observed.Port {
	for _, p := range f.EndPorts() {
		if p.Node.Description == name {
			return p
		}
	}
	panic(name)
}

// outcome is what becomes of a request at its device.
type outcome int

const (
	obeyed     outcome = iota
	lost               // it does not arrive
	answerLost         // the device does as it is told, and nobody hears of it
	refused            // answered with a status
	ignored            // answered as if it were obeyed
	forgets            // answered with what the device holds as before
)

// request is what a device was asked.
type request struct {
	port      *observed.Port // of devices.are
	method    mad.Method
	attribute mad.AttributeID
	modifier  uint32
	stage     string
}

func (r request) isSet(a mad.AttributeID, name string) bool {
	return r.method == mad.MethodSet && r.attribute == a && r.port.Node.Description == name
}

// devices answer the requests of a window. What they hold is another fabric, made in
// the same way as the one that the manager knows.
type devices struct {
	*testing.T
	known, are *observed.Fabric
	want       *observed.Desired
	window     *transact.Window
	now        time.Duration
	outcome    func(r request) outcome // of requests; nil for all obeyed
	stage      func() string
	asked      []request
	most       int // requests under way at once
}

func newDevices(t *testing.T, guarded bool) *devices {
	limits := transact.Limits{Window: 32, Tries: 2, FirstTimeout: time.Second, MinTimeout: time.Second, MaxTimeout: time.Second}
	d := &devices{T: t, known: fabric(guarded), are: fabric(guarded), window: transact.NewWindow(limits)}
	d.want = observed.NewDesired(d.known)
	return d
}

// at is where a directed route ends, seen from what a packet says.
func (d *devices) at(p *mad.SMP) *observed.Port {
	at := d.are.Self
	for _, exit := range p.InitialPath[1 : p.HopCount+1] {
		if at = at.Node.Ports[exit].Peer; at == nil {
			return nil
		}
	}
	return at
}

// selected is the port whose block a request is about.
func selected(at *observed.Port, p *mad.SMP) *observed.Port {
	num := p.AttributeModifier & 0xFF
	switch p.AttributeID {
	case smp.AttrPKeyTable:
		num = p.AttributeModifier >> 16
	case smp.AttrPortInfo:
	default:
		return at.Agent()
	}
	if at.Node.Switch == nil {
		return at
	}
	return &at.Node.Ports[num]
}

// shows is what a device answers to a Get.
func (d *devices) shows(at *observed.Port, p *mad.SMP) (data [mad.DataSize]byte) {
	var a interface {
		Encode(*[mad.DataSize]byte) error
	}
	x, s := selected(at, p), at.Node.Switch
	switch block := int(p.AttributeModifier & 0xFFFF); p.AttributeID {
	case smp.AttrNodeInfo:
		info := at.Node.Info
		info.LocalPortNum, info.PortGUID = at.Num, at.Agent().GUID
		a = &info
	case smp.AttrPortInfo:
		info := x.Info
		if p.Method == mad.MethodGet && p.MKey != info.MKey {
			info.MKey = 0 // shown to nobody else
		}
		a = &info
	case smp.AttrPKeyTable:
		a = &smp.PKeyTable{Keys: smp.PKeyBlock(x.PKeys, block)}
	case smp.AttrGUIDInfo:
		t := x.GUIDInfo[p.AttributeModifier]
		a = &t
	case smp.AttrSwitchInfo:
		a = &s.Info
	case smp.AttrLinearForwardingTable:
		a = &smp.LinearForwardingTable{Ports: smp.LinearBlock(s.LFT, block)}
	case smp.AttrMulticastForwardingTable:
		t := s.MFT[p.AttributeModifier]
		a = &t
	default:
		d.Fatalf("the devices of this test have no attribute %#x", p.AttributeID)
	}
	if err := a.Encode(&data); err != nil {
		d.Fatal(err)
	}
	return data
}

// take is what a device does with a Set.
func (d *devices) take(at *observed.Port, p *mad.SMP) {
	data, x := p.Data, selected(at, p)
	if p.AttributeID == smp.AttrPortInfo {
		var info smp.PortInfo
		if err := info.UnmarshalBinary(data[:]); err != nil {
			d.Fatal(err)
		}
		if info.PortState == smp.PortStateNoChange {
			info.PortState = x.Info.PortState
		}
		info.PortPhysicalState = x.Info.PortPhysicalState
		if err := info.Encode(&data); err != nil {
			d.Fatal(err)
		}
	}
	if p.AttributeID == smp.AttrGUIDInfo && p.AttributeModifier == 0 { // the port's own stays
		binary.BigEndian.PutUint64(data[:], x.GUIDInfo[0].GUIDs[0])
	}
	if err := at.Absorb(p.AttributeID, p.AttributeModifier, data[:]); err != nil {
		d.Fatal(err)
	}
}

// answer says what a device does with a packet, and whether an answer comes.
func (d *devices) answer(p *mad.SMP) (comes bool) {
	at := d.at(p)
	if at == nil {
		return false
	}
	x := selected(at, p)
	r := request{x, p.Method, p.AttributeID, p.AttributeModifier, ""}
	if d.stage != nil {
		r.stage = d.stage()
	}
	d.asked = append(d.asked, r)
	f := obeyed
	if d.outcome != nil {
		f = d.outcome(r)
	}
	guard := &x.Agent().Info
	if f == lost || guard.MKey != 0 && p.MKey != guard.MKey && (p.Method == mad.MethodSet || guard.MKeyProtectBits >= 2) {
		return false
	}
	if p.Method == mad.MethodSet && (f == obeyed || f == answerLost) {
		d.take(at, p)
	}
	if f == refused {
		p.MakeResponse(mad.StatusInvalidField)
		return true
	}
	if p.Method == mad.MethodGet || f != ignored {
		p.Data = d.shows(at, p)
	}
	p.MakeResponse(mad.StatusOK)
	return f != answerLost
}

// exchange carries packets until the window is idle.
func (d *devices) exchange() {
	for !d.window.Idle() {
		var out []mad.SMP
		for p := (mad.SMP{}); d.window.Next(d.now, &p); {
			out = append(out, p)
		}
		d.most = max(d.most, len(out))
		for i := range out {
			if d.answer(&out[i]) {
				d.window.Receive(d.now, &out[i])
			}
		}
		if len(out) == 0 {
			due, ok := d.window.Deadline()
			if !ok {
				d.Fatal("the window is not idle, and waits for nothing")
			}
			d.now = due
			d.window.Expire(d.now)
		}
	}
}

// sweep reads settings and P_Keys of all ports again.
func (d *devices) sweep() {
	for i, n := range d.are.Nodes {
		for num := range n.Ports {
			p := &d.known.Nodes[i].Ports[num]
			p.Info, p.InfoRead = n.Ports[num].Info, true
			subnettest.SetPKeys(p, n.Ports[num].PKeys...)
		}
	}
}

// run carries out what is wanted.
func (d *devices) run() *Run { return d.carry(plan.Diff(d.known, d.want), nil) }

// carry carries out a plan; before says what to do first.
func (d *devices) carry(p *plan.Plan, before func(*Run)) *Run {
	r := Start(d.window, p, 3)
	d.stage = r.Stage
	if before != nil {
		before(r)
	}
	for !r.Advance() {
		d.exchange()
	}
	return r
}

// wantPKeys is what a port ought to hold.
func (d *devices) wantPKeys(p *observed.Port, keys ...ib.PKey) { d.want.Port(p).PKeys = keys }

// sets are the writes that devices were asked for.
func (d *devices) sets() (out []request) {
	for _, r := range d.asked {
		if r.method == mad.MethodSet {
			out = append(out, r)
		}
	}
	return out
}
