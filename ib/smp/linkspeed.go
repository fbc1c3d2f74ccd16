package smp

import "github.com/ibwarden/ibwarden/ib"

// Speed is the speed of each lane of a link, of any of the three elements of PortInfo that have
// speeds; a higher one is faster. Whatever is said of the speed of a link is said from here.
type Speed uint8

// The speeds, by the names of the InfiniBand Trade Association. SpeedNone is that of a link that
// is down, or that runs at a speed that is not known.
const (
	SpeedNone Speed = iota
	SpeedSDR
	SpeedDDR
	SpeedQDR
	SpeedFDR
	SpeedEDR
	SpeedHDR
	SpeedNDR
	SpeedXDR
)

// speeds have each speed's name, its signalling rate a lane in Gb/s, what of that is data in Mb/s,
// the rate a lane in tenths of Gb/s by which codes of ib.Rate are counted, and where it is among the
// bits of PortInfo.
var speeds = [...]struct {
	name, signal string
	gbps         float64
	data, tenths int
	plain        LinkSpeed
	ext          LinkSpeedExt
	ext2         LinkSpeedExt2
}{
	SpeedNone: {name: "none", signal: "none"},
	SpeedSDR:  {"SDR", "2.5 Gbps", 2.5, 2_000, 25, LinkSpeedSDR, 0, 0},
	SpeedDDR:  {"DDR", "5.0 Gbps", 5, 4_000, 50, LinkSpeedDDR, 0, 0},
	SpeedQDR:  {"QDR", "10.0 Gbps", 10, 8_000, 100, LinkSpeedQDR, 0, 0},
	SpeedFDR:  {"FDR", "14.0625 Gbps", 14.0625, 13_636, 140, 0, LinkSpeedFDR, 0},
	SpeedEDR:  {"EDR", "25.78125 Gbps", 25.78125, 25_000, 250, 0, LinkSpeedEDR, 0},
	SpeedHDR:  {"HDR", "53.125 Gbps", 53.125, 50_000, 500, 0, LinkSpeedHDR, 0},
	SpeedNDR:  {"NDR", "106.25 Gbps", 106.25, 100_000, 1000, 0, LinkSpeedNDR, 0},
	SpeedXDR:  {"XDR", "212.5 Gbps", 212.5, 200_000, 2000, 0, 0, LinkSpeedXDR},
}

// String is the name of the speed, as "NDR".
func (s Speed) String() string { return speeds[s.known()].name }

// Gbps is the signalling rate of a lane, as "106.25 Gbps".
func (s Speed) Gbps() string { return speeds[s.known()].signal }

// Signal is the signalling rate of a lane in Gb/s.
func (s Speed) Signal() float64 { return speeds[s.known()].gbps }

// Data is the data rate of a lane in Mb/s.
func (s Speed) Data() int { return speeds[s.known()].data }

// Tenths is the rate of a lane as rates of paths count it, in tenths of Gb/s.
func (s Speed) Tenths() int { return speeds[s.known()].tenths }

func (s Speed) known() Speed {
	if int(s) >= len(speeds) {
		return SpeedNone
	}
	return s
}

// Bits are the bit of a speed in the element that has it, and 0 in the others.
func (s Speed) Bits() (LinkSpeed, LinkSpeedExt, LinkSpeedExt2) {
	x := &speeds[s.known()]
	return x.plain, x.ext, x.ext2
}

// FastestSpeed is the fastest speed that is in sets of speeds.
func FastestSpeed(plain LinkSpeed, ext LinkSpeedExt, ext2 LinkSpeedExt2) Speed {
	for s := SpeedXDR; s > SpeedNone; s-- {
		if x := &speeds[s]; x.plain&plain != 0 || x.ext&ext != 0 || x.ext2&ext2 != 0 {
			return s
		}
	}
	return SpeedNone
}

// Speed is the speed that the link of the port runs at. Where it is an extended one,
// LinkSpeedActive does not count. SpeedNone also where the element that counts has more bits set than
// one, or none that is known.
func (p *PortInfo) Speed() Speed {
	plain, ext, ext2 := p.LinkSpeedActive, p.LinkSpeedExtActive, p.LinkSpeedExtActive2
	switch {
	case ext2 != 0:
		plain, ext = 0, 0
	case ext != 0:
		plain = 0
	}
	s := FastestSpeed(plain, ext, ext2)
	if a, b, c := s.Bits(); a != plain || b != ext || c != ext2 {
		return SpeedNone
	}
	return s
}

// Lanes is how many lanes a width has, 0 for a set of more than one or for none.
func (w LinkWidth) Lanes() int {
	switch w {
	case LinkWidth1X:
		return 1
	case LinkWidth2X:
		return 2
	case LinkWidth4X:
		return 4
	case LinkWidth8X:
		return 8
	case LinkWidth12X:
		return 12
	}
	return 0
}

// WidestWidth is the widest width of a set, 0 when it has none that is known.
func WidestWidth(set LinkWidth) LinkWidth {
	for _, w := range []LinkWidth{LinkWidth12X, LinkWidth8X, LinkWidth4X, LinkWidth2X, LinkWidth1X} {
		if set&w != 0 {
			return w
		}
	}
	return 0
}

const (
	// slowestRate, 2.5 Gb/s, is that of a link of which width or speed make no sense.
	slowestRate = ib.Rate(2)
	// rateCodes is above all codes of rates, which have 6 bits.
	rateCodes = ib.Rate(64)
)

// Rate is the rate of the link that the port has. Where there is no code for it, it is
// the highest rate below.
func (p *PortInfo) Rate() ib.Rate {
	best, want := slowestRate, p.LinkWidthActive.Lanes()*p.Speed().Tenths()
	for r := ib.Rate(0); r < rateCodes; r++ {
		if t := r.Tenths(); t <= want && t > best.Tenths() {
			best = r
		}
	}
	return best
}
