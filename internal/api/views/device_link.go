package views

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

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

// ext2All is all bits of LinkSpeedExtEnabled2: everything that is supported, as in the elements before it.
const ext2All smp.LinkSpeedExt2 = 7

// slow says that a link is narrower or slower than both its ends may be; empty where it is
// not, or where that is not known.
func slow(p *observed.Port) string {
	q := p.Peer
	if q == nil || !q.InfoRead || !p.IsUp() {
		return ""
	}
	a, b := &p.Info, &q.Info
	width := smp.WidestWidth(may(a.LinkWidthSupported, a.LinkWidthEnabled, b.LinkWidthSupported, b.LinkWidthEnabled, smp.LinkWidthAll))
	if is := a.LinkWidthActive.Lanes(); width != 0 && is != 0 && is < width.Lanes() {
		return fmt.Sprintf("%v wide, and both ends may be %v", a.LinkWidthActive, width)
	}
	best := smp.FastestSpeed(
		may(a.LinkSpeedSupported, a.LinkSpeedEnabled, b.LinkSpeedSupported, b.LinkSpeedEnabled, smp.LinkSpeedAll),
		may(a.LinkSpeedExtSupported, a.LinkSpeedExtEnabled, b.LinkSpeedExtSupported, b.LinkSpeedExtEnabled, smp.LinkSpeedExtAll),
		may(a.LinkSpeedExtSupported2, a.LinkSpeedExtEnabled2, b.LinkSpeedExtSupported2, b.LinkSpeedExtEnabled2, ext2All))
	if a.Speed() < best {
		return fmt.Sprintf("%s a lane, and both ends may run at %s", a.Speed().Gbps(), best.Gbps())
	}
	return ""
}

// isPassing reports whether data passes the link of a port, as far as that was read.
func isPassing(p *observed.Port) bool { return p.InfoRead && p.Info.PortState == smp.PortActive }
