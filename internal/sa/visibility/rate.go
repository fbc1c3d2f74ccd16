package visibility

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// virtual lanes is the number of virtual lanes of an active width.
func lanes(w smp.LinkWidth) int {
	switch w {
	case smp.LinkWidth1X:
		return 1
	case smp.LinkWidth2X:
		return 2
	case smp.LinkWidth4X:
		return 4
	case smp.LinkWidth8X:
		return 8
	case smp.LinkWidth12X:
		return 12
	}
	return 0
}

// laneTenths is the speed of a virtual lane in tenths of Gb/s.
func laneTenths(p *smp.PortInfo) int {
	switch p.LinkSpeedExtActive {
	case smp.LinkSpeedFDR:
		return 140
	case smp.LinkSpeedEDR:
		return 250
	case smp.LinkSpeedHDR:
		return 500
	case smp.LinkSpeedNDR:
		return 1000
	}
	switch p.LinkSpeedActive {
	case smp.LinkSpeedSDR:
		return 25
	case smp.LinkSpeedDDR:
		return 50
	case smp.LinkSpeedQDR:
		return 100
	}
	return 0
}

// slowest is the rate of a link of which width or speed make no sense.
const slowest = ib.Rate(2) // 2.5 Gb/s

// RateOf is the rate of the link that a port has. Where there is no code for
// it, it is the highest rate below.
func RateOf(p *smp.PortInfo) ib.Rate {
	best, want := slowest, lanes(p.LinkWidthActive)*laneTenths(p)
	for r := ib.Rate(0); r < rateCodes; r++ {
		if t := r.Tenths(); t <= want && t > best.Tenths() {
			best = r
		}
	}
	return best
}

// rateCodes is above all codes of rates, which have 6 bits.
const rateCodes = ib.Rate(64)
