package sma

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// cable joins a port of one device with a port of another, as a fabric does.
type cable struct {
	ends [2]*device
	at   [2]ib.PortNum
}

func (c cable) train() {
	if link, ok := Train(c.ends[0].Port(c.at[0]), c.ends[1].Port(c.at[1])); ok {
		for i, d := range c.ends {
			d.LinkUp(d.now, c.at[i], link)
		}
	}
}

// carry does what a LinkMoved of one end obliges to.
func (c cable) carry(from int) {
	peer := 1 - from
	c.ends[peer].LinkDown(0, c.at[peer])
	c.train()
}

func (c cable) states() [2]smp.PortState {
	return [2]smp.PortState{c.ends[0].Port(c.at[0]).PortState, c.ends[1].Port(c.at[1]).PortState}
}

func join(t *testing.T, a, b Config) cable {
	c := cable{[2]*device{start(t, a), start(t, b)}, [2]ib.PortNum{1, 1}}
	for i, d := range c.ends {
		d.address(1, ib.LID(0x10+i))
	}
	return c
}

func TestLinkStates(t *testing.T) {
	t.Run("PI-34", func(t *testing.T) {
		d := start(t, switchConfig(4))
		want := []smp.PortState{smp.PortDown, smp.PortInit, smp.PortArmed, smp.PortActive, smp.PortDown}
		steps := []func(){
			func() {}, func() { d.plug(3) },
			func() { d.mustChange(1, 3, func(p *smp.PortInfo) { p.PortState = smp.PortArmed }) },
			func() { d.mustChange(1, 3, func(p *smp.PortInfo) { p.PortState = smp.PortActive }) },
			func() { d.LinkDown(d.now, 3) },
		}
		d.address(1, 0x10)
		for i, step := range steps {
			step()
			if got := d.portInfo(1, 3).PortState; got != want[i] {
				t.Errorf("step %d: %v, want %v", i, got, want[i])
			}
		}
	})
	t.Run("PI-35", func(t *testing.T) {
		d := start(t, caConfig(1))
		for _, state := range []smp.PortState{smp.PortInit, smp.PortArmed, smp.PortActive} {
			d.address(1, 0x10)
			d.bring(1, 1, state)
			if got := d.portInfo(1, 1).PortState; got != state {
				t.Errorf("%v, want %v", got, state)
			}
			d.LinkDown(d.now, 1)
			if got := d.portInfo(1, 1).PortState; got != smp.PortDown {
				t.Errorf("cable pulled in %v: %v", state, got)
			}
		}
	})
	t.Run("PI-38", func(t *testing.T) {
		for _, at := range places() {
			if at.kind == basePort0 {
				continue
			}
			d := at.open(t)
			if at.kind.hasCable() {
				d.plug(at.port)
			}
			for _, state := range []smp.PortState{smp.PortArmed, smp.PortActive} {
				d.mustChange(at.through, at.port, func(p *smp.PortInfo) { p.PortState = state })
				if got := d.portInfo(at.through, at.port).PortState; got != state {
					t.Errorf("%s: %v, want %v", at.name, got, state)
				}
				if e := effects(d.last.Effects, StateChanged); len(e) != 0 {
					t.Errorf("%s: a Get changed a state", at.name)
				}
			}
		}
	})
	t.Run("PI-39", testTransitions)
	t.Run("PI-40", func(t *testing.T) {
		d := start(t, caConfig(1))
		if got := d.portInfo(1, 1).PortPhysicalState; got != smp.PhysPolling {
			t.Errorf("without a peer: %v", got)
		}
		d.plug(1)
		if got := d.portInfo(1, 1).PortPhysicalState; got != smp.PhysLinkUp {
			t.Errorf("with a peer: %v", got)
		}
		if got := d.raw(1, smp.AttrPortInfo, 0)[33] >> 4; got != 5 {
			t.Errorf("with a peer: byte 33 begins with %d, want 5", got)
		}
		if d.LinkDown(d.now, 1); d.portInfo(1, 1).PortPhysicalState != smp.PhysPolling {
			t.Errorf("the peer is gone: %v", d.portInfo(1, 1).PortPhysicalState)
		}
	})
	t.Run("PI-41", func(t *testing.T) {
		d := start(t, caConfig(1))
		d.address(1, 0x10)
		d.plug(1)
		for _, phys := range []smp.PhysState{smp.PhysDisabled, smp.PhysSleep, smp.PhysPolling} {
			d.mustChange(1, 1, func(p *smp.PortInfo) { p.PortPhysicalState = phys })
			if got := d.portInfo(1, 1); got.PortPhysicalState != phys || got.PortState != smp.PortDown {
				t.Errorf("%v, want %v and Down", got.PortPhysicalState, phys)
			}
		}
	})
	t.Run("PI-44", func(t *testing.T) {
		c := join(t, caConfig(1), switchConfig(2))
		c.train()
		if got := c.states(); got != [2]smp.PortState{smp.PortInit, smp.PortInit} {
			t.Fatalf("trained: %v", got)
		}
		d := c.ends[0]
		d.mustChange(1, 1, func(p *smp.PortInfo) { p.PortPhysicalState = smp.PhysDisabled })
		if e := effects(d.last.Effects, LinkMoved); len(e) != 1 || e[0].Port != 1 {
			t.Fatalf("effects %v", d.last.Effects)
		}
		c.carry(0)
		if got := c.states(); got != [2]smp.PortState{smp.PortDown, smp.PortDown} {
			t.Errorf("disabled: %v", got)
		}
		d.mustChange(1, 1, func(p *smp.PortInfo) { p.PortPhysicalState = smp.PhysPolling })
		c.carry(0)
		if got := c.states(); got != [2]smp.PortState{smp.PortInit, smp.PortInit} {
			t.Errorf("polling again: %v", got)
		}
	})
	t.Run("PI-48", func(t *testing.T) {
		d := start(t, caConfig(1))
		d.address(1, 0x10)
		d.mustChange(1, 1, func(p *smp.PortInfo) { p.LinkDownDefaultState = smp.PhysSleep })
		d.plug(1)
		d.LinkDown(d.now, 1)
		if got := d.portInfo(1, 1).PortPhysicalState; got != smp.PhysSleep {
			t.Errorf("%v", got)
		}
		if d.plug(1); d.Port(1).PortState != smp.PortDown {
			t.Error("a sleeping port came up")
		}
	})
	t.Run("down by Set", func(t *testing.T) {
		c := join(t, caConfig(1), switchConfig(2))
		c.train()
		d := c.ends[1]
		d.mustChange(1, 1, func(p *smp.PortInfo) { p.PortState = smp.PortDown })
		if got := d.portInfo(1, 1); got.PortState != smp.PortDown || got.PortPhysicalState != smp.PhysPolling {
			t.Errorf("%v, %v", got.PortState, got.PortPhysicalState)
		}
		c.carry(1)
		if got := c.states(); got != [2]smp.PortState{smp.PortInit, smp.PortInit} {
			t.Errorf("trained again: %v", got)
		}
	})
	t.Run("enhanced port 0 down by Set", func(t *testing.T) {
		d := start(t, enhancedConfig(2))
		d.address(1, 0x10)
		d.mustChange(1, 0, func(p *smp.PortInfo) { p.PortState = smp.PortArmed })
		d.mustChange(1, 0, func(p *smp.PortInfo) { p.PortState = smp.PortDown })
		if got := d.portInfo(1, 0).PortState; got != smp.PortInit {
			t.Errorf("%v", got)
		}
		if s := d.change(1, 0, func(p *smp.PortInfo) { p.PortPhysicalState = smp.PhysDisabled }); s != mad.StatusInvalidField {
			t.Errorf("disabled: status %v", s)
		}
	})
}

// testTransitions writes each state in each state.
func testTransitions(t *testing.T) {
	const refused = mad.StatusInvalidField
	type outcome struct {
		status mad.Status
		state  smp.PortState
	}
	tests := map[smp.PortState][5]outcome{ // by state, then by the state written
		smp.PortDown:   {{0, smp.PortDown}, {0, smp.PortDown}, {refused, smp.PortDown}, {refused, smp.PortDown}, {refused, smp.PortDown}},
		smp.PortInit:   {{0, smp.PortInit}, {0, smp.PortDown}, {refused, smp.PortInit}, {0, smp.PortArmed}, {refused, smp.PortInit}},
		smp.PortArmed:  {{0, smp.PortArmed}, {0, smp.PortDown}, {refused, smp.PortArmed}, {0, smp.PortArmed}, {0, smp.PortActive}},
		smp.PortActive: {{0, smp.PortActive}, {0, smp.PortDown}, {refused, smp.PortActive}, {refused, smp.PortActive}, {0, smp.PortActive}},
	}
	for from, outcomes := range tests {
		for to, want := range outcomes {
			d := start(t, caConfig(1))
			d.address(1, 0x10)
			if from != smp.PortDown {
				d.bring(1, 1, from)
			}
			status := d.change(1, 1, func(p *smp.PortInfo) { p.PortState = smp.PortState(to) })
			if got := d.Port(1).PortState; status != want.status || got != want.state {
				t.Errorf("%v, written %v: status %v, %v", from, smp.PortState(to), status, got)
			}
			if got := len(effects(d.last.Effects, StateChanged)); (got == 1) != (from != want.state) {
				t.Errorf("%v, written %v: %d StateChanged", from, smp.PortState(to), got)
			}
		}
	}
}

func TestPortStateChange(t *testing.T) {
	open := func(t *testing.T) *device {
		d := start(t, switchConfig(4))
		d.address(1, 0x10)
		return d
	}
	changed := func(d *device) bool {
		var s smp.SwitchInfo
		d.mustGet(1, 0, &s)
		return s.PortStateChange
	}
	clearChange := func(d *device, with bool) {
		var s smp.SwitchInfo
		d.mustGet(1, 0, &s)
		s.PortStateChange = with
		d.mustSet(1, 0, &s)
	}
	t.Run("SI-12", func(t *testing.T) {
		d := open(t)
		if changed(d) {
			t.Error("set before anything happened")
		}
		e := d.plug(3)
		if traps := effects(e, TrapSent); len(traps) != 1 {
			t.Errorf("%d traps, want trap 128", len(traps))
		}
		if !changed(d) {
			t.Error("not set")
		}
	})
	for rule, state := range map[string]smp.PortState{"SI-13": smp.PortInit, "SI-14": smp.PortArmed, "SI-15": smp.PortActive} {
		t.Run(rule, func(t *testing.T) {
			d := open(t)
			d.bring(1, 3, state)
			clearChange(d, true)
			if changed(d) {
				t.Fatal("not cleared")
			}
			d.LinkDown(d.now, 3)
			if !changed(d) {
				t.Errorf("not set after %v to Down", state)
			}
		})
	}
	t.Run("SI-16", func(t *testing.T) {
		d := open(t)
		d.plug(3)
		clearChange(d, true)
		for _, state := range []smp.PortState{smp.PortArmed, smp.PortActive, smp.PortDown} {
			d.mustChange(1, 3, func(p *smp.PortInfo) { p.PortState = state })
			if changed(d) {
				t.Errorf("set by a Set to %v", state)
			}
		}
	})
	t.Run("SI-17", func(t *testing.T) {
		d := open(t)
		d.plug(3)
		if clearChange(d, true); changed(d) {
			t.Error("still set")
		}
	})
	t.Run("SI-18", func(t *testing.T) {
		d := open(t)
		d.plug(3)
		if clearChange(d, false); !changed(d) {
			t.Error("cleared by a 0")
		}
	})
}

func TestTrain(t *testing.T) {
	polling := func(width smp.LinkWidth, speed smp.LinkSpeed, ext smp.LinkSpeedExt) smp.PortInfo {
		return smp.PortInfo{PortPhysicalState: smp.PhysPolling, LinkWidthEnabled: width, LinkSpeedEnabled: speed, LinkSpeedExtEnabled: ext}
	}
	xdr := func(p smp.PortInfo) smp.PortInfo { p.LinkSpeedExtEnabled2 = smp.LinkSpeedXDR; return p }
	tests := []struct {
		name string
		p, q smp.PortInfo
		want Link
		ok   bool
	}{
		{"PI-31/1x and 4x", polling(1, 1, 0), polling(3, 1, 0), Link{1, 1, 0, 0}, true},
		{"PI-31/widest", polling(31, 7, 0), polling(31, 3, 0), Link{smp.LinkWidth12X, 2, 0, 0}, true},
		{"PI-31/2x", polling(0x11, 7, 0), polling(0x13, 7, 0), Link{smp.LinkWidth2X, 4, 0, 0}, true},
		{"PI-31/8x", polling(7, 1, 0), polling(31, 1, 0), Link{smp.LinkWidth8X, 1, 0, 0}, true},
		{"extended", polling(3, 7, 3), polling(3, 7, 15), Link{2, 0, 2, 0}, true},
		{"extended on one side", polling(3, 7, 3), polling(3, 5, 0), Link{2, 4, 0, 0}, true},
		{"XDR", xdr(polling(3, 7, 15)), xdr(polling(3, 7, 15)), Link{2, 0, 0, smp.LinkSpeedXDR}, true},
		{"XDR on one side", xdr(polling(3, 7, 15)), polling(3, 7, 15), Link{2, 0, 8, 0}, true},
		{"no common width", polling(1, 1, 0), polling(2, 1, 0), Link{}, false},
		{"no common speed", polling(1, 1, 0), polling(1, 2, 0), Link{}, false},
		{"disabled", smp.PortInfo{PortPhysicalState: smp.PhysDisabled, LinkWidthEnabled: 1, LinkSpeedEnabled: 1}, polling(1, 1, 0), Link{}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, ends := range [][2]*smp.PortInfo{{&test.p, &test.q}, {&test.q, &test.p}} {
				got, ok := Train(ends[0], ends[1])
				if ok != test.ok || ok && got != test.want {
					t.Errorf("%+v, %v, want %+v", got, ok, test.want)
				}
			}
		})
	}
	for _, rule := range []string{"PI-29/4x", "PI-54/10 Gb/s"} {
		t.Run(rule, func(t *testing.T) {
			slow := func(c Config) Config {
				for i := range c.Ports {
					c.Ports[i].LinkSpeedExtSupported = 0
				}
				return c
			}
			c := join(t, slow(caConfig(1)), slow(switchConfig(2)))
			c.train()
			for i, d := range c.ends {
				if p := d.portInfo(1, c.at[i]); p.LinkWidthActive != smp.LinkWidth4X || p.LinkSpeedActive != smp.LinkSpeedQDR {
					t.Errorf("end %d: width %v, speed %v", i, p.LinkWidthActive, p.LinkSpeedActive)
				}
			}
		})
	}
	for _, rule := range []string{"PI-29", "PI-30", "PI-31", "PI-54", "PI-55"} {
		t.Run(rule, func(t *testing.T) {
			c := join(t, book(caConfig(1)), book(switchConfig(2)))
			c.ends[0].mustChange(1, 1, func(p *smp.PortInfo) { p.LinkWidthEnabled = smp.LinkWidth1X })
			c.train()
			for i, d := range c.ends {
				if p := d.portInfo(1, c.at[i]); p.LinkWidthActive != smp.LinkWidth1X || p.LinkSpeedActive != smp.LinkSpeedSDR {
					t.Errorf("end %d: width %v, speed %v", i, p.LinkWidthActive, p.LinkSpeedActive)
				}
			}
		})
	}
}

// Link events at ports that have no cable, or do not exist, do nothing.
func TestLinkEventsElsewhere(t *testing.T) {
	for _, n := range []ib.PortNum{0, 5, 255} {
		d := start(t, enhancedConfig(4))
		if d.plug(n) != nil || d.LinkDown(d.now, n) != nil || d.SwitchInfo().PortStateChange {
			t.Errorf("port %d: something happened", n)
		}
	}
	d := start(t, caConfig(1))
	if d.LinkDown(d.now, 1) != nil || d.plug(0) != nil {
		t.Error("CA: something happened")
	}
	d.plug(1)
	if e := d.LinkDown(d.now, 1); len(e) != 1 || e[0] != (Effect{Kind: StateChanged, Port: 1}) {
		t.Errorf("effects %v", e)
	}
}
