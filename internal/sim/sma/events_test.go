package sma

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// traps are the traps among effects, with their decoded notices.
func traps(t testing.TB, all []Effect) (found []*Trap, notices []smp.Notice) {
	t.Helper()
	for _, e := range effects(all, TrapSent) {
		var n smp.Notice
		if err := n.UnmarshalBinary(e.Trap.SMP.Data[:]); err != nil {
			t.Fatal(err)
		}
		found, notices = append(found, e.Trap), append(notices, n)
	}
	return found, notices
}

// oneTrap is the only trap among effects, and its details in d.
func oneTrap(t testing.TB, all []Effect, number smp.TrapNumber, d smp.TrapDetails) *Trap {
	t.Helper()
	found, notices := traps(t, all)
	if len(found) != 1 || notices[0].TrapNumber != number {
		t.Fatalf("%d traps %v, want one of number %d", len(found), notices, number)
	}
	if err := d.UnmarshalBinary(notices[0].Details[:]); err != nil {
		t.Fatal(err)
	}
	return found[0]
}

func TestSMInfo(t *testing.T) {
	control := func(d *device, method mad.Method, modifier uint32) mad.SMP {
		return d.request(1, method, smp.AttrSMInfo, modifier, [mad.DataSize]byte{})
	}
	for _, rule := range []string{"SM-01", "SM-03", "SM-04", "SM-05"} {
		t.Run(rule, func(t *testing.T) {
			for _, c := range allConfigs() {
				for _, n := range []ib.PortNum{1, 2} {
					d := start(t, c)
					d.SetIsSM(0, n, true)
					for modifier := range uint32(7) {
						for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
							p := d.request(n, method, smp.AttrSMInfo, modifier, [mad.DataSize]byte{})
							if d.last.Verdict != ForManager || p.Method != method {
								t.Errorf("%v port %d: %v, modifier %d: verdict %d", c.NodeType, n, method, modifier, d.last.Verdict)
							}
						}
					}
				}
			}
		})
	}
	t.Run("SM-01/other attributes are the agent's", func(t *testing.T) {
		for _, c := range allConfigs() {
			d := start(t, c)
			d.SetIsSM(0, 1, true)
			for id := range mad.AttributeID(0x140) {
				d.request(1, mad.MethodGet, id, 0, [mad.DataSize]byte{})
				if manager := d.last.Verdict == ForManager; manager != (id == 0x20) {
					t.Errorf("%v: Get of attribute %#x: verdict %d", c.NodeType, uint16(id), d.last.Verdict)
				}
			}
		}
	})
	t.Run("SM-02", func(t *testing.T) {
		for _, c := range allConfigs() {
			d := start(t, c)
			for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
				if p := control(d, method, 0); d.last.Verdict != Answered || p.Status != mad.StatusUnsupportedAttrib {
					t.Errorf("%v: %v: verdict %d, status %v", c.NodeType, method, d.last.Verdict, p.Status)
				}
			}
			d.SetIsSM(0, 1, true)
			d.SetIsSM(0, 1, false)
			if control(d, mad.MethodGet, 0); d.last.Verdict != Answered {
				t.Errorf("%v: verdict %d after the SM left", c.NodeType, d.last.Verdict)
			}
		}
	})
	t.Run("packets for the manager", func(t *testing.T) {
		d := start(t, caConfig(2))
		d.SetIsSM(0, 2, true)
		for _, method := range []mad.Method{mad.MethodTrap, mad.MethodGetResp} {
			d.request(2, method, smp.AttrNotice, 0, [mad.DataSize]byte{})
			if d.last.Verdict != ForManager {
				t.Errorf("%v: verdict %d", method, d.last.Verdict)
			}
			d.request(1, method, smp.AttrNotice, 0, [mad.DataSize]byte{})
			if d.last.Verdict != Unwanted {
				t.Errorf("%v at the other port: verdict %d", method, d.last.Verdict)
			}
		}
	})
	// The manager behind a port has no M_Key: it is asked without one, whatever
	// guards the port, and a TrapRepress that lacks the key stays outside.
	t.Run("SM-02 no M_Key guards it", func(t *testing.T) {
		for level := range uint8(4) {
			d := guarded(t, caConfig(1), level, 0)
			d.SetIsSM(0, 1, true)
			for _, key := range []ib.MKey{0, otherKey, testMKey} {
				d.mkey = key
				for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
					if control(d, method, 0); d.last.Verdict != ForManager {
						t.Errorf("level %d: %v with key %v: verdict %d", level, method, key, d.last.Verdict)
					}
				}
			}
			d.mkey = 0
			if control(d, mad.MethodTrapRepress, 0); d.last.Verdict != BadMKey {
				t.Errorf("level %d: TrapRepress: verdict %d", level, d.last.Verdict)
			}
			if n := d.endPort(1).info.MKeyViolations; n != 1 {
				t.Errorf("level %d: %d violations", level, n)
			}
		}
	})
	t.Run("IsSM", func(t *testing.T) {
		d := start(t, caConfig(1))
		d.address(1, 0x10)
		var details smp.LocalChangeDetails
		oneTrap(t, d.SetIsSM(0, 1, true), smp.TrapLocalChange, &details)
		if want := TypicalPort().CapabilityMask | smp.CapIsSM; details.CapabilityMask != want || details.LID != 0x10 || d.portInfo(1, 1).CapabilityMask != want {
			t.Errorf("%+v", details)
		}
		if e := d.SetIsSM(0, 1, true); len(e) != 0 {
			t.Errorf("the same again: %v", e)
		}
		if e := d.SetIsSM(0, 9, true); len(e) != 0 {
			t.Errorf("no such port: %v", e)
		}
	})
}

func TestTraps(t *testing.T) {
	t.Run("NO-01", func(t *testing.T) {
		c := caConfig(1)
		c.Ports[0].CapabilityMask |= smp.CapNoticeSupported
		d := guarded(t, c, 2, 0)
		d.try(otherKey, mad.MethodSet)
		trap := oneTrap(t, d.last.Effects, smp.TrapBadMKey, new(smp.BadMKeyDetails))
		if trap.SMP.AttributeID != 0x0002 || trap.SMP.AttributeModifier != 0 {
			t.Errorf("%+v", trap.SMP)
		}
		var n smp.Notice
		if d.mustGet(1, 0, &n); n.TrapNumber != smp.TrapBadMKey {
			t.Errorf("%+v", n)
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0002, 1)
		d.try(otherKey, mad.MethodSet)
		if n := len(d.endPort(1).events.pending); n != 1 {
			t.Errorf("%d traps are pending for one event that came twice, want 1", n)
		}
	})
	t.Run("NO-01/one event each", testOneEventEach)
	for _, rule := range []string{"NO-03", "PI-15", "PI-65"} {
		t.Run(rule, func(t *testing.T) {
			d := start(t, switchConfig(4))
			for i, sm := range []ib.LID{0x21, 0x22} {
				d.mustChange(1, 0, func(p *smp.PortInfo) { p.LID, p.MasterSMLID, p.MasterSMSL, p.SubnetTimeOut = 0x10, sm, 5, 0 })
				var details smp.LinkStateDetails
				trap := oneTrap(t, d.plug(ib.PortNum(1+i)), smp.TrapLinkStateChanged, &details)
				if trap.SMP.Method != 0x05 || trap.SMP.Class != mad.ClassSubnLID || trap.DLID != sm || trap.SL != 5 || trap.SLID != 0x10 || details.LID != 0x10 {
					t.Errorf("%+v", trap)
				}
				if trap.SMP.MKey != 0 {
					t.Errorf("M_Key %v in a trap", trap.SMP.MKey)
				}
				d.now += time.Second
				d.acknowledge(trap)
			}
		})
	}
	t.Run("no manager", func(t *testing.T) {
		d := start(t, switchConfig(4))
		if found, _ := traps(t, d.plug(1)); len(found) != 0 {
			t.Errorf("%d traps to nobody", len(found))
		}
		if at, ok := d.Deadline(); ok {
			t.Errorf("deadline %v", at)
		}
	})
	t.Run("no trap capability", func(t *testing.T) {
		c := switchConfig(4)
		c.Switch.Port0.CapabilityMask &^= smp.CapTrapSupported
		d := start(t, c)
		d.address(1, 0x10)
		if found, _ := traps(t, d.plug(1)); len(found) != 0 {
			t.Errorf("%d traps", len(found))
		}
	})
	t.Run("NO-04", testTrapRate)
	t.Run("NO-04/repeated until repressed", testTrapRepeat)
	t.Run("given up", func(t *testing.T) {
		c := switchConfig(4)
		c.TrapSends = 2
		d := start(t, c)
		d.address(1, 0x10)
		sent := len(effects(d.plug(1), TrapSent))
		for at, ok := d.Deadline(); ok; at, ok = d.Deadline() {
			sent += len(effects(d.Expire(at), TrapSent))
		}
		if sent != 2 {
			t.Errorf("sent %d times", sent)
		}
	})
	t.Run("manager gone", func(t *testing.T) {
		d := start(t, switchConfig(4))
		d.address(1, 0x10)
		d.plug(1)
		d.ports[0].info.MasterSMLID = 0
		at, _ := d.Deadline()
		if e := d.Expire(at); len(e) != 0 {
			t.Errorf("effects %v", e)
		}
		if at, ok := d.Deadline(); ok {
			t.Errorf("deadline %v", at)
		}
	})
}

// testOneEventEach has three events come up before any of them is seen: each has
// a trap and a notice of its own.
func testOneEventEach(t *testing.T) {
	c := switchConfig(4)
	c.Switch.Port0.CapabilityMask |= smp.CapNoticeSupported
	d := start(t, c)
	d.address(1, 0x10)
	want := []smp.TrapNumber{smp.TrapLinkStateChanged, smp.TrapLinkIntegrity, smp.TrapBufferOverrun}
	sent := slices.Clone(d.plug(1))
	sent = append(sent, d.PhyError(d.now, 2)...)
	sent = append(sent, d.FlowControlPeriod(d.now, 3, true)...)
	for range 2 * len(want) { // each is repeated
		d.now, _ = d.Deadline()
		sent = append(sent, d.Expire(d.now)...)
	}
	found, notices := traps(t, sent)
	numbers, last := make(map[uint64]smp.TrapNumber), uint64(0)
	for i, trap := range found {
		id := trap.SMP.TransactionID
		if was, again := numbers[id]; again && was != notices[i].TrapNumber {
			t.Errorf("transaction %d has traps %d and %d", id, was, notices[i].TrapNumber)
		}
		numbers[id], last = notices[i].TrapNumber, max(last, id)
	}
	if len(numbers) != len(want) {
		t.Errorf("%d traps, want %d", len(numbers), len(want))
	}
	for i, number := range want {
		if id := last - uint64(len(want)-1-i); numbers[id] != number {
			t.Errorf("trap %d has number %d, want %d", i, numbers[id], number)
		}
	}
	for i, number := range want {
		var n smp.Notice
		if d.mustGet(1, 0, &n); n.TrapNumber != number || int(n.NoticeCount) != len(want)-i {
			t.Errorf("notice %d: %+v, want number %d", i, n, number)
		}
		d.mustSet(1, 0, &n)
	}
}

// acknowledge acknowledges a trap as a manager does.
func (d *device) acknowledge(trap *Trap) {
	p := trap.SMP
	p.Method, p.MKey = mad.MethodTrapRepress, d.mkey
	d.last = d.Handle(d.now, Ingress{Port: 1, SLID: testSM}, &p)
}

// testTrapRate provokes many different traps at once.
func testTrapRate(t *testing.T) {
	d := guarded(t, caConfig(1), 2, 0)
	d.mustChange(1, 0, func(p *smp.PortInfo) { p.SubnetTimeOut = 10 })
	interval := ib.TimeValue(10).Duration()
	var times []time.Duration
	for i := range 1000 {
		d.try(otherKey+ib.MKey(i), mad.MethodSet)
		for range effects(d.last.Effects, TrapSent) {
			times = append(times, d.now)
		}
		d.now += time.Microsecond
		for range effects(d.Expire(d.now), TrapSent) {
			times = append(times, d.now)
		}
	}
	for i := 1; i < len(times); i++ {
		if gap := times[i] - times[i-1]; gap < interval {
			t.Errorf("traps %d and %d are %v apart, want %v", i-1, i, gap, interval)
		}
	}
	if span := 1000 * time.Microsecond; len(times) != 1 && len(times) != 1+int(span/interval) {
		t.Errorf("%d traps in %v", len(times), span)
	}
	if n := len(d.ports[1].events.pending); n != MaxPendingTraps {
		t.Errorf("%d traps wait, want %d", n, MaxPendingTraps)
	}
}

func testTrapRepeat(t *testing.T) {
	d := start(t, switchConfig(4))
	d.address(1, 0x10)
	first := oneTrap(t, d.plug(1), smp.TrapLinkStateChanged, new(smp.LinkStateDetails))
	interval := ib.TimeValue(18).Duration()
	if e := d.plug(2); len(effects(e, TrapSent)) != 0 {
		t.Error("a second trap at once")
	}
	for i := range 3 {
		at, ok := d.Deadline()
		if want := time.Duration(i+1) * interval; !ok || at != want {
			t.Fatalf("deadline %v, want %v", at, want)
		}
		if e := d.Expire(at - 1); len(e) != 0 {
			t.Errorf("sent too early: %v", e)
		}
		again := oneTrap(t, d.Expire(at), smp.TrapLinkStateChanged, new(smp.LinkStateDetails))
		if *again != *first {
			t.Errorf("repeated as %+v", again)
		}
		d.now = at
	}
	wrong := *first
	wrong.SMP.TransactionID++
	d.acknowledge(&wrong)
	other := *first
	other.SMP.Data[20]++
	d.acknowledge(&other)
	foreign := *first
	foreign.SMP.AttributeID = smp.AttrNodeInfo
	d.acknowledge(&foreign)
	if _, ok := d.Deadline(); !ok {
		t.Error("repressed by a foreign TrapRepress")
	}
	if d.acknowledge(first); d.last.Verdict != Absorbed {
		t.Errorf("verdict %d", d.last.Verdict)
	}
	if _, ok := d.Deadline(); ok {
		t.Error("still repeated")
	}
}

func TestBadMKeyTrap(t *testing.T) {
	d := guarded(t, caConfig(1), 2, 0)
	d.mkey = otherKey
	for _, test := range []struct {
		p    mad.SMP
		want smp.BadMKeyDetails
	}{
		{
			mad.SMP{Class: mad.ClassSubnLID, Method: mad.MethodSet, AttributeID: smp.AttrPKeyTable, AttributeModifier: 3},
			smp.BadMKeyDetails{LID: testSM, Method: mad.MethodSet, AttributeID: 0x16, AttributeModifier: 3, MKey: otherKey},
		},
		{
			mad.SMP{Class: mad.ClassSubnDirected, Method: mad.MethodGet, AttributeID: smp.AttrNodeInfo, HopCount: 2, HopPointer: 3, DrSLID: 0xFFFF,
				ReturnPath: [mad.PathSize]byte{0, 4, 5}},
			smp.BadMKeyDetails{LID: testSM, DrSLID: 0xFFFF, Method: mad.MethodGet, AttributeID: 0x11, MKey: otherKey,
				DRNotice: true, DRHopCount: 2, DRNoticeReturnPath: [30]byte{0, 4, 5}},
		},
		{
			mad.SMP{Class: mad.ClassSubnDirected, Method: mad.MethodGet, AttributeID: smp.AttrNodeInfo, HopCount: 31,
				ReturnPath: [mad.PathSize]byte{29: 9, 30: 8}},
			smp.BadMKeyDetails{LID: testSM, Method: mad.MethodGet, AttributeID: 0x11, MKey: otherKey,
				DRNotice: true, DRPathTruncated: true, DRHopCount: 31, DRNoticeReturnPath: [30]byte{29: 9}},
		},
	} {
		d.now += time.Second
		d.send(1, test.p)
		var got smp.BadMKeyDetails
		trap := oneTrap(t, d.last.Effects, smp.TrapBadMKey, &got)
		if got != test.want {
			t.Errorf("\n%+v, want\n%+v", got, test.want)
		}
		d.mkey = testMKey
		d.acknowledge(trap)
		d.mkey = otherKey
	}
}

func TestBadKeyTraps(t *testing.T) {
	offence := smp.BadKeyDetails{LID1: 3, LID2: 4, Key: 0x8005, SL: 2, QP1: 0x123456, QP2: 0x654321}
	t.Run("NO-05", func(t *testing.T) {
		for on, want := range map[bool]int{false: 0, true: 1} {
			c := caConfig(1)
			c.PKeyTraps = on
			d := start(t, c)
			d.address(1, 0x10)
			e := d.BadPKey(0, 1, offence)
			if got := len(effects(e, TrapSent)); got != want {
				t.Errorf("option %v: %d traps", on, got)
			}
			if on {
				var got smp.BadKeyDetails
				if oneTrap(t, e, smp.TrapBadPKey, &got); got != offence {
					t.Errorf("%+v", got)
				}
			}
		}
	})
	t.Run("NO-05/multicast suppressed", func(t *testing.T) {
		c := caConfig(1)
		c.PKeyTraps = true
		c.Ports[0].CapabilityMask |= smp.CapMulticastPKeyTrapSuppression
		d := start(t, c)
		d.mustChange(1, 0, func(p *smp.PortInfo) { p.LID, p.MasterSMLID, p.MulticastPKeyTrapSuppressionEnabled = 0x10, testSM, 1 })
		multicast := offence
		multicast.LID2 = 0xC001
		if e := d.BadPKey(0, 1, multicast); len(e) != 0 {
			t.Errorf("effects %v", e)
		}
		if e := d.BadPKey(0, 1, offence); len(effects(e, TrapSent)) != 1 {
			t.Errorf("effects %v", e)
		}
	})
	for _, rule := range []string{"SW-20", "NO-05/switch"} {
		t.Run(rule, func(t *testing.T) {
			for on, want := range map[bool]int{false: 0, true: 1} {
				c := switchConfig(4)
				c.PKeyTraps = true // of its port 0: 257
				if on {
					c.Switch.Port0.CapabilityMask |= smp.CapPKeySwitchExternalPortTrap
				}
				d := start(t, c)
				d.address(1, 0x10)
				global := offence
				global.GID1 = ib.MakeGID(ib.DefaultGIDPrefix, 1)
				for i, o := range []smp.BadKeyDetails{offence, global} {
					d.now += time.Minute
					e := slices.Clone(d.BadPKey(d.now, 3, o))
					if got := len(effects(e, TrapSent)); got != want {
						t.Errorf("capable %v: %d traps", on, got)
					}
					if p := d.portInfo(1, 3); p.PKeyViolations != uint16(i+1) || d.Port(0).PKeyViolations != 0 {
						t.Errorf("%d violations at port 3", p.PKeyViolations)
					}
					if !on {
						continue
					}
					wantDetails := smp.SwitchBadPKeyDetails{
						DataValid: []uint16{0x3F, 0xFF}[i], LID1: 3, LID2: 4, PKey: 0x8005, SL: 2,
						QP1: 0x123456, QP2: 0x654321, GID1: o.GID1, SwitchLID: 0x10, Port: 3,
					}
					var got smp.SwitchBadPKeyDetails
					trap := oneTrap(t, e, smp.TrapSwitchBadPKey, &got)
					if got != wantDetails {
						t.Errorf("\n%+v, want\n%+v", got, wantDetails)
					}
					d.acknowledge(trap)
				}
				d.now += time.Minute
				var own smp.BadKeyDetails // port 0 is an end port
				if oneTrap(t, d.BadPKey(d.now, 0, offence), smp.TrapBadPKey, &own); own != offence {
					t.Errorf("port 0: %+v", own)
				}
			}
		})
	}
	t.Run("bad Q_Key", func(t *testing.T) {
		d := start(t, caConfig(1))
		d.address(1, 0x10)
		var got smp.BadKeyDetails
		if oneTrap(t, d.BadQKey(0, 1, offence), smp.TrapBadQKey, &got); got != offence {
			t.Errorf("%+v", got)
		}
		sw := start(t, switchConfig(4))
		if sw.BadQKey(0, 3, offence) != nil || sw.BadQKey(0, 9, offence) != nil || sw.BadPKey(0, 9, offence) != nil {
			t.Error("a port that takes no datagrams refused one")
		}
	})
}

func TestThresholds(t *testing.T) {
	tests := []struct {
		rule   string
		number smp.TrapNumber
		once   func(*device, ib.PortNum) []Effect
	}{
		{"PI-99", smp.TrapLinkIntegrity, func(d *device, n ib.PortNum) []Effect { return d.PhyError(d.now, n) }},
		{"PI-117", smp.TrapBufferOverrun, func(d *device, n ib.PortNum) []Effect { return d.FlowControlPeriod(d.now, n, true) }},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			for _, c := range []Config{caConfig(3), switchConfig(3)} {
				d := start(t, c)
				d.address(3, 0x10)
				d.mustChange(3, 3, func(p *smp.PortInfo) { p.LocalPhyErrors, p.OverrunErrors = 3, 3 })
				for range 3 {
					if e := test.once(d, 3); len(e) != 0 {
						t.Fatalf("too early: %v", e)
					}
				}
				var got smp.PortDetails
				oneTrap(t, test.once(d, 3), test.number, &got)
				if got.Port != 3 || got.LID != 0x10 {
					t.Errorf("%+v", got)
				}
				d.endPort(3).events = nil // the manager has it: the same again would be news
				for range 3 {
					if e := test.once(d, 3); len(e) != 0 {
						t.Errorf("the count did not begin again: %v", e)
					}
				}
				oneTrap(t, test.once(d, 3), test.number, &got)
				if test.once(d, 9) != nil {
					t.Error("a port that does not exist")
				}
			}
		})
	}
	t.Run("PI-117/a good period between", func(t *testing.T) {
		d := start(t, caConfig(1))
		d.mustChange(1, 0, func(p *smp.PortInfo) { p.LID, p.MasterSMLID, p.OverrunErrors = 0x10, testSM, 1 })
		for range 5 {
			if e := d.FlowControlPeriod(0, 1, true); len(e) != 0 {
				t.Fatalf("%v", e)
			}
			d.FlowControlPeriod(0, 1, false)
		}
	})
}

func TestNoticeQueue(t *testing.T) {
	c := switchConfig(4)
	c.Switch.Port0.CapabilityMask = smp.CapNoticeSupported
	t.Run("NO-02", func(t *testing.T) {
		d := start(t, c)
		var n smp.Notice
		if d.mustGet(1, 0, &n); n.Type != smp.NoticeEmpty || n.NoticeCount != 0 {
			t.Errorf("empty queue: %+v", n)
		}
		d.plug(1)
		d.PhyError(0, 2)
		want := []smp.TrapNumber{smp.TrapLinkStateChanged, smp.TrapLinkIntegrity}
		for i, number := range want {
			for range 2 { // reading takes nothing away
				d.mustGet(1, 0, &n)
				if n.TrapNumber != number || int(n.NoticeCount) != len(want)-i || n.NoticeToggle != (i%2 == 1) {
					t.Errorf("notice %d: %+v", i, n)
				}
			}
			stale := n
			stale.NoticeToggle = !n.NoticeToggle
			if d.mustSet(1, 0, &stale); stale.TrapNumber != number {
				t.Errorf("taken off by a Set with the other toggle: %+v", stale)
			}
			d.mustSet(1, 0, &n)
		}
		if d.mustGet(1, 0, &n); n.Type != smp.NoticeEmpty {
			t.Errorf("after all: %+v", n)
		}
		if d.mustSet(1, 0, &n); n.Type != smp.NoticeEmpty {
			t.Errorf("a Set to the empty queue: %+v", n)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		d := start(t, c)
		for range 2 * MaxNotices {
			d.PhyError(0, 2)
		}
		var n smp.Notice
		if d.mustGet(1, 0, &n); n.NoticeCount != MaxNotices {
			t.Errorf("%d notices", n.NoticeCount)
		}
	})
	t.Run("not supported", func(t *testing.T) {
		d := start(t, switchConfig(4))
		d.wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodGet, 0x0002, 0)
		d.wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodSet, 0x0002, 0)
	})
}

func TestSetDescription(t *testing.T) {
	for _, c := range []Config{caConfig(2), switchConfig(2)} {
		d := start(t, c)
		d.address(1, 0x10)
		e, err := d.SetDescription(0, "renamed")
		if err != nil {
			t.Fatal(err)
		}
		var got smp.LocalChangeDetails
		oneTrap(t, e, smp.TrapLocalChange, &got) // port 2 of the CA has no manager
		if !got.OtherLocalChanges || !got.NodeDescriptionChange || got.LID != 0x10 {
			t.Errorf("%+v", got)
		}
		var text smp.NodeDescription
		if d.mustGet(1, 0, &text); text.String() != "renamed" {
			t.Errorf("%q", text.String())
		}
		if _, err := d.SetDescription(0, "\xff"); err == nil {
			t.Error("no error for a text that is not UTF-8")
		}
	}
}
