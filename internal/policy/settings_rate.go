package policy

import (
	"strings"

	"github.com/ibwarden/ibwarden/ib/smp"
)

// Width is the most virtual lanes that a link may use: 1, 2, 4, 8 or 12; 0 leaves it.
type Width uint8

// widths from the narrowest up; the bits of smp.LinkWidth are in another order.
var widths = []struct {
	name  string
	width Width
	bit   smp.LinkWidth
}{
	{"1x", 1, smp.LinkWidth1X}, {"2x", 2, smp.LinkWidth2X}, {"4x", 4, smp.LinkWidth4X},
	{"8x", 8, smp.LinkWidth8X}, {"12x", 12, smp.LinkWidth12X},
}

// WidthNames are the words for widths, from the narrowest up.
func WidthNames() (names []string) {
	for _, w := range widths {
		names = append(names, w.name)
	}
	return names
}

// ParseWidth reads such a word; ok is false for another one.
func ParseWidth(name string) (w Width, ok bool) {
	for _, x := range widths {
		if x.name == name {
			return x.width, true
		}
	}
	return 0, false
}

// String is the word for the width.
func (w Width) String() string {
	for _, x := range widths {
		if x.width == w {
			return x.name
		}
	}
	return "any"
}

// Enabled is what of the supported widths may be used; 0 when w leaves that, or
// nothing that is supported is so narrow.
func (w Width) Enabled(supported smp.LinkWidth) (enabled smp.LinkWidth) {
	for _, x := range widths {
		if x.width <= w {
			enabled |= x.bit & supported
		}
	}
	return enabled
}

// Speed is the most that each virtual lane of a link may do; 0 leaves it.
type Speed uint8

// The speeds, from the slowest up.
const (
	SDR = Speed(smp.SpeedSDR)
	DDR = Speed(smp.SpeedDDR)
	QDR = Speed(smp.SpeedQDR)
	FDR = Speed(smp.SpeedFDR)
	EDR = Speed(smp.SpeedEDR)
	HDR = Speed(smp.SpeedHDR)
	NDR = Speed(smp.SpeedNDR)
)

type speedWord struct {
	name  string
	speed Speed
	bit   smp.LinkSpeed
	ext   smp.LinkSpeedExt
}

// speeds end with NDR: how a port with XDR is limited is not public.
var speeds = func() (out []speedWord) {
	for s := smp.SpeedSDR; s <= smp.SpeedNDR; s++ {
		bit, ext, _ := s.Bits()
		out = append(out, speedWord{strings.ToLower(s.String()), Speed(s), bit, ext})
	}
	return out
}()

// SpeedNames are the words for speeds, from the slowest up.
func SpeedNames() (names []string) {
	for _, s := range speeds {
		names = append(names, s.name)
	}
	return names
}

// ParseSpeed reads such a word; ok is false for another one.
func ParseSpeed(name string) (s Speed, ok bool) {
	for _, x := range speeds {
		if x.name == name {
			return x.speed, true
		}
	}
	return 0, false
}

// String is the word for the speed.
func (s Speed) String() string {
	for _, x := range speeds {
		if x.speed == s {
			return x.name
		}
	}
	return "any"
}

// Enabled is what of the supported speeds may be used; both are 0 when s leaves
// that, or nothing that is supported is so slow. Where only the old speeds are
// left, the others are to be turned off (smp.LinkSpeedExtDisable).
func (s Speed) Enabled(supported smp.LinkSpeed, ext smp.LinkSpeedExt) (enabled smp.LinkSpeed, enabledExt smp.LinkSpeedExt) {
	for _, x := range speeds {
		if x.speed <= s {
			enabled |= x.bit & supported
			enabledExt |= x.ext & ext
		}
	}
	return enabled, enabledExt
}
