package topology

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib/smp"
)

// Bits of Rates.Width, as PortInfo.LinkWidthEnabled has them.
const (
	Width1x  uint8 = 1
	Width4x  uint8 = 2
	Width8x  uint8 = 4
	Width12x uint8 = 8
	Width2x  uint8 = 16

	widthMask = 31
)

// Bits of Rates.Speed, as PortInfo.LinkSpeedEnabled has them.
const (
	SpeedSDR uint8 = 1
	SpeedDDR uint8 = 2
	SpeedQDR uint8 = 4

	speedMask = 7
)

// Bits of Rates.ExtSpeed, as PortInfo.LinkSpeedExtEnabled has them.
const (
	ExtSpeedFDR uint8 = 1
	ExtSpeedEDR uint8 = 2
	ExtSpeedHDR uint8 = 4
	ExtSpeedNDR uint8 = 8

	extSpeedMask = 15
)

// ExtSpeed2XDR is the only bit of Rates.ExtSpeed2, as PortInfo.LinkSpeedExtEnabled2 has it.
const ExtSpeed2XDR uint8 = 1

// Rates is a set of link widths, speeds and extended speeds. As an active rate
// it has one width, one speed, and one extended speed or none.
type Rates struct {
	Width    uint8
	Speed    uint8
	ExtSpeed uint8 // 0 for none
	// ExtSpeed2 is that of XDR. Files of ibsim have no word for it, those of ibnetdiscover do.
	ExtSpeed2 uint8
}

// DefaultRates is what ibsim enables on a port about which the file is silent.
var DefaultRates = Rates{Width: Width4x, Speed: SpeedSDR}

// named is a bit of a mask and its name.
type named struct {
	bit  uint8
	name string
}

// The bits of each mask, fastest first.
var (
	widths    = []named{{Width12x, "12x"}, {Width8x, "8x"}, {Width4x, "4x"}, {Width2x, "2x"}, {Width1x, "1x"}}
	speeds    = []named{{SpeedQDR, smp.SpeedQDR.String()}, {SpeedDDR, smp.SpeedDDR.String()}, {SpeedSDR, smp.SpeedSDR.String()}}
	extSpeeds = []named{
		{ExtSpeedNDR, smp.SpeedNDR.String()}, {ExtSpeedHDR, smp.SpeedHDR.String()},
		{ExtSpeedEDR, smp.SpeedEDR.String()}, {ExtSpeedFDR, smp.SpeedFDR.String()},
	}
	extSpeeds2 = []named{{ExtSpeed2XDR, smp.SpeedXDR.String()}}
)

// fastest returns the fastest bit of mask, or the zero value.
func fastest(mask uint8, bits []named) named {
	for _, b := range bits {
		if mask&b.bit != 0 {
			return b
		}
	}
	return named{}
}

// Active is the rate of a link between a port that enables r and one that
// enables o: the fastest width, speed and extended speed that both have. It is
// false if they share no width or no speed; then the link does not train.
func (r Rates) Active(o Rates) (Rates, bool) {
	a := Rates{
		Width:     fastest(r.Width&o.Width, widths).bit,
		Speed:     fastest(r.Speed&o.Speed, speeds).bit,
		ExtSpeed:  fastest(r.ExtSpeed&o.ExtSpeed, extSpeeds).bit,
		ExtSpeed2: fastest(r.ExtSpeed2&o.ExtSpeed2, extSpeeds2).bit,
	}
	return a, a.Width != 0 && a.Speed != 0
}

// String prints the fastest rate of the set as ibnetdiscover does: 4xQDR.
func (r Rates) String() string {
	width, speed := fastest(r.Width, widths).name, fastest(r.Speed, speeds).name
	if ext := fastest(r.ExtSpeed, extSpeeds).name; ext != "" {
		speed = ext
	}
	if ext := fastest(r.ExtSpeed2, extSpeeds2).name; ext != "" {
		speed = ext
	}
	if width == "" {
		width = "??"
	}
	if speed == "" {
		speed = "???"
	}
	return width + speed
}

// What ibsim enables on a port whose line ends in a rate. No extended speed
// leaves the port's extended speeds as they are.
var (
	enabledByWidth = map[int]uint8{
		1: Width1x, 2: Width2x, 4: Width1x | Width4x, 8: Width8x, 12: Width1x | Width4x | Width12x,
	}
	enabledBySpeed = map[string]Rates{
		"SDR":   {Speed: SpeedSDR},
		"DDR":   {Speed: SpeedSDR | SpeedDDR},
		"QDR":   {Speed: speedMask},
		"FDR10": {Speed: speedMask},
		"FDR":   {Speed: speedMask, ExtSpeed: ExtSpeedFDR},
		"EDR":   {Speed: speedMask, ExtSpeed: ExtSpeedFDR | ExtSpeedEDR},
		"HDR":   {Speed: speedMask, ExtSpeed: ExtSpeedFDR | ExtSpeedEDR | ExtSpeedHDR},
		"NDR":   {Speed: speedMask, ExtSpeed: extSpeedMask},
		"XDR":   {Speed: speedMask, ExtSpeed: extSpeedMask, ExtSpeed2: ExtSpeed2XDR},
	}
)

// enable applies an active rate as ibnetdiscover prints it (4xQDR) to the rates
// that a port enables.
func (r Rates) enable(active string) (Rates, error) {
	lanes, speed, _ := strings.Cut(active, "x")
	n, _ := strconv.Atoi(lanes)
	width, ok := enabledByWidth[n]
	if !ok {
		return r, fmt.Errorf("rate %q: want a width of 1x, 2x, 4x, 8x or 12x", active)
	}
	s, ok := enabledBySpeed[speed]
	if !ok {
		return r, fmt.Errorf("rate %q: want a speed of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR", active)
	}
	r.Width, r.Speed = width, s.Speed
	if s.ExtSpeed != 0 {
		r.ExtSpeed, r.ExtSpeed2 = s.ExtSpeed, s.ExtSpeed2
	}
	return r, nil
}
