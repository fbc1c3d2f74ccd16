package apply

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// bringUp has the link of host a in Initialize, to become Active behind a switch port
// that holds it to red.
func bringUp(d *devices) (a *observed.Port) {
	for _, f := range []*observed.Fabric{d.known, d.are} {
		subnettest.SetLink(host(f, "a"), smp.PortInit, smp.PhysLinkUp)
		subnettest.SetPKeys(host(f, "a").Peer)
	}
	a = host(d.known, "a")
	d.want.Port(a).Activate, d.want.Port(a.Peer).Activate = true, true
	d.wantPKeys(a.Peer, red)
	x := d.want.Port(a.Peer)
	x.Elements = observed.ElementEnforcement
	x.Info.PartitionEnforcementInbound, x.Info.PartitionEnforcementOutbound = true, true
	return a
}

// A link becomes Active when all that isolates was written and read back, and it
// leads where it did; else it stays as it is, at both ends.
func TestLinksBecomeActive(t *testing.T) {
	setPKeys := func(r request) bool { return r.isSet(smp.AttrPKeyTable, "switch") }
	for _, x := range []struct {
		name     string
		outcome  outcome
		of       func(r request) bool
		recabled bool
		want     smp.PortState // of host a
		err      error
		text     string
	}{
		{name: "all in order", want: smp.PortActive},
		{name: "keys refused", outcome: refused, of: setPKeys, want: smp.PortArmed, err: errUnsafe},
		{name: "keys ignored", outcome: ignored, of: setPKeys, want: smp.PortArmed, err: errUnsafe},
		{name: "read-back lost", outcome: lost, of: func(r request) bool {
			return r.method == mad.MethodGet && r.attribute == smp.AttrPKeyTable
		}, want: smp.PortArmed, err: errUnsafe},
		{name: "enforcement refused", outcome: refused, of: func(r request) bool {
			return r.isSet(smp.AttrPortInfo, "switch") && r.stage == "port settings"
		}, want: smp.PortArmed, err: errUnsafe},
		{name: "another device", recabled: true, want: smp.PortArmed, err: ErrRecabled, text: "it was a"},
		{name: "nobody answers", outcome: lost, of: func(r request) bool { return r.attribute == smp.AttrNodeInfo }, want: smp.PortArmed, text: "could not be asked again"},
	} {
		d := newDevices(t, false)
		bringUp(d)
		d.outcome = func(r request) outcome {
			if x.recabled && r.attribute == smp.AttrNodeInfo { // just before it is asked
				r.port.Node.Info.NodeGUID = 0xBAD
			}
			if x.of != nil && x.of(r) {
				return x.outcome
			}
			return obeyed
		}
		r := d.run()
		if got := host(d.are, "a").Info.PortState; got != x.want {
			t.Errorf("%s: the link is %s, want %s (%v)", x.name, got, x.want, r.Failures())
		}
		found := 0
		for _, f := range r.Failures() {
			if x.err != nil && errors.Is(f, x.err) || x.text != "" && strings.Contains(f.Error(), x.text) {
				found++
			}
		}
		if want := map[bool]int{true: 0, false: 2}[x.want == smp.PortActive]; found != want || want == 0 && len(r.Failures()) > 0 {
			t.Errorf("%s: %d failures say so, want one for each end: %v", x.name, found, r.Failures())
		}
		if asked := 0; x.want == smp.PortActive {
			for _, q := range d.asked {
				if q.attribute == smp.AttrNodeInfo {
					asked++
				}
			}
			if asked != 1 {
				t.Errorf("%s: who is at the other end was asked %d times, want once for a cable", x.name, asked)
			}
		}
	}
}

// Who answers over a cable is known by node and port, a host by its port's GUID too.
func TestWhoAnswers(t *testing.T) {
	b := subnettest.New()
	sw, far := b.Switch(2, "switch"), b.Switch(2, "far")
	a := b.Host(sw, "a")
	up := subnettest.Join(sw, far)
	for _, x := range []struct {
		name   string
		to     *observed.Port
		change func(*smp.NodeInfo)
		same   bool
	}{
		{"the host", a, func(*smp.NodeInfo) {}, true},
		{"another port GUID", a, func(i *smp.NodeInfo) { i.PortGUID++ }, false},
		{"another node", a, func(i *smp.NodeInfo) { i.NodeGUID++ }, false},
		{"another port", a, func(i *smp.NodeInfo) { i.LocalPortNum++ }, false},
		{"the switch", up.Peer, func(*smp.NodeInfo) {}, true},
		{"the switch, whatever PortGUID", up.Peer, func(i *smp.NodeInfo) { i.PortGUID++ }, true},
		{"another port of the switch", up.Peer, func(i *smp.NodeInfo) { i.LocalPortNum++ }, false},
		{"another switch", up.Peer, func(i *smp.NodeInfo) { i.NodeGUID++ }, false},
	} {
		info := x.to.Node.Info
		info.LocalPortNum, info.PortGUID = x.to.Num, x.to.GUID
		x.change(&info)
		var reply mad.SMP
		if err := info.Encode(&reply.Data); err != nil {
			t.Fatal(err)
		}
		c := cable{x.to.Peer, x.to}
		if err := c.judge(transact.Reply{SMP: &reply}); (err == nil) != x.same || err != nil && !errors.Is(err, ErrRecabled) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// A CA port that a cable leads to from another CA port is asked from the manager's.
func TestBackToBack(t *testing.T) {
	b := subnettest.New()
	x, y := b.Host(nil, "x"), b.Host(nil, "y")
	subnettest.Cable(x, y)
	b.ManagedFrom(x)
	for _, ports := range [][]*observed.Port{{x, y}, {y, x}} {
		var r Run
		var ops []plan.Op
		for _, p := range ports {
			ops = append(ops, plan.Op{Kind: plan.Activate, Port: p})
		}
		if got := r.cables(ops); len(got) != 1 || got[0].from != x || got[0].to != y {
			t.Errorf("%v", got)
		}
	}
}

// What a device answers to have and forgets is noted, unless the port cannot be used
// without it: then the write has failed.
func TestForgotten(t *testing.T) {
	for _, x := range []struct {
		name   string
		wanted observed.Element
		note   observed.Element
		fails  string
	}{
		{"a setting", observed.ElementHOQLife, observed.ElementHOQLife, ""},
		{"the LID", observed.ElementLID | observed.ElementHOQLife, 0, "device did not keep LID"},
		{"the manager's LID", observed.ElementMasterSMLID, 0, "device did not keep MasterSMLID"},
	} {
		d := newDevices(t, false)
		a := host(d.known, "a")
		d.want.Port(a).Elements, d.want.Port(a).Info = x.wanted, smp.PortInfo{HOQLife: 9, LID: 99, MasterSMLID: 7}
		d.outcome = func(r request) outcome {
			if r.isSet(smp.AttrPortInfo, "a") {
				host(d.are, "a").Info.VLStallCount++ // it shows something, only not this
				return forgets
			}
			return obeyed
		}
		r := d.run()
		want := map[*observed.Port]observed.Element{}
		if x.note != 0 {
			want[a] = x.note
		}
		if a.Forgets != x.note || !maps.Equal(r.Forgets(), want) {
			t.Errorf("%s: noted %v and %v, want %v", x.name, a.Forgets.Names(), r.Forgets(), x.note.Names())
		}
		f := r.Failures()
		if x.fails == "" && len(f) > 0 || x.fails != "" && (len(f) != 1 || !strings.Contains(f[0].Error(), x.fails)) {
			t.Errorf("%s: %v, want %q", x.name, f, x.fails)
		}
		if again := plan.Diff(d.known, d.want).Len(); (again == 0) != (x.fails == "") {
			t.Errorf("%s: %d writes are left", x.name, again)
		}
	}
}

// A link that does not go where it is sent is a failure.
func TestStateIsNotReached(t *testing.T) {
	d := newDevices(t, false)
	a := bringUp(d)
	d.outcome = func(r request) outcome {
		if r.isSet(smp.AttrPortInfo, "a") && r.stage == "activate" {
			return forgets
		}
		return obeyed
	}
	f := d.run().Failures()
	if len(f) != 1 || f[0].Port != a || !strings.Contains(f[0].Error(), "PortState is Armed, want Active") {
		t.Errorf("%v", f)
	}
}

// What a switch forgets of SwitchInfo is noted; the top of its forwarding table it
// has to keep.
func TestSwitchInfoForgotten(t *testing.T) {
	for _, top := range []bool{false, true} {
		d := newDevices(t, false)
		n := &d.want.Nodes[0]
		n.SetLifeTime, n.LifeTimeValue = true, 12
		if top {
			n.LFT = make([]ib.PortNum, 128)
		}
		d.outcome = func(r request) outcome {
			if r.isSet(smp.AttrSwitchInfo, "switch") {
				return forgets
			}
			return obeyed
		}
		r := d.run()
		f := r.Failures()
		if top && (len(f) != 1 || !strings.Contains(f[0].Error(), "kept LinearFDBTop 5 and DefaultPort 0, want 127 and 0")) || !top && len(f) > 0 {
			t.Errorf("%v", f)
		}
		if got := d.known.Nodes[0].Ports[0].Forgets; got != observed.ElementLifeTimeValue {
			t.Errorf("noted %v", got.Names())
		}
	}
}

// After a write of PortInfo of which nobody knows whether it took hold, PortInfo is
// read before it is written again: a write takes along all that it holds.
func TestLooksAgain(t *testing.T) {
	for _, readable := range []bool{true, false} {
		d := newDevices(t, false)
		a := bringUp(d)
		d.want.Port(a).Elements, d.want.Port(a).Info.LID = observed.ElementLID, 99
		d.outcome = func(r request) outcome {
			switch {
			case r.isSet(smp.AttrPortInfo, "a") && r.stage == "port settings":
				return answerLost
			case r.method == mad.MethodGet && r.attribute == smp.AttrPortInfo && r.port.Node.Description == "a" && !readable:
				return lost
			}
			return obeyed
		}
		r := d.run()
		if got := host(d.are, "a").Info.LID; got != 99 {
			t.Errorf("readable %v: LID %d, want that which the device took", readable, got)
		}
		state, failures := smp.PortActive, 1
		if !readable {
			state, failures = smp.PortArmed, 2
		}
		if got := host(d.are, "a").Info.PortState; got != state || len(r.Failures()) != failures || a.InfoRead != readable {
			t.Errorf("readable %v: %s, read %v, %v", readable, got, a.InfoRead, r.Failures())
		}
	}
}
