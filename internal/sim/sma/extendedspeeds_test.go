package sma

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// TestExtendedSpeedsBit holds Get and Set of PortInfo, with the bit of the modifier and without
// it, against what each kind of device is to do, at every kind of port with a link.
func TestExtendedSpeedsBit(t *testing.T) {
	for _, at := range []struct {
		name   string
		config Config
		port   ib.PortNum
	}{
		{"CA", caConfig(1), 1}, {"router", routerConfig(2), 2}, {"switch", switchConfig(3), 3}, {"enhanced port 0", enhancedConfig(3), 0},
	} {
		for _, kind := range []Options{{}, {HidesExtendedSpeeds: true}, {RefusesExtendedSpeeds: true}} {
			for _, bit := range []bool{false, true} {
				name := fmt.Sprintf("%s/hides=%v/refuses=%v/bit=%v", at.name, kind.HidesExtendedSpeeds, kind.RefusesExtendedSpeeds, bit)
				t.Run(name, func(t *testing.T) {
					at.config.Options = kind
					extendedSpeeds(t, start(t, at.config), at.port, bit)
				})
			}
		}
	}
}

func extendedSpeeds(t *testing.T, d *device, n ib.PortNum, bit bool) {
	through := max(n, 1)
	info := &d.port(n).info
	info.LinkSpeedActive, info.LinkSpeedExtActive = 0, smp.LinkSpeedEDR
	modifier := smp.PortInfoModifier(n, bit)
	if bit && d.options.RefusesExtendedSpeeds {
		d.wantStatus(mad.StatusInvalidField, through, mad.MethodGet, smp.AttrPortInfo, modifier)
		d.wantStatus(mad.StatusInvalidField, through, mad.MethodSet, smp.AttrPortInfo, modifier)
		return
	}
	if d.IsLocked(n) != d.options.HidesExtendedSpeeds {
		t.Errorf("locked %v before anybody asked", d.IsLocked(n))
	}
	var shown smp.PortInfo
	d.mustGet(through, modifier, &shown)
	want := *info
	if d.options.HidesExtendedSpeeds && !bit {
		want.LinkSpeedActive = smp.LinkSpeedQDR
		want.LinkSpeedExtActive, want.LinkSpeedExtSupported, want.LinkSpeedExtEnabled = 0, 0, 0
	}
	want.LocalPortNum = through
	if shown != want {
		t.Errorf("a Get shows\n%v, want\n%v", shown, want)
	}
	if locked := d.options.HidesExtendedSpeeds && !bit; d.IsLocked(n) != locked {
		t.Errorf("locked %v after a Get, want %v", d.IsLocked(n), locked)
	}
	for _, ask := range []smp.LinkSpeedExt{smp.LinkSpeedFDR, smp.LinkSpeedExtDisable, smp.LinkSpeedExtAll, 0} {
		before := info.LinkSpeedExtEnabled
		want := map[smp.LinkSpeedExt]smp.LinkSpeedExt{smp.LinkSpeedFDR: smp.LinkSpeedFDR, smp.LinkSpeedExtAll: info.LinkSpeedExtSupported, 0: before}[ask]
		if !bit {
			want = before
		}
		w := shown
		w.PortState, w.PortPhysicalState, w.LinkDownDefaultState, w.LinkSpeedExtEnabled = 0, 0, 0, ask
		w.LID, w.MasterSMLID = 1, 1
		d.mustSet(through, modifier, &w)
		if info.LinkSpeedExtEnabled != want {
			t.Errorf("LinkSpeedExtEnabled is %v after a Set of %d, want %v", info.LinkSpeedExtEnabled, ask, want)
		}
	}
}

// A link that came up again is locked again.
func TestLockedAfterTraining(t *testing.T) {
	config := caConfig(1)
	config.HidesExtendedSpeeds = true
	d := start(t, config)
	for range 2 {
		d.LinkUp(0, 1, Link{Width: smp.LinkWidth4X, SpeedExt: smp.LinkSpeedEDR})
		if !d.IsLocked(1) {
			t.Error("not locked when the link came up")
		}
		if d.portInfo(1, 1); d.IsLocked(1) {
			t.Error("locked after a Get with the bit")
		}
		d.LinkDown(0, 1)
	}
}
