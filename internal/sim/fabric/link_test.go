package fabric_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// ends names the two ends of the cable between the switches of a chain of two.
type states struct {
	near, far         smp.PortState
	nearPhys, farPhys smp.PhysState
}

func linkStates(f *fabric.Fabric) states {
	near, far := f.Agent(switchGUID(1)).Port(2), f.Agent(switchGUID(2)).Port(1)
	return states{near.PortState, far.PortState, near.PortPhysicalState, far.PortPhysicalState}
}

var (
	trained = states{smp.PortInit, smp.PortInit, smp.PhysLinkUp, smp.PhysLinkUp}
	pulled  = states{smp.PortDown, smp.PortDown, smp.PhysPolling, smp.PhysPolling}
)

func wantStates(t *testing.T, f *fabric.Fabric, when string, want states) {
	t.Helper()
	if got := linkStates(f); got != want {
		t.Errorf("%s: %v, want %v", when, got, want)
	}
}

// setPort writes PortInfo of port 2 of the first switch, the near end, and
// returns the answer.
func setPort(c *client, change func(*smp.PortInfo)) (info smp.PortInfo) {
	c.t.Helper()
	c.get(along(1), 2, &info)
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
	change(&info)
	c.set(along(1), 2, &info)
	return info
}

func TestLinkStates(t *testing.T) {
	down := func(near, far smp.PhysState) states { return states{smp.PortDown, smp.PortDown, near, far} }
	phys := func(s smp.PhysState) func(*smp.PortInfo) {
		return func(i *smp.PortInfo) { i.PortPhysicalState = s }
	}
	type step struct {
		name string
		do   func(f *fabric.Fabric, c *client)
		want states
	}
	set := func(name string, change func(*smp.PortInfo), want states) step {
		return step{"Set " + name, func(_ *fabric.Fabric, c *client) {
			// Links train in no time here, and the answer shows it.
			said := setPort(c, change)
			if said.PortState != want.near || said.PortPhysicalState != want.nearPhys {
				c.t.Errorf("Set %s: the answer says %v, %v, want %v", name, said.PortState, said.PortPhysicalState, want)
			}
		}, want}
	}
	cable := func(name string, do func(f *fabric.Fabric) error, want states) step {
		return step{name, func(f *fabric.Fabric, c *client) {
			if err := do(f); err != nil {
				c.t.Fatal(err)
			}
		}, want}
	}
	unlink := func(f *fabric.Fabric) error { return f.Unlink(switchGUID(2), 1) }
	relink := func(f *fabric.Fabric) error { return f.Link(switchGUID(1), 2, switchGUID(2), 1) }
	tests := map[string][]step{
		"a cable pulled and plugged": {
			cable("unlink", unlink, pulled),
			cable("link", relink, trained),
		},
		"disabled and enabled": {
			set("Disabled", phys(smp.PhysDisabled), down(smp.PhysDisabled, smp.PhysPolling)),
			set("Polling", phys(smp.PhysPolling), trained),
		},
		"asleep": {
			set("Sleep", phys(smp.PhysSleep), down(smp.PhysSleep, smp.PhysPolling)),
			set("Polling", phys(smp.PhysPolling), trained),
		},
		"down trains again": {
			set("Down", func(i *smp.PortInfo) { i.PortState = smp.PortDown }, trained),
		},
		"down into sleep": {
			set("Down, LinkDownDefaultState Sleep", func(i *smp.PortInfo) {
				i.PortState, i.LinkDownDefaultState = smp.PortDown, smp.PhysSleep
			}, down(smp.PhysSleep, smp.PhysPolling)),
		},
		"disabled while the cable is out": {
			cable("unlink", unlink, pulled),
			set("Disabled", phys(smp.PhysDisabled), down(smp.PhysDisabled, smp.PhysPolling)),
			cable("link", relink, down(smp.PhysDisabled, smp.PhysPolling)),
			set("Polling", phys(smp.PhysPolling), trained),
		},
		"armed, then down": {
			set("Armed", func(i *smp.PortInfo) { i.PortState = smp.PortArmed },
				states{smp.PortArmed, smp.PortInit, smp.PhysLinkUp, smp.PhysLinkUp}),
			cable("unlink", unlink, pulled),
			cable("link", relink, trained),
		},
		"no speed in common": {
			set("LinkWidthEnabled and Polling", func(i *smp.PortInfo) {
				i.LinkWidthEnabled, i.PortPhysicalState = smp.LinkWidth1X, smp.PhysPolling
			}, pulled),
			set("LinkWidthEnabled", func(i *smp.PortInfo) {
				i.LinkWidthEnabled, i.PortPhysicalState = smp.LinkWidthAll, smp.PhysPolling
			}, trained),
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			l := chain(t, 2)
			l.Nodes[1].Ports[2].Enabled.Width |= topology.Width1x // the near end alone
			f := newFabric(t, l, fabric.DefaultConfig())
			c := attach(t, f, hostGUID(1), 1)
			wantStates(t, f, "at the start", trained)
			for _, s := range steps {
				s.do(f, c)
				wantStates(t, f, s.name, s.want)
			}
			if _, _, ok := c.ask(directed(along(3), mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive); ok != (linkStates(f) == trained) {
				t.Errorf("in the end a packet passes: %v", ok)
			}
		})
	}
}

// A port that a Set takes down answers before it goes.
func TestAnswerBeforeLinkGoesDown(t *testing.T) {
	f := newFabric(t, chain(t, 2), fabric.DefaultConfig())
	c := attach(t, f, hostGUID(1), 1)
	var info smp.PortInfo
	c.get(along(2), 1, &info)
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysDisabled
	c.set(along(2), 1, &info) // through the very port
	if got, want := linkStates(f), (states{smp.PortDown, smp.PortDown, smp.PhysPolling, smp.PhysDisabled}); got != want {
		t.Errorf("afterwards: %v, want %v", got, want)
	}
}

// An answer shows what the link trained to; where that takes time, that it is
// down.
func TestAnswerShowsLink(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		state smp.PortState
		phys  smp.PhysState
		width smp.LinkWidth
	}{
		{0, smp.PortInit, smp.PhysLinkUp, smp.LinkWidth1X},
		{time.Millisecond, smp.PortDown, smp.PhysPolling, smp.LinkWidth4X},
	} {
		config := fabric.DefaultConfig()
		config.TrainDelay = c.delay
		l := chain(t, 2)
		near := &l.Nodes[1].Ports[2]
		for _, end := range []*topology.Port{near, &near.Peer.Ports[near.PeerPort]} {
			end.Enabled.Width |= topology.Width1x
		}
		said := setPort(attach(t, newFabric(t, l, config), hostGUID(1), 1), func(i *smp.PortInfo) {
			i.PortPhysicalState, i.LinkWidthEnabled = smp.PhysPolling, smp.LinkWidth1X
		})
		if said.PortState != c.state || said.PortPhysicalState != c.phys || said.LinkWidthActive != c.width {
			t.Errorf("training takes %v: %v, %v, %v, want %v, %v, %v", c.delay,
				said.PortState, said.PortPhysicalState, said.LinkWidthActive, c.state, c.phys, c.width)
		}
	}
}

func TestTrainDelay(t *testing.T) {
	f := newFabric(t, chain(t, 2), fabric.Config{TrainDelay: time.Millisecond})
	wantStates(t, f, "at the start", trained)
	if err := f.Unlink(switchGUID(1), 2); err != nil {
		t.Fatal(err)
	}
	if err := f.Link(switchGUID(1), 2, switchGUID(2), 1); err != nil {
		t.Fatal(err)
	}
	f.AdvanceTo(time.Millisecond - 1)
	wantStates(t, f, "before TrainDelay", pulled)
	f.AdvanceTo(time.Millisecond)
	wantStates(t, f, "after TrainDelay", trained)
}

func TestLinkErrors(t *testing.T) {
	f := newFabric(t, chain(t, 2), fabric.Config{})
	tests := map[string]error{
		"unlink at no such node":      f.Unlink(1, 1),
		"unlink at port 0":            f.Unlink(switchGUID(1), 0),
		"unlink at no such port":      f.Unlink(switchGUID(1), 5),
		"unlink at no cable":          f.Unlink(switchGUID(1), 3),
		"link to a cabled port":       f.Link(switchGUID(1), 3, switchGUID(2), 1),
		"link from a cabled port":     f.Link(switchGUID(2), 1, switchGUID(1), 3),
		"link to itself":              f.Link(switchGUID(1), 3, switchGUID(1), 3),
		"link to no such port":        f.Link(switchGUID(1), 3, switchGUID(2), 9),
		"power off of no such node":   f.PowerOff(1),
		"power on of no such node":    f.PowerOn(1),
		"power on of a node with it":  f.PowerOn(switchGUID(1)),
		"fault of no such node":       f.SetFault(1, fabric.Fault{}),
		"a probability of 2":          f.SetLoss(2),
		"attach at no such node":      attachError(f, 1, 1),
		"attach at no such port":      attachError(f, hostGUID(1), 3),
		"attach at port 0 of a CA":    attachError(f, hostGUID(1), 0),
		"attach at a switch's port 1": attachError(f, switchGUID(1), 1),
	}
	for what, err := range tests {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	wantStates(t, f, "after all that", trained)
	attach(t, f, hostGUID(1), 1)
	if attachError(f, hostGUID(1), 1) == nil {
		t.Error("two managers at one port: no error")
	}
	if err := f.Link(switchGUID(1), 3, switchGUID(1), 4); err != nil {
		t.Errorf("a cable between two ports of one switch: %v", err)
	}
	if err := f.Unlink(switchGUID(1), 4); err != nil {
		t.Error(err)
	}
}

func attachError(f *fabric.Fabric, g ib.NodeGUID, num ib.PortNum) error {
	_, err := f.Attach(g, num)
	return err
}

func TestNewErrors(t *testing.T) {
	if _, err := fabric.New(chain(t, 1), fabric.Config{Loss: 1.5}); err == nil {
		t.Error("Loss 1.5: no error")
	}
	if _, err := fabric.New(chain(t, 1), fabric.Config{HopDelay: -1}); err == nil {
		t.Error("HopDelay -1: no error")
	}
	l := chain(t, 1)
	l.Nodes[0].Ports[1].Peer = nil
	if _, err := fabric.New(l, fabric.Config{}); err == nil {
		t.Error("a cable with one end: no error")
	}
	none := func(_ *topology.Node, c *sma.Config) { c.PartitionCap = 0 }
	if _, err := fabric.New(chain(t, 1), fabric.Config{Profile: none}); err == nil {
		t.Error("a device without P_Key table: no error")
	}
}

// traps receives all that has come in and returns the numbers of the traps.
func traps(c *client) []smp.TrapNumber {
	c.t.Helper()
	var numbers []smp.TrapNumber
	var d fabric.Delivery
	for c.a.Receive(&d) {
		var p mad.SMP
		var n smp.Notice
		if err := p.UnmarshalBinary(d.MAD[:]); err != nil {
			c.t.Fatal(err)
		}
		if p.Method != mad.MethodTrap {
			continue
		}
		if err := n.UnmarshalBinary(p.Data[:]); err != nil {
			c.t.Fatal(err)
		}
		if n.IssuerLID != d.SLID {
			c.t.Errorf("trap %d of LID %v came from LID %v", n.TrapNumber, n.IssuerLID, d.SLID)
		}
		numbers = append(numbers, n.TrapNumber)
		// Seen; no need to send it again.
		p.Method = mad.MethodTrapRepress
		c.send(p, d.SLID)
	}
	return numbers
}

// A switch that loses a link says so to the manager, once that is known to be
// one, until it is told that this was heard.
func TestTraps(t *testing.T) {
	f, c := routed(t)
	second := func() { f.AdvanceTo(f.Now() + time.Second) }
	if err := f.Unlink(switchGUID(2), 2); err != nil {
		t.Fatal(err)
	}
	second()
	if got := traps(c); got != nil {
		t.Errorf("traps %v before IsSM", got)
	}
	c.a.SetIsSM(true)
	second()
	second()
	if got := traps(c); len(got) == 0 || got[0] != smp.TrapLocalChange {
		t.Errorf("traps %v after SetIsSM, want 144 for the port's own change first", got)
	}
	for range 3 {
		second()
		traps(c)
	}
	second()
	if got := traps(c); got != nil {
		t.Errorf("traps %v go on although repressed", got)
	}
	if !f.Agent(switchGUID(2)).SwitchInfo().PortStateChange {
		t.Error("PortStateChange is not set")
	}
	if err := f.Link(switchGUID(2), 2, hostGUID(2), 1); err != nil {
		t.Fatal(err)
	}
	second()
	if got := traps(c); len(got) != 1 || got[0] != smp.TrapLinkStateChanged {
		t.Errorf("traps %v after the cable is back, want 128", got)
	}
	if f.Received(mad.MethodTrapRepress, smp.AttrNotice) == 0 {
		t.Error("no TrapRepress was counted")
	}
}

// Both switches at the ends of a cable tell of it; a mute one does not.
func TestTrapsOfBothEnds(t *testing.T) {
	for _, mute := range []bool{false, true} {
		f, c := routed(t)
		c.a.SetIsSM(true)
		if err := f.Unlink(switchGUID(1), 2); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			f.AdvanceTo(f.Now() + time.Second)
			traps(c)
		}
		if err := f.SetFault(switchGUID(2), fabric.Fault{Mute: mute}); err != nil {
			t.Fatal(err)
		}
		// The far switch has been telling of the pull all the time, in vain.
		if err := f.Link(switchGUID(1), 2, switchGUID(2), 1); err != nil {
			t.Fatal(err)
		}
		f.AdvanceTo(f.Now() + 2*time.Second)
		issuers := map[ib.LID]bool{}
		var d fabric.Delivery
		for c.a.Receive(&d) {
			if mad.Method(d.MAD[3]) == mad.MethodTrap {
				issuers[d.SLID] = true
			}
		}
		if !issuers[lidS1] || issuers[lidS2] == mute {
			t.Errorf("mute %v: traps came from %v", mute, issuers)
		}
	}
}

// Power that fails takes with it what is under way to the node, what waits for
// its agent and what its manager has not received.
func TestPowerOffUnderWay(t *testing.T) {
	f := newFabric(t, chain(t, 1), fabric.Config{HopDelay: 10, AgentDelay: 100})
	c := attach(t, f, hostGUID(1), 1)
	far := attach(t, f, hostGUID(2), 1)
	request := directed(along(2), mad.MethodGet, smp.AttrNodeInfo, 0)
	far.send(directed(nil, mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive)
	f.AdvanceTo(200)
	if far.a.Waiting() != 1 {
		t.Fatalf("%d packets wait, want 1", far.a.Waiting())
	}
	c.send(request, ib.LIDPermissive)
	f.AdvanceTo(250)
	c.send(request, ib.LIDPermissive)
	f.AdvanceTo(265)
	if err := f.PowerOff(hostGUID(2)); err != nil {
		t.Fatal(err)
	}
	far.send(request, ib.LIDPermissive)
	f.AdvanceTo(1000)
	if got := f.Counts().Discarded[fabric.DiscardOff]; got != 3 {
		t.Errorf("discarded: %s; want 3 for want of power", discards(f))
	}
	c.send(request, ib.LIDPermissive)
	f.AdvanceTo(1005)
	if err := f.PowerOff(switchGUID(1)); err != nil {
		t.Fatal(err)
	}
	f.AdvanceTo(2000)
	if got := f.Counts().Discarded[fabric.DiscardOff]; got != 4 {
		t.Errorf("discarded: %s; want 4 for want of power", discards(f))
	}
	if f.InFlight() != 0 {
		t.Errorf("%d packets are left over", f.InFlight())
	}
}

// A new cable is told of at once, by both ends, without any timer.
func TestTrapsOfNewCable(t *testing.T) {
	f, c := routed(t)
	c.a.SetIsSM(true)
	f.AdvanceTo(f.Now() + 2*time.Second)
	traps(c)
	if err := f.Link(switchGUID(1), 3, switchGUID(2), 3); err != nil {
		t.Fatal(err)
	}
	f.AdvanceTo(f.Now() + patience)
	if got := traps(c); len(got) != 2 || got[0] != smp.TrapLinkStateChanged || got[1] != smp.TrapLinkStateChanged {
		t.Errorf("traps %v, want 128 twice", got)
	}
}

// An agent's timers work again after a time without power in which one fell
// due.
func TestTimersAfterPower(t *testing.T) {
	f, c := routed(t)
	c.a.SetIsSM(true)
	far := attach(t, f, hostGUID(2), 1)
	repeated := func() (n int) {
		t.Helper()
		far.a.SetIsSM(true) // trap 144
		f.AdvanceTo(f.Now() + 2500*time.Millisecond)
		var d fabric.Delivery
		for c.a.Receive(&d) {
			if d.SLID == lidLast {
				n++
			}
		}
		return n
	}
	if n := repeated(); n != 3 {
		t.Errorf("%d traps in 2.5 s, want 3", n)
	}
	if err := f.PowerOff(hostGUID(2)); err != nil {
		t.Fatal(err)
	}
	f.AdvanceTo(f.Now() + 5*time.Second)
	if err := f.PowerOn(hostGUID(2)); err != nil {
		t.Fatal(err)
	}
	c.address(along(3), lidLast, lidFirst, 0)
	if n := repeated(); n != 3 {
		t.Errorf("%d traps in 2.5 s after power was back, want 3", n)
	}
}

// A question to a manager reaches the manager, and its answer comes back.
func TestManagersTalk(t *testing.T) {
	f := newFabric(t, chain(t, 2), fabric.DefaultConfig())
	asking, asked := attach(t, f, hostGUID(1), 1), attach(t, f, hostGUID(2), 1)
	request := directed(along(3), mad.MethodGet, smp.AttrSMInfo, 0)
	answer, _, ok := asking.ask(request, ib.LIDPermissive)
	if !ok || answer.Status == mad.StatusOK {
		t.Errorf("where no manager runs: answered %v, status %v; want a refusal", ok, answer.Status)
	}
	asked.a.SetIsSM(true)
	asking.send(request, ib.LIDPermissive)
	f.AdvanceTo(f.Now() + patience)
	var d fabric.Delivery
	if !asked.a.Receive(&d) {
		t.Fatalf("the question did not arrive; discarded: %s", discards(f))
	}
	var p mad.SMP
	if err := p.UnmarshalBinary(d.MAD[:]); err != nil {
		t.Fatal(err)
	}
	p.MakeResponse(mad.StatusOK)
	p.Data[0] = 0x77
	asked.send(p, d.SLID)
	f.AdvanceTo(f.Now() + patience)
	if !asking.a.Receive(&d) {
		t.Fatalf("the answer did not arrive; discarded: %s", discards(f))
	}
	if err := p.UnmarshalBinary(d.MAD[:]); err != nil {
		t.Fatal(err)
	}
	if p.Data[0] != 0x77 || p.HopPointer != 0 {
		t.Errorf("got %+v", p)
	}
	asked.a.Detach()
	asking.a.Detach()
	if attachError(f, hostGUID(1), 1) != nil {
		t.Error("a port that was left cannot be attached to")
	}
	if f.Agent(hostGUID(2)).Port(1).CapabilityMask.Has(smp.CapIsSM) {
		t.Error("IsSM stays when the manager leaves")
	}
}

// Without power a node answers nothing and its links are down; with it, it is
// as at first, but for what it keeps.
func TestPower(t *testing.T) {
	f := newFabric(t, chain(t, 2), fabric.Config{Profile: func(n *topology.Node, c *sma.Config) {
		if n.ID == "last" {
			c.Ports[0].CapabilityMask |= smp.CapPKeyNVRAM
		}
	}})
	c := attach(t, f, hostGUID(1), 1)
	c.address(along(3), 9, 9, 0)
	keys := smp.PKeyTable{Keys: [smp.PKeysPerBlock]ib.PKey{0x8001, 0x0002}}
	c.set(along(3), 0, &keys)
	if err := f.PowerOff(hostGUID(2)); err != nil {
		t.Fatal(err)
	}
	if p := f.Agent(switchGUID(2)).Port(2); p.PortState != smp.PortDown || p.PortPhysicalState != smp.PhysPolling {
		t.Errorf("the other end is %v, %v", p.PortState, p.PortPhysicalState)
	}
	if _, _, ok := c.ask(directed(along(3), mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive); ok {
		t.Error("answered without power")
	}
	if f.PowerOff(hostGUID(2)) == nil {
		t.Error("power off without power: no error")
	}
	if err := f.Link(switchGUID(2), 3, hostGUID(2), 2); err != nil {
		t.Fatal(err)
	}
	if p := f.Agent(switchGUID(2)).Port(3); p.PortState != smp.PortDown {
		t.Errorf("a cable to a node without power is %v", p.PortState)
	}
	if err := f.PowerOn(hostGUID(2)); err != nil {
		t.Fatal(err)
	}
	if p := f.Agent(switchGUID(2)).Port(3); p.PortState != smp.PortInit {
		t.Errorf("the same cable is %v once there is power", p.PortState)
	}
	if err := f.Reboot(hostGUID(2)); err != nil {
		t.Fatal(err)
	}
	var info smp.PortInfo
	c.get(along(3), 0, &info)
	if info.LID != 0 || info.PortState != smp.PortInit {
		t.Errorf("after power-on: LID %v, state %v", info.LID, info.PortState)
	}
	var kept smp.PKeyTable
	c.get(along(3), 0, &kept)
	if kept != keys {
		t.Errorf("after power-on: keys %v", kept.Keys)
	}
}
