package device

import (
	"fmt"
	"math/bits"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// widths are the widths of links, from narrow to wide.
var widths = []smp.LinkWidth{smp.LinkWidth1X, smp.LinkWidth2X, smp.LinkWidth4X, smp.LinkWidth8X, smp.LinkWidth12X}

// may is what of an element both ends of a link support and have enabled; all stands for
// everything that is supported.
func may[T ~uint8](a, aOn, b, bOn, all T) T {
	if aOn == all {
		aOn = a
	}
	if bOn == all {
		bOn = b
	}
	return a & aOn & b & bOn
}

// slow says that a link is narrower or slower than both its ends may be; empty where it is
// not, or where that is not known.
func slow(p *observed.Port) string {
	q := p.Peer
	if q == nil || !q.InfoRead || !p.IsUp() {
		return ""
	}
	best, is := smp.LinkWidth(0), 0
	can := may(p.Info.LinkWidthSupported, p.Info.LinkWidthEnabled, q.Info.LinkWidthSupported, q.Info.LinkWidthEnabled, smp.LinkWidthAll)
	for i, w := range widths {
		if can&w != 0 {
			best = w
		}
		if p.Info.LinkWidthActive == w {
			is = i
		}
	}
	if best != 0 && p.Info.LinkWidthActive != best && widths[is] == p.Info.LinkWidthActive {
		return fmt.Sprintf("%v wide, and both ends may be %v", p.Info.LinkWidthActive, best)
	}
	ext := may(p.Info.LinkSpeedExtSupported, p.Info.LinkSpeedExtEnabled, q.Info.LinkSpeedExtSupported, q.Info.LinkSpeedExtEnabled, smp.LinkSpeedExtAll)
	if best := top(ext); best != 0 && p.Info.LinkSpeedExtActive < best {
		return fmt.Sprintf("%s a lane, and both ends may run at %v", speedOf(p), best)
	}
	plain := may(p.Info.LinkSpeedSupported, p.Info.LinkSpeedEnabled, q.Info.LinkSpeedSupported, q.Info.LinkSpeedEnabled, smp.LinkSpeedAll)
	if best := top(plain); ext == 0 && best != 0 && p.Info.LinkSpeedExtActive == 0 && p.Info.LinkSpeedActive < best {
		return fmt.Sprintf("%s a lane, and both ends may run at %v", speedOf(p), best)
	}
	return ""
}

// top is the highest of some speeds.
func top[T ~uint8](set T) T {
	if set == 0 {
		return 0
	}
	return T(1) << (bits.Len8(uint8(set)) - 1)
}

// isPassing reports whether data passes the link of a port, as far as that was read.
func isPassing(p *observed.Port) bool { return p.InfoRead && p.Info.PortState == smp.PortActive }
