// settings*.go: names the settings of links and devices in a policy: packet
// lifetimes, VL arbitration, P_Key enforcement, M_Key protection.
//
// A Settings is a value; Default has the values that a policy without settings
// means, and docs/settings.md the reasons. Check finds what no device could hold. Package
// desired computes from it what links, virtual lanes and ports are set to.

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Level is a service level with a share of every link.
type Level struct {
	SL ib.SL
	// Share is what packets of this level get of a link on which all levels have more to
	// send than it carries, in percent, 1 to 100. What one level leaves the others use.
	Share uint8
}

// ShareMax is the whole link, in percent.
const ShareMax = 100

// checkLevels finds shares that no link could give.
func (s *Settings) checkLevels() error {
	if s.Levels == nil {
		return nil
	}
	sum, most := 0, smp.DataVLs(s.MaxOperationalVLs)
	for i, l := range s.Levels {
		switch {
		case l.SL >= SLs:
			return fmt.Errorf("qos_levels: SL %d, want 0 to %d", l.SL, SLs-1)
		case i > 0 && l.SL <= s.Levels[i-1].SL:
			return fmt.Errorf("qos_levels: SL %d after SL %d, want each level once, in rising order", l.SL, s.Levels[i-1].SL)
		case l.Share == 0 || l.Share > ShareMax:
			return fmt.Errorf("qos_levels: SL %d has a share of %d %%, want 1 to %d", l.SL, l.Share, ShareMax)
		}
		sum += int(l.Share)
	}
	zero := len(s.Levels) > 0 && s.Levels[0].SL == 0
	switch usual := DefaultSettings(); {
	case sum > ShareMax:
		return fmt.Errorf("qos_levels: the shares come to %d %%, want at most %d", sum, ShareMax)
	case sum == ShareMax && !zero:
		return fmt.Errorf("qos_levels: the shares come to %d %%, which leaves nothing for SL 0 and every other level that is not listed (list SL 0, or lower a share)", sum)
	case len(s.Shares()) > most:
		return fmt.Errorf("qos_levels: %d levels with SL 0, each of which needs a VL, but max_op_vls %d allows %d", len(s.Shares()), s.MaxOperationalVLs, most)
	case s.SLToVL != nil, s.VLHighLimit != usual.VLHighLimit, !slices.Equal(s.VLArbHigh, usual.VLArbHigh), !slices.Equal(s.VLArbLow, usual.VLArbLow):
		return errors.New("qos_levels with qos_sl2vl, qos_high_limit, qos_vlarb_high or qos_vlarb_low: the shares decide these, want one or the other")
	}
	return nil
}

// Shares are those of all levels, in rising order, SL 0 for whatever is not listed; nil
// without Levels.
func (s *Settings) Shares() []Level {
	if s.Levels == nil {
		return nil
	}
	if len(s.Levels) > 0 && s.Levels[0].SL == 0 {
		return s.Levels
	}
	rest := uint8(ShareMax)
	for _, l := range s.Levels {
		rest -= l.Share
	}
	return append([]Level{{0, rest}}, s.Levels...)
}

// SortLevels puts levels in the order of Settings.Levels.
func SortLevels(levels []Level) {
	slices.SortStableFunc(levels, func(a, b Level) int { return cmp.Compare(a.SL, b.SL) })
}
