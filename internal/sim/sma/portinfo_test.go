package sma

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

func onEnd(k portKind) bool  { return k.isEnd() }
func onLink(k portKind) bool { return k.hasLink() }
func onExit(k portKind) bool { return k.isExit() }
func onExternal(k portKind) bool {
	return k == external
}

// Elements that a Set writes: it is there in the next Get where the kind of
// port has it, and changes nothing elsewhere. The answer to the Set holds it
// already.
func TestPortInfoWritten(t *testing.T) {
	tests := []struct {
		rule  string
		write func(*smp.PortInfo)
		read  func(*smp.PortInfo) any
		want  any
		on    func(portKind) bool
	}{
		{"PI-10 M_Key", func(p *smp.PortInfo) { p.MKey = testMKey },
			func(p *smp.PortInfo) any { return p.MKey }, testMKey, onEnd},
		{"PI-11 GidPrefix", func(p *smp.PortInfo) { p.GIDPrefix = ib.DefaultGIDPrefix },
			func(p *smp.PortInfo) any { return p.GIDPrefix }, ib.DefaultGIDPrefix, onEnd},
		{"PI-13 LID", func(p *smp.PortInfo) { p.LID = 0xBFFF },
			func(p *smp.PortInfo) any { return p.LID }, ib.LID(0xBFFF), onEnd},
		{"PI-14 MasterSMLID", func(p *smp.PortInfo) { p.MasterSMLID = 0x55 },
			func(p *smp.PortInfo) any { return p.MasterSMLID }, ib.LID(0x55), onEnd},
		{"PI-18 M_KeyLeasePeriod", func(p *smp.PortInfo) { p.MKeyLeasePeriod = 0x1234 },
			func(p *smp.PortInfo) any { return p.MKeyLeasePeriod }, uint16(0x1234), onEnd},
		{"MK-06 M_KeyLeasePeriod", func(p *smp.PortInfo) { p.MKeyLeasePeriod = 0xFFFF },
			func(p *smp.PortInfo) any { return p.MKeyLeasePeriod }, uint16(0xFFFF), onEnd},
		{"PI-20 LinkWidthEnabled", func(p *smp.PortInfo) { p.LinkWidthEnabled = smp.LinkWidth1X },
			func(p *smp.PortInfo) any { return p.LinkWidthEnabled }, smp.LinkWidth1X, onLink},
		{"PI-46 LinkDownDefaultState", func(p *smp.PortInfo) { p.LinkDownDefaultState = smp.PhysSleep },
			func(p *smp.PortInfo) any { return p.LinkDownDefaultState }, smp.PhysSleep, onLink},
		{"PI-49 M_KeyProtectBits", func(p *smp.PortInfo) { p.MKeyProtectBits = 3 },
			func(p *smp.PortInfo) any { return p.MKeyProtectBits }, uint8(3), onEnd},
		{"PI-51 LMC", func(p *smp.PortInfo) { p.LMC = 2 },
			func(p *smp.PortInfo) any { return p.LMC }, ib.LMC(2), func(k portKind) bool { return k.isEnd() && k != basePort0 }},
		{"PI-56 LinkSpeedEnabled", func(p *smp.PortInfo) { p.LinkSpeedEnabled = smp.LinkSpeedSDR },
			func(p *smp.PortInfo) any { return p.LinkSpeedEnabled }, smp.LinkSpeedSDR, onLink},
		{"PI-61 NeighborMTU", func(p *smp.PortInfo) { p.NeighborMTU = ib.MTU2048 },
			func(p *smp.PortInfo) any { return p.NeighborMTU }, ib.MTU2048, onLink},
		{"PI-64 MasterSMSL", func(p *smp.PortInfo) { p.MasterSMSL = 5 },
			func(p *smp.PortInfo) any { return p.MasterSMSL }, ib.SL(5), onEnd},
		{"PI-69 VLHighLimit", func(p *smp.PortInfo) { p.VLHighLimit = 200 },
			func(p *smp.PortInfo) any { return p.VLHighLimit }, uint8(200), onLink},
		{"PI-79 VLStallCount", func(p *smp.PortInfo) { p.VLStallCount = 7 },
			func(p *smp.PortInfo) any { return p.VLStallCount }, uint8(7), onExit},
		{"PI-81 HOQLife", func(p *smp.PortInfo) { p.HOQLife = 0x12 },
			func(p *smp.PortInfo) any { return p.HOQLife }, ib.TimeValue(0x12), onExit},
		{"PI-83 OperationalVLs", func(p *smp.PortInfo) { p.OperationalVLs = 3 },
			func(p *smp.PortInfo) any { return p.OperationalVLs }, uint8(3), onLink},
		{"PI-86 PartitionEnforcementInbound", func(p *smp.PortInfo) { p.PartitionEnforcementInbound = true },
			func(p *smp.PortInfo) any { return p.PartitionEnforcementInbound }, true, onExternal},
		{"PI-88 PartitionEnforcementOutbound", func(p *smp.PortInfo) { p.PartitionEnforcementOutbound = true },
			func(p *smp.PortInfo) any { return p.PartitionEnforcementOutbound }, true, onExternal},
		{"PI-90 FilterRawInbound", func(p *smp.PortInfo) { p.FilterRawInbound = true },
			func(p *smp.PortInfo) any { return p.FilterRawInbound }, true, onExternal},
		{"PI-92 FilterRawOutbound", func(p *smp.PortInfo) { p.FilterRawOutbound = true },
			func(p *smp.PortInfo) any { return p.FilterRawOutbound }, true, onExternal},
		{"PI-98 LocalPhyErrors", func(p *smp.PortInfo) { p.LocalPhyErrors = 9 },
			func(p *smp.PortInfo) any { return p.LocalPhyErrors }, uint8(9), onLink},
		{"PI-111 SubnetTimeOut", func(p *smp.PortInfo) { p.SubnetTimeOut = 31 },
			func(p *smp.PortInfo) any { return p.SubnetTimeOut }, ib.TimeValue(31), onEnd},
		{"PI-116 OverrunErrors", func(p *smp.PortInfo) { p.OverrunErrors = 9 },
			func(p *smp.PortInfo) any { return p.OverrunErrors }, uint8(9), onLink},
		{"LinkSpeedExtEnabled", func(p *smp.PortInfo) { p.LinkSpeedExtEnabled = smp.LinkSpeedFDR },
			func(p *smp.PortInfo) any { return p.LinkSpeedExtEnabled }, smp.LinkSpeedFDR, onLink},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			for _, at := range places() {
				d := at.open(t)
				before := d.portInfo(at.through, at.port)
				want := test.read(&before)
				if want == test.want {
					t.Fatalf("%s: reads %v before anything was written", at.name, want)
				}
				if test.on(at.kind) {
					want = test.want
				}
				written := before
				written.PortState, written.PortPhysicalState = 0, 0
				test.write(&written)
				d.mustSet(at.through, smp.PortInfoModifier(at.port, true), &written)
				if got := test.read(&written); got != want {
					t.Errorf("%s: answer to the Set holds %v, want %v", at.name, got, want)
				}
				d.mkey = d.Port(at.port).MKey
				after := d.portInfo(at.through, at.port)
				if got := test.read(&after); got != want {
					t.Errorf("%s: reads %v, want %v", at.name, got, want)
				}
			}
		})
	}
}

// Elements that no Set changes.
func TestPortInfoReadOnly(t *testing.T) {
	tests := []struct {
		rule  string
		write func(*smp.PortInfo)
		read  func(*smp.PortInfo) any
		// value on a port that has the element, nil for the same everywhere
		want any
		on   func(portKind) bool
	}{
		{"PI-16 CapabilityMask", func(p *smp.PortInfo) { p.CapabilityMask = ^p.CapabilityMask },
			func(p *smp.PortInfo) any { return p.CapabilityMask }, TypicalPort().CapabilityMask, onEnd},
		{"PI-17 DiagCode", func(p *smp.PortInfo) { p.DiagCode = 4 },
			func(p *smp.PortInfo) any { return p.DiagCode }, smp.DiagCode(0), onEnd},
		{"PI-27 LinkWidthSupported", func(p *smp.PortInfo) { p.LinkWidthSupported = 31 },
			func(p *smp.PortInfo) any { return p.LinkWidthSupported }, smp.LinkWidth(3), onLink},
		{"PI-29 LinkWidthActive", func(p *smp.PortInfo) { p.LinkWidthActive = 16 },
			func(p *smp.PortInfo) any { return p.LinkWidthActive }, smp.LinkWidth1X, onLink},
		{"PI-32 LinkSpeedSupported", func(p *smp.PortInfo) { p.LinkSpeedSupported = 1 },
			func(p *smp.PortInfo) any { return p.LinkSpeedSupported }, smp.LinkSpeed(7), onLink},
		{"PI-54 LinkSpeedActive", func(p *smp.PortInfo) { p.LinkSpeedActive = 4 },
			func(p *smp.PortInfo) any { return p.LinkSpeedActive }, smp.LinkSpeedSDR, onLink},
		{"PI-66 VLCap", func(p *smp.PortInfo) { p.VLCap = 5 },
			func(p *smp.PortInfo) any { return p.VLCap }, uint8(4), nil},
		{"PI-70 VLArbitrationHighCap", func(p *smp.PortInfo) { p.VLArbitrationHighCap = 64 },
			func(p *smp.PortInfo) any { return p.VLArbitrationHighCap }, uint8(8), onLink},
		{"PI-73 VLArbitrationLowCap", func(p *smp.PortInfo) { p.VLArbitrationLowCap = 64 },
			func(p *smp.PortInfo) any { return p.VLArbitrationLowCap }, uint8(8), onLink},
		{"PI-76 InitTypeReply", func(p *smp.PortInfo) { p.InitTypeReply = 15 },
			func(p *smp.PortInfo) any { return p.InitTypeReply }, uint8(0), onEnd},
		{"PI-77 MTUCap", func(p *smp.PortInfo) { p.MTUCap = 1 },
			func(p *smp.PortInfo) any { return p.MTUCap }, ib.MTU4096, nil},
		{"PI-109 GUIDCap", func(p *smp.PortInfo) { p.GUIDCap = 200 },
			func(p *smp.PortInfo) any { return p.GUIDCap }, uint8(8), onEnd},
		{"PI-113 RespTimeValue", func(p *smp.PortInfo) { p.RespTimeValue = 31 },
			func(p *smp.PortInfo) any { return p.RespTimeValue }, ib.TimeValue(16), onEnd},
		{"MaxCreditHint", func(p *smp.PortInfo) { p.MaxCreditHint = 1 },
			func(p *smp.PortInfo) any { return p.MaxCreditHint }, uint16(0), onLink},
		{"LinkRoundTripLatency", func(p *smp.PortInfo) { p.LinkRoundTripLatency = 1 },
			func(p *smp.PortInfo) any { return p.LinkRoundTripLatency }, uint32(0), onLink},
		{"CapabilityMask2", func(p *smp.PortInfo) { p.CapabilityMask2 = 1 },
			func(p *smp.PortInfo) any { return p.CapabilityMask2 }, smp.CapabilityMask2(0), onEnd},
		{"LinkSpeedExtSupported", func(p *smp.PortInfo) { p.LinkSpeedExtSupported = 15 },
			func(p *smp.PortInfo) any { return p.LinkSpeedExtSupported }, smp.LinkSpeedExt(3), onLink},
		{"LinkSpeedExtActive", func(p *smp.PortInfo) { p.LinkSpeedExtActive = 1 },
			func(p *smp.PortInfo) any { return p.LinkSpeedExtActive }, smp.LinkSpeedExt(0), onLink},
		// What the book calls reserved reads zero, and stays so: PI-68, PI-76 and
		// PI-110 got names, which these devices do not implement.
		{"PI-68 InitType", func(p *smp.PortInfo) { p.InitType = 15 },
			func(p *smp.PortInfo) any { return p.InitType }, uint8(0), onEnd},
		{"PI-110 before SubnetTimeOut", func(p *smp.PortInfo) { p.MulticastPKeyTrapSuppressionEnabled = 3 },
			func(p *smp.PortInfo) any { return p.MulticastPKeyTrapSuppressionEnabled }, uint8(0), onEnd},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			for _, at := range places() {
				d := at.open(t)
				before := d.portInfo(at.through, at.port)
				if got := test.read(&before); (test.on == nil || test.on(at.kind)) && got != test.want {
					t.Errorf("%s: reads %v, want %v", at.name, got, test.want)
				} else if test.on != nil && !test.on(at.kind) && fmt.Sprintf("%d", got) != "0" {
					t.Errorf("%s: reads %v, want zero", at.name, got)
				}
				d.mustChange(at.through, at.port, test.write)
				after := d.portInfo(at.through, at.port)
				if got, want := test.read(&after), test.read(&before); got != want {
					t.Errorf("%s: a Set changed it from %v to %v", at.name, want, got)
				}
			}
		})
	}
}

// Values of elements: what a Set of each leaves behind, and its status on a
// device of today. The device of the book changes nothing either, and says so.
func TestPortInfoValues(t *testing.T) {
	const refused, taken = mad.StatusInvalidField, mad.StatusOK
	width := func(v smp.LinkWidth) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.LinkWidthEnabled = v }
	}
	speed := func(v smp.LinkSpeed) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.LinkSpeedEnabled = v }
	}
	ext := func(v smp.LinkSpeedExt) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.LinkSpeedExtEnabled = v }
	}
	state := func(v smp.PortState) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.PortState = v }
	}
	phys := func(v smp.PhysState) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.PortPhysicalState = v }
	}
	downState := func(v smp.PhysState) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.LinkDownDefaultState = v }
	}
	mtu := func(v ib.MTU) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.NeighborMTU = v }
	}
	vls := func(v uint8) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.OperationalVLs = v }
	}
	lid := func(l ib.LID, lmc ib.LMC) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.LID, p.LMC = l, lmc }
	}
	sm := func(l ib.LID) func(*smp.PortInfo) {
		return func(p *smp.PortInfo) { p.MasterSMLID = l }
	}
	tests := []struct {
		rule   string
		write  func(*smp.PortInfo)
		status mad.Status
		left   func(*smp.PortInfo) // what is left, seen from the device before
	}{
		{"PI-21/0", width(0), taken, nil},
		{"PI-22/1", width(1), taken, width(1)},
		{"PI-22/2", width(2), taken, width(2)},
		{"PI-22/3", width(3), taken, width(3)},
		{"PI-22/8", width(8), taken, width(8)},
		{"PI-22/9", width(9), taken, width(9)},
		{"PI-22/10", width(10), taken, width(10)},
		{"PI-22/11", width(11), taken, width(11)},
		{"PI-23/4", width(4), refused, nil},
		{"PI-23/5", width(5), refused, nil},
		{"PI-23/7", width(7), refused, nil},
		{"PI-24/12", width(12), refused, nil},
		{"PI-24/19", width(19), refused, nil},
		{"PI-24/131", width(131), refused, nil},
		{"PI-24/254", width(254), refused, nil},
		{"PI-25/255", width(255), taken, width(11)},
		{"PI-26/2x", width(16), refused, nil},
		{"PI-26/1x and 2x", width(17), refused, nil},
		{"PI-36/0", state(0), taken, nil},
		{"PI-37/5", state(5), refused, nil},
		{"PI-37/15", state(15), refused, nil},
		{"PI-39/2", state(2), refused, nil},
		{"PI-39/4 from Initialize", state(4), refused, nil},
		{"PI-42/0", phys(0), taken, nil},
		{"PI-43/7", phys(7), refused, nil},
		{"PI-43/15", phys(15), refused, nil},
		{"PI-45/4", phys(4), refused, nil},
		{"PI-45/5", phys(5), refused, nil},
		{"PI-45/6", phys(6), refused, nil},
		{"PI-45/2 with Armed", func(p *smp.PortInfo) { p.PortState, p.PortPhysicalState = 3, 2 }, refused, nil},
		{"PI-47/0", downState(0), taken, nil},
		{"PI-47/1", downState(1), taken, downState(1)},
		{"PI-47/2", downState(2), taken, downState(2)},
		{"PI-47/3", downState(3), refused, nil},
		{"PI-48/15", downState(15), refused, nil},
		{"PI-57/0", speed(0), taken, nil},
		{"PI-58/1", speed(1), taken, speed(1)},
		{"PI-58/8", speed(8), refused, nil},
		{"PI-58/14", speed(14), refused, nil},
		{"PI-59/15", speed(15), taken, speed(3)},
		{"PI-60/4 not supported", speed(4), refused, nil},
		{"PI-60/5 supported in part", speed(5), refused, nil},
		{"LinkSpeedExtEnabled/0", ext(0), taken, nil},
		{"LinkSpeedExtEnabled/1", ext(1), taken, ext(1)},
		{"LinkSpeedExtEnabled/30", ext(30), taken, func(p *smp.PortInfo) { p.LinkSpeedExtEnabled = 0 }},
		{"LinkSpeedExtEnabled/31", ext(31), taken, ext(3)},
		{"LinkSpeedExtEnabled/4", ext(4), refused, nil},
		{"PI-62/1", mtu(1), taken, mtu(1)},
		{"PI-62/2", mtu(2), taken, mtu(2)},
		{"PI-62/3", mtu(3), taken, mtu(3)},
		{"PI-62/4", mtu(4), taken, mtu(4)},
		{"PI-61/5 above MTUCap", mtu(5), refused, nil},
		{"PI-62/0", mtu(0), refused, nil},
		{"PI-62/6", mtu(6), refused, nil},
		{"PI-84/1", vls(1), taken, vls(1)},
		{"PI-84/2", vls(2), taken, vls(2)},
		{"PI-84/3", vls(3), taken, vls(3)},
		{"PI-84/4", vls(4), taken, vls(4)},
		{"PI-84/5 above VLCap", vls(5), refused, nil},
		{"PI-84/6", vls(6), refused, nil},
		{"PI-84/15", vls(15), refused, nil},
		{"PI-85/0", vls(0), taken, nil},
		{"PI-13/0", lid(0, 0), refused, nil},
		{"PI-13/0xC000", lid(0xC000, 0), refused, nil},
		{"PI-13/0xFFFF", lid(0xFFFF, 0), refused, nil},
		{"PI-13/low LMC bits", lid(0x12, 2), refused, nil},
		{"PI-51/7", lid(0x80, 7), taken, lid(0x80, 7)},
		{"PI-14/0", sm(0), refused, nil},
		{"PI-14/0xC000", sm(0xC000), refused, nil},
	}
	config := caConfig(1)
	config.Ports[0].LinkWidthSupported = 11
	config.Ports[0].LinkSpeedSupported = smp.LinkSpeedSDR | smp.LinkSpeedDDR
	config.Ports[0].MTUCap = ib.MTU2048
	for _, test := range tests {
		for _, mode := range []BadInput{BadInputRefused, BadInputIgnored} {
			t.Run(fmt.Sprintf("%s/mode %d", test.rule, mode), func(t *testing.T) {
				config.BadInput = mode
				d := start(t, config)
				d.address(1, 0x10)
				d.plug(1)
				d.mustChange(1, 1, func(p *smp.PortInfo) { p.LinkWidthEnabled, p.OperationalVLs = 2, 2 })
				want := d.portInfo(1, 1)
				if want.PortState != smp.PortInit || want.PortPhysicalState != smp.PhysLinkUp {
					t.Fatalf("%v, %v before anything was asked of the link", want.PortState, want.PortPhysicalState)
				}
				if test.left != nil {
					test.left(&want)
				}
				status := test.status
				if mode == BadInputIgnored {
					status = taken
				}
				if got := d.change(1, 1, test.write); got != status {
					t.Errorf("status %v, want %v", got, status)
				}
				if got := d.portInfo(1, 1); got != want {
					t.Errorf("left\n%+v, want\n%+v", got, want)
				}
			})
		}
	}
}

// Of a Set with one bad element the others take effect where the device is like that, and
// not otherwise.
func TestPortInfoGoodAmongBad(t *testing.T) {
	for _, x := range []struct {
		mode   BadInput
		status mad.Status
		sl     ib.SL
		lid    ib.LID
	}{
		{BadInputRefused, mad.StatusInvalidField, 0, 0x10},
		{BadInputIgnored, mad.StatusOK, 3, 0x20},
		{BadInputPartly, mad.StatusInvalidField, 3, 0x20},
	} {
		c := caConfig(1)
		c.BadInput = x.mode
		d := start(t, c)
		d.address(1, 0x10)
		if s := d.change(1, 1, func(p *smp.PortInfo) { p.NeighborMTU, p.MasterSMSL, p.LID = 9, 3, 0x20 }); s != x.status {
			t.Errorf("mode %d: status %v", x.mode, s)
		}
		if p := d.portInfo(1, 1); p.NeighborMTU != ib.MTU256 || p.MasterSMSL != x.sl || p.LID != x.lid {
			t.Errorf("mode %d: MTU %v, SL %d, LID %v", x.mode, p.NeighborMTU, p.MasterSMSL, p.LID)
		}
	}
}

func TestPortInfoSelection(t *testing.T) {
	t.Run("PI-01", func(t *testing.T) {
		start(t, caConfig(1)).wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0015, 0)
	})
	t.Run("PI-01/extended speeds bit", func(t *testing.T) {
		d := start(t, switchConfig(4))
		if a, b := d.raw(1, smp.AttrPortInfo, 3), d.raw(1, smp.AttrPortInfo, 0x80000003); a != b {
			t.Errorf("%x, and with bit 31\n%x", a, b)
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, smp.AttrPortInfo, 0x103)
	})
	t.Run("PI-02", func(t *testing.T) {
		for _, c := range []Config{caConfig(2), routerConfig(3), switchConfig(4), enhancedConfig(4)} {
			d := start(t, c)
			for n := 1; n <= len(c.Ports); n++ {
				d.wantStatus(mad.StatusOK, 1, mad.MethodGet, smp.AttrPortInfo, uint32(n))
			}
			d.wantStatus(mad.StatusOK, 1, mad.MethodGet, smp.AttrPortInfo, 0)
		}
	})
	t.Run("PI-03", func(t *testing.T) {
		d := start(t, caConfig(1))
		d.address(1, 0x33)
		if p := d.portInfo(1, 1); p.LID != 0x33 {
			t.Errorf("LID %v", p.LID)
		}
	})
	for rule, n := range map[string]ib.PortNum{"PI-04": 0, "PI-05": 2} {
		t.Run(rule, func(t *testing.T) {
			for _, c := range []Config{caConfig(2), routerConfig(2)} {
				d := start(t, c)
				d.mustChange(2, n, func(p *smp.PortInfo) { p.LID, p.MasterSMLID = 0x22, testSM })
				if d.Port(2).LID != 0x22 || d.Port(1).LID != 0 {
					t.Errorf("%v: LIDs %v and %v", c.NodeType, d.Port(1).LID, d.Port(2).LID)
				}
			}
		})
	}
	t.Run("PI-06", func(t *testing.T) {
		d := start(t, caConfig(2))
		d.address(1, 0x11)
		d.address(2, 0x22)
		if p := d.portInfo(2, 1); p.LID != 0x11 {
			t.Errorf("LID %v", p.LID)
		}
	})
	t.Run("PI-07", func(t *testing.T) {
		for mode, want := range map[BadInput]mad.Status{BadInputRefused: mad.StatusInvalidField, BadInputIgnored: mad.StatusOK} {
			c := caConfig(2)
			c.BadInput = mode
			d := start(t, c)
			d.address(1, 0x11)
			d.address(2, 0x22)
			if s := d.change(2, 1, func(p *smp.PortInfo) { p.LID = 0x44 }); s != want {
				t.Errorf("mode %d: status %v", mode, s)
			}
			if d.Port(1).LID != 0x11 || d.Port(2).LID != 0x22 {
				t.Errorf("LIDs %v and %v", d.Port(1).LID, d.Port(2).LID)
			}
		}
	})
	t.Run("PI-08", func(t *testing.T) {
		d := start(t, switchConfig(4))
		d.address(2, 0x11)
		if p := d.portInfo(3, 0); p.LID != 0x11 {
			t.Errorf("LID %v", p.LID)
		}
	})
	t.Run("PI-09", func(t *testing.T) {
		d := start(t, switchConfig(4))
		d.plug(3)
		if p := d.portInfo(1, 3); p.PortState != smp.PortInit {
			t.Errorf("port 3 is %v", p.PortState)
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, smp.AttrPortInfo, 5)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodSet, smp.AttrPortInfo, 5)
		start(t, caConfig(2)).wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, smp.AttrPortInfo, 3)
	})
	t.Run("PI-19", func(t *testing.T) {
		if p := start(t, caConfig(2)).portInfo(2, 1); p.LocalPortNum != 2 {
			t.Errorf("CA: LocalPortNum %d", p.LocalPortNum)
		}
		if p := start(t, switchConfig(4)).portInfo(2, 3); p.LocalPortNum != 2 {
			t.Errorf("switch: LocalPortNum %d", p.LocalPortNum)
		}
	})
}

func TestPortInfoByKind(t *testing.T) {
	t.Run("PI-51", func(t *testing.T) {
		d := start(t, caConfig(1))
		d.mustChange(1, 1, func(p *smp.PortInfo) { p.LID, p.LMC, p.MasterSMLID = 0x10, 2, testSM })
		for lid, want := range map[ib.LID]bool{0x0F: false, 0x10: true, 0x13: true, 0x14: false} {
			if got := d.HasLID(1, lid); got != want {
				t.Errorf("LID %v: %v", lid, got)
			}
		}
	})
	t.Run("PI-52", func(t *testing.T) {
		for _, c := range []Config{caConfig(1), routerConfig(1)} {
			d := start(t, c)
			d.mustChange(1, 1, func(p *smp.PortInfo) { p.LID, p.LMC, p.MasterSMLID = 0x10, 3, testSM })
			if got := d.portInfo(1, 1).LMC; got != 3 {
				t.Errorf("%v: LMC %d", c.NodeType, got)
			}
		}
	})
	t.Run("PI-53", func(t *testing.T) {
		d := start(t, switchConfig(4))
		for _, n := range []ib.PortNum{0, 3} {
			d.mustChange(1, n, func(p *smp.PortInfo) { p.LID, p.LMC, p.MasterSMLID = 0x10, 1, testSM })
			if got := d.portInfo(1, n).LMC; got != 0 {
				t.Errorf("port %d: LMC %d", n, got)
			}
		}
		d = start(t, enhancedConfig(4))
		d.mustChange(1, 0, func(p *smp.PortInfo) { p.LID, p.LMC, p.MasterSMLID = 0x10, 1, testSM })
		if got := d.portInfo(1, 0).LMC; got != 1 {
			t.Errorf("enhanced port 0: LMC %d", got)
		}
	})
	t.Run("PI-50", func(t *testing.T) { reservedBits(t, 34, 0x38) })
	t.Run("PI-115", func(t *testing.T) { reservedBits(t, 52, 0xE0) })
	t.Run("PI-80", func(t *testing.T) {
		d := start(t, enhancedConfig(4))
		d.address(1, 0x10)
		for n, want := range map[ib.PortNum]uint8{3: 5, 0: 0} {
			d.mustChange(1, n, func(p *smp.PortInfo) { p.VLStallCount = 5 })
			if got := d.portInfo(1, n).VLStallCount; got != want {
				t.Errorf("port %d: VLStallCount %d, want %d", n, got, want)
			}
		}
	})
	t.Run("PI-82", func(t *testing.T) {
		for _, at := range places() {
			d := at.open(t)
			d.mustChange(at.through, at.port, func(p *smp.PortInfo) { p.HOQLife = 16 })
			want := ib.TimeValue(0)
			if at.kind == external || at.kind == routerPort {
				want = 16
			}
			if got := d.portInfo(at.through, at.port).HOQLife; got != want {
				t.Errorf("%s: HOQLife %d, want %d", at.name, got, want)
			}
		}
	})
	t.Run("InitType with Reinit", func(t *testing.T) {
		c := caConfig(1)
		c.Ports[0].CapabilityMask |= smp.CapReinit | smp.CapMulticastPKeyTrapSuppression
		d := start(t, c)
		d.address(1, 0x10)
		d.mustChange(1, 1, func(p *smp.PortInfo) { p.InitType, p.MulticastPKeyTrapSuppressionEnabled = 5, 2 })
		if p := d.portInfo(1, 1); p.InitType != 5 || p.MulticastPKeyTrapSuppressionEnabled != 2 {
			t.Errorf("InitType %d, suppression %d", p.InitType, p.MulticastPKeyTrapSuppressionEnabled)
		}
	})
	t.Run("ClientReregister", func(t *testing.T) {
		for capable, want := range map[bool]int{true: 1, false: 0} {
			c := caConfig(1)
			if !capable {
				c.Ports[0].CapabilityMask &^= smp.CapClientReregistration
			}
			d := start(t, c)
			d.address(1, 0x10)
			p := d.portInfo(1, 1)
			p.ClientReregister, p.PortState, p.PortPhysicalState = true, 0, 0
			d.mustSet(1, 0, &p)
			if got := len(effects(d.last.Effects, Reregister)); got != want || p.ClientReregister != capable {
				t.Errorf("capable %v: %d effects, answer %v", capable, got, p.ClientReregister)
			}
			if d.portInfo(1, 1).ClientReregister {
				t.Error("still set in the next Get")
			}
		}
	})
}

// reservedBits writes ones to reserved bits; they read zero before and after.
func reservedBits(t *testing.T, at int, mask byte) {
	for _, place := range places() {
		d := place.open(t)
		data := d.raw(place.through, smp.AttrPortInfo, uint32(place.port))
		data[32] &= 0xF0
		data[33] &= 0x0F
		data[at] |= mask
		p := d.request(place.through, mad.MethodSet, smp.AttrPortInfo, uint32(place.port), data)
		if p.Status != mad.StatusOK || p.Data[at]&mask != 0 {
			t.Errorf("%s: status %v, byte %d answered as %#x", place.name, p.Status, at, p.Data[at])
		}
		if data = d.raw(place.through, smp.AttrPortInfo, uint32(place.port)); data[at]&mask != 0 {
			t.Errorf("%s: byte %d reads %#x", place.name, at, data[at])
		}
	}
}

// Enforcement exists where the switch has the means, and on routers when they
// are configured so.
func TestEnforcement(t *testing.T) {
	all := func(p *smp.PortInfo) {
		p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound = true, true
		p.FilterRawInbound, p.FilterRawOutbound = true, true
	}
	edit := func(f func(*SwitchConfig)) Config {
		c := switchConfig(4)
		f(c.Switch)
		return c
	}
	router := routerConfig(3)
	router.RouterEnforcement = true
	tests := []struct {
		rule   string
		config Config
		want   [4]bool
	}{
		{"PI-87 switch", switchConfig(4), [4]bool{true, true, true, true}},
		{"PI-89 switch", switchConfig(4), [4]bool{true, true, true, true}},
		{"PI-91 switch", switchConfig(4), [4]bool{true, true, true, true}},
		{"PI-93 switch", switchConfig(4), [4]bool{true, true, true, true}},
		{"PI-87 CA", caConfig(3), [4]bool{}},
		{"router", routerConfig(3), [4]bool{}},
		{"router that enforces", router, [4]bool{true, true, true, true}},
		{"SW-08", edit(func(s *SwitchConfig) { s.PartitionEnforcementCap = 0 }), [4]bool{false, false, true, true}},
		{"SW-10", edit(func(s *SwitchConfig) { s.InboundEnforcementCap = false }), [4]bool{false, true, true, true}},
		{"SW-12", edit(func(s *SwitchConfig) { s.OutboundEnforcementCap = false }), [4]bool{true, false, true, true}},
		{"SW-25", edit(func(s *SwitchConfig) { s.FilterRawInboundCap = false }), [4]bool{true, true, false, true}},
		{"SW-27", edit(func(s *SwitchConfig) { s.FilterRawOutboundCap = false }), [4]bool{true, true, true, false}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			d := start(t, test.config)
			d.address(3, 0x10)
			d.mustChange(3, 3, all)
			if got := enforcement(d.Port(3)); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
			want := 0
			if test.want != [4]bool{} {
				want = 1
			}
			if got := effects(d.last.Effects, EnforcementChanged); len(got) != want || want == 1 && got[0].Port != 3 {
				t.Errorf("effects %v", got)
			}
			d.mustChange(3, 3, all)
			if got := effects(d.last.Effects, EnforcementChanged); len(got) != 0 {
				t.Errorf("the same again: effects %v", got)
			}
		})
	}
}

// violation is one of the three counters, with what makes it grow by one.
type violation struct {
	name    string
	rules   [4]string // counts, stops, counts again, nonzero write
	counter func(*smp.PortInfo) *uint16
	provoke func(*device)
}

func violations() []violation {
	return []violation{
		{"M_KeyViolations", [4]string{"PI-94", "PI-95", "PI-96", "PI-97"},
			func(p *smp.PortInfo) *uint16 { return &p.MKeyViolations },
			func(d *device) {
				d.mkey++
				d.request(1, mad.MethodSet, smp.AttrPortInfo, 0, [mad.DataSize]byte{})
				if d.last.Verdict != BadMKey {
					d.Fatalf("verdict %d", d.last.Verdict)
				}
				d.mkey--
			}},
		{"P_KeyViolations", [4]string{"PI-100", "PI-101", "PI-102", "PI-103"},
			func(p *smp.PortInfo) *uint16 { return &p.PKeyViolations },
			func(d *device) { d.BadPKey(d.now, 1, smp.BadKeyDetails{}) }},
		{"Q_KeyViolations", [4]string{"PI-104", "PI-105", "PI-106", "PI-107"},
			func(p *smp.PortInfo) *uint16 { return &p.QKeyViolations },
			func(d *device) { d.BadQKey(d.now, 1, smp.BadKeyDetails{}) }},
	}
}

func TestViolationCounters(t *testing.T) {
	for _, v := range violations() {
		open := func(t *testing.T) (*device, func() uint16) {
			d := start(t, caConfig(1))
			d.mustChange(1, 1, func(p *smp.PortInfo) { p.LID, p.MasterSMLID, p.MKey = 0x10, testSM, testMKey })
			d.mkey = testMKey
			return d, func() uint16 {
				p := d.portInfo(1, 1)
				return *v.counter(&p)
			}
		}
		t.Run(v.rules[0], func(t *testing.T) {
			d, read := open(t)
			for i := range uint16(3) {
				if got := read(); got != i {
					t.Errorf("after %d: %d", i, got)
				}
				v.provoke(d)
			}
		})
		if v.name == "M_KeyViolations" {
			t.Run("PI-94/a Get", func(t *testing.T) {
				d, read := open(t)
				d.mustChange(1, 1, func(p *smp.PortInfo) { p.MKeyProtectBits = 2 })
				d.mkey++
				d.request(1, mad.MethodGet, smp.AttrPortInfo, 0, [mad.DataSize]byte{})
				d.mkey--
				if got := read(); got != 1 {
					t.Errorf("after a Get that was refused: %d", got)
				}
			})
		}
		if v.name == "P_KeyViolations" {
			t.Run("QP-28", func(t *testing.T) {
				d, read := open(t)
				if v.provoke(d); read() != 1 {
					t.Errorf("%d", read())
				}
				*v.counter(&d.ports[1].info) = 0xFFFF
				if v.provoke(d); read() != 0xFFFF {
					t.Errorf("after 0xFFFF: %#x", read())
				}
			})
		}
		t.Run(v.rules[1], func(t *testing.T) {
			d, read := open(t)
			*v.counter(&d.ports[1].info) = 0xFFFE
			for range 3 {
				v.provoke(d)
			}
			if got := read(); got != 0xFFFF {
				t.Errorf("%#x", got)
			}
		})
		t.Run(v.rules[2], func(t *testing.T) {
			d, read := open(t)
			*v.counter(&d.ports[1].info) = 0xFFFF
			d.mustChange(1, 1, func(p *smp.PortInfo) { *v.counter(p) = 0 })
			if got := read(); got != 0 {
				t.Errorf("written 0, reads %d", got)
			}
			v.provoke(d)
			if got := read(); got != 1 {
				t.Errorf("after one more: %d", got)
			}
		})
		t.Run(v.rules[3], func(t *testing.T) {
			d, read := open(t)
			*v.counter(&d.ports[1].info) = 2
			for _, written := range []uint16{5, 1, 2, 0xFFFF} {
				d.mustChange(1, 1, func(p *smp.PortInfo) { *v.counter(p) = written })
				if got := read(); got != 2 {
					t.Errorf("written %d, reads %d, want 2", written, got)
				}
			}
		})
		t.Run("PI-108/"+v.name, func(t *testing.T) {
			d, _ := open(t)
			v.provoke(d)
			again, err := d.Restart(caConfig(1))
			if err != nil || *v.counter(again.Port(1)) != 0 {
				t.Errorf("%d, %v", *v.counter(again.Port(1)), err)
			}
		})
	}
}
