package desired

import (
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// LimitLink wants of a port that its link is no wider and no faster than this when it
// trains next. A width or speed that leaves nothing of what the port supports
// leaves that alone, and the answer is false: such a link would never come up. So does a speed
// limit of a port that has XDR.
func LimitLink(p *observed.Port, w policy.Width, s policy.Speed, d *observed.Desired) (ok bool) {
	want, info := d.Port(p), &p.Info
	ok = true
	if w != 0 {
		if enabled := w.Enabled(info.LinkWidthSupported); enabled != 0 {
			want.Elements |= observed.ElementLinkWidthEnabled
			want.Info.LinkWidthEnabled = enabled
		} else {
			ok = false
		}
	}
	if s == 0 {
		return ok
	}
	if info.LinkSpeedExtSupported2 != 0 {
		return false // which value turns XDR off is not public
	}
	speed, ext := s.Enabled(info.LinkSpeedSupported, info.LinkSpeedExtSupported)
	if speed == 0 && ext == 0 {
		return false
	}
	if speed != 0 {
		want.Elements |= observed.ElementLinkSpeedEnabled
		want.Info.LinkSpeedEnabled = speed
	}
	if info.LinkSpeedExtSupported != 0 {
		want.Elements |= observed.ElementLinkSpeedExtEnabled
		want.Info.LinkSpeedExtEnabled = ext // 0: the plan writes smp.LinkSpeedExtDisable
	}
	return ok
}
